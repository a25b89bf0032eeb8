"""The small sections of a protobuf image, decoded in plain Python: header, strings, policies, snapshots, cache, tokens.

Each function takes a section's bytes, decompressed, and raises WireError with the offset where they stop making sense;
`decoding` turns that into an ImageDamaged that names the section.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from engine.fsimage.columns import (
    CacheDirective,
    CachePool,
    CacheState,
    ErasureCodingPolicy,
    Header,
    OpenFile,
    References,
    SecretState,
    SnapshotInfo,
    Strings,
)
from engine.fsimage.container import Container
from engine.fsimage.wire import Message, WireError, read_delimited

GLOBAL, USER, GROUP, XATTR = range(4)  # the id spaces of a split string table
_EC_STATES = {0: "", 1: "DISABLED", 2: "ENABLED", 3: "REMOVED"}
_BUILT_IN_EC = {  # policies that an image names by id alone: name, codec, data units, parity units; cells of 1 MiB
    1: ("RS-6-3-1024k", "rs", 6, 3),
    2: ("RS-3-2-1024k", "rs", 3, 2),
    3: ("RS-LEGACY-6-3-1024k", "rs-legacy", 6, 3),
    4: ("XOR-2-1-1024k", "xor", 2, 1),
    5: ("RS-10-4-1024k", "rs", 10, 4),
}
_BUILT_IN_CELL = 1 << 20
_NO_STRIPED_BLOCK = 1 << 63  # Long.MIN_VALUE: none was ever allocated
_MAX_I64 = (1 << 63) - 1


@contextmanager
def decoding(container: Container, section: str) -> Iterator[None]:
    """Turn a WireError of the block into damage of that section."""
    try:
        yield
    except WireError as error:
        raise container.damage(section, error.offset, error.found, error.allowed) from error


def messages(data: memoryview, start: int = 0) -> Iterator[Message]:
    """Yield the delimited messages of data[start:]."""
    at = start
    while at < len(data):
        message, at = read_delimited(data, at, len(data))
        yield message


def _first(data: memoryview) -> tuple[Message, int]:
    return read_delimited(data, 0, len(data))


def _take(data: memoryview, at: int, count: int) -> Iterator[tuple[Message, int]]:
    """Yield `count` messages and the offset behind each; a count the bytes cannot hold runs into their end."""
    for _ in range(count):
        message, at = read_delimited(data, at, len(data))
        yield message, at


def read_header(container: Container, data: memoryview, inode_count: int, last_inode_id: int) -> Header:
    """Decode NS_INFO. The two numbers come from the INODE section."""
    message, _ = _first(data)
    striped = message.optional(8)
    return Header(
        layout_version=container.layout_version,
        is_protobuf=True,
        codec=container.codec,
        namespace_id=message.number(1),
        inode_count=inode_count,
        generation_v1=message.optional(2),
        generation_v2=message.optional(3),
        generation_v1_limit=message.optional(4),
        last_block_id=message.optional(5),
        txid=message.optional(6),
        rolling_upgrade_start=message.optional(7),
        last_striped_block_id=None if striped is None or striped == _NO_STRIPED_BLOCK else message.signed(8),
        last_inode_id=last_inode_id,
    )


def read_inode_header(data: memoryview) -> tuple[int, int, int]:
    """Decode INodeSection; return (last inode id, inodes stated, offset of the first inode)."""
    message, at = _first(data)
    return message.number(1), message.number(2), at


def read_strings(data: memoryview) -> tuple[Strings, int, int]:
    """Decode STRING_TABLE; return it, the entries it states, and those it has."""
    head, at = _first(data)
    mask_bits = head.number(2)
    if mask_bits > 8:
        raise WireError(0, f"a mask of {mask_bits} bits", "8")
    shift = 32 - mask_bits
    spaces: tuple[dict[int, str], ...] = ({}, {}, {}, {})
    count = 0
    for entry in messages(data, at):
        number = entry.number(1)
        space = number >> shift if mask_bits else GLOBAL
        if space < len(spaces):
            spaces[space][number & ((1 << shift) - 1)] = entry.text(2)
        count += 1
    if mask_bits:
        strings = Strings(spaces[USER], spaces[GROUP], spaces[XATTR], spaces[GLOBAL], is_split=True)
    else:
        one = spaces[GLOBAL]
        strings = Strings(one, one, one, one, is_split=False)
    return strings, head.number(1), count


def read_ec_policies(data: memoryview) -> tuple[ErasureCodingPolicy, ...]:
    """Decode ERASURE_CODING."""
    if not len(data):
        return ()
    policies = []
    for policy in _first(data)[0].messages(1):
        schema = next(policy.messages(2), None)
        number, state = policy.number(4), _EC_STATES.get(policy.number(5), f"state {policy.number(5)}")
        if schema is None:
            name, codec, data_units, parity_units = _BUILT_IN_EC.get(number, (policy.text(1), "", 0, 0))
            policies.append(ErasureCodingPolicy(number, name, codec, data_units, parity_units, _BUILT_IN_CELL, state))
            continue
        policies.append(
            ErasureCodingPolicy(
                policy_id=number,
                name=policy.text(1),
                codec=schema.text(1),
                data_units=schema.number(2),
                parity_units=schema.number(3),
                cell_size=policy.number(3),
                state=state,
                options=tuple((option.text(1), option.text(2)) for option in schema.messages(4)),
            )
        )
    return tuple(policies)


def read_open_files(data: memoryview) -> tuple[OpenFile, ...]:
    """Decode FILES_UNDERCONSTRUCTION."""
    return tuple(OpenFile(entry.number(1), bytes(entry.data(2))) for entry in messages(data))


def read_references(data: memoryview) -> References:
    """Decode INODE_REFERENCE; an entry's place is its index."""
    found = list(messages(data))
    ids = [message.number(1) for message in found]
    for message, inode_id in zip(found, ids, strict=True):
        if inode_id > _MAX_I64:
            raise WireError(message.start, f"inode id {inode_id:,}", "less than 2^63")
    return References(
        referred_id=np.array(ids, np.int64),
        names=tuple(bytes(message.data(2)) for message in found),
        dst_snapshot=np.array([_snapshot_id(message, 3) for message in found], np.int64),
        last_snapshot=np.array([_snapshot_id(message, 4) for message in found], np.int64),
    )


