"""Namespaces made in a test, node by node, without a file: what a saver is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.fsimage import columns as c
from engine.fsimage.tree import index_children

USERS = {1: "hdfs", 2: "ann", 3: "bøb"}
GROUPS = {1: "supergroup", 2: "staff"}


@dataclass(frozen=True)
class Node:
    """One inode below the root. `parent` counts nodes, -1 is the root; it is a directory before this one."""

    kind: c.Kind
    parent: int
    name: bytes
    inode_id: int
    mtime: int = 0
    atime: int = 0
    block_size: int = 0
    permission: int = 1 << 40 | 1 << 16 | 0o755
    replication: int = 0
    storage_policy: int = 0
    ec_policy: int = 0
    is_striped: bool = False
    blocks: tuple[tuple[int, int, int], ...] = ()  # id, generation, length
    quota: tuple[int, int] | None = None
    type_quotas: tuple[tuple[int, int], ...] = ()
    acl: tuple[int, ...] = ()
    xattrs: tuple[tuple[int, bytes], ...] = ()
    target: bytes | None = None
    client: tuple[bytes, bytes] | None = None


ROOT = Node(c.Kind.DIRECTORY, -2, b"", c.ROOT_ID, quota=((1 << 63) - 1, -1))


def build(nodes: Sequence[Node]) -> c.Namespace:
    """Return the namespace of the root and these nodes, rows in that order."""
    rows = [ROOT, *nodes]
    inodes = c.make_inode_columns(len(rows))
    blocks = [block for node in rows for block in node.blocks]
    columns = c.BlockColumns(*(np.array([b[k] for b in blocks], np.int64) for k in range(3)))
    names = b"".join(node.name for node in rows)
    for row, node in enumerate(rows):
        inodes.inode_id[row] = node.inode_id
        inodes.parent[row] = node.parent + 1 if node.parent >= -1 else c.NO_PARENT
        inodes.mtime[row], inodes.atime[row] = node.mtime, node.atime
        inodes.preferred_block_size[row], inodes.permission[row] = node.block_size, node.permission
        inodes.replication[row], inodes.storage_policy[row] = node.replication, node.storage_policy
        inodes.ec_policy[row] = node.ec_policy
        flags = int(node.kind)
        flags |= c.Flag.UNDER_CONSTRUCTION if node.client is not None else 0
        flags |= c.Flag.STRIPED if node.is_striped else 0
        flags |= c.Flag.ACL if node.acl else 0
        flags |= c.Flag.XATTRS if node.xattrs else 0
        flags |= c.Flag.QUOTA if node.quota else 0
        flags |= c.Flag.TYPE_QUOTA if node.type_quotas else 0
        inodes.flags[row] = flags
    inodes.name_start[1:] = np.cumsum([len(node.name) for node in rows])
    inodes.block_start[1:] = np.cumsum([len(node.blocks) for node in rows])
    heap = np.frombuffer(names, np.uint8).copy()
    tree = index_children(inodes.parent)
    for row in range(len(rows)):
        first, last = int(tree.child_start[row]), int(tree.child_start[row + 1])
        tree.children[first:last] = sorted(tree.children[first:last].tolist(), key=lambda r: rows[r].name)
    with_acl = [(row, node.acl) for row, node in enumerate(rows) if node.acl]
    xattrs = [(row, name, value) for row, node in enumerate(rows) for name, value in node.xattrs]
    quotas = [(row, *node.quota) for row, node in enumerate(rows) if node.quota]
    type_quotas = [(row, *pair) for row, node in enumerate(rows) for pair in node.type_quotas]
    sparse = c.Sparse(
        acls=c.Acls(
            np.array([row for row, _ in with_acl], np.int32),
            np.cumsum([0, *(len(acl) for _, acl in with_acl)]).astype(np.int32),
            np.array([entry for _, acl in with_acl for entry in acl], np.uint32),
        ),
        xattrs=c.Xattrs(
            np.array([x[0] for x in xattrs], np.int32),
            np.array([x[1] for x in xattrs], np.uint32),
            np.cumsum([0, *(len(x[2]) for x in xattrs)]).astype(np.int64),
            np.frombuffer(b"".join(x[2] for x in xattrs), np.uint8).copy(),
        ),
        quotas=c.Quotas(*(np.array([q[k] for q in quotas], t) for k, t in enumerate((np.int32, np.int64, np.int64)))),
        type_quotas=c.TypeQuotas(
            *(np.array([q[k] for q in type_quotas], t) for k, t in enumerate((np.int32, np.uint8, np.int64)))
        ),
        symlink_targets=_texts([(row, n.target or b"") for row, n in enumerate(rows) if n.kind is c.Kind.SYMLINK]),
        client_names=_texts([(row, n.client[0]) for row, n in enumerate(rows) if n.client is not None]),
        client_machines=_texts([(row, n.client[1]) for row, n in enumerate(rows) if n.client is not None]),
    )
    header = c.Header(-67, True, "", 7, len(rows), 1000, 2000, 0, 1 << 30, None, max(n.inode_id for n in rows), 42)
    strings = c.Strings(USERS, GROUPS, {1: "origin"}, {1: "acl-user"}, is_split=True)
    return c.Namespace(header, inodes, heap, columns, tree, strings, sparse, c.Extras(), 0)


def _texts(found: list[tuple[int, bytes]]) -> c.Texts:
    return c.Texts(
        np.array([row for row, _ in found], np.int32),
        np.cumsum([0, *(len(value) for _, value in found)]).astype(np.int64),
        np.frombuffer(b"".join(value for _, value in found), np.uint8).copy(),
    )


def differences(a: c.Namespace, b: c.Namespace) -> list[str]:
    """Return the names of what differs between two namespaces: every column, table and section."""
    found = [
        f"{name}.{field}"
        for name in ("inodes", "blocks", "tree")
        for field in getattr(a, name)._fields
        if not np.array_equal(getattr(getattr(a, name), field), getattr(getattr(b, name), field))
    ]
    for table in c.Sparse.__slots__:
        left, right = getattr(a.sparse, table), getattr(b.sparse, table)
        found += [f"{table}.{f}" for f in left._fields if not np.array_equal(getattr(left, f), getattr(right, f))]
    found += ["names"] if not np.array_equal(a.names, b.names) else []
    found += ["strings"] if a.strings != b.strings else []
    found += [
        name
        for name in ("open_files", "snapshots", "cache", "ec_policies")
        if getattr(a.extras, name) != getattr(b.extras, name)
    ]
    return found


def tree_of(namespace: c.Namespace, *, access_times: bool = True) -> dict[bytes, tuple[object, ...]]:
    """Return what every path holds that legacy layouts know, too."""
    from engine.fsimage.tree import walk

    found: dict[bytes, tuple[object, ...]] = {}
    columns = namespace.inodes
    for path, row in walk(namespace):
        permission = int(columns.permission[row])
        first, last = int(columns.block_start[row]), int(columns.block_start[row + 1])
        found[path] = (
            namespace.kind(row),
            int(columns.mtime[row]),
            int(columns.atime[row]) if access_times else 0,
            int(columns.preferred_block_size[row]),
            int(columns.replication[row]),
            namespace.strings.user(permission),
            namespace.strings.group(permission),
            permission & 0xFFFF,
            tuple(tuple(int(column[k]) for column in namespace.blocks) for k in range(first, last)),
        )
    return found
