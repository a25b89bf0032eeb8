"""A legacy image (-1 to -51) to a Namespace: header, scan, fill, tree, and what stands behind the inodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from engine.fsimage import inode_kernel as ik
from engine.fsimage import legacy_kernel as lk
from engine.fsimage.codecs import CodecError, decompress, is_known
from engine.fsimage.columns import (
    I32,
    MAX_BLOCKS,
    MAX_ROWS,
    U8,
    BlockColumns,
    CacheDirective,
    CachePool,
    CacheState,
    Extras,
    Flag,
    Header,
    InodeColumns,
    Kind,
    Namespace,
    OpenFile,
    Quotas,
    SecretState,
    SnapshotInfo,
    Sparse,
    Strings,
    Texts,
    make_block_columns,
    make_inode_columns,
)
from engine.fsimage.columns import I64 as I64Array
from engine.fsimage.container import Container
from engine.fsimage.errors import CodecMissing, ImageDamaged
from engine.fsimage.integrity import MOST, Trouble
from engine.fsimage.legacy_layout import Feature, features_of
from engine.fsimage.legacy_reader import LegacyError, LegacyReader
from engine.fsimage.legacy_snapshots import SnapshotLoad, read_header_snapshots
from engine.fsimage.load_state import MAX_EXPANSION, Load, check_reach, make_sparse, note_order
from engine.fsimage.pieces import run_pieces
from engine.fsimage.tree import find, find_id, index_children, order_by_name
from engine.measure.phases import Phase

PIECE_ROWS = 1 << 16
_SMALLEST_RECORD = 8  # bytes: an empty name, replication, blocks
_FIRST_TABLE = 1 << 16  # directories
_FIRST_OWNERS = 1 << 10
_BY_ID = b"/.reserved/.inodes/"  # how an open file that only a snapshot holds is named
_MAX_OWNERS = 1 << 20


class LegacyPiece(NamedTuple):
    """Rows of one piece: where they begin, and what the scan counted before them."""

    at: int
    left_in_directory: int
    bases: I64Array  # int64[CURSORS]


@dataclass(frozen=True, slots=True)
class LegacyHead:
    """A legacy image's header and its records' bytes, decompressed."""

    header: Header
    features: Feature
    data: U8
    start: int  # of the first record in `data`
    snapshots: tuple[int, tuple[SnapshotInfo, ...]]  # counter, and those the header lists


def read_head(container: Container, load: Load | None = None) -> LegacyHead:
    """Decode the header; with a load, undo the compression too. Raises ImageDamaged or CodecMissing."""
    try:
        return _read_head(container, load)
    except LegacyError as error:
        raise damage(container, error.offset, error.found, error.allowed) from error


def damage(container: Container, offset: int, found: str, allowed: str) -> ImageDamaged:
    """Return the error for bytes of a legacy image: it has no sections."""
    return container.damage("", offset, found, allowed)


def _read_head(container: Container, load: Load | None) -> LegacyHead:
    features, reader = features_of(container.layout_version), LegacyReader(container.data.data, 4)
    if features & Feature.LAYOUT_FLAGS and reader.i32() != 0:
        raise LegacyError(4, "layout flags", "none")
    namespace_id = reader.i32() if features & Feature.NAMESPACE_ID else 0
    count_at = reader.at
    inodes = reader.i64() if features & Feature.LONG_COUNT else reader.i32()
    generation = reader.i64() if features & Feature.LAST_GENERATION else None
    generation_v2, limit, last_block = (
        (reader.i64(), reader.i64(), reader.i64()) if features & Feature.BLOCK_IDS else (None, None, None)
    )
    txid = reader.i64() if features & Feature.TXID else None
    last_inode = reader.i64() if features & Feature.INODE_ID else None
    snapshots = read_header_snapshots(reader, features) if features & Feature.SNAPSHOTS else (0, ())
    codec = ""
    if features & Feature.COMPRESSION and reader.u8():
        codec = reader.text()
        if not is_known(codec):
            raise CodecMissing(path=container.path, codec=codec)
    data, start = container.data, reader.at
    if codec and load is not None:
        try:
            data, start = decompress(codec, container.data[start:].data, load.check), 0
        except CodecError as error:
            raise LegacyError(start + error.offset, error.found, error.allowed) from error
    most = min((int(data.size) - start) // _SMALLEST_RECORD, MAX_ROWS)
    if not (1 <= inodes <= most or (codec and load is None)):
        raise LegacyError(count_at, f"{inodes:,} inodes", f"1 to {most:,}")
    header = Header(
        layout_version=container.layout_version,
        is_protobuf=False,
        codec=codec,
        namespace_id=namespace_id,
        inode_count=inodes,
        generation_v1=generation,
        generation_v2=generation_v2,
        generation_v1_limit=limit,
        last_block_id=last_block,
        last_inode_id=last_inode,
        txid=txid,
    )
    return LegacyHead(header, features, data, start, snapshots)


def load_legacy(load: Load) -> Namespace:
    """Load the image; contradictions go to `load.findings`. Raises ImageDamaged, CodecMissing or LoadCancelled."""
    container = load.container
    with load.loading.phase("Inodes") as step:
        head = read_head(container, load)
        rows = head.header.inode_count
        step.expect(rows)
        if head.features & Feature.SNAPSHOTS:
            return _with_snapshots(load, step, head)
        with step.phase("scan", total=rows) as scanning:
            pieces, totals, table, parents, end = _scan(load, scanning, head, rows)
        inodes, blocks, names, sparse, strings = _fill(load, step, head, pieces, totals, table, parents)
        del table, pieces
        with step.phase("children"):
            tree = index_children(inodes.parent)
        with step.phase("order", total=rows) as ordering:
            order = order_by_name(
                inodes, names, tree, threads=load.threads, phase=ordering, cancel=load.cancel, most=MOST
            )
        note_order(load.findings, inodes, order.same_names, order.first_same_names, order.nameless)
        with step.phase("reach"):
            check_reach(load.findings, inodes, tree, 0, int(totals[ik.DIRECTORIES]), set())
    namespace = Namespace(head.header, inodes, names, blocks, tree, strings, sparse, Extras(), 0)
    return _behind(load, namespace, head, end)


def _with_snapshots(load: Load, step: Phase, head: LegacyHead) -> Namespace:
    """Load a layout whose inodes carry snapshots, in plain Python."""
    reader = LegacyReader(head.data.data, head.start)
    reading = SnapshotLoad(reader, head.features)
    try:
        reading.tree(load.check)
    except LegacyError as error:
        raise damage(load.container, error.offset, error.found, error.allowed) from error
    inodes, blocks, names, strings = reading.columns()
    rows = int(inodes.parent.size)
    step.advance(rows, read=reader.at - head.start)
    counts = np.zeros(ik.CURSORS, np.int64)
    sparse = make_sparse(ik.make_sparse_arrays(counts), counts)
    quotas = np.array(reading.quotas, np.int64).reshape(-1, 3)
    sparse = replace(
        sparse,
        quotas=Quotas(quotas[:, 0].astype(np.int32), quotas[:, 1].copy(), quotas[:, 2].copy()),
        symlink_targets=_texts([row for row, _ in reading.links], [target for _, target in reading.links]),
    )
    tree = index_children(inodes.parent)
    with step.phase("order", total=rows) as ordering:
        order = order_by_name(inodes, names, tree, threads=load.threads, phase=ordering, cancel=load.cancel, most=MOST)
    note_order(load.findings, inodes, order.same_names, order.first_same_names, order.nameless)
    check_reach(load.findings, inodes, tree, 0, int((inodes.flags & 3 == Kind.DIRECTORY).sum()), reading.held)
    extras = Extras(snapshots=reading.state(*head.snapshots))
    namespace = Namespace(head.header, inodes, names, blocks, tree, strings, sparse, extras, 0)
    return _behind(load, namespace, head, reader.at)


def _scan(
    load: Load, phase: Phase, head: LegacyHead, rows: int
) -> tuple[list[LegacyPiece], I64Array, lk.Directories, I32, int]:
    """Find where records begin; return pieces, totals, the directories, parents (local names) and the last offset."""
    is_local = bool(head.features & Feature.LOCAL_NAMES)
    state, cursors, report = np.zeros(lk.STATE, np.int64), np.zeros(ik.CURSORS, np.int64), np.zeros(3, np.int64)
    parents = np.zeros(rows if is_local else 0, np.int32)
    table = lk.make_directories(_FIRST_TABLE)
    pieces: list[LegacyPiece] = []
    state[lk.AT] = head.start
    while cursors[ik.ROWS] < rows:
        load.check()
        row, at = int(cursors[ik.ROWS]), int(state[lk.AT])
        if row == len(pieces) * PIECE_ROWS:  # a table that was full may bring us here twice
            pieces.append(LegacyPiece(at, int(state[lk.LEFT_IN_DIRECTORY]), cursors.copy()))
        target = min(row - row % PIECE_ROWS + PIECE_ROWS, rows)
        result = int(
            lk.scan(head.data, head.data.size, target, int(head.features), state, cursors, table, parents, report)
        )
        if result == lk.FULL:
            table = _grown(table, int(state[lk.ENTRIES]))
        elif result < 0:
            found, allowed = lk.describe(int(report[ik.CODE]), int(report[ik.VALUE]))
            raise damage(load.container, int(report[ik.OFFSET]), found, allowed)
        phase.advance(int(cursors[ik.ROWS]) - row, read=int(state[lk.AT]) - at)
    needed, size = int(cursors @ ik.COLUMN_BYTES), int(head.data.size)
    if cursors[ik.BLOCKS] > MAX_BLOCKS or needed > MAX_EXPANSION * size + (1 << 20):
        found = f"{rows:,} inodes that need {needed:,} bytes of columns in {size:,} bytes"
        raise damage(load.container, head.start, found, f"{MAX_EXPANSION} times its size, and 2^32 blocks")
    return pieces, cursors, table, parents, int(state[lk.AT])


def _grown(table: lk.Directories, entries: int) -> lk.Directories:
    grown = lk.make_directories(2 * entries)
    grown.hashes[:entries], grown.name_at[:entries] = table.hashes, table.name_at
    grown.name_length[:entries], grown.row[:entries] = table.name_length, table.row
    grown.parent[:entries] = table.parent
    lk.rebuild(grown, entries)
    return grown


def _fill(
    load: Load,
    step: Phase,
    head: LegacyHead,
    pieces: list[LegacyPiece],
    totals: I64Array,
    table: lk.Directories,
    parents: I32,
) -> tuple[InodeColumns, BlockColumns, U8, Sparse, Strings]:
    rows = int(totals[ik.ROWS])
    inodes, blocks = make_inode_columns(rows), make_block_columns(int(totals[ik.BLOCKS]))
    if parents.size:
        inodes = inodes._replace(parent=parents)
    names, sparse = np.zeros(int(totals[ik.NAME_BYTES]), np.uint8), ik.make_sparse_arrays(totals)
    ends = [piece.bases for piece in pieces[1:]] + [totals]
    owners: list[tuple[list[bytes], list[bytes]]] = [([], []) for _ in pieces]

    def fill(index: int) -> None:
        load.check()
        piece, cursors, report = pieces[index], pieces[index].bases.copy(), np.zeros(3, np.int64)
        users, groups, counts = lk.make_owners(_FIRST_OWNERS), lk.make_owners(_FIRST_OWNERS), np.zeros(6, np.int64)
        at, left = piece.at, piece.left_in_directory
        while True:
            result = int(
                lk.fill(
                    head.data, at, head.data.size, left, int(head.features), inodes, blocks, names, sparse, table,
                    users, groups, counts, cursors, ends[index], report,
                )
            )  # fmt: skip
            if result != lk.FULL:
                break
            at, left = int(counts[2]), int(counts[3])
            users, groups = _roomier(head.data, users, counts[0]), _roomier(head.data, groups, counts[1])
        if result < 0:
            found, allowed = lk.describe(int(report[ik.CODE]), int(report[ik.VALUE]))
            raise damage(load.container, int(report[ik.OFFSET]), found, allowed)
        if load.lookups is not None:
            load.lookups.append(int(counts[4]))
        owners[index] = _names_of(head.data, users, counts[0]), _names_of(head.data, groups, counts[1])
        step.advance(int(cursors[ik.ROWS] - piece.bases[ik.ROWS]), read=result - piece.at)

    with step.phase("columns") as filling:
        run_pieces(len(pieces), fill, threads=load.threads, phase=filling, cancel=load.cancel)
    inodes.name_start[rows] = totals[ik.NAME_BYTES]
    inodes.block_start[rows] = totals[ik.BLOCKS]
    with step.phase("owners") as merging:
        strings = _merge_owners(load, merging, inodes, owners)
    return inodes, blocks, names, make_sparse(sparse, totals), strings


def _roomier(data: U8, owners: lk.Owners, count: int) -> lk.Owners:
    """Return a table with twice the room; ids stay, and duplicates of colliding names with them."""
    if count < owners.at.size:
        return owners
    grown = lk.make_owners(2 * int(owners.at.size))
    grown.at[:count], grown.length[:count] = owners.at[:count], owners.length[:count]
    lk.index_owners(data, grown, int(count))
    return grown


def _names_of(data: U8, owners: lk.Owners, count: int) -> list[bytes]:
    return [data[owners.at[k] : owners.at[k] + owners.length[k]].tobytes() for k in range(int(count))]


def _merge_owners(
    load: Load, phase: Phase, inodes: InodeColumns, owners: list[tuple[list[bytes], list[bytes]]]
) -> Strings:
    """Give owners and groups ids in order of first appearance, over all pieces."""
    known: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})
    maps: list[list[I64Array]] = []
    for piece in owners:
        maps.append([])
        for table, names in zip(known, piece, strict=True):
            numbers = [0] + [table.setdefault(name, len(table) + 1) for name in names]
            maps[-1].append(np.array(numbers, np.int64))
            if len(table) > _MAX_OWNERS:
                raise damage(load.container, 0, f"more than {_MAX_OWNERS:,} owners", "fewer")
    rows = int(inodes.permission.size)

    def renumber(index: int) -> None:
        users, groups = maps[index]
        if (users == np.arange(users.size)).all() and (groups == np.arange(groups.size)).all():
            return
        start = index * PIECE_ROWS
        lk.renumber(inodes.permission, start, min(start + PIECE_ROWS, rows), users, groups)

    run_pieces(len(maps), renumber, threads=load.threads, phase=phase, cancel=load.cancel)
    users, groups = ({n: name.decode("utf-8", "backslashreplace") for name, n in table.items()} for table in known)
    return Strings(users, groups, {}, {}, is_split=True)


def _behind(load: Load, namespace: Namespace, head: LegacyHead, at: int) -> Namespace:
    """Read what stands behind the inodes: open files, tokens, cache."""
    reader = LegacyReader(head.data.data, at)
    secrets, cache = None, None
    open_files: list[OpenFile] = []
    clients: dict[int, tuple[bytes, bytes]] = {}
    try:
        if head.features & Feature.OPEN_FILES:
            open_files, clients = _open_files(load, namespace, head.features, reader)
        if head.features & Feature.TOKENS:
            secrets = read_secrets(reader)
        if head.features & Feature.CACHE:
            cache = read_cache(reader)
    except LegacyError as error:
        raise damage(load.container, error.offset, error.found, error.allowed) from error
    for name, count in (
        ("DelegationKeys", secrets.keys if secrets else 0),
        ("DelegationTokens", secrets.tokens if secrets else 0),
        ("CachePools", len(cache.pools) if cache else 0),
        ("CacheEntries", len(cache.directives) if cache else 0),
    ):
        with load.loading.phase(name, total=count) as step:
            step.advance(count)
    left = len(reader.data) - reader.at
    if left and head.features & Feature.OPEN_FILES:  # before, datanodes stood there
        load.findings.add(Trouble.COUNT, f"{left:,} bytes stand behind the end", offset=reader.at)
    sparse = namespace.sparse
    rows = sorted(clients)
    return replace(
        namespace,
        sparse=replace(
            sparse,
            client_names=_texts(rows, [clients[row][0] for row in rows]),
            client_machines=_texts(rows, [clients[row][1] for row in rows]),
        ),
        extras=replace(namespace.extras, open_files=tuple(open_files), secrets=secrets, cache=cache),
    )


def _texts(rows: list[int], values: list[bytes]) -> Texts:
    start = np.cumsum([0, *(len(value) for value in values)])
    heap = np.frombuffer(bytearray().join(values), np.uint8)  # writable, as the arrays that kernels are compiled for
    return Texts(np.array(rows, np.int32), start.astype(np.int64), heap)


def _open_files(
    load: Load, namespace: Namespace, features: Feature, reader: LegacyReader
) -> tuple[list[OpenFile], dict[int, tuple[bytes, bytes]]]:
    found: list[OpenFile] = []
    clients: dict[int, tuple[bytes, bytes]] = {}
    inodes = namespace.inodes
    for _ in range(reader.count(30, "open files")):
        path = bytes(reader.utf8())
        inode_id = reader.i64() if features & Feature.INODE_ID else -1
        reader.i16(), reader.i64(), reader.i64()  # replication, mtime, block size: as its inode has them
        size = 24 if features & Feature.GENERATION else 16
        reader.take(size * reader.count(size, "blocks"))
        reader.text_bytes(), reader.text_bytes(), reader.u16()
        client, machine = bytes(reader.utf8()), bytes(reader.utf8())
        at = reader.at
        if reader.i32() != 0:
            raise LegacyError(at, "datanodes of an open file's last block", "none")
        in_snapshot = path.removeprefix(_BY_ID)
        by_id = in_snapshot != path and in_snapshot.isdigit() and len(in_snapshot) < 20
        row = find_id(namespace, int(in_snapshot)) if by_id else find(namespace, path)
        if row is None or namespace.kind(row) is not Kind.FILE:
            load.findings.add(Trouble.OPEN_FILE, f"open file {path[:80]!r} is not there", inode_id=inode_id, offset=at)
        else:
            inodes.flags[row] |= np.uint16(Flag.UNDER_CONSTRUCTION)
            inode_id = int(inodes.inode_id[row])
            clients[row] = client, machine
        found.append(OpenFile(inode_id, path))
    return found, clients


def read_secrets(reader: LegacyReader) -> SecretState:
    """Count delegation keys and tokens; what they hold is passed over."""
    current = reader.i32()
    keys = reader.count(3, "delegation keys")
    for _ in range(keys):
        reader.vlong(), reader.vlong()  # id, expiry
        reader.take(max(reader.vlong(), 0))
    sequence, tokens = reader.i32(), reader.count(17, "delegation tokens")
    for _ in range(tokens):
        reader.u8()  # version
        for _ in range(3):  # owner, renewer, real user
            reader.text_bytes()
        for _ in range(4):  # issued, latest, sequence, key
            reader.vlong()
        reader.i64()  # expiry
    return SecretState(current, sequence, keys, tokens)


def read_cache(reader: LegacyReader) -> CacheState:
    """Decode pools and directives; flags say which fields stand there."""
    following = reader.i64()
    pools, directives = [], []
    for _ in range(reader.count(6, "cache pools")):
        name, flags = str(reader.utf8(), "utf-8", "backslashreplace"), reader.i32()
        pools.append(
            CachePool(
                name=name,
                owner=str(reader.utf8(), "utf-8", "backslashreplace") if flags & 1 else None,
                group=str(reader.utf8(), "utf-8", "backslashreplace") if flags & 2 else None,
                mode=reader.u16() if flags & 4 else None,
                limit=reader.i64() if flags & 8 else None,
                max_relative_expiry=reader.i64() if flags & 16 else None,
            )
        )
    for _ in range(reader.count(12, "cache directives")):
        number, flags = reader.i64(), reader.i32()
        directives.append(
            CacheDirective(
                directive_id=number,
                path=str(reader.utf8(), "utf-8", "backslashreplace") if flags & 1 else "",
                replication=reader.i16() if flags & 2 else 0,
                pool=str(reader.utf8(), "utf-8", "backslashreplace") if flags & 4 else "",
                expiration=reader.i64() if flags & 8 else None,
            )
        )
    return CacheState(following, tuple(pools), tuple(directives))
