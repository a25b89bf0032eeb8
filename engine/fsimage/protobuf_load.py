"""A protobuf image to a Namespace, in the order in which a NameNode loads it, on all threads.

1  header and strings          small sections, plain Python
2  boundaries                  cut INODE and INODE_DIR between messages, where the file has no parts of its own
3  count, then fill            inode messages to columns (inode_kernel), each piece at its place
4  ids to rows, attach, place  directory entries to parents and children (directory_kernel)
5  order, reach                names ascend in each directory; what the root does not reach is explained
6  the rest                    references, snapshots, open files, tokens, cache
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.fsimage import directory_kernel as dk
from engine.fsimage import inode_kernel as ik
from engine.fsimage import sections
from engine.fsimage.boundaries import PIECE_BYTES, find_boundaries
from engine.fsimage.columns import (
    DETACHED,
    I32,
    MAX_BLOCKS,
    MAX_ROWS,
    NO_PARENT,
    ROOT_ID,
    U8,
    BlockColumns,
    CacheState,
    Extras,
    Flag,
    InodeColumns,
    Kind,
    Namespace,
    OpenFile,
    References,
    SecretState,
    SnapshotState,
    Sparse,
    Strings,
    Tree,
    make_block_columns,
    make_inode_columns,
)
from engine.fsimage.columns import I64 as I64Array
from engine.fsimage.container import KNOWN_SECTIONS, Container, freeze
from engine.fsimage.id_map import IdMap, IdsCollide, make_id_map
from engine.fsimage.integrity import MOST, Trouble
from engine.fsimage.load_state import MAX_EXPANSION, Load, check_reach, check_strings, make_sparse, note_order
from engine.fsimage.pieces import run_pieces
from engine.fsimage.snapshot_kernel import Diffs, read_diffs
from engine.fsimage.tree import count_children, index_children, order_by_name
from engine.measure.phases import Phase

INODE, INODE_DIR = "INODE", "INODE_DIR"
_RAW = ("ERASURE_CODING", "SNAPSHOT", "SNAPSHOT_DIFF", "INODE_REFERENCE", "CACHE_MANAGER", "STRING_TABLE")
_FREE_BYTES = 1 << 20


class Piece(NamedTuple):
    """Whole messages of one section: data[start:end]; `shift` makes its offsets the section's."""

    data: U8
    start: int
    end: int
    shift: int
    messages: int


def load_protobuf(load: Load) -> Namespace:
    """Load the image; contradictions go to `load.findings`. Raises ImageDamaged or LoadCancelled."""
    container = load.container
    strings = _strings(load)
    with load.loading.phase("ErasureCodingPolicies") as step, sections.decoding(container, "ERASURE_CODING"):
        policies = sections.read_ec_policies(_bytes(container, "ERASURE_CODING").data)
        step.expect(len(policies))
        step.advance(len(policies))
    with load.loading.phase("Inodes") as step:
        with step.phase("read"):
            parts = _parts(load, INODE, step)
        last_id, stated, first = _inode_header(container, parts)
        step.expect(stated)
        header_bytes = _bytes(container, "NS_INFO")
        with sections.decoding(container, "NS_INFO"):
            header = sections.read_header(container, header_bytes.data, stated, last_id)
        with step.phase("boundaries"):
            pieces = _pieces(load, INODE, parts, first)
        inodes, blocks, names, sparse, directories = _fill(load, step, pieces)
        del parts, pieces
        rows = int(inodes.inode_id.size)
        if rows != stated:
            load.findings.add(Trouble.COUNT, f"the INODE section states {stated:,} inodes and holds {rows:,}")
        with step.phase("references"), sections.decoding(container, "INODE_REFERENCE"):
            references = sections.read_references(_bytes(container, "INODE_REFERENCE").data)
        with step.phase("ids") as ids_step:
            try:
                ids, lost, doubles = make_id_map(
                    inodes.inode_id, threads=load.threads, phase=ids_step, cancel=load.cancel, most=MOST
                )
            except IdsCollide as error:
                raise container.damage(INODE, 0, "inode ids made to collide", "ids handed out upwards") from error
        load.findings.count(Trouble.DUPLICATE_ID, lost)
        for double in doubles:
            text = f"inode {double.inode_id} stands again at row {double.row:,}"
            load.findings.example(Trouble.DUPLICATE_ID, text, inode_id=double.inode_id)
        root = ids.row(inodes.inode_id, ROOT_ID)
        if root < 0 or inodes.flags[root] & Flag.KIND != Kind.DIRECTORY:
            raise container.damage(INODE, 0, f"no directory with id {ROOT_ID}", "one: it is the root")
        inodes.parent[root] = NO_PARENT
        tree = _directories(load, step, inodes, ids, references)
        with step.phase("order", total=rows) as order_step:
            order = order_by_name(
                inodes, names, tree, threads=load.threads, phase=order_step, cancel=load.cancel, most=MOST
            )
        note_order(load.findings, inodes, order.same_names, order.first_same_names, order.nameless)
        with step.phase("snapshots"):
            snapshots, diffs = _snapshots(load, inodes, ids, references)
        with step.phase("reach"):
            check_reach(load.findings, inodes, tree, root, directories, _held(inodes, ids, references, diffs))
        open_files = _open_files(load, inodes, ids)
        check_strings(load.findings, inodes, strings)
    secrets = _secrets(load)
    cache = _cache(load)
    known = set(KNOWN_SECTIONS)
    extras = Extras(
        open_files=open_files,
        references=references,
        snapshots=snapshots,
        cache=cache,
        secrets=secrets,
        ec_policies=policies,
        unknown_sections=tuple((s.name, s.length) for s in container.sections if s.name not in known),
        raw={name: _bytes(container, name).data for name in _RAW if container.find(name) is not None},
    )
    return Namespace(header, inodes, names, blocks, tree, strings, sparse, extras, root)


