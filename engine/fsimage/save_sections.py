"""The small sections of a protobuf image as bytes, in plain Python.

What was loaded from a protobuf image goes back as it stood (`Extras.raw`): policies, snapshots, references, cache,
strings. What has no such bytes, a legacy or a synthetic namespace, gets sections as an empty NameNode writes them.
Delegation keys and tokens are never kept, so a saved image states its counters and holds none.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from engine.fsimage.columns import Header, Namespace, Strings
from engine.fsimage.container import ON_DISK_VERSION, Section

_NO_STRIPED_BLOCK = 1 << 63  # Long.MIN_VALUE
_STRIPED_SINCE, _SPLIT_SINCE = -64, -65
_MASK_BITS = 3
_GLOBAL, _USER, _GROUP, _XATTR = range(4)  # id spaces of a split string table


def uvarint(value: int) -> bytes:
    """Return a varint; a negative number as its 64-bit twin."""
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int | None) -> bytes:
    """Return a varint field; nothing for None."""
    return b"" if value is None else uvarint(field << 3) + uvarint(value)


def text(field: int, value: bytes | str) -> bytes:
    """Return a length-delimited field."""
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return uvarint(field << 3 | 2) + uvarint(len(data)) + data


def delimited(message: bytes) -> bytes:
    """Return a message with its length before it."""
    return uvarint(len(message)) + message


def namespace_section(header: Header, layout_version: int) -> bytes:
    """Return NS_INFO."""
    striped = None
    if layout_version <= _STRIPED_SINCE:
        last = header.last_striped_block_id
        striped = number(8, _NO_STRIPED_BLOCK if last is None else last)
    return delimited(
        number(1, header.namespace_id & 0xFFFFFFFF)
        + number(2, header.generation_v1 or 0)
        + number(3, header.generation_v2 or 0)
        + number(4, header.generation_v1_limit or 0)
        + number(5, header.last_block_id or 0)
        + number(6, header.txid or 0)
        + number(7, header.rolling_upgrade_start)
        + (striped or b"")
    )


def inode_header(last_inode_id: int, inodes: int) -> bytes:
    """Return what the INODE section begins with."""
    return delimited(number(1, last_inode_id) + number(2, inodes))


def open_files_section(namespace: Namespace) -> bytes:
    """Return FILES_UNDERCONSTRUCTION."""
    return b"".join(delimited(number(1, f.inode_id) + text(2, f.path)) for f in namespace.extras.open_files)


def secret_section(namespace: Namespace) -> bytes:
    """Return SECRET_MANAGER: counters, no keys, no tokens."""
    secrets = namespace.extras.secrets
    key, sequence = (0, 0) if secrets is None else (secrets.current_key_id, secrets.token_sequence)
    return delimited(number(1, key) + number(2, sequence) + number(3, 0) + number(4, 0))


def cache_section(namespace: Namespace) -> bytes:
    """Return CACHE_MANAGER from the decoded state, for layouts that had no section of that name."""
    cache = namespace.extras.cache
    if cache is None:
        return delimited(number(1, 1) + number(2, 0) + number(3, 0))
    out = delimited(number(1, cache.next_directive_id) + number(2, len(cache.pools)) + number(3, len(cache.directives)))
    for pool in cache.pools:
        out += delimited(
            text(1, pool.name)
            + (b"" if pool.owner is None else text(2, pool.owner))
            + (b"" if pool.group is None else text(3, pool.group))
            + number(4, pool.mode)
            + number(5, pool.limit)
            + number(6, pool.max_relative_expiry)
            + number(7, pool.default_replication)
        )
    for directive in cache.directives:
        expiry = b""
        if directive.expiration is not None:
            expiry = text(5, number(1, directive.expiration) + number(2, int(directive.is_relative)))
        out += delimited(
            number(1, directive.directive_id)
            + text(2, directive.path)
            + number(3, directive.replication)
            + text(4, directive.pool)
            + expiry
        )
    return out


def string_section(strings: Strings) -> bytes:
    """Return STRING_TABLE: one id space, or four."""
    if not strings.is_split:
        entries = sorted(strings.users.items())
        mask = 0
    else:
        mask, shift = _MASK_BITS, 32 - _MASK_BITS
        spaces = (
            (_GLOBAL, strings.others),
            (_USER, strings.users),
            (_GROUP, strings.groups),
            (_XATTR, strings.xattr_names),
        )
        entries = [(space << shift | key, name) for space, table in spaces for key, name in sorted(table.items())]
    head = delimited(number(1, len(entries)) + number(2, mask))
    return head + b"".join(delimited(number(1, key) + text(2, name)) for key, name in entries)


def needs_split(strings: Strings, layout_version: int) -> bool:
    """Return whether the ids of users and groups overlap in a layout that has one space for both."""
    return strings.is_split and layout_version > _SPLIT_SINCE


EMPTY_SNAPSHOTS = delimited(number(1, 0) + number(3, 0))
EMPTY_POLICIES = delimited(b"")
EMPTY_SECRETS = delimited(number(1, 0) + number(2, 0) + number(3, 0) + number(4, 0))
EMPTY_CACHE = delimited(number(1, 1) + number(2, 0) + number(3, 0))


def summary(layout_version: int, codec: str, sections: Iterable[Section]) -> bytes:
    """Return the FileSummary and its length: the end of the file."""
    message = number(1, ON_DISK_VERSION) + number(2, layout_version & 0xFFFFFFFF)
    if codec:
        message += text(3, codec)
    for section in sections:
        message += text(4, text(1, section.name) + number(2, section.length) + number(3, section.offset))
    whole = delimited(message)
    return whole + struct.pack(">I", len(whole))
