"""Legacy images: real ones, hand-made ones of every layout, and four strategies that must agree."""

from __future__ import annotations

import struct

import pytest

from engine.fsimage.columns import Flag, Kind
from engine.fsimage.errors import ImageDamaged
from engine.fsimage.legacy_layout import Feature, features_of
from engine.fsimage.strategies import Strategy, load_objects, run_strategy
from engine.fsimage.tree import count_kinds, find, path_of, walk
from engine.measure.clock import SystemClock
from tests.fsimage.legacy_writer import ROOT, Dir, File, Link, write_legacy

TREE = [
    ROOT,
    Dir(b"/a", quota=(7, 1 << 40)),
    Dir(b"/b", owner=(b"alice", b"ops", 0o750)),
    File(b"/a/empty"),
    File(b"/a/two", blocks=[(1, 100, 5), (-2, 23, 6)], replication=2),
    Dir(b"/a/deep"),
    File(b"/b/x\xc3\xa9\x01", blocks=[(3, 7, 1)]),
    File(b"/a/deep/f", blocks=[(4, 1 << 40, 1)]),
]
FULL_PATHS = [-1, -5, -8, -9, -11, -13, -14, -16, -17, -18, -19, -23, -24, -27, -31, -32, -33, -41]
LOCAL_NAMES = [-30, -34, -35, -37, -40, -42]


@pytest.mark.parametrize(
    ("name", "inodes", "files", "blocks", "size"),
    [
        ("hadoop-0.18-layout16", 22, 14, 20, 1_069_548_540),
        ("hadoop-0.19-layout18", 22, 14, 20, 1_069_548_540),
        ("hadoop-0.22-layout33", 24, 17, 92, 13_643_328),
        ("hadoop-1.2-layout41", 10, 3, 0, 0),
        ("hadoop-2.0-layout40", 9, 3, 0, 0),
    ],
)
def test_published_images_are_whole_to_their_last_byte(images, load, name, inodes, files, blocks, size):
    loaded = load(images / "fsimages" / "legacy" / f"{name}.img")
    ns = loaded.namespace

    assert ns.rows == ns.header.inode_count == inodes
    assert count_kinds(ns.inodes)[Kind.FILE] == files
    assert (len(ns.blocks.length), int(ns.blocks.length.sum())) == (blocks, size)
    assert loaded.integrity.is_clean  # bytes left behind the end would be noted
    assert len(list(walk(ns))) == inodes


@pytest.mark.parametrize("name", ["hadoop-0.18-layout16", "hadoop-0.19-layout18", "hadoop-1.2-layout41"])
def test_columns_of_published_images_are_what_plain_python_reads(images, load, name):
    path = images / "fsimages" / "legacy" / f"{name}.img"
    ns = load(path).namespace
    root, _, _ = load_objects(path, Strategy.OBJECTS, clock=SystemClock())

    theirs = dict(root.walk())
    ours = dict(walk(ns))
    assert list(ours) == list(theirs)
    for at, row in ours.items():
        node = theirs[at]
        permission = int(ns.inodes.permission[row])
        assert (node.owner.user, node.owner.group) == (ns.strings.user(permission), ns.strings.group(permission))
        assert node.owner.permission.mode == permission & 0xFFFF
        assert node.times[1] == ns.inodes.mtime[row]
        if node.blocks is not None:
            assert node.times[0] == ns.inodes.replication[row]
            assert sum(block.length for block in node.blocks) == ns.size(row)


@pytest.mark.parametrize("version", FULL_PATHS + LOCAL_NAMES)
@pytest.mark.parametrize("threads", [1, 2])
def test_every_layout_gives_back_the_tree_it_was_made_of(tmp_path, load, version, threads):
    features = features_of(version)
    tree = [n for n in TREE if not (features & Feature.EMPTY_IS_DIRECTORY and isinstance(n, File) and not n.blocks)]
    if features & Feature.SYMLINKS:
        tree = [*tree, Link(b"/b/y", target=b"../a")]
    image = write_legacy(tmp_path / "image", version, tree)

    loaded = load(image, threads=threads)
    ns = loaded.namespace

    assert loaded.integrity.is_clean, loaded.integrity.lines()
    assert {path for path, _ in walk(ns)} == {n.path or b"/" for n in tree}
    for node in tree:
        row = find(ns, node.path)
        first = int(ns.inodes.block_start[row])
        assert ns.kind(row) is node.kind
        assert path_of(ns, row) == (node.path or b"/")
        if isinstance(node, File):
            assert ns.size(row) == sum(length for _, length, _ in node.blocks)
            assert ns.inodes.replication[row] == node.replication
            assert [int(b) for b in ns.blocks.block_id[first : first + len(node.blocks)]] == [b[0] for b in node.blocks]
        if features & Feature.PERMISSION:
            permission = int(ns.inodes.permission[row])
            found = ns.strings.user(permission).encode(), ns.strings.group(permission).encode(), permission & 0xFFFF
            assert found == node.owner
    quotas = ns.sparse.quotas
    if features & Feature.NAMESPACE_QUOTA:
        assert 7 in quotas.namespace.tolist()
    assert ((1 << 40) in quotas.space.tolist()) == bool(features & Feature.SPACE_QUOTA)


@pytest.mark.parametrize("codec", ["Default", "Gzip", "BZip2"])
def test_compressed_legacy_images_load(tmp_path, load, codec):
    image = write_legacy(tmp_path / "image", -40, TREE, codec=codec)

    loaded = load(image)

    assert loaded.namespace.rows == len(TREE)
    assert loaded.namespace.header.codec.endswith(f"{codec}Codec")


