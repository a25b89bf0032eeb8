"""Saving: what a NameNode wrote comes back to the byte, whatever the layout, the codec, the parts or the threads."""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from engine.errors import FileTrouble, UnknownChoice
from engine.fsimage.columns import Kind
from engine.fsimage.container import open_container
from engine.fsimage.save import Saved, SaveOptions, save_image
from engine.fsimage.save_codecs import CODECS, compress
from engine.fsimage.save_errors import CannotSave, SaveCancelled
from engine.fsimage.save_strategies import SaveChanges
from engine.fsimage.sections import messages
from engine.fsimage.tree import find
from engine.measure.clock import SystemClock
from engine.storage.publishing import AlreadyThere
from tests.fsimage.build_namespace import Node, build, differences, tree_of

RICH = "hdfs/fsimage/rich_plain.fsimage"
SHORT = {name: short for short, name in CODECS.items()}
PROTOBUF = (
    RICH,
    *(f"hdfs/fsimage/rich_{name}.fsimage" for name in ("bzip2", "deflate", "gzip", "lz4", "snappy")),
    *(f"hdfs/fsimage/rich_parallel{name}.fsimage" for name in ("", "_deflate", "_gzip")),
    *(f"fsimages/protobuf/dynamometer-hadoop{version}.img" for version in (26, 29, 31)),
    "fsimages/protobuf/hadoop-zero-block-size-open-file.img",
    "fsimages/protobuf/hfsa-210k-inodes-deflate.img",
    "fsimages/protobuf/hfsa-small-h2x.img",
    "fsimages/protobuf/hfsa-small-h32.img",
    "hdfs/namedir/fsimage_0000000000000004875",
)
WITHOUT_KEYS = tuple(name for name in PROTOBUF if "fsimages/" in name)
LEGACY = (
    "hadoop-0.18-layout16.img",
    "hadoop-0.19-layout18.img",
    "hadoop-0.22-layout33.img",
    "hadoop-1.2-layout41.img",
    "hadoop-2.0-layout40.img",
)


def save(namespace, path: Path, *, threads: int = 2, **options) -> Saved:
    return save_image(namespace, path, SaveOptions(**options), clock=SystemClock(), threads=threads)


@pytest.mark.parametrize("name", PROTOBUF)
def test_every_section_is_the_namenodes_to_the_byte(images, load, tmp_path, name):
    source = images / name
    namespace = load(source).namespace
    saved = save(namespace, tmp_path / "out", codec=SHORT[namespace.header.codec])

    theirs, ours = open_container(source), open_container(saved.path)
    sections = [s.name for s in theirs.sections if not s.name.endswith("_SUB")]
    differ = [n for n in sections if theirs.read_named(n).tobytes() != ours.read_named(n).tobytes()]
    assert [s.name for s in ours.sections] == sections
    assert differ in ([], ["SECRET_MANAGER"])  # keys and tokens are not kept
    assert load(saved.path).integrity.is_clean


@pytest.mark.parametrize("name", [name for name in WITHOUT_KEYS if "210k" not in name])
def test_an_uncompressed_image_is_the_same_file(images, load, tmp_path, name):
    saved = save(load(images / name).namespace, tmp_path / "out")

    assert saved.path.read_bytes() == (images / name).read_bytes()


def test_sub_sections_are_cut_where_a_namenode_cuts_them(images, load, tmp_path):
    source = images / "hdfs/fsimage/rich_parallel.fsimage"
    saved = save(load(source).namespace, tmp_path / "out", sub_sections=4)

    def outline(path):
        return [(s.name, s.length) for s in open_container(path).sections if s.name != "SECRET_MANAGER"]

    assert outline(saved.path) == outline(source)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("sub_sections", [0, 1, 5])
def test_any_codec_and_any_parts_load_again_and_save_the_same(images, load, tmp_path, codec, sub_sections):
    namespace = load(images / RICH).namespace
    first = save(namespace, tmp_path / "first", codec=codec, sub_sections=sub_sections)
    again = load(first.path)
    second = save(again.namespace, tmp_path / "second", threads=1, codec=codec, sub_sections=sub_sections)

    assert differences(again.namespace, namespace) == []
    assert again.integrity.is_clean
    assert first.path.read_bytes() == second.path.read_bytes()
    assert again.wait_for_checksum().is_match


