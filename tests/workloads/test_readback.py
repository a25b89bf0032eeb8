"""check_log: a log that decodes and is still not what the handlers committed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from engine.units import Txid
from engine.wal.errors import LogDamaged
from engine.workloads.handlers import expected_payload, make_pool
from engine.workloads.readback import check_log
from tests.wal.logs import open_log

POOL = make_pool(50, 7)  # type: ignore[arg-type]


def payload(handler: int, sequence: int) -> bytes:
    return expected_payload(POOL, handler, sequence)


GOOD = [payload(0, 0), payload(1, 0), payload(0, 1), payload(0, 2), payload(1, 1)]


def check(folder: Path, payloads: Sequence[bytes], *, records: tuple[int, ...] = (3, 2), after: int = 0) -> str:
    """Commit the payloads and read them back as what two handlers committed."""
    with open_log(folder / "log") as log:
        for each in payloads:
            log.commit(each)
        told: list[int] = []
        found = check_log(
            folder / "log",
            after=Txid(after),
            records=np.array(records, np.int64),
            pool=POOL,
            durable=log.durable_txid,
            tell=told.append,
        )
    assert found or told[-1] == sum(records)
    return found


def test_what_handlers_committed_is_accepted_in_any_interleaving(disk_path):
    assert check(disk_path, GOOD) == ""


def test_records_before_the_measured_part_are_left_out(disk_path):
    assert check(disk_path, [b"warm-up", b"warm-up", *GOOD], after=2) == ""


@pytest.mark.parametrize(
    ("payloads", "says"),
    [
        (GOOD[:-1], "the log holds 4 records, the handlers committed 5"),
        ([*GOOD, payload(1, 2)], "the log holds 6 records, the handlers committed 5"),
        ([*GOOD[:2], *GOOD[3:], payload(0, 3)], "txid 3 is record 2 of handler 0, due was 1"),
        ([GOOD[2], GOOD[1], GOOD[0], *GOOD[3:]], "txid 1 is record 1 of handler 0, due was 0"),
        ([*GOOD[:3], GOOD[2], GOOD[4]], "txid 4 is record 1 of handler 0, due was 2"),
        ([*GOOD[:4], payload(7, 0)], "txid 5 is record 0 of handler 7, due was 0"),
        ([*GOOD[:4], GOOD[4][:-1] + b"?"], "txid 5 does not hold what handler 1 committed"),
        ([*GOOD[:4], GOOD[4][:-1]], "txid 5 holds 49 bytes, committed were 50"),
        ([*GOOD[:4], payload(0, 3)], "the records of a handler are not those it committed"),
    ],
    ids=[
        "missing-at-the-end",
        "too-many",
        "missing-in-the-middle",
        "reordered",
        "repeated",
        "no-such-handler",
        "other-bytes",
        "too-short",
        "of-another",
    ],
)
def test_what_is_not_as_committed_is_told_in_a_sentence(payloads, says, disk_path):
    assert check(disk_path, payloads) == says


def test_damage_is_raised_for_the_caller_to_tell(disk_path):
    with open_log(disk_path / "log") as log:
        for each in GOOD:
            log.commit(each)
        path = disk_path / "log" / "00000001.wal"
        content = bytearray(path.read_bytes())
        content[4096 + 30] ^= 4
        path.write_bytes(content)

        with pytest.raises(LogDamaged, match=r"damaged at byte 4,096"):
            check_log(disk_path / "log", after=Txid(0), records=np.array([3, 2]), pool=POOL, durable=Txid(5),
                      tell=lambda _: None)  # fmt: skip