def test_open_files_are_found_again_and_marked(tmp_path, load):
    image = write_legacy(tmp_path / "image", -18, TREE, open_files=[(b"/a/two", b"client-1", b"host-1")])

    ns = load(image).namespace
    row = find(ns, b"/a/two")

    assert ns.inodes.flags[row] & Flag.UNDER_CONSTRUCTION
    assert ns.extras.open_files[0].path == b"/a/two"
    assert ns.sparse.client_names.row.tolist() == [row]
    assert ns.sparse.client_machines.heap.tobytes() == b"host-1"


@pytest.mark.parametrize(
    ("version", "has", "lacks"),
    [
        (-31, Feature.TOKENS, Feature.COMPRESSION | Feature.LOCAL_NAMES | Feature.SYMLINKS),
        (-32, Feature.TOKENS, Feature.COMPRESSION | Feature.LOCAL_NAMES),
        (-33, Feature.COMPRESSION | Feature.TOKENS | Feature.SYMLINKS, Feature.LOCAL_NAMES),
        (-34, Feature.COMPRESSION | Feature.LOCAL_NAMES, Feature.TXID),
        (-40, Feature.COMPRESSION | Feature.TXID, Feature.INODE_ID),
        (-41, Feature.TOKENS | Feature.SPACE_QUOTA, Feature.COMPRESSION | Feature.LOCAL_NAMES | Feature.TXID),
        (-42, Feature.INODE_ID | Feature.TXID, Feature.SNAPSHOTS),
        (-44, Feature.SNAPSHOTS | Feature.INODE_ID | Feature.LOCAL_NAMES, Feature.COMPRESSION | Feature.TXID),
        (-47, Feature.SLIM_SNAPSHOTS | Feature.BLOCK_IDS | Feature.COMPRESSION, Feature.CACHE),
    ],
)
def test_features_follow_ancestors_not_numbers(version, has, lacks):
    assert features_of(version) & has == has
    assert not features_of(version) & lacks


def test_many_owners_and_directories_grow_the_tables(tmp_path, load):
    tree = [ROOT] + [Dir(b"/d%06d" % i, owner=(b"u%d" % i, b"g%d" % (i % 3000), 0o700)) for i in range(70_000)]
    image = write_legacy(tmp_path / "image", -16, tree)

    ns = load(image).namespace

    assert ns.rows == 70_001
    for i in (0, 1, 1023, 1024, 65_535, 69_999):
        row = find(ns, b"/d%06d" % i)
        permission = int(ns.inodes.permission[row])
        assert (ns.strings.user(permission), ns.strings.group(permission)) == (f"u{i}", f"g{i % 3000}")


@pytest.mark.parametrize("strategy", [Strategy.OBJECTS, Strategy.LEAN, Strategy.PARENT_CACHE])
def test_strategies_build_the_same_tree(tmp_path, load, strategy):
    image = write_legacy(tmp_path / "image", -18, TREE)
    ns = load(image).namespace

    root, inodes, _ = load_objects(image, strategy, clock=SystemClock())

    assert inodes == ns.rows
    assert [path for path, _ in root.walk()] == [path for path, _ in walk(ns)]


def test_only_the_parent_cache_spares_walks_from_the_root(tmp_path):
    tree = [ROOT, Dir(b"/a"), Dir(b"/b"), *(File(b"/a/%03d" % i) for i in range(100))]
    image = write_legacy(tmp_path / "image", -16, tree)

    runs = {strategy: run_strategy(image, strategy, clock=SystemClock()) for strategy in Strategy}

    assert {run.inodes for run in runs.values()} == {len(tree)}
    assert runs[Strategy.OBJECTS].resolve_calls == runs[Strategy.LEAN].resolve_calls == len(tree) - 1
    assert runs[Strategy.PARENT_CACHE].resolve_calls == 1
    assert runs[Strategy.COLUMNAR].resolve_calls == 2  # the root's children, and those of /a


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda d: d[:-30], "number of blocks that the file cannot hold"),
        (lambda d: d[:-6], "owner or group that reaches past the end"),
        (lambda d: d[:8] + struct.pack(">q", 1 << 40) + d[16:], "1,099,511,627,776 inodes"),
        (lambda d: d.replace(b"/a/deep/f", b"/q/deep/f"), "parent has not been met"),
        (lambda d: d.replace(struct.pack(">q", 1 << 40) + struct.pack(">q", 1), b"\xff" * 16), "2\\^63"),
        (lambda d: d[:24] + b"\x00\x05/root" + d[26:], "not the root directory"),
        (lambda d: d + b"surplus", None),
    ],
    ids=["cut-in-blocks", "cut-in-owner", "huge-count", "missing-parent", "negative-length", "no-root", "surplus"],
)
def test_damage_names_what_and_where(tmp_path, load, spoil, words):
    image = write_legacy(tmp_path / "image", -16, TREE)
    image.write_bytes(spoil(image.read_bytes()))

    if words is None:
        assert load(image).integrity.lines()[1].strip() == "7 bytes stand behind the end"
    else:
        with pytest.raises(ImageDamaged, match=words):
            load(image)


def test_layouts_with_snapshots_are_refused_by_name(tmp_path, load):
    image = write_legacy(tmp_path / "image", -47, TREE)

    with pytest.raises(ImageDamaged, match="layout -47, whose inodes hold snapshots"):
        load(image)
