"""Trees that hypothesis makes, saved: our loader and protobuf's own parser read back what was put in."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2 as descriptor
from google.protobuf import descriptor_pool as pools
from google.protobuf import message_factory as factory
from hypothesis import given
from hypothesis import strategies as st

from engine.fsimage.columns import ROOT_ID, Kind, Namespace
from engine.fsimage.container import open_container
from engine.fsimage.load import load_image
from engine.fsimage.save import SaveOptions, save_image
from engine.fsimage.save_codecs import CODECS
from engine.measure.clock import SystemClock
from tests.fsimage.build_namespace import Node, build, differences, tree_of

MOST = (1 << 63) - 1
I64 = st.integers(-(1 << 63), MOST)
NAMES = st.binary(min_size=1, max_size=40).filter(lambda name: b"/" not in name and name != b"\0")
PERMISSIONS = st.builds(
    lambda user, group, mode: user << 40 | group << 16 | mode,
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(0, 0o7777),
)  # fmt: skip
ACLS = st.lists(st.integers(0, 127).map(lambda low: 1 << 6 | low), max_size=4).map(tuple)
XATTRS = st.lists(
    st.tuples(st.sampled_from((1 << 6, 1 << 30 | 1 << 6, 2 << 30 | 1 << 6 | 32)), st.binary(max_size=200)), max_size=3
).map(tuple)
BLOCKS = st.lists(st.tuples(I64, I64, st.integers(0, 1 << 58)), max_size=5).map(tuple)


@st.composite
def nodes(draw: st.DrawFn, *, legacy: bool = False) -> list[Node]:
    """Return nodes that make a tree; with `legacy`, of what those layouts know."""
    found: list[Node] = []
    directories, taken = [-1], set()
    ids = draw(st.lists(st.integers(ROOT_ID + 1, MOST), unique=True, max_size=25))
    for inode_id in ids:
        parent, name = draw(st.sampled_from(directories)), draw(NAMES)
        if (parent, name) in taken:
            continue
        taken.add((parent, name))
        kind = draw(st.sampled_from((Kind.FILE, Kind.DIRECTORY) if legacy else tuple(Kind)))
        shared: dict[str, Any] = {"mtime": draw(I64), "permission": draw(PERMISSIONS)}
        if not legacy and kind is not Kind.SYMLINK:
            shared |= {"acl": draw(ACLS), "xattrs": draw(XATTRS)}
        if kind is Kind.DIRECTORY:
            quota = draw(st.none() | st.tuples(I64, I64).filter(lambda pair: pair != (-1, -1)))
            shared |= {"quota": quota}
            if not legacy:
                shared["type_quotas"] = draw(st.lists(st.tuples(st.integers(1, 6), I64), max_size=2).map(tuple))
            directories.append(len(found))
        elif kind is Kind.FILE:
            striped = not legacy and draw(st.booleans())
            shared |= {
                "atime": draw(I64),
                "block_size": draw(I64),
                "blocks": draw(BLOCKS),
                "is_striped": striped,
                "replication": 0 if striped else draw(st.integers(0, 32767)),
                "ec_policy": draw(st.integers(0, 255)) if striped else 0,
                "storage_policy": 0 if legacy else draw(st.integers(0, 255)),
                "client": None if legacy else draw(st.none() | st.tuples(st.binary(max_size=9), st.binary(max_size=9))),
            }
        else:
            shared |= {"atime": draw(I64), "target": draw(st.binary(max_size=50))}
        found.append(Node(kind, parent, name, inode_id, **shared))
    return found


def saved_bytes(namespace: Namespace, options: SaveOptions, threads: int = 2) -> tuple[bytes, Namespace]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image"
        save_image(namespace, path, options, clock=SystemClock(), threads=threads)
        loaded = load_image(path, clock=SystemClock(), check_md5=False)
        return path.read_bytes(), loaded.namespace


@given(nodes(), st.sampled_from(tuple(CODECS)), st.integers(0, 4))
def test_a_tree_comes_back_column_by_column(found, codec, sub_sections):
    namespace = build(found)
    options = SaveOptions(codec=codec, sub_sections=sub_sections)

    first, loaded = saved_bytes(namespace, options)

    wrong = differences(loaded, namespace)
    assert [name for name in wrong if name not in ("snapshots", "cache")] == []  # None before, empty after
    assert saved_bytes(loaded, options, threads=1)[0] == first


@given(nodes(legacy=True), st.sampled_from((-16, -18)))
def test_a_legacy_tree_comes_back_path_by_path(found, version):
    namespace = build(found)
    options = SaveOptions("legacy", version, drop=True)

    first, loaded = saved_bytes(namespace, options)

    has_access_times = version <= -17
    assert tree_of(loaded, access_times=has_access_times) == tree_of(namespace, access_times=has_access_times)
    assert saved_bytes(loaded, options, threads=1)[0] == first


_SCHEMA = {
    "Section": [(1, "name", "string"), (2, "length", "uint64"), (3, "offset", "uint64")],
    "FileSummary": [
        (1, "ondiskVersion", "uint32"), (2, "layoutVersion", "uint32"), (3, "codec", "string"),
        (4, "sections", "*Section"),
    ],
    "INodeSection": [(1, "lastInodeId", "uint64"), (2, "numInodes", "uint64")],
    "Block": [(1, "blockId", "uint64"), (2, "genStamp", "uint64"), (3, "numBytes", "uint64")],
    "Client": [(1, "clientName", "bytes"), (2, "clientMachine", "bytes")],
    "Acl": [(2, "entries", "*fixed32")],
    "XAttr": [(1, "name", "fixed32"), (2, "value", "bytes")],
    "XAttrs": [(1, "xAttrs", "*XAttr")],
    "File": [
        (1, "replication", "uint32"), (2, "modificationTime", "uint64"), (3, "accessTime", "uint64"),
        (4, "preferredBlockSize", "uint64"), (5, "permission", "fixed64"), (6, "blocks", "*Block"),
        (7, "fileUC", "Client"), (8, "acl", "Acl"), (9, "xAttrs", "XAttrs"), (10, "storagePolicyID", "uint32"),
        (11, "blockType", "uint32"), (12, "erasureCodingPolicyID", "uint32"),
    ],
    "TypeQuota": [(1, "storageType", "uint32"), (2, "quota", "uint64")],
    "TypeQuotas": [(1, "quotas", "*TypeQuota")],
    "Directory": [
        (1, "modificationTime", "uint64"), (2, "nsQuota", "uint64"), (3, "dsQuota", "uint64"),
        (4, "permission", "fixed64"), (5, "acl", "Acl"), (6, "xAttrs", "XAttrs"), (7, "typeQuotas", "TypeQuotas"),
    ],
    "Symlink": [
        (1, "permission", "fixed64"), (2, "target", "bytes"), (3, "modificationTime", "uint64"),
        (4, "accessTime", "uint64"),
    ],
    "INode": [
        (1, "type", "uint32"), (2, "id", "uint64"), (3, "name", "bytes"), (4, "file", "File"),
        (5, "directory", "Directory"), (6, "symlink", "Symlink"),
    ],
    "DirEntry": [(1, "parent", "uint64"), (2, "children", "*uint64"), (3, "refChildren", "*uint32")],
}  # fmt: skip


@pytest.fixture(scope="module")
def messages() -> dict[str, Any]:
    """Return protobuf's own classes for the published field numbers."""
    file = descriptor.FileDescriptorProto(name="fsimage.proto", package="t", syntax="proto2")
    kinds = descriptor.FieldDescriptorProto
    for name, fields in _SCHEMA.items():
        message = file.message_type.add(name=name)
        for number, field, kind in fields:
            is_many, plain = kind.startswith("*"), kind.lstrip("*")
            added = message.field.add(
                name=field, number=number, label=kinds.LABEL_REPEATED if is_many else kinds.LABEL_OPTIONAL
            )
            if plain in _SCHEMA:
                added.type, added.type_name = kinds.TYPE_MESSAGE, f".t.{plain}"
            else:
                added.type = getattr(kinds, f"TYPE_{plain.upper()}")
                added.options.packed = is_many
    pool = pools.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {name: factory.GetMessageClass(pool.FindMessageTypeByName(f"t.{name}")) for name in _SCHEMA}