def _snapshot_id(message: Message, field: int) -> int:
    number = message.optional(field)
    return -1 if number is None else number & 0xFFFFFFFF


def read_snapshots(data: memoryview) -> tuple[int, tuple[int, ...], tuple[SnapshotInfo, ...]]:
    """Decode SNAPSHOT; return (counter, ids of snapshottable directories, snapshots)."""
    if not len(data):
        return 0, (), ()
    head, at = _first(data)
    snapshots = []
    for message, _ in _take(data, at, head.number(3)):
        root = next(message.messages(2), Message({}, message.start))
        snapshots.append(SnapshotInfo(message.number(1), root.number(2), bytes(root.data(3))))
    return head.number(1), tuple(head.numbers(2)), tuple(snapshots)


def read_secrets(data: memoryview) -> SecretState:
    """Count SECRET_MANAGER's keys and tokens; what they hold is looked at no further than its framing."""
    if not len(data):
        return SecretState(0, 0, 0, 0)
    head, at = _first(data)
    keys, tokens = head.number(3), head.number(4)
    for _, after in _take(data, at, keys + tokens):
        at = after
    return SecretState(head.number(1), head.number(2), keys, tokens)


def read_cache(data: memoryview) -> CacheState:
    """Decode CACHE_MANAGER."""
    if not len(data):
        return CacheState(0, (), ())
    head, at = _first(data)
    pools, directives = [], []
    for message, after in _take(data, at, head.number(2)):
        at = after
        pools.append(
            CachePool(
                name=message.text(1),
                owner=message.text(2) if 2 in message.values else None,
                group=message.text(3) if 3 in message.values else None,
                mode=message.optional(4),
                limit=message.optional(5),
                max_relative_expiry=message.optional(6),
                default_replication=message.optional(7),
            )
        )
    for message, _ in _take(data, at, head.number(3)):
        expiry = next(message.messages(5), None)
        directives.append(
            CacheDirective(
                directive_id=message.number(1),
                path=message.text(2),
                replication=message.number(3),
                pool=message.text(4),
                expiration=None if expiry is None else expiry.signed(1),
                is_relative=expiry is not None and bool(expiry.number(2)),
            )
        )
    return CacheState(head.number(1), tuple(pools), tuple(directives))
