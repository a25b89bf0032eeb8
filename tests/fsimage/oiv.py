"""Hadoop's own dumps of an image, read into plain records to compare with ours."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree

from engine.fsimage.columns import Flag, Kind, Namespace
from engine.fsimage.snapshots import DirectoryDiff, InodeCopy, read_diffs
from engine.fsimage.tree import walk

_MANGLED = re.compile(r"\\([0-9a-f]{4});")
_ACL_SCOPES = ("", "default:")
_ACL_TYPES = ("user", "group", "mask", "other")


def xml_root(text: bytes) -> ElementTree.Element:
    """Parse an XML dump; control characters are mangled in it, a raw carriage return is kept from the parser."""
    return ElementTree.fromstring(text.replace(b"\r", b"\\000d;"))


def unmangle(text: str | None) -> bytes:
    """Undo the dump's escapes."""
    return _MANGLED.sub(lambda match: chr(int(match[1], 16)), text or "").encode("utf-8")


def xml_inodes(root: ElementTree.Element) -> dict[int, dict[str, Any]]:
    """Return what the dump says of every inode, by id."""
    return {int(node.findtext("id", "")): _xml_inode(node) for node in root.iterfind("INodeSection/inode")}


def _xml_inode(node: ElementTree.Element) -> dict[str, Any]:
    kind = Kind[node.findtext("type", "")]
    striped = node.find("erasureCodingPolicyId") is not None
    user, group, mode = node.findtext("permission", "").rsplit(":", 2)
    found = {
        "kind": kind,
        "name": unmangle(node.findtext("name")),
        "mtime": int(node.findtext("mtime", "0")),
        "atime": int(node.findtext("atime", "0")),
        "block_size": int(node.findtext("preferredBlockSize") or node.findtext("perferredBlockSize", "0")),  # sic, 3.1
        "owner": (user, group, _mode(mode)),
        "replication": 0 if striped else int(node.findtext("replication", "0")),
        "storage_policy": int(node.findtext("storagePolicyId", "0")),
        "ec_policy": int(node.findtext("erasureCodingPolicyId", "0")),
        "blocks": [
            (int(b.findtext("id", "")), int(b.findtext("genstamp", "")), int(b.findtext("numBytes", "0")))
            for b in node.iterfind("blocks/block")
        ],
        "open": node.find("file-under-construction") is not None,
        "acl": [acl.text for acl in node.iterfind("acls/acl")],
        "xattrs": sorted(_xml_xattr(xattr) for xattr in node.iterfind("xattrs/xattr")),
        "target": unmangle(node.findtext("target")) if node.find("target") is not None else None,
    }
    if kind is Kind.DIRECTORY:
        found["quota"] = (int(node.findtext("nsquota", "-1")), int(node.findtext("dsquota", "-1")))
    return found


def xml_diffs(root: ElementTree.Element) -> list[tuple[Any, ...]]:
    """Return the dump's snapshot diffs: (inode id, kind, diffs)."""
    found: list[tuple[Any, ...]] = []
    for entry in root.iterfind("SnapshotDiffSection/*"):
        inode_id = int(entry.findtext("inodeId", ""))
        if entry.tag == "dirDiffEntry":
            found.append((inode_id, Kind.DIRECTORY, [_xml_directory_diff(diff) for diff in entry.iterfind("dirDiff")]))
        else:
            found.append((inode_id, Kind.FILE, [_xml_file_diff(diff) for diff in entry.iterfind("fileDiff")]))
    return found


def _xml_directory_diff(diff: ElementTree.Element) -> tuple[Any, ...]:
    copy = diff.find("snapshotCopy")
    return (
        int(diff.findtext("snapshotId", "")),
        int(diff.findtext("childrenSize", "")),
        diff.find("isSnapshotRoot") is not None,
        unmangle(diff.findtext("name")),
        None if copy is None else _xml_copy(copy, "nsquota", "dsquota"),
        tuple(unmangle(name.findtext("name")) for name in diff.iterfind("created")),
        tuple(int(each.text or "") for each in diff.iterfind("deletedInode")),
        tuple(int(each.text or "") for each in diff.iterfind("deletedInoderef")),
    )


