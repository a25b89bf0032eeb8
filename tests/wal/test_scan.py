"""The scanning kernels against plain Python, on logs that were changed in every way."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.native.kernel import compile_all
from engine.units import Txid
from engine.wal import scan
from engine.wal.record import RecordKind, encode_record, log_seed
from engine.wal.scan import RecordScan, is_recycled, later_records, proof_of_damage
from tests.wal import scan_oracle
from tests.wal.build_log import LOG_ID

SEED = log_seed(LOG_ID)


@st.composite
def segments(draw):
    """Records of a log, some of them as from another place, then damage: flipped, zeroed or overwritten bytes."""
    raw, txid, durable = b"", draw(st.integers(1, 5)), 0
    first = txid
    for _ in range(draw(st.integers(0, 12))):
        jump = draw(st.sampled_from([0] * 12 + [1, -1, -3, 7]))
        kind = draw(st.sampled_from([RecordKind.DATA] * 6 + [RecordKind.SEAL]))
        payload = b"" if kind == RecordKind.SEAL else draw(st.binary(max_size=40))
        number = max(0, txid + jump - (kind == RecordKind.SEAL))
        undurable = max(0, number - durable)
        log_id = draw(st.sampled_from([LOG_ID] * 20 + [bytes(16)]))
        raw += encode_record(kind, Txid(number), payload, undurable=undurable, log_id=log_id)
        txid += kind == RecordKind.DATA
        if draw(st.booleans()):
            durable = txid - 1
    view = bytearray(raw + bytes(draw(st.integers(0, 60))))
    for _ in range(draw(st.integers(0, 2))):
        if view:
            at = draw(st.integers(0, len(view) - 1))
            patch = draw(st.just(bytes(8)) | st.binary(min_size=1, max_size=30))
            view[at : at + len(patch)] = patch[: len(view) - at]
    return first, bytes(view)


def as_view(raw: bytes) -> np.ndarray:
    return np.frombuffer(bytearray(raw), np.uint8) if raw else np.zeros(0, np.uint8)


@given(segment=segments(), records_a_call=st.integers(1, 4), chain=st.integers(0, 2**32 - 1))
def test_a_scan_finds_what_plain_python_finds(segment, records_a_call, chain):
    first, raw = segment
    walk = RecordScan(as_view(raw), start=0, end=len(raw), expected=first, chain=chain, seed=SEED)

    rows = [tuple(row) for piece in walk.pieces(records_a_call) for row in piece.tolist()]

    assert (rows, walk.why, walk.position, walk.expected, walk.chain) == scan_oracle.scan(
        raw, 0, len(raw), first, chain, LOG_ID
    )


@given(segment=segments(), start=st.integers(0, 5), expected=st.integers(1, 12))
def test_proof_is_found_where_plain_python_finds_it(segment, start, expected):
    _, raw = segment
    start = min(start * 8, len(raw) & -8)

    found = proof_of_damage(as_view(raw), start=start, end=len(raw), expected=expected, seed=SEED)

    assert found == scan_oracle.proof(raw, start, len(raw), expected, LOG_ID)


@given(segment=segments(), expected=st.integers(1, 12))
def test_later_and_older_records_are_found_at_any_offset(segment, expected):
    _, raw = segment
    all_of_them, at = [], 0
    while at <= len(raw) - 24:
        found = scan_oracle.decode(raw, at, len(raw), LOG_ID)
        if isinstance(found, int):
            at += 8
            continue
        all_of_them.append((at, found[0]))
        at += 8
    view = as_view(raw)

    later = list(later_records(view, start=0, end=len(raw), expected=expected, seed=SEED))
    recycled = is_recycled(view, start=0, end=len(raw), expected=expected, seed=SEED)

    assert later == [(at, txid) for at, txid in all_of_them if 0 <= txid - expected <= at // 24]
    assert recycled == any(txid < expected for _, txid in all_of_them)


def test_a_payload_that_holds_another_logs_records_proves_nothing():
    alien = encode_record(RecordKind.DATA, Txid(90), b"from elsewhere", undurable=1, log_id=b"another log's id")
    raw = bytes(8) + alien * 200

    assert proof_of_damage(as_view(raw), start=0, end=len(raw), expected=5, seed=SEED) is None


def test_bytes_made_to_look_like_records_cost_a_bounded_time_and_are_not_cut():
    # Every eighth byte begins a header whose length reaches to the end: without a budget, a checksum of all the rest
    # for each of them, 10^10 bytes for this megabyte.
    size = 1 << 20
    words = np.zeros(size // 8, np.uint64)
    words[:] = np.uint64(1)  # kind DATA, undurable 0; as a txid 1; as crc and length 1, 0
    plausible = np.frombuffer(struct.pack("<IIQQ", 7, size // 2, 2, 1), np.uint64)
    for start in range(3, len(words) // 2 - 3, 3):
        words[start : start + 3] = plausible

    assert proof_of_damage(words.view(np.uint8), start=0, end=size, expected=1, seed=SEED) is not None


def test_a_scan_outside_its_view_is_refused():
    with pytest.raises(ValueError, match="scan of 0 to 9 in 8 bytes"):
        RecordScan(np.zeros(8, np.uint8), start=0, end=9, expected=1, chain=0, seed=SEED)


def test_the_kernels_have_all_their_signatures_before_they_are_used():
    compile_all()
    before = [len(kernel.signatures) for kernel in (scan.scan_records, scan.search_records)]
    raw = encode_record(RecordKind.DATA, Txid(1), b"x", undurable=1, log_id=LOG_ID)
    walk = RecordScan(as_view(raw), start=0, end=len(raw), expected=1, chain=0, seed=SEED)

    assert len(list(walk.pieces())) == 1
    assert proof_of_damage(as_view(raw), start=0, end=len(raw), expected=1, seed=SEED) is None
    assert [len(kernel.signatures) for kernel in (scan.scan_records, scan.search_records)] == before == [1, 1]
