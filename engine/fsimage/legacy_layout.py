"""What a legacy layout version has: features follow its ancestors, not the order of numbers.

Versions were handed out to several release lines at once, so a lower number is not always later: -31 (0.20.203)
descends from -19, -33 (0.22) from -27, -41 (1.2) from -32, whose ancestor is -31. An image of layout -41 therefore has
full paths and no compression flag, though -25 brought compression and -30 local names.

    header      BE32 layout  [BE32 flags = 0]  [BE32 namespace id]  inodes: BE64, BE32 before -16  [BE64 generation]
                [BE64 generation v2, BE64 its first, BE64 last block id]  [BE64 txid]  [BE64 last inode id]
                [snapshots]  [u8 compressed, Text codec]; what follows is one compressed stream
    inode       name  [BE64 id]  BE16 replication  [BE64 mtime]  [BE64 atime]  [BE64 block size]  BE32 blocks
                blocks >= 0: file, each BE64 id, BE64 bytes [BE64 generation];  -1: directory [BE64 namespace quota]
                [BE64 space quota];  -2: symlink, Text target;  then [Text owner, Text group, BE16 mode]
    names       UTF8 full path; or, since -30, the root and then for each directory: UTF8 path, BE32 children, each with
                its own name.  UTF8: BE16 length, bytes.  Text: Hadoop's vint length, bytes
    after       [BE32 open files, each as an inode, with UTF8 client, UTF8 machine, BE32 0]  [tokens]  [cache]

Source: FSImageFormat and LayoutVersion of Apache Hadoop.
"""

from __future__ import annotations

from enum import IntFlag

# Ancestors that are not simply the number before.
_ANCESTORS = {-31: -19, -32: -31, -33: -27, -34: -30, -41: -32, -42: -40, -44: -41, -45: -43}


class Feature(IntFlag):
    """What a layout has, for kernels and readers."""

    MTIME = 1
    ATIME = 2
    BLOCK_SIZE = 4
    GENERATION = 8  # of each block
    NAMESPACE_QUOTA = 16
    SPACE_QUOTA = 32
    PERMISSION = 64
    EMPTY_IS_DIRECTORY = 128  # no blocks: a directory
    SYMLINKS = 256
    INODE_ID = 512
    LOCAL_NAMES = 1 << 10
    COMPRESSION = 1 << 11
    TOKENS = 1 << 12
    TXID = 1 << 13
    SNAPSHOTS = 1 << 14
    BLOCK_IDS = 1 << 15  # sequential: three more header fields
    LAYOUT_FLAGS = 1 << 16
    CACHE = 1 << 17
    NAMESPACE_ID = 1 << 18
    LONG_COUNT = 1 << 19
    LAST_GENERATION = 1 << 20
    OPEN_FILES = 1 << 21
    SLIM_SNAPSHOTS = 1 << 22  # snapshot copies hold attributes alone


# The version that brought each, and what the release lines took over early.
_BROUGHT = {
    -2: Feature.NAMESPACE_ID,
    -5: Feature.MTIME,
    -8: Feature.BLOCK_SIZE,
    -11: Feature.PERMISSION,
    -12: Feature.LAST_GENERATION,
    -13: Feature.OPEN_FILES,
    -14: Feature.GENERATION,
    -16: Feature.NAMESPACE_QUOTA | Feature.LONG_COUNT,
    -17: Feature.ATIME,
    -18: Feature.SPACE_QUOTA,
    -23: Feature.SYMLINKS,
    -24: Feature.TOKENS,
    -25: Feature.COMPRESSION,
    -30: Feature.LOCAL_NAMES,
    -31: Feature.TOKENS,
    -37: Feature.TXID,
    -42: Feature.INODE_ID,
    -43: Feature.SNAPSHOTS,
    -44: Feature.INODE_ID | Feature.SNAPSHOTS | Feature.LOCAL_NAMES,
    -45: Feature.SLIM_SNAPSHOTS,
    -46: Feature.BLOCK_IDS,
    -50: Feature.LAYOUT_FLAGS,
    -51: Feature.CACHE,
}


def features_of(version: int) -> Feature:
    """Return what a layout from -1 to -51 has: what it brought, and what its ancestors did."""
    found = Feature.EMPTY_IS_DIRECTORY if version >= -9 else Feature(0)
    at = version
    while at < 0:
        found |= _BROUGHT.get(at, Feature(0))
        at = _ANCESTORS.get(at, at + 1)
    return found