def test_a_big_image_is_the_same_on_any_number_of_threads(images, load, tmp_path):
    namespace = load(images / "fsimages/protobuf/hfsa-210k-inodes-deflate.img").namespace

    saved = [
        save(namespace, tmp_path / f"{codec}-{threads}", threads=threads, codec=codec, sub_sections=7)
        for codec in ("none", "lz4")
        for threads in (1, 2, 5)
    ]

    assert len({s.md5 for s in saved[:3]}) == len({s.md5 for s in saved[3:]}) == 1
    assert differences(load(saved[3].path).namespace, namespace) == []


@pytest.mark.parametrize("layout, name", [(-16, LEGACY[0]), (-18, LEGACY[1])])
def test_hadoops_own_legacy_images_are_the_same_file(images, load, tmp_path, layout, name):
    source = images / "fsimages" / "legacy" / name
    saved = save(load(source).namespace, tmp_path / "out", layout="legacy", layout_version=layout)

    assert saved.path.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("name", LEGACY)
@pytest.mark.parametrize("layout", [-16, -18])
def test_legacy_images_move_to_either_layout_and_to_protobuf(images, load, tmp_path, name, layout):
    namespace = load(images / "fsimages" / "legacy" / name).namespace
    old = load(save(namespace, tmp_path / "old", layout="legacy", layout_version=layout, drop=True).path)
    new = load(save(namespace, tmp_path / "new").path)

    assert tree_of(old.namespace, access_times=layout <= -17) == tree_of(namespace, access_times=layout <= -17)
    assert tree_of(new.namespace) == tree_of(namespace)
    assert new.namespace.header.layout_version == -67
    assert old.integrity.is_clean and new.integrity.is_clean


def test_legacy_saves_of_a_real_namespace_are_stable(images, load, tmp_path):
    namespace = load(images / RICH).namespace
    first = save(namespace, tmp_path / "first", layout="legacy", drop=True)
    loaded = load(first.path).namespace
    second = save(loaded, tmp_path / "second", layout="legacy", threads=3)

    assert first.path.read_bytes() == second.path.read_bytes()
    was, now = tree_of(namespace), tree_of(loaded)
    gone = set(was) - set(now)
    assert {path: was[path] for path in now} == now
    assert sorted(was[path][0] for path in gone) == [Kind.FILE] * 3 + [Kind.SYMLINK] * 3  # the files are striped
    assert {file.path for file in loaded.extras.open_files} <= {file.path for file in namespace.extras.open_files}
    assert loaded.extras.open_files


def test_what_a_legacy_layout_cannot_hold_is_refused_by_name(images, load, tmp_path):
    namespace = load(images / RICH).namespace

    with pytest.raises(CannotSave, match="no place for 3 symbolic links, 3 striped files, 5 ACLs"):
        save(namespace, tmp_path / "out", layout="legacy")
    assert list(tmp_path.iterdir()) == []
    dropped = dict(save(namespace, tmp_path / "out", layout="legacy", drop=True).dropped)
    assert dropped["HDFS snapshots"] == 5


def test_a_path_longer_than_the_layout_allows_is_refused(tmp_path):
    nodes = [Node(Kind.DIRECTORY, k - 1, b"d" * 30_000, 20_000 + k) for k in range(3)]

    with pytest.raises(CannotSave, match="a path has 90,003 bytes, allowed are 65,535"):
        save(build(nodes), tmp_path / "out", layout="legacy")


@pytest.mark.parametrize("changes", [SaveChanges(*bits) for bits in itertools.product((False, True), repeat=3)])
@pytest.mark.parametrize("layout", [-16, -18])
def test_hadoop_3248s_changes_do_not_change_a_byte(images, load, tmp_path, changes, layout):
    namespace = load(images / RICH).namespace
    options = {"layout": "legacy", "layout_version": layout, "drop": True}
    kernels = save(namespace, tmp_path / "kernels", **options)

    assert save(namespace, tmp_path / "objects", strategy=changes, **options).md5 == kernels.md5