def delimited(data: bytes, cls: Any) -> list[Any]:
    """Return the delimited messages of a section, each parsed by protobuf."""
    found, at = [], 0
    while at < len(data):
        length = shift = 0
        while True:
            byte = data[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        found.append(cls.FromString(data[at : at + length]))
        at += length
    return found


@given(found=nodes())
def test_protobufs_own_parser_reads_what_was_put_in(messages, found):
    namespace = build(found)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image"
        save_image(namespace, path, clock=SystemClock())
        container = open_container(path)
        whole = path.read_bytes()
        inodes, entries = (container.read_named(name).tobytes() for name in ("INODE", "INODE_DIR"))
    size = int.from_bytes(whole[-4:], "big")
    (summary,) = delimited(whole[-4 - size : -4], messages["FileSummary"])
    head_size = 1 + inodes[0]
    (head,) = delimited(inodes[:head_size], messages["INodeSection"])
    read = delimited(inodes[head_size:], messages["INode"])

    assert summary.layoutVersion == (1 << 32) - 67
    assert head.numInodes == len(found) + 1 == len(read)
    unsigned = (1 << 64) - 1
    for node, inode in zip(found, read[1:], strict=True):
        assert (inode.type, inode.id, inode.name) == (node.kind, node.inode_id, node.name)
        part = (None, inode.file, inode.directory, inode.symlink)[inode.type]
        assert part.permission == node.permission
        assert part.modificationTime == node.mtime & unsigned
        if node.kind is not Kind.SYMLINK:
            assert tuple(part.acl.entries) == node.acl
            assert tuple((x.name, x.value) for x in part.xAttrs.xAttrs) == node.xattrs
        if node.kind is Kind.FILE:
            assert tuple((b.blockId, b.genStamp, b.numBytes) for b in part.blocks) == tuple(
                (a & unsigned, b & unsigned, c) for a, b, c in node.blocks
            )
            assert part.HasField("erasureCodingPolicyID") == node.is_striped
            assert part.HasField("fileUC") == (node.client is not None)
        elif node.kind is Kind.DIRECTORY:
            quota = node.quota or (-1, -1)
            assert (part.nsQuota, part.dsQuota) == (quota[0] & unsigned, quota[1] & unsigned)
            assert tuple((q.storageType, q.quota) for q in part.typeQuotas.quotas) == tuple(
                (kind, quota & unsigned) for kind, quota in node.type_quotas
            )
        else:
            assert part.target == node.target
    listed = {entry.parent: set(entry.children) for entry in delimited(entries, messages["DirEntry"])}
    expected: dict[int, set[int]] = {}
    for node in found:
        parent = ROOT_ID if node.parent == -1 else found[node.parent].inode_id
        expected.setdefault(parent, set()).add(node.inode_id)
    assert listed == expected
