"""What every layout's load shares: its state, and the checks that need no bytes of the image, only columns."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np

from engine.fsimage import inode_kernel as ik
from engine.fsimage.columns import I64 as I64Array
from engine.fsimage.columns import Acls, Flag, InodeColumns, Quotas, Sparse, Strings, Texts, Tree, TypeQuotas, Xattrs
from engine.fsimage.container import Container
from engine.fsimage.errors import LoadCancelled
from engine.fsimage.integrity import MOST, Findings, Trouble
from engine.fsimage.tree import find_tops, reach
from engine.measure.phases import Phase

MAX_EXPANSION = 3  # columns may take this many times the bytes they are read from: the smallest real inodes take 1.7


@dataclass(slots=True)
class Load:
    """One load under way: what every step needs."""

    container: Container
    threads: int
    loading: Phase
    cancel: threading.Event
    findings: Findings = field(default_factory=Findings)
    lookups: list[int] | None = None  # parents looked up, by piece of a legacy image

    def check(self, _: int = 0) -> None:
        """Raise LoadCancelled where the caller asked for it."""
        if self.cancel.is_set():
            raise LoadCancelled


def make_sparse(a: ik.SparseArrays, totals: I64Array) -> Sparse:
    """Return the sparse tables of what a walk filled; sets the ends that no row sets."""
    a.acl_start[-1] = totals[ik.ACL_ENTRIES]
    a.xattr_start[-1] = totals[ik.XATTR_BYTES]
    a.link_start[-1] = totals[ik.LINK_BYTES]
    a.client_start[-1] = totals[ik.CLIENT_BYTES]
    a.machine_start[-1] = totals[ik.MACHINE_BYTES]
    return Sparse(
        acls=Acls(a.acl_row, a.acl_start, a.acl_entry),
        xattrs=Xattrs(a.xattr_row, a.xattr_name, a.xattr_start, a.xattr_values),
        quotas=Quotas(a.quota_row, a.quota_namespace, a.quota_space),
        type_quotas=TypeQuotas(a.type_quota_row, a.type_quota_type, a.type_quota),
        symlink_targets=Texts(a.link_row, a.link_start, a.link_heap),
        client_names=Texts(a.client_row, a.client_start, a.client_heap),
        client_machines=Texts(a.client_row, a.machine_start, a.machine_heap),
    )


def note_order(findings: Findings, inodes: InodeColumns, same: int, first_same: tuple[int, ...], nameless: int) -> None:
    """Report what ordering the children met."""
    findings.count(Trouble.SAME_NAME, same)
    for row in first_same:
        inode_id = int(inodes.inode_id[row])
        findings.example(Trouble.SAME_NAME, f"inode {inode_id} has the name of a sibling", inode_id=inode_id)
    findings.count(Trouble.NO_NAME, nameless)


def check_reach(
    findings: Findings, inodes: InodeColumns, tree: Tree, root: int, directories: int, held: set[int]
) -> None:
    """Explain every inode that the root does not reach: held by a snapshot, in a cycle, or an orphan."""
    rows = int(inodes.parent.size)
    if reach(inodes, tree, root, directories) == rows:
        return
    top = np.full(rows, -2, np.int32)
    find_tops(inodes.parent, top)
    in_cycle = np.flatnonzero(top == -1)
    below = np.flatnonzero((top >= 0) & (top != root))
    is_held = np.isin(top[below], np.fromiter(held, np.int32, len(held)))
    inodes.flags[below[is_held]] |= np.uint16(Flag.IN_SNAPSHOT_ONLY)
    findings.snapshot_only = int(is_held.sum())
    orphans = below[~is_held]
    for trouble, found, words in (
        (Trouble.CYCLE, in_cycle, "is its own ancestor, or below such"),
        (Trouble.ORPHAN, orphans, "is in no directory and no snapshot, or below such"),
    ):
        findings.count(trouble, int(found.size))
        for row in found[:MOST].tolist():
            inode_id = int(inodes.inode_id[row])
            findings.example(trouble, f"inode {inode_id} {words}", inode_id=inode_id)


def check_strings(findings: Findings, inodes: InodeColumns, strings: Strings) -> None:
    """Report owners and groups without a name. Ids are few, so each is looked up once."""
    owners = np.unique(inodes.permission >> np.uint64(16))
    for packed in owners.tolist():
        user, group = packed >> 24, packed & 0xFFFFFF
        for what, number, table in (("owner", user, strings.users), ("group", group, strings.groups)):
            if number and number not in table:
                findings.add(Trouble.MISSING_STRING, f"{what} {number} has no name")