def test_children_stand_in_javas_order_which_compares_signed_bytes(tmp_path):
    names = [b"b", b"\xc3\xa9", b"a\xff", b"a", b"ab", b"\x7f"]
    saved = save(build([Node(Kind.FILE, -1, n, 20_000 + k) for k, n in enumerate(names)]), tmp_path / "out")

    (entry,) = messages(open_container(saved.path).read_named("INODE_DIR").data)
    listed = [names[inode_id - 20_000] for inode_id in entry.numbers(2)]
    assert listed == [b"\xc3\xa9", b"a", b"a\xff", b"ab", b"b", b"\x7f"]


@pytest.mark.parametrize("codec", ["lz4", "snappy"])
def test_chunks_fit_the_buffers_that_hadoop_decompresses_into(codec):
    raw = os.urandom(700_000)
    stream = compress(CODECS[codec], raw)

    at, blocks = 0, []
    while at < len(stream):
        size, chunk = (int.from_bytes(stream[at + k : at + k + 4], "big") for k in (0, 4))
        blocks.append((size, chunk))
        at += 8 + chunk
    assert sum(size for size, _ in blocks) == len(raw)
    assert max(max(pair) for pair in blocks) <= 256 << 10


def test_the_md5_file_is_as_a_namenode_writes_it(tmp_path):
    saved = save(build([]), tmp_path / "fsimage_42")

    digest = hashlib.md5(saved.path.read_bytes()).hexdigest()
    assert (tmp_path / "fsimage_42.md5").read_text() == f"{digest} *fsimage_42\n"


def test_an_image_that_is_there_is_replaced_only_when_asked_for(tmp_path):
    first = save(build([]), tmp_path / "out")

    with pytest.raises(AlreadyThere):
        save(build([Node(Kind.FILE, -1, b"f", 20_000)]), tmp_path / "out")
    assert hashlib.md5(first.path.read_bytes()).hexdigest() == first.md5
    second = save(build([Node(Kind.FILE, -1, b"f", 20_000)]), tmp_path / "out", replace=True)
    assert second.md5 != first.md5
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "out.md5"]


def test_a_save_that_is_cancelled_leaves_nothing(images, load, tmp_path):
    stop = threading.Event()
    stop.set()
    namespace = load(images / RICH).namespace

    for options in (SaveOptions(), SaveOptions(codec="gzip", sub_sections=3), SaveOptions("legacy", drop=True)):
        with pytest.raises(SaveCancelled):
            save_image(namespace, tmp_path / "out", options, clock=SystemClock(), cancel=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_said_so(tmp_path):
    with pytest.raises(FileTrouble, match="No such file or directory"):
        save(build([]), tmp_path / "missing" / "out")


@pytest.mark.parametrize(
    "options, words",
    [
        ({"codec": "gzp"}, "did you mean gzip"),
        ({"layout": "legacy", "layout_version": -19}, "allowed is -16, -18"),
        ({"layout": "legacy", "strategy": "lien"}, "did you mean lean"),
    ],
)
def test_a_wrong_choice_names_the_right_ones(tmp_path, options, words):
    with pytest.raises(UnknownChoice, match=words):
        save(build([]), tmp_path / "out", **options)


def test_layouts_out_of_range_and_codecs_of_legacy_images_are_refused(tmp_path):
    for options in ({"layout_version": -99}, {"layout_version": -60}, {"layout": "legacy", "codec": "gzip"}):
        with pytest.raises(CannotSave):
            save(build([]), tmp_path / "out", **options)


def test_one_file_of_very_many_blocks_needs_a_piece_of_its_own(load, tmp_path):
    blocks = tuple((1 << 40 | k, k, 1) for k in range(2_000_000))
    namespace = build([Node(Kind.FILE, -1, b"big", 20_000, blocks=blocks), Node(Kind.FILE, -1, b"next", 20_001)])

    loaded = load(save(namespace, tmp_path / "out").path).namespace

    assert np.array_equal(loaded.blocks.block_id, namespace.blocks.block_id)
    assert find(loaded, b"/next") == 2