def _xml_file_diff(diff: ElementTree.Element) -> tuple[Any, ...]:
    copy = diff.find("snapshotCopy")
    return (
        int(diff.findtext("snapshotId", "")),
        int(diff.findtext("size", "")),
        unmangle(diff.findtext("name")),
        None if copy is None else _xml_copy(copy, "atime", "replication", "preferredBlockSize", "storagePolicyId"),
        tuple(
            (int(b.findtext("id", "")), int(b.findtext("genstamp", "")), int(b.findtext("numBytes", "")))
            for b in diff.iterfind("blocks/block")
        ),
    )


def _xml_copy(copy: ElementTree.Element, *fields: str) -> tuple[Any, ...]:
    user, group, mode = copy.findtext("permission", "").rsplit(":", 2)
    return (int(copy.findtext("mtime", "")), user, group, _mode(mode), *(int(copy.findtext(f, "")) for f in fields))


def our_diffs(ns: Namespace) -> list[tuple[Any, ...]]:
    """Return the same of a namespace."""

    def copied(copy: InodeCopy, *fields: int) -> tuple[Any, ...]:
        p = copy.permission
        return (copy.mtime, ns.strings.user(p), ns.strings.group(p), p & 0xFFFF, *fields)

    found: list[tuple[Any, ...]] = []
    for entry in read_diffs(ns):
        diffs: list[tuple[Any, ...]] = []
        for d in entry.diffs:
            c = d.copy
            if isinstance(d, DirectoryDiff):
                copy = None if c is None else copied(c, c.namespace_quota, c.space_quota)
                gone = (d.created, d.deleted, d.deleted_references)
                diffs.append((d.snapshot_id, d.children, d.is_snapshot_root, d.name, copy, *gone))
            else:
                copy = (
                    None if c is None else copied(c, c.atime, c.replication, c.preferred_block_size, c.storage_policy)
                )
                diffs.append((d.snapshot_id, d.size, d.name, copy, d.blocks))
        found.append((entry.inode_id, entry.kind, diffs))
    return found


def _mode(text: str) -> int:
    """Read 0755, or rwxr-xr-x as older dumps have it."""
    return int(text, 8) if text.isdigit() else sum(1 << 8 - i for i, c in enumerate(text) if c != "-")


def _xml_xattr(node: ElementTree.Element) -> tuple[str, bytes]:
    if node.find("valHex") is not None:
        return node.findtext("name", ""), bytes.fromhex(node.findtext("valHex", ""))
    return node.findtext("name", ""), unmangle(node.findtext("val"))


def our_inodes(ns: Namespace) -> dict[int, dict[str, Any]]:
    """Return what a namespace holds of every inode, by id, in the same shape."""
    columns, sparse, strings = ns.inodes, ns.sparse, ns.strings
    quotas = dict(
        zip(
            sparse.quotas.row.tolist(),
            zip(sparse.quotas.namespace.tolist(), sparse.quotas.space.tolist(), strict=True),
            strict=True,
        )
    )
    found: dict[int, dict[str, Any]] = {}
    for row in range(ns.rows):
        permission, flags = int(columns.permission[row]), int(columns.flags[row])
        first, last = int(columns.block_start[row]), int(columns.block_start[row + 1])
        inode = {
            "kind": ns.kind(row),
            "name": ns.name(row),
            "mtime": int(columns.mtime[row]),
            "atime": int(columns.atime[row]),
            "block_size": int(columns.preferred_block_size[row]),
            "owner": (strings.user(permission), strings.group(permission), permission & 0xFFFF),
            "replication": int(columns.replication[row]),
            "storage_policy": int(columns.storage_policy[row]),
            "ec_policy": int(columns.ec_policy[row]),
            "blocks": list(
                zip(
                    ns.blocks.block_id[first:last].tolist(),
                    ns.blocks.generation[first:last].tolist(),
                    ns.blocks.length[first:last].tolist(),
                    strict=True,
                )
            ),
            "open": bool(flags & Flag.UNDER_CONSTRUCTION),
            "acl": [],
            "xattrs": [],
            "target": None,
        }
        if inode["kind"] is Kind.DIRECTORY:
            inode["quota"] = quotas.get(row, (-1, -1))
        found[int(columns.inode_id[row])] = inode
    ids = columns.inode_id
    acls = sparse.acls
    for index, row in enumerate(acls.row.tolist()):
        entries = acls.entry[acls.start[index] : acls.start[index + 1]].tolist()
        found[int(ids[row])]["acl"] = [_acl_text(ns, entry) for entry in entries]
    xattrs = sparse.xattrs
    for index, row in enumerate(xattrs.row.tolist()):
        name = ns.strings.xattr_names[int(xattrs.name[index]) >> 6 & 0xFFFFFF]
        value = xattrs.values[xattrs.value_start[index] : xattrs.value_start[index + 1]].tobytes()
        found[int(ids[row])]["xattrs"].append((name, value))
    for inode in found.values():
        inode["xattrs"].sort()
    links = sparse.symlink_targets
    for index, row in enumerate(links.row.tolist()):
        found[int(ids[row])]["target"] = links.heap[links.start[index] : links.start[index + 1]].tobytes()
    return found


