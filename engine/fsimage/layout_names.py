"""Layout versions by name: what each brought, and which Hadoop releases write it.

A version that no release shipped has its feature alone; one that is newer than this table says after which it comes.
Source: LayoutVersion and NameNodeLayoutVersion of Apache Hadoop (features); images of the releases (who writes what).
"""

from __future__ import annotations

_FEATURES = {
    -5: "modification times",
    -8: "block size of each file",
    -11: "permissions",
    -12: "generation stamp",
    -13: "open files",
    -14: "generation stamp of each block",
    -16: "namespace quotas",
    -17: "access times",
    -18: "space quotas",
    -19: "sticky bits",
    -20: "append",
    -21: "atomic rename",
    -22: "concat",
    -23: "symbolic links",
    -24: "delegation tokens",
    -25: "image compression",
    -26: "image checksum",
    -27: "without the layout of 0.13",
    -28: "edits checksum",
    -30: "local names",
    -31: "reserved for 0.20.203",
    -32: "reserved for 0.20.204",
    -33: "reserved for 0.22",
    -34: "reserved for 0.23",
    -35: "federation",
    -36: "lease reassignment",
    -37: "transaction ids",
    -38: "file names by transaction id",
    -39: "shorter edits",
    -40: "block lists as differences",
    -41: "reserved for 1.2",
    -42: "inode ids",
    -43: "HDFS snapshots",
    -44: "reserved for 1.3",
    -45: "smaller HDFS snapshots",
    -46: "sequential block ids",
    -47: "retry cache",
    -48: "allocated blocks in the edits",
    -49: "DataNode UUIDs",
    -50: "layout flags",
    -51: "cache pools",
    -52: "protobuf",
    -53: "ACLs",
    -54: "reserved for 2.4",
    -55: "rolling upgrades",
    -56: "length of each edit",
    -57: "extended attributes",
    -58: "create with overwrite",
    -59: "extended attributes' namespaces",
    -60: "storage policies",
    -61: "truncate",
    -62: "append to a new block",
    -63: "quotas by storage type",
    -64: "erasure coding",
    -65: "expanded string table",
    -66: "modification times of HDFS snapshots",
    -67: "NVDIMM",
}
_RELEASES = {
    -11: "0.16",
    -13: "0.17",
    -16: "0.18",
    -18: "0.19 and 0.20",
    -19: "0.20",
    -31: "0.20.203",
    -32: "0.20.204 to 1.1",
    -33: "0.22",
    -38: "0.23",
    -40: "2.0",
    -41: "1.2",
    -47: "2.1 and 2.2",
    -51: "2.3",
    -56: "2.4",
    -57: "2.5",
    -60: "2.6",
    -63: "2.7 to 2.10",
    -64: "3.0 and 3.1",
    -65: "3.2 and 3.3.0",
    -66: "3.3.1 and later 3.3",
    -67: "3.4 and 3.5",
}
NEWEST = min(_FEATURES)


def layout_name(version: int) -> str:
    """Return a version's name: `NVDIMM; Hadoop 3.4 and 3.5`."""
    if version < NEWEST:
        return f"newer than {NEWEST}, Hadoop {_RELEASES[NEWEST]}"
    feature, release = _FEATURES.get(version, ""), _RELEASES.get(version, "")
    return "; ".join(part for part in (feature, f"Hadoop {release}" if release else "") if part) or "before Hadoop 0.16"
