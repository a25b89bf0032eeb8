"""Images made as a stream: whole, exactly as large as asked for, the same bytes each time, as distributed as stated."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest

from engine.errors import BadValue, UnknownChoice
from engine.fsimage.columns import Flag, Kind
from engine.fsimage.save import SaveOptions, save_image
from engine.fsimage.save_errors import CannotSave, SaveCancelled
from engine.fsimage.synth import SynthOptions, synthesise
from engine.fsimage.tree import file_sizes, path_of, walk
from engine.measure.clock import SystemClock
from tests.fsimage.build_namespace import tree_of

KINDS = [("protobuf", None), ("legacy", -16), ("legacy", -18)]


def make(path, *, threads=2, **options):
    return synthesise(path, SynthOptions(**options), clock=SystemClock(), threads=threads)


@pytest.mark.parametrize("layout, version", KINDS)
@pytest.mark.parametrize("inodes", [10, 11, 12, 13, 14, 100, 16_385, 50_000])
def test_an_image_has_exactly_as_many_inodes_and_is_whole(load, tmp_path, layout, version, inodes):
    made = make(tmp_path / "out", inodes=inodes, layout=layout, layout_version=version)
    loaded = load(made.path)

    assert loaded.integrity.is_clean
    assert loaded.wait_for_checksum().is_match
    assert loaded.namespace.rows == made.inodes == inodes
    assert int(loaded.namespace.blocks.length.sum()) == made.content_bytes
    assert loaded.namespace.blocks.length.size == made.blocks
    kinds = loaded.namespace.inodes.flags & Flag.KIND
    assert (np.count_nonzero(kinds == Kind.FILE), np.count_nonzero(kinds == Kind.DIRECTORY)) == (
        made.files,
        made.directories,
    )


@pytest.mark.parametrize("layout, version", KINDS)
def test_the_bytes_depend_on_the_seed_and_not_on_threads(tmp_path, layout, version):
    same = {
        make(tmp_path / f"{t}", threads=t, inodes=60_000, layout=layout, layout_version=version, seed=5).md5
        for t in (1, 2, 4)
    }
    other = make(tmp_path / "other", inodes=60_000, layout=layout, layout_version=version, seed=6).md5

    assert len(same) == 1
    assert other not in same


def test_legacy_and_protobuf_are_one_tree_but_for_block_ids(load, tmp_path):
    new = load(make(tmp_path / "new", inodes=5_000).path).namespace
    old = load(make(tmp_path / "old", inodes=5_000, layout="legacy").path).namespace

    def without_ids(tree):
        return {path: (*v[:-1], tuple(block[1:] for block in v[-1])) for path, v in tree.items()}

    assert without_ids(tree_of(old)) == without_ids(tree_of(new))
    assert len(np.unique(old.blocks.block_id)) == old.blocks.block_id.size


@pytest.mark.parametrize("layout, version", KINDS)
def test_a_save_of_what_was_loaded_writes_the_synthetic_file_again(load, tmp_path, layout, version):
    made = make(tmp_path / "made", inodes=40_000, layout=layout, layout_version=version, sub_sections=0)
    options = SaveOptions(layout, version)
    saved = save_image(load(made.path).namespace, tmp_path / "saved", options, clock=SystemClock())

    if layout == "legacy":
        assert saved.path.read_bytes() == made.path.read_bytes()
    else:
        assert saved.size_bytes == made.size_bytes
        again = load(saved.path).namespace
        assert tree_of(again) == tree_of(load(made.path).namespace)


@pytest.mark.parametrize("codec", ["deflate", "lz4", "zstd"])
@pytest.mark.parametrize("sub_sections", [0, 3])
def test_codecs_and_parts_hold_the_same_tree(load, tmp_path, codec, sub_sections):
    plain = load(make(tmp_path / "plain", inodes=30_000).path).namespace
    made = make(tmp_path / "out", inodes=30_000, codec=codec, sub_sections=sub_sections)

    loaded = load(made.path).namespace

    assert np.array_equal(loaded.names, plain.names)
    assert np.array_equal(loaded.tree.children, plain.tree.children)


def test_names_owners_and_times_are_what_the_plan_says(load, tmp_path):
    ns = load(make(tmp_path / "out", inodes=20_000).path).namespace
    shape = re.compile(
        rb"/(user(/u\d{6}(/t\d{4}_[a-z]+(/dt=20\d\d-[01]\d-[0-3]\d)?"
        rb"(/(part-\d{5}(-[0-9a-f]{8}\.snappy\.parquet)?|\d{6}_0))?)?)?)?"
    )
    for path, row in walk(ns):
        assert shape.fullmatch(path), path
        owner = path.split(b"/")[2].decode() if path.count(b"/") > 1 else "hdfs"
        assert ns.strings.user(int(ns.inodes.permission[row])) == owner
        if ns.kind(row) is Kind.FILE:
            assert ns.inodes.mtime[row] <= ns.inodes.atime[row] <= 1767225600000
    assert path_of(ns, 1) == b"/user"


def test_sizes_and_fan_out_are_distributed_as_stated(load, tmp_path):
    ns = load(make(tmp_path / "out", inodes=200_000).path).namespace
    sizes = file_sizes(ns)[ns.inodes.flags & Flag.KIND == Kind.FILE]
    filled = np.log2(sizes[sizes > 0])

    assert np.mean(sizes == 0) == pytest.approx(0.1, abs=0.01)
    assert np.median(filled) == pytest.approx(22.5, abs=0.1)
    assert filled.std() == pytest.approx(3.3, abs=0.1)
    assert ns.blocks.length.size / sizes.size == pytest.approx(1.2, abs=0.1)
    below = np.diff(ns.tree.child_start)
    assert below.max() <= 2000
    assert 5 < sizes.size / np.count_nonzero(below) < 20


def test_sizes_out_of_range_and_other_layouts_are_refused(tmp_path):
    for inodes in (9, 1 << 31):
        with pytest.raises(BadValue, match="allowed is 10 to"):
            make(tmp_path / "out", inodes=inodes)
    with pytest.raises(UnknownChoice, match="-16, -18"):
        make(tmp_path / "out", inodes=10, layout="legacy", layout_version=-17)
    with pytest.raises(CannotSave, match="no codec"):
        make(tmp_path / "out", inodes=10, layout="legacy", codec="gzip")
    with pytest.raises(CannotSave, match="-67"):
        make(tmp_path / "out", inodes=10, layout_version=-60)
    assert list(tmp_path.iterdir()) == []


def test_a_cancel_leaves_nothing(tmp_path):
    stop = threading.Event()
    stop.set()

    with pytest.raises(SaveCancelled):
        synthesise(tmp_path / "out", SynthOptions(inodes=100_000), clock=SystemClock(), cancel=stop)
    assert list(tmp_path.iterdir()) == []