def _acl_text(ns: Namespace, entry: int) -> str:
    number, scope, kind, permission = entry >> 6 & 0xFFFFFF, entry >> 5 & 1, entry >> 3 & 3, entry & 7
    table = ns.strings.users if kind == 0 else ns.strings.groups
    name = table.get(number, "") if kind < 2 else ""
    bits = "".join(letter if permission & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))
    return f"{_ACL_SCOPES[scope]}{_ACL_TYPES[kind]}:{name}:{bits}"


def xml_children(root: ElementTree.Element) -> dict[int, list[int]]:
    """Return the ids of every directory's children, references resolved, by the directory's id."""
    referred = [int(ref.findtext("referredId", "")) for ref in root.iterfind("INodeReferenceSection/ref")]
    return {
        int(entry.findtext("parent", "")): [int(child.text or "") for child in entry.iterfind("child")]
        + [referred[int(child.text or "")] for child in entry.iterfind("refChild")]
        for entry in root.iterfind("INodeDirectorySection/directory")
    }


def our_children(ns: Namespace) -> dict[int, list[int]]:
    """Return the same of a namespace."""
    ids = ns.inodes.inode_id
    return {int(ids[row]): ids[ns.children(row)].tolist() for row in range(ns.rows) if len(ns.children(row))}


def delimited_rows(ns: Namespace) -> dict[bytes, tuple[str, ...]]:
    """Return the columns of `oiv -p Delimited` behind the path, by path, as that tool writes them."""
    columns, quotas = ns.inodes, ns.sparse.quotas
    quota = dict(
        zip(quotas.row.tolist(), zip(quotas.namespace.tolist(), quotas.space.tolist(), strict=True), strict=True)
    )
    rows: dict[bytes, tuple[str, ...]] = {}
    for path, row in walk(ns):
        kind, permission = ns.kind(row), int(columns.permission[row])
        if kind is Kind.SYMLINK:
            continue
        space = quota.get(row, (-1, -1)) if kind is Kind.DIRECTORY else (0, 0)
        blocks = int(columns.block_start[row + 1]) - int(columns.block_start[row])
        mode = "".join(c if permission >> 8 - i & 1 else "-" for i, c in enumerate("rwxrwxrwx"))
        if permission & 0o1000:
            mode = mode[:-1] + ("t" if permission & 1 else "T")
        rows[path] = (
            str(columns.replication[row]),
            _minute(int(columns.mtime[row])),
            _minute(int(columns.atime[row])),
            str(columns.preferred_block_size[row]),
            str(blocks),
            str(ns.size(row)),
            *(str(limit) for limit in space),
            ("d" if kind is Kind.DIRECTORY else "-") + mode + ("+" if columns.flags[row] & Flag.ACL else ""),
            ns.strings.user(permission),
            ns.strings.group(permission),
        )
    return rows


def _minute(ms: int) -> str:
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%d %H:%M")
