"""Images that lie: each ends in an error with a place, or in a report; never in a crash, a hang or much memory."""

from __future__ import annotations

import random
import struct
import threading
import zlib

import pytest

from engine.errors import TidegaugeError
from engine.fsimage.columns import DETACHED
from engine.fsimage.errors import CodecMissing, ImageDamaged, LoadCancelled, NotAnImage
from engine.fsimage.id_map import _MIX
from engine.fsimage.integrity import Trouble
from engine.fsimage.load import load_image
from engine.fsimage.snapshots import read_diffs
from engine.fsimage.tree import find, path_of, walk
from engine.measure.clock import SystemClock
from engine.measure.phases import PhaseTree
from tests.fsimage.mutation import DEFLATE, ENTRIES, TREE, load_wounded, mutate, victims_of
from tests.fsimage.protobuf_writer import ROOT, delimited, directory, entry, field, file, varint, write_image

MUTATIONS = 2000


def test_the_writer_of_these_tests_writes_a_whole_image(tmp_path, load):
    loaded = load(write_image(tmp_path / "i", TREE, ENTRIES))

    assert loaded.integrity.is_clean
    assert [path for path, _ in walk(loaded.namespace)] == [b"/", b"/a", b"/a/f", b"/g"]


@pytest.mark.parametrize(
    ("inodes", "words"),
    [
        ([*TREE, b""], r"INODE section, byte \d+: inode type 0, allowed 1, 2 or 3"),
        ([*TREE, field(1, 1) + field(3, b"x")], "an inode without an id"),
        ([*TREE, field(1, 1) + field(2, 1 << 63)], "inode id 9,223,372,036,854,775,808, allowed less than 2\\^63"),
        ([*TREE, file(9, b"n" * 65_536)], "a name of 65,536 bytes, allowed 65,535"),
        ([*TREE, file(9, b"n", [(1, 1, 1 << 63)])], "a block of 9,223,372,036,854,775,808 bytes"),
        ([*TREE, file(9, b"n", [(1, 1, (1 << 63) - 1)] * 2)], "a file of less than 2\\^63 bytes"),
        ([*TREE, file(9, b"n", extra=field(1, 70_000))], "replication 70,000, allowed 65,535"),
        ([*TREE, file(9, b"n", extra=field(10, 256))], "policy id 256, allowed 255"),
        ([*TREE, field(1, 1) + varint(4 << 3 | 2) + varint(1 << 62)], "reaches past the end of its message"),
        ([*TREE, field(1, 1) + varint(2 << 3) + b"\xff" * 11], "a number over 64 bits"),
        ([*TREE, field(1, 1) + field(2, 9) + varint(9 << 3 | 3)], "is no field"),
        ([*TREE, file(9, b"n", extra=field(8, field(2, b"abc")))], "reaches past the end"),
        (TREE[1:], "no directory with id 16385, allowed one: it is the root"),
        ([file(ROOT, b""), *TREE[1:]], "no directory with id 16385"),
    ],
    ids=[
        "empty-message", "no-id", "id-of-2^63", "long-name", "length-of-2^63", "sum-of-2^64", "replication", "policy",
        "field-of-2^62-bytes", "overlong-varint", "group", "odd-acl", "no-root", "root-is-a-file",
    ],
)  # fmt: skip
def test_bad_inodes_are_named_with_section_and_offset(tmp_path, load, inodes, words):
    with pytest.raises(ImageDamaged, match=words):
        load(write_image(tmp_path / "i", inodes, ENTRIES))


