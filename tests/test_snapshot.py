"""Snapshots cross the wire whole, cannot be changed, and are refused where they are not ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given

from engine.snapshot import (
    SCHEMA,
    Absent,
    PeriodQuantiles,
    Snapshot,
    WalSnapshot,
    from_json,
    from_msgpack,
    to_json,
    to_msgpack,
)
from tests.snapshots import every, snapshot, wal_snapshot

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Snapshot]
WIRES = [
    pytest.param(msgspec.msgpack.encode, from_msgpack, id="msgpack"),
    pytest.param(msgspec.json.encode, from_json, id="json"),
]


@given(original=every(Snapshot))
def test_every_snapshot_survives_msgpack_and_json(original: Snapshot) -> None:
    assert from_msgpack(to_msgpack(original)) == original
    assert from_json(to_json(original)) == original


def test_both_encodings_name_their_schema() -> None:
    assert json.loads(to_json(snapshot()))["schema"] == SCHEMA
    assert msgspec.msgpack.decode(to_msgpack(snapshot()))["schema"] == SCHEMA


@pytest.mark.parametrize(("encode", "decode"), WIRES)
@pytest.mark.parametrize(
    "schema", [{"schema": "tidegauge.snapshot/2"}, {"schema": None}, {}], ids=["newer", "null", "missing"]
)
def test_another_schema_is_refused_by_name_before_its_fields_are(
    encode: Encode, decode: Decode, schema: dict[str, Any]
) -> None:
    with pytest.raises(msgspec.ValidationError, match="schema"):
        decode(encode({"something": "else", **schema}))


@pytest.mark.parametrize(("encode", "decode"), WIRES)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("host", 7, id="number-for-text"),
        pytest.param("wal", {"type": "engine"}, id="unknown-lane"),
        pytest.param("wal", None, id="null-for-a-lane"),
        pytest.param("events", [{"number": 1}], id="event-without-text"),
        pytest.param("monotonic_ns", 1.5, id="fraction-of-a-nanosecond"),
    ],
)
def test_a_snapshot_with_a_wrong_value_is_refused(encode: Encode, decode: Decode, field: str, value: object) -> None:
    fields = msgspec.to_builtins(snapshot()) | {field: value}

    with pytest.raises(msgspec.ValidationError, match=field):
        decode(encode(fields))


@pytest.mark.parametrize(
    ("indexes", "counts", "complaint"),
    [
        pytest.param([1, 2], [1], "2 bucket numbers and 1 counts", id="counts-missing"),
        pytest.param([-1, 2], [1, 1], "allowed is 0 to 1576", id="below-the-first"),
        pytest.param([5, 10**9], [1, 1], "bucket numbers to 1000000000", id="beyond-the-last"),
        pytest.param([7, 5], [1, 1], "do not ascend", id="out-of-order"),
        pytest.param([5, 5], [1, 1], "do not ascend", id="twice"),
    ],
)
def test_fine_buckets_that_would_index_beside_the_array_are_refused(
    indexes: list[int], counts: list[int], complaint: str
) -> None:
    fields = msgspec.to_builtins(snapshot())
    fields["wal"]["commit_latency"] |= {"indexes": indexes, "counts": counts}

    with pytest.raises(msgspec.ValidationError, match=complaint):
        from_json(msgspec.json.encode(fields))


@pytest.mark.parametrize("data", [b"", b"\x81", b"{", b"[]", b"\xff\xfe"], ids=["empty", "cut", "open", "list", "junk"])
@pytest.mark.parametrize("decode", [from_msgpack, from_json], ids=["msgpack", "json"])
def test_bytes_that_are_no_snapshot_are_refused(decode: Decode, data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(data)


def test_fields_that_a_later_version_adds_are_skipped() -> None:
    fields = msgspec.to_builtins(snapshot()) | {"added_later": 1}

    assert from_json(msgspec.json.encode(fields)) == snapshot()


def test_an_absent_value_keeps_its_reason_and_is_not_zero() -> None:
    sent = snapshot(wal=wal_snapshot(commits=Absent("HBase does not count commits")), process=Absent("another host"))

    received = from_msgpack(to_msgpack(sent))

    assert isinstance(received.wal, WalSnapshot)
    assert received.wal.commits == Absent("HBase does not count commits")
    assert received.process == Absent("another host")


def test_a_servers_own_quantiles_stay_apart_from_our_buckets() -> None:
    theirs = PeriodQuantiles(60_000_000_000, 1000, ((0.5, 0.001), (0.99, 0.02)), 0.5)

    received = from_json(to_json(snapshot(wal=wal_snapshot(sync_latency=theirs))))

    assert isinstance(received.wal, WalSnapshot)
    assert received.wal.sync_latency == theirs


def test_a_snapshot_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        snapshot().host = "there"  # type: ignore[misc]