def _bytes(container: Container, name: str) -> U8:
    found = container.read_named(name)
    if found is None and name in ("NS_INFO", "STRING_TABLE"):
        raise container.damage(name, 0, "no such section in the image", "one")
    return freeze(b"") if found is None else found


def _strings(load: Load) -> Strings:
    with load.loading.phase("StringTable") as step, sections.decoding(load.container, "STRING_TABLE"):
        strings, stated, count = sections.read_strings(_bytes(load.container, "STRING_TABLE").data)
        step.expect(stated)
        step.advance(count)
    if stated != count:
        load.findings.add(Trouble.COUNT, f"the string table states {stated:,} entries and holds {count:,}")
    return strings


def _parts(load: Load, name: str, step: Phase) -> list[tuple[U8, int]]:
    """Return a section's parts, decompressed, each with its offset in the section; in parallel where it has several."""
    stored = load.container.parts(name)
    if not stored:
        raise load.container.damage(name, 0, "no such section in the image", "one")
    found: list[U8 | None] = [None] * len(stored)

    def read(part: int) -> None:
        found[part] = load.container.read(stored[part], load.check)

    run_pieces(len(stored), read, threads=load.threads if load.container.codec else 1, phase=step, cancel=load.cancel)
    parts: list[tuple[U8, int]] = []
    shift = 0
    for data in found:
        assert data is not None  # run_pieces raises where one is missing
        parts.append((data, shift))
        shift += int(data.size)
    return parts


def _inode_header(container: Container, parts: list[tuple[U8, int]]) -> tuple[int, int, int]:
    with sections.decoding(container, INODE):
        return sections.read_inode_header(parts[0][0].data)