@pytest.mark.parametrize(
    ("entries", "trouble", "orphans"),
    [
        ([entry(ROOT, [2, 4, 99]), entry(2, [3])], Trouble.MISSING_CHILD, 0),
        ([entry(ROOT, [2, 4]), entry(77, [3])], Trouble.MISSING_PARENT, 1),
        ([entry(ROOT, [2, 4]), entry(4, [3])], Trouble.PARENT_IS_NO_DIRECTORY, 1),
        ([entry(ROOT, [2, 4]), entry(2, [3, 4])], Trouble.LISTED_TWICE, 0),
        ([entry(ROOT, [2, 4]), entry(2, [3, ROOT])], Trouble.ROOT_LISTED, 0),
        ([entry(ROOT, [2, 4]), entry(2, [3], [0])], Trouble.BAD_REFERENCE, 0),
        ([entry(ROOT, [4]), entry(2, [3])], Trouble.ORPHAN, 2),
        ([entry(ROOT, [4]), entry(2, [3, 2])], Trouble.CYCLE, 0),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_contradictions_in_the_tree_are_reported_not_fatal(tmp_path, load, entries, trouble, orphans, threads):
    loaded = load(write_image(tmp_path / "i", TREE, entries), threads=threads)

    assert loaded.integrity.count(trouble) >= 1
    assert loaded.integrity.count(Trouble.ORPHAN) == orphans
    assert any(p.trouble is trouble and str(p.inode_id) in p.text for p in loaded.integrity.problems)
    for row in range(loaded.namespace.rows):
        path_of(loaded.namespace, row)  # ends, whatever the tree looks like


def test_a_cycle_of_many_is_found_and_its_paths_end(tmp_path, load):
    ring = list(range(100, 1100))
    inodes = [*TREE, *(directory(i, b"%d" % i) for i in ring)]
    entries = [*ENTRIES, *(entry(i, [ring[(k + 1) % len(ring)]]) for k, i in enumerate(ring))]

    loaded = load(write_image(tmp_path / "i", inodes, entries))

    assert loaded.integrity.count(Trouble.CYCLE) == len(ring)
    assert path_of(loaded.namespace, loaded.namespace.rows - 1).startswith(b"(detached)/")


def test_the_first_of_two_inodes_with_one_id_keeps_it(tmp_path, load):
    loaded = load(write_image(tmp_path / "i", [*TREE, file(3, b"again")], ENTRIES))

    assert loaded.integrity.count(Trouble.DUPLICATE_ID) == 1
    assert find(loaded.namespace, b"/a/f") == 2
    assert loaded.namespace.inodes.parent[4] == DETACHED


def test_children_out_of_order_are_sorted_and_same_names_reported(tmp_path, load):
    inodes = [directory(ROOT, b""), *(file(10 + i, name) for i, name in enumerate([b"c", b"a", b"b", b"a"]))]

    loaded = load(write_image(tmp_path / "i", inodes, [entry(ROOT, [10, 11, 12, 13])]))
    ns = loaded.namespace

    assert [ns.name(int(row)) for row in ns.children(ns.root)] == [b"a", b"a", b"b", b"c"]
    assert loaded.integrity.count(Trouble.SAME_NAME) == 1


def test_two_entries_of_one_directory_are_both_kept(tmp_path, load):
    loaded = load(write_image(tmp_path / "i", TREE, [entry(ROOT, [4]), entry(2, [3]), entry(ROOT, [2])]))

    assert loaded.integrity.is_clean
    assert [path for path, _ in walk(loaded.namespace)] == [b"/", b"/a", b"/a/f", b"/g"]


def test_a_count_that_lies_is_reported(tmp_path, load):
    loaded = load(write_image(tmp_path / "i", TREE, ENTRIES, stated=1 << 60))

    assert loaded.integrity.count(Trouble.COUNT) == 1
    assert loaded.namespace.rows == 4


def test_unknown_sections_and_newer_layouts_load_and_are_listed(tmp_path, load):
    image = write_image(
        tmp_path / "i", TREE, ENTRIES, layout=-99, more=[(b"NEW_THING", b"123")], order=lambda listed: listed[::-1]
    )

    loaded = load(image)

    assert loaded.namespace.extras.unknown_sections == (("NEW_THING", 3),)
    assert loaded.namespace.header.layout_version == -99


def test_what_snapshots_point_to_and_is_not_there_is_reported_with_its_id(tmp_path, load):
    root_diff = field(1, 2) + field(2, ROOT) + field(3, 1)
    deleted = field(1, 0) + field(7, varint(3) + varint(71)) + field(8, varint(9)) + field(6, 1)
    diffs = [
        delimited(root_diff),
        delimited(deleted),
        delimited(field(1, b"made")),
        delimited(field(1, 1) + field(2, 72)),
    ]
    snapshot = delimited(field(1, 1) + field(2, varint(73)) + field(3, 1)) + delimited(
        field(1, 5) + field(2, field(2, 74))
    )
    more = [(b"SNAPSHOT", snapshot), (b"SNAPSHOT_DIFF", b"".join(diffs))]

    loaded = load(write_image(tmp_path / "i", TREE, ENTRIES, more=more))

    found = {p.inode_id for p in loaded.integrity.problems if p.trouble is Trouble.DANGLING_SNAPSHOT}
    assert found == {71, 72, 73, 74}
    assert loaded.integrity.count(Trouble.BAD_REFERENCE) == 1
    (directory_entry, file_entry) = read_diffs(loaded.namespace)
    assert (directory_entry.diffs[0].deleted, directory_entry.diffs[0].created) == ((3, 71), (b"made",))
    assert file_entry.diffs == ()


def test_text_of_an_image_reaches_no_terminal_raw(tmp_path, load):
    escape = b"\x1b]0;owned\x07"
    image = write_image(tmp_path / "i", TREE, ENTRIES, codec="\x1b[31mEvilCodec")
    with pytest.raises(CodecMissing) as missing:
        load(image)
    inodes = [*TREE, file(8, escape), file(9, escape)]
    report = load(write_image(tmp_path / "j", inodes, [entry(ROOT, [2, 4, 8, 9]), entry(2, [3])])).integrity

    assert "\x1b" not in str(missing.value)
    assert "\x1b" not in "\n".join(report.lines())
    assert report.count(Trouble.SAME_NAME) == 1


def test_a_zip_bomb_is_refused_before_it_fills_memory(tmp_path, load):
    bomb = zlib.compress(bytes(100 << 20), 9)  # 100 KB
    image = write_image(tmp_path / "i", TREE, ENTRIES, codec=DEFLATE, compress=zlib.compress)
    plain = write_image(tmp_path / "j", TREE, ENTRIES, replace={b"INODE": bomb}).read_bytes()
    image.write_bytes(plain)
    summary = write_image(tmp_path / "k", TREE, ENTRIES, codec=DEFLATE, replace={b"INODE": bomb})

    with pytest.raises(ImageDamaged, match=r"expand to more than|do not decode"):
        load(summary)


def test_the_bomb_limit_is_about_the_section_that_explodes(tmp_path, load):
    sizes = {}

    def compress(data: bytes) -> bytes:
        data = bytes(200 << 20) if data.startswith(delimited(field(1, 20000) + field(2, 4))) else data
        packed = zlib.compress(data, 9)
        sizes[len(packed)] = len(data)
        return packed

    image = write_image(tmp_path / "i", TREE, ENTRIES, codec=DEFLATE, compress=compress)

    with pytest.raises(ImageDamaged, match=r"INODE \(compressed\) section.*expand to more than"):
        load(image)


@pytest.mark.parametrize(
    "flood",
    [field(1, 1) + field(2, 1), field(1, 1) + field(2, 1) + field(4, field(6, b"") * 40)],
    ids=["tiny-inodes", "tiny-blocks"],
)
def test_messages_that_would_dwarf_their_bytes_in_columns_are_refused(tmp_path, load, flood):
    with pytest.raises(ImageDamaged, match="bytes of columns in"):
        load(write_image(tmp_path / "i", [directory(ROOT, b""), *[flood] * 60_000], ENTRIES))


def test_ids_made_to_collide_end_in_an_error_not_a_hang(tmp_path, load):
    inverse, modulus = pow(int(_MIX), -1, 1 << 64), 1 << 64
    ids = []
    high = 1
    while len(ids) < 6_000:  # ids whose mixed form ends in the same bits
        candidate = inverse * (high << 32 | (high & 0xFFFF) ^ 7) % modulus
        high += 1
        if candidate < 1 << 63:
            ids.append(candidate)

    with pytest.raises(ImageDamaged, match="ids made to collide"):
        load(write_image(tmp_path / "i", [*TREE, *(file(i, b"x") for i in ids)], ENTRIES))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", NotAnImage),
        (b"HDFS", NotAnImage),
        (b"\x00" * 100, NotAnImage),
        (b"\x1f\x8b\x08\x00" + b"\x00" * 100, NotAnImage),
        (b"HDFSIMG1", ImageDamaged),
        (b"HDFSIMG1" + b"\xff" * 100, ImageDamaged),
        (b"HDFSIMG1" + b"\x00" * 96 + b"\x00\x00\x00\x08", ImageDamaged),
        (struct.pack(">i", -16), ImageDamaged),
    ],
)
def test_what_is_no_image_is_said_so(tmp_path, load, content, error):
    path = tmp_path / "i"
    path.write_bytes(content)

    with pytest.raises(error) as raised:
        load(path)
    assert str(raised.value).isprintable()


