"""The order in which a NameNode keeps a directory's children: by name, bytes compared as Java compares them, signed.

Java's bytes run from -128 to 127, so `é` (C3 A9) sorts before `a`. Since HDFS-13693 a NameNode appends children as an
image lists them and searches them in halves ever after: an image in any other order loads without a word, and then
files are not found. Names of ASCII alone have one order either way, and nothing is copied for them.
"""

from __future__ import annotations

import numpy as np

from engine.fsimage.column_types import HEAP, I32S, I64, I64S
from engine.fsimage.columns import I32, U8, Namespace
from engine.native.kernel import bare, kernel

_SCAN = 1 << 24


def java_children(namespace: Namespace) -> I32:
    """Return the children index in Java's order: the namespace's own array, or a copy where the two differ."""
    if _is_ascii(namespace.names):
        return namespace.tree.children
    children = namespace.tree.children.copy()
    java_order(namespace.names, namespace.inodes.name_start, namespace.tree.child_start, children)
    return children


def _is_ascii(names: U8) -> bool:
    return all(int(names[at : at + _SCAN].max()) < 0x80 for at in range(0, names.size, _SCAN))


@bare
def _compare(names, name_start, left, right):  # type: ignore[no-untyped-def]
    a, a_end = name_start[left], name_start[left + 1]
    b, b_end = name_start[right], name_start[right + 1]
    for i in range(min(a_end - a, b_end - b)):
        difference = np.int64(np.int8(names[a + i])) - np.int64(np.int8(names[b + i]))
        if difference != 0:
            return difference
    return (a_end - a) - (b_end - b)


@bare
def _sift(names, name_start, children, first, root, count):  # type: ignore[no-untyped-def]
    at = root
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and _compare(names, name_start, children[first + child], children[first + child + 1]) < 0:
            child += 1
        if _compare(names, name_start, children[first + at], children[first + child]) >= 0:
            return
        children[first + at], children[first + child] = children[first + child], children[first + at]
        at = child


@kernel(I64(HEAP, I64S, I32S, I32S), bare=True)
def java_order(names, name_start, child_start, children):  # type: ignore[no-untyped-def]
    """Sort the children of each directory that is not in Java's order, by heap sort; return how many there were."""
    found = np.int64(0)
    for row in range(child_start.size - 1):
        first, count = np.int64(child_start[row]), np.int64(child_start[row + 1]) - np.int64(child_start[row])
        is_sorted = True
        for at in range(first + 1, first + count):
            if _compare(names, name_start, children[at - 1], children[at]) > 0:
                is_sorted = False
                break
        if is_sorted:
            continue
        found += 1
        for root in range(count // 2 - 1, -1, -1):
            _sift(names, name_start, children, first, root, count)
        for end in range(count - 1, 0, -1):
            children[first], children[first + end] = children[first + end], children[first]
            _sift(names, name_start, children, first, 0, end)
    return found