def _pieces(load: Load, name: str, parts: list[tuple[U8, int]], first: int = 0) -> list[Piece]:
    """Cut a section's parts between messages; `first` bytes of the first part are a header."""
    found: list[list[Piece]] = [[] for _ in parts]

    def cut(part: int) -> None:
        data, shift = parts[part]
        at, end = (first if part == 0 else 0), int(data.size)
        size = min(PIECE_BYTES, max(end // (4 * load.threads), 4096))
        room = 64
        offsets, firsts, state = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(2, np.int64)
        while at < end:
            load.check()
            before = int(state[0])
            count = int(find_boundaries(data, at, end, size, offsets, firsts, state))
            if count < 0:
                offset = int(state[1]) + shift
                raise load.container.damage(
                    name, offset, "a message that reaches past the section's end", "one within it"
                )
            at = int(state[1])
            starts = [*offsets[:count].tolist(), at]
            numbers = [*firsts[:count].tolist(), int(state[0])]
            assert numbers[0] == before
            found[part] += [
                Piece(data, starts[k], starts[k + 1], shift, numbers[k + 1] - numbers[k]) for k in range(count)
            ]

    run_pieces(len(parts), cut, threads=load.threads, phase=load.loading, cancel=load.cancel)
    return [piece for group in found for piece in group]


def _fill(load: Load, step: Phase, pieces: list[Piece]) -> tuple[InodeColumns, BlockColumns, U8, Sparse, int]:
    """Count, allocate, fill; return the columns and how many directories there are."""
    rows = sum(piece.messages for piece in pieces)
    if rows > MAX_ROWS:
        raise load.container.damage(INODE, 0, f"{rows:,} inodes", f"{MAX_ROWS:,}")
    counts = np.zeros((len(pieces) + 1, ik.CURSORS), np.int64)
    nothing = make_inode_columns(0), make_block_columns(0), np.zeros(0, np.uint8), ik.make_sparse_arrays(counts[0])

    def count(index: int) -> None:
        _walk(load, counting, pieces[index], False, *nothing, counts[index + 1], counts[0])

    with step.phase("count", total=rows) as counting:
        run_pieces(len(pieces), count, threads=load.threads, phase=counting, cancel=load.cancel)
    bases = np.cumsum(counts, axis=0)
    totals = bases[-1]
    if totals[ik.BLOCKS] > MAX_BLOCKS:
        raise load.container.damage(INODE, 0, f"{int(totals[ik.BLOCKS]):,} blocks", f"{MAX_BLOCKS:,}")
    _check_density(load, totals, sum(piece.end - piece.start for piece in pieces))
    inodes, blocks = make_inode_columns(rows), make_block_columns(int(totals[ik.BLOCKS]))
    names, sparse = np.zeros(int(totals[ik.NAME_BYTES]), np.uint8), ik.make_sparse_arrays(totals)

    def fill(index: int) -> None:
        cursors, limits = bases[index].copy(), bases[index + 1]
        _walk(load, step, pieces[index], True, inodes, blocks, names, sparse, cursors, limits)

    with step.phase("columns") as filling:
        run_pieces(len(pieces), fill, threads=load.threads, phase=filling, cancel=load.cancel)
    inodes.name_start[rows] = totals[ik.NAME_BYTES]
    inodes.block_start[rows] = totals[ik.BLOCKS]
    return inodes, blocks, names, make_sparse(sparse, totals), int(totals[ik.DIRECTORIES])


def _check_density(load: Load, totals: I64Array, section_bytes: int) -> None:
    """Refuse an image whose columns would dwarf it, before they are allocated.

    The smallest inodes a NameNode writes take 1.7 times their bytes in columns; empty messages would take 30 times.
    """
    needed = int(totals @ ik.COLUMN_BYTES)
    allowed = MAX_EXPANSION * section_bytes + _FREE_BYTES
    if needed > allowed:
        found = f"{int(totals[ik.ROWS]):,} inodes that need {needed:,} bytes of columns in {section_bytes:,} bytes"
        raise load.container.damage(INODE, 0, found, f"{allowed:,}")


def _walk(
    load: Load,
    step: Phase,
    piece: Piece,
    fill: bool,
    inodes: InodeColumns,
    blocks: BlockColumns,
    names: U8,
    sparse: ik.SparseArrays,
    cursors: I64Array,
    limits: I64Array,
) -> None:
    """Walk a piece in bounded steps; `step` counts what was passed."""
    at, report = piece.start, np.zeros(3, np.int64)
    while at < piece.end:
        load.check()
        row, begin = int(cursors[ik.ROWS]), at
        at = int(
            ik.walk_inodes(
                piece.data,
                at,
                piece.end,
                ik.STEP_MESSAGES,
                fill,
                inodes,
                blocks,
                names,
                sparse,
                cursors,
                limits,
                report,
            )
        )
        if at < 0:
            found, allowed = ik.describe(int(report[ik.CODE]), int(report[ik.VALUE]))
            raise load.container.damage(INODE, piece.shift + int(report[ik.OFFSET]), found, allowed)
        step.advance(int(cursors[ik.ROWS]) - row, read=at - begin)


_PROBLEMS = {
    dk.MISSING_PARENT: (Trouble.MISSING_PARENT, "an entry for directory {parent}, which is not there"),
    dk.PARENT_IS_NO_DIRECTORY: (Trouble.PARENT_IS_NO_DIRECTORY, "an entry for {parent}, which is no directory"),
    dk.MISSING_CHILD: (Trouble.MISSING_CHILD, "directory {parent} lists {child}, which is not there"),
    dk.LISTED_TWICE: (Trouble.LISTED_TWICE, "directory {parent} lists {child}, which is listed already"),
    dk.BAD_REFERENCE: (Trouble.BAD_REFERENCE, "directory {parent} lists reference {child}, which is not there"),
    dk.ROOT_LISTED: (Trouble.ROOT_LISTED, "directory {parent} lists the root"),
}


def _directories(load: Load, step: Phase, inodes: InodeColumns, ids: IdMap, references: References) -> Tree:
    """Set parents from INODE_DIR and return the children index in the order of the file, where that can be."""
    with step.phase("directory entries"):
        parts = _parts(load, INODE_DIR, step)
        pieces = _pieces(load, INODE_DIR, parts)
    with step.phase("attach") as attaching:
        totals, problems = _attach(load, attaching, pieces, inodes, ids, references, load.threads)
        rows = int(inodes.parent.size)
        child_start = np.zeros(rows + 1, np.int32)
        attached = int(count_children(inodes.parent, child_start))
        if totals[dk.PROBLEMS] or attached != totals[dk.ATTACHED]:
            inodes.parent[inodes.parent != NO_PARENT] = DETACHED
            totals, problems = _attach(load, attaching, pieces, inodes, ids, references, 1)
            child_start[:] = 0
            attached = int(count_children(inodes.parent, child_start))
    for code, (trouble, _) in _PROBLEMS.items():
        load.findings.count(trouble, int(totals[dk.PROBLEMS + code]))
    for code, offset, parent, child in problems:
        trouble, text = _PROBLEMS[code]
        load.findings.example(trouble, text.format(parent=parent, child=child), inode_id=parent, offset=offset)
    with step.phase("place") as placing:
        children = np.zeros(attached, np.int32)
        placed = _place(load, placing, pieces, inodes, ids, references, child_start, children)
    return Tree(child_start, children) if placed == attached else index_children(inodes.parent)


def _attach(
    load: Load,
    phase: Phase,
    pieces: list[Piece],
    inodes: InodeColumns,
    ids: IdMap,
    references: References,
    threads: int,
) -> tuple[I64Array, list[tuple[int, int, int, int]]]:
    totals = np.zeros((len(pieces), dk.TOTALS), np.int64)
    problems: list[list[tuple[int, int, int, int]]] = [[] for _ in pieces]

    def attach(index: int) -> None:
        piece, report, at = pieces[index], np.zeros(3, np.int64), pieces[index].start
        notes = np.zeros((MOST, dk.PROBLEM_FIELDS), np.int64)
        while at < piece.end:
            load.check()
            at = int(
                dk.attach(
                    piece.data, at, piece.end, dk.STEP_ENTRIES, ids.slots, ids.base, ids.is_direct, inodes.inode_id,
                    references.referred_id, inodes.parent, inodes.flags, notes, totals[index], report,
                )
            )  # fmt: skip
            if at < 0:
                found, allowed = ik.describe(int(report[0]), 0)
                raise load.container.damage(INODE_DIR, piece.shift + int(report[1]), found, allowed)
        count = min(int(totals[index, dk.PROBLEMS]), MOST)
        problems[index] = [(int(n[0]), piece.shift + int(n[1]), int(n[2]), int(n[3])) for n in notes[:count]]

    run_pieces(len(pieces), attach, threads=threads, phase=phase, cancel=load.cancel)
    return totals.sum(axis=0), [problem for group in problems for problem in group]


def _place(
    load: Load,
    phase: Phase,
    pieces: list[Piece],
    inodes: InodeColumns,
    ids: IdMap,
    references: References,
    child_start: I32,
    children: I32,
) -> int:
    totals = np.zeros((len(pieces), dk.TOTALS), np.int64)

    def place(index: int) -> None:
        piece, at = pieces[index], pieces[index].start
        while 0 <= at < piece.end:
            load.check()
            at = int(
                dk.place(
                    piece.data, at, piece.end, dk.STEP_ENTRIES, ids.slots, ids.base, ids.is_direct, inodes.inode_id,
                    references.referred_id, inodes.parent, child_start, children, totals[index],
                )
            )  # fmt: skip
        if at < 0:
            totals[index, dk.ATTACHED] = -(1 << 40)  # whatever the others placed, the sum is wrong

    run_pieces(len(pieces), place, threads=load.threads, phase=phase, cancel=load.cancel)
    return int(totals[:, dk.ATTACHED].sum())


def _snapshots(load: Load, inodes: InodeColumns, ids: IdMap, references: References) -> tuple[SnapshotState, Diffs]:
    container, findings = load.container, load.findings
    with sections.decoding(container, "SNAPSHOT"):
        counter, snapshottable, snapshots = sections.read_snapshots(_bytes(container, "SNAPSHOT").data)
    with sections.decoding(container, "SNAPSHOT_DIFF"):
        diffs = read_diffs(_bytes(container, "SNAPSHOT_DIFF"), len(references.referred_id))
    for inode_id in snapshottable:
        row = ids.row(inodes.inode_id, min(inode_id, (1 << 63) - 1))
        if row < 0:
            text = f"snapshottable directory {inode_id} is not there"
            findings.add(Trouble.DANGLING_SNAPSHOT, text, inode_id=inode_id)
        else:
            inodes.flags[row] |= Flag.SNAPSHOTTABLE
    for inode_id in diffs.entry_ids.tolist():
        if ids.row(inodes.inode_id, inode_id) < 0:
            text = f"a snapshot diff of inode {inode_id}, which is not there"
            findings.add(Trouble.DANGLING_SNAPSHOT, text, inode_id=inode_id)
    for inode_id in diffs.held_ids.tolist():
        if ids.row(inodes.inode_id, inode_id) < 0:
            text = f"a snapshot diff lists deleted inode {inode_id}, which is not there"
            findings.add(Trouble.DANGLING_SNAPSHOT, text, inode_id=inode_id)
    for snapshot in snapshots:
        if ids.row(inodes.inode_id, min(snapshot.root_id, (1 << 63) - 1)) < 0:
            text = f"HDFS snapshot {snapshot.snapshot_id} is of directory {snapshot.root_id}, which is not there"
            findings.add(Trouble.DANGLING_SNAPSHOT, text, inode_id=snapshot.root_id)
    findings.count(Trouble.BAD_REFERENCE, diffs.bad_references)
    for index, inode_id in enumerate(references.referred_id.tolist()):
        if ids.row(inodes.inode_id, inode_id) < 0:
            text = f"reference {index} is to inode {inode_id}, which is not there"
            findings.add(Trouble.DANGLING_REFERENCE, text, inode_id=inode_id)
    state = SnapshotState(
        counter,
        snapshottable,
        snapshots,
        diffs.directory_entries,
        diffs.directory_diffs,
        diffs.file_entries,
        diffs.file_diffs,
    )
    return state, diffs


def _held(inodes: InodeColumns, ids: IdMap, references: References, diffs: Diffs) -> set[int]:
    """Return the rows that snapshots hold by themselves: deleted inodes, and what references lead to."""
    wanted = [*diffs.held_ids.tolist(), *references.referred_id.tolist()]
    return {row for inode_id in wanted if (row := ids.row(inodes.inode_id, inode_id)) >= 0}


def _open_files(load: Load, inodes: InodeColumns, ids: IdMap) -> tuple[OpenFile, ...]:
    with sections.decoding(load.container, "FILES_UNDERCONSTRUCTION"):
        found = sections.read_open_files(_bytes(load.container, "FILES_UNDERCONSTRUCTION").data)
    for entry in found:
        row = ids.row(inodes.inode_id, min(entry.inode_id, (1 << 63) - 1))
        if row < 0 or inodes.flags[row] & Flag.KIND != Kind.FILE:
            text = f"open file {entry.inode_id} is not there"
            load.findings.add(Trouble.OPEN_FILE, text, inode_id=entry.inode_id)
    return found


def _secrets(load: Load) -> SecretState:
    with sections.decoding(load.container, "SECRET_MANAGER"):
        secrets = sections.read_secrets(_bytes(load.container, "SECRET_MANAGER").data)
    for name, count in (("DelegationKeys", secrets.keys), ("DelegationTokens", secrets.tokens)):
        with load.loading.phase(name, total=count) as step:
            step.advance(count)
    return secrets


def _cache(load: Load) -> CacheState:
    with sections.decoding(load.container, "CACHE_MANAGER"):
        cache = sections.read_cache(_bytes(load.container, "CACHE_MANAGER").data)
    for name, count in (("CachePools", len(cache.pools)), ("CacheEntries", len(cache.directives))):
        with load.loading.phase(name, total=count) as step:
            step.advance(count)
    return cache