def test_a_folder_a_missing_file_and_a_pipe_are_refused(tmp_path, load):
    import os

    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "nothing", tmp_path / "pipe"):
        with pytest.raises(TidegaugeError):
            load(path)


@pytest.fixture(scope="module")
def victims(images, tmp_path_factory):
    """Return the bytes of images of every kind."""
    return victims_of(images, tmp_path_factory.mktemp("victims"))


@pytest.mark.timeout(300)
def test_2000_mutated_images_load_or_fail_with_a_place(victims, tmp_path):
    chance, path, loaded = random.Random(3248), tmp_path / "image", 0

    for turn in range(MUTATIONS):
        path.write_bytes(mutate(victims[turn % len(victims)], chance))
        loaded += load_wounded(path, threads=1 + turn % 2)

    assert 0 < loaded < MUTATIONS


def test_a_cancelled_load_stops_and_says_so(images):
    image = images / "fsimages" / "protobuf" / "hfsa-210k-inodes-deflate.img"
    cancel = threading.Event()
    cancel.set()

    with pytest.raises(LoadCancelled):
        load_image(image, clock=SystemClock(), cancel=cancel)


def test_a_failed_load_leaves_its_phase_failed(tmp_path):
    tree = PhaseTree(SystemClock())

    with pytest.raises(ImageDamaged):
        load_image(write_image(tmp_path / "i", TREE[1:], ENTRIES), clock=SystemClock(), phases=tree)

    assert tree.snapshot()[0].name == "LoadingFsImage"
    assert str(tree.snapshot()[0].state) == "failed"
