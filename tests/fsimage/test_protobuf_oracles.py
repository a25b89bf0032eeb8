"""Real images against what Hadoop's own tools say of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from engine.fsimage.columns import Flag, Kind
from engine.fsimage.tree import count_kinds, file_sizes, find, find_id, path_of, walk
from tests.fsimage import oiv

ENCODINGS = ["plain", "deflate", "gzip", "bzip2", "lz4", "snappy", "parallel", "parallel_deflate", "parallel_gzip"]

USER_FOLDER = 16388


def rich(images: Path, encoding: str = "plain") -> Path:
    return images / "hdfs" / "fsimage" / f"rich_{encoding}.fsimage"


@pytest.fixture(scope="module")
def dump(images):
    return oiv.xml_root(gzip.decompress((images / "hdfs" / "fsimage" / "rich_plain.xml.gz").read_bytes()))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_inode_is_as_hadoop_prints_it(images, load, dump, threads):
    loaded = load(rich(images), threads=threads)

    assert oiv.our_inodes(loaded.namespace) == oiv.xml_inodes(dump)
    assert loaded.integrity.is_clean
    assert loaded.wait_for_checksum().is_match


def test_children_are_hadoops_children_in_its_order(images, load, dump):
    loaded = load(rich(images))

    theirs, ours = oiv.xml_children(dump), oiv.our_children(loaded.namespace)
    assert {k: sorted(v) for k, v in ours.items()} == {k: sorted(v) for k, v in theirs.items()}
    name = {inode_id: inode["name"] for inode_id, inode in oiv.xml_inodes(dump).items()}
    assert all([name[i] for i in ids] == sorted(name[i] for i in ids) for ids in ours.values())


def test_the_other_sections_hold_hadoops_figures(images, load):
    figures = json.loads((images / "hdfs" / "fsimage" / "rich_plain.figures.json").read_text())
    loaded = load(rich(images))
    ns, extras = loaded.namespace, loaded.namespace.extras

    assert ns.header.last_inode_id == figures["lastInodeId"]
    assert ns.header.txid == 4855
    assert len(extras.open_files) == figures["uc_section"]
    assert extras.open_files[0].path == b"/uc/flushed"
    assert len(ns.sparse.acls.row) == figures["with_acl"]
    assert len(ns.sparse.acls.entry) == figures["acl_entries"]
    assert len(np.unique(ns.sparse.xattrs.row)) == figures["with_xattrs"]
    assert len(ns.sparse.xattrs.row) == figures["xattrs"]
    assert len(np.unique(ns.sparse.type_quotas.row)) == figures["typeQuota_dirs"]
    assert ns.sparse.type_quotas.quota.tolist() == [1048576, 1073741824, 7]
    assert len(extras.references.referred_id) == figures["inode_refs"]
    assert extras.references.names[2] == b"a"
    state = extras.snapshots
    assert (state.counter, len(state.snapshots)) == (6, 5)
    assert {s.name.decode() for s in state.snapshots} == set(figures["snapshot_names"])
    assert (state.directory_diff_entries, state.directory_diffs) == (figures["dirDiffEntries"], figures["dirDiffs"])
    assert (state.file_diff_entries, state.file_diffs) == (figures["fileDiffEntries"], figures["fileDiffs"])
    assert [pool.name for pool in extras.cache.pools] == ["pool1", "pöol2"]
    assert (extras.cache.next_directive_id, len(extras.cache.directives)) == (3, 2)
    assert (extras.secrets.keys, extras.secrets.tokens) == (2, 1)
    assert {p.name: p.state for p in extras.ec_policies} == figures["ec_policies"]
    assert loaded.integrity.snapshot_only == 3
    assert int((ns.inodes.flags & Flag.BY_REFERENCE > 0).sum()) == figures["refChildren"]
    assert int((ns.inodes.flags & Flag.SNAPSHOTTABLE > 0).sum()) == figures["snapshottableDirs"]
    clients = ns.sparse.client_names
    assert len(clients.row) == figures["uc_files"]
    assert clients.heap[: clients.start[1]].tobytes().startswith(b"DFSClient_")


def test_snapshot_diffs_are_hadoops(images, load):
    dump = oiv.xml_root(gzip.decompress((images / "hdfs/fsimage/rich_plain.xml.gz").read_bytes()))
    namespace = load(rich(images)).namespace

    ours = oiv.our_diffs(namespace)

    assert ours == oiv.xml_diffs(dump)
    state = namespace.extras.snapshots
    assert sum(len(diffs) for _, kind, diffs in ours if kind is Kind.FILE) == state.file_diffs
    assert sum(len(diffs) for _, kind, diffs in ours if kind is Kind.DIRECTORY) == state.directory_diffs


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_nine_encodings_of_one_namespace_are_equal(images, load, encoding):
    plain, other = load(rich(images)).namespace, load(rich(images, encoding)).namespace

    assert oiv.our_inodes(other) == oiv.our_inodes(plain)
    assert oiv.our_children(other) == oiv.our_children(plain)
    assert other.extras.references.names == plain.extras.references.names
    assert other.extras.snapshots == plain.extras.snapshots
    assert other.strings == plain.strings


def test_delimited_rows_of_20k_inodes_are_hadoops(images, load, unpacked):
    folder = images / "hdfs" / "gen20k"
    image = unpacked(folder / "current" / "fsimage_0000000000000000000.gz")
    lines = gzip.decompress((folder / "delimited.tsv.gz").read_bytes()).decode().splitlines()[1:]
    theirs = {fields[0].encode(): tuple(fields[1:]) for fields in (line.split("\t") for line in lines)}

    loaded = load(image)

    assert oiv.delimited_rows(loaded.namespace) == theirs
    assert int(file_sizes(loaded.namespace).sum()) == 1_825_409_565_308
    assert len(loaded.namespace.blocks.length) == 21_778


def test_three_hadoop_versions_wrote_the_same_namespace(images, load):
    folder = images / "fsimages" / "protobuf"
    found = []
    for version in (26, 29, 31):
        ns = load(folder / f"dynamometer-hadoop{version}.img").namespace
        inodes = oiv.our_inodes(ns)
        assert count_kinds(ns.inodes) == {Kind.FILE: 100, Kind.DIRECTORY: 116, Kind.SYMLINK: 0}
        found.append(
            {
                path: (inodes[int(ns.inodes.inode_id[row])]["kind"], ns.size(row), row == ns.root)
                for path, row in walk(ns)
            }
        )
    dump = oiv.xml_root((folder / "dynamometer-hadoop31.oiv.xml").read_bytes())

    assert found[0] == found[1] == found[2]
    ours, theirs = oiv.our_inodes(load(folder / "dynamometer-hadoop31.img").namespace), oiv.xml_inodes(dump)
    ours[USER_FOLDER]["mtime"] = theirs[USER_FOLDER]["mtime"]  # the dump is of an earlier save, before /user changed
    assert ours == theirs


@pytest.mark.parametrize(
    ("name", "rows", "files", "blocks", "size"),
    [
        ("hfsa-210k-inodes-deflate", 210_367, 209_560, 0, 0),
        ("hfsa-small-h2x", 30, 16, 17, 356_417_536),
        ("hfsa-small-h32", 30, 16, 17, 356_417_536),
        ("hadoop-zero-block-size-open-file", 3, 1, 0, 0),
    ],
)
def test_published_images_hold_their_figures(images, load, name, rows, files, blocks, size):
    loaded = load(images / "fsimages" / "protobuf" / f"{name}.img")
    ns = loaded.namespace

    assert ns.rows == rows
    assert count_kinds(ns.inodes)[Kind.FILE] == files
    assert len(ns.blocks.length) == blocks
    assert int(ns.blocks.length.sum()) == size
    assert loaded.integrity.is_clean


def test_the_image_of_a_name_folder_loads_and_its_checksum_agrees(images, load):
    loaded = load(images / "hdfs" / "namedir" / "fsimage_0000000000000004875")

    assert loaded.namespace.rows == 2_324
    assert loaded.wait_for_checksum().is_match


def test_paths_lead_to_rows_and_rows_to_paths(images, load):
    ns = load(rich(images)).namespace

    for path, row in walk(ns):
        assert path_of(ns, row) == path
        assert find(ns, path) == row
    assert find(ns, b"/data/nothing") is None
    assert find(ns, b"/data/one/below-a-file") is None
    assert path_of(ns, find_id(ns, 16390)) == b"/data/one"


def test_columns_stay_within_100_bytes_an_inode_for_an_inode_with_a_block(images, load, unpacked):
    ns = load(unpacked(images / "hdfs" / "gen20k" / "current" / "fsimage_0000000000000000000.gz")).namespace

    assert ns.column_bytes() / ns.rows <= 100
