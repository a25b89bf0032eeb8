"""run_case: what it counts, how it ends, and that a read-back notices what is wrong."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.storage.faults import Fault, FaultTable, Site
from engine.units import Nanoseconds
from engine.wal.errors import RecordTooLarge
from engine.wal.models import MODEL_NAMES
from engine.workloads.wal import CaseProgress, WalCase, WalResult, run_case
from tests.wal.logs import no_leaked_descriptors

MILLISECOND = 1_000_000
SEGMENT = 1 << 20


def run(
    path: Path,
    *,
    stop: threading.Event | None = None,
    progress: Callable[[CaseProgress], None] = lambda _: None,
    may_go_on: Callable[[], str | None] = lambda: None,
    faults: FaultTable | None = None,
    **case: object,
) -> WalResult:
    """Run a small case; what is not said is a handful of records without warm-up, read back."""
    settings = {"model": "group", "threads": 2, "warmup_ns": 0, "segment_size": SEGMENT, "verify": True, **case}
    with no_leaked_descriptors():
        return run_case(
            WalCase(**settings),  # type: ignore[arg-type]
            path / "log",
            stop=stop or threading.Event(),
            progress=progress,
            may_go_on=may_go_on,
            faults=faults,
        )


@pytest.mark.parametrize("model", MODEL_NAMES)
def test_so_many_records_a_handler_are_counted_and_read_back(model, disk_path):
    result = run(disk_path, model=model, threads=5, iterations=40, value_size_bytes=200)

    assert (result.ops, result.verified, result.complete, result.error) == (200, True, True, "")
    assert result.ops_per_second == pytest.approx(result.ops / result.elapsed_seconds)
    latency = result.latency_seconds
    assert 0 < latency.p50 <= latency.p90 <= latency.p99 <= latency.p999 <= latency.max < result.elapsed_seconds
    stages = result.stage_seconds
    assert 0 < stages.queue + stages.write + stages.sync + stages.wake <= latency.max
    if model != "pipeline:5":  # there a syncer may count its last sync a moment after the handlers have ended
        assert result.syncs * result.ops_per_sync == pytest.approx(200)


def test_a_case_runs_as_long_as_it_is_to(disk_path):
    result = run(disk_path, threads=3, duration_ns=150 * MILLISECOND)

    assert result.elapsed_seconds >= 0.1  # handlers start a moment after the clock
    assert (result.complete, result.verified) == (True, True)
    assert result.ops > 3


def test_warm_up_is_neither_counted_nor_read_back(disk_path):
    phases: list[str] = []
    result = run(
        disk_path,
        threads=3,
        warmup_ns=150 * MILLISECOND,
        iterations=20,
        progress=lambda p: phases.append(p.phase),
    )

    assert (result.ops, result.verified) == (60, True)
    assert "warm-up" in phases
    assert phases.index("warm-up") < len(phases) - 1 - phases[::-1].index("verify")


def test_records_that_do_not_wait_are_counted_but_have_no_latency(disk_path):
    result = run(disk_path, threads=2, iterations=50, sync_every=10)

    assert (result.ops, result.verified, result.sync_every) == (100, True, 10)
    assert result.ops_per_sync > 1


def test_without_a_sync_nothing_is_called_a_sync(disk_path):
    result = run(disk_path, threads=2, iterations=50, sync="none")

    assert (result.sync, result.syncs, result.ops_per_sync, result.sync_seconds_mean) == ("none", 0, None, None)
    assert (result.ops, result.verified) == (100, True)


def test_a_simulated_device_is_named_as_one_and_slows_each_sync(disk_path):
    result = run(disk_path, threads=2, iterations=5, device="serial:2ms")

    assert result.device == "serial 2 ms (simulated)"
    assert result.sync_seconds_mean >= 0.002


def test_rolls_are_counted_and_read_across(disk_path):
    result = run(disk_path, threads=1, iterations=95, roll=10)

    assert (result.rolls, result.ops, result.verified) == (9, 95, True)


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17])
def test_small_values_are_read_back_as_far_as_their_stamp_goes(size, disk_path):
    assert run(disk_path, threads=3, iterations=20, value_size_bytes=size).verified is True


def test_a_value_that_no_record_holds_is_refused(disk_path):
    with pytest.raises(RecordTooLarge, match="allowed are"):
        run(disk_path, iterations=1, value_size_bytes=SEGMENT)


# ---- An open loop.


def test_an_open_loop_starts_records_when_they_are_due(disk_path):
    result = run(disk_path, threads=4, iterations=15, rate=400)

    assert result.ops == 60
    assert result.elapsed_seconds >= 56 / 400  # the last of 60 is due 59/400 s after the first, less what started late
    assert result.rate == 400


@pytest.mark.parametrize("model", MODEL_NAMES)
def test_a_stall_is_charged_to_every_record_that_it_delays(model, disk_path):
    """400 ms at 500 records a second: 200 of 300 wait. A closed loop's clock would see one in each thread."""
    faults = FaultTable(Fault(Site.SYNC, 10, stall_ns=Nanoseconds(400 * MILLISECOND)))
    device = "serial:1us" if model in ("handler", "pipeline:5") else "real"  # or other syncs overtake the stalled

    result = run(disk_path, model=model, device=device, threads=2, iterations=150, rate=500, faults=faults)

    assert result.latency_seconds.p50 >= 0.05
    assert result.latency_seconds.p90 >= 0.2
    assert result.latency_seconds.max >= 0.4


# ---- Cut short.


def test_an_interrupted_case_tells_what_it_measured_so_far(disk_path):
    stop = threading.Event()

    def progress(seen: CaseProgress) -> None:
        if seen.phase == "measure" and seen.ops > 0:
            stop.set()

    result = run(disk_path, threads=3, duration_ns=3600 * 1000 * MILLISECOND, stop=stop, progress=progress)

    assert (result.complete, result.error, result.verified) == (False, "", True)
    assert result.ops > 0
    assert result.latency_seconds.p50 > 0


def test_a_case_that_is_stopped_in_its_warm_up_ends(disk_path):
    stop = threading.Event()

    def progress(seen: CaseProgress) -> None:
        if seen.phase == "warm-up":
            stop.set()

    result = run(
        disk_path, threads=3, warmup_ns=3600 * 1000 * MILLISECOND, duration_ns=3600 * 1000 * MILLISECOND, stop=stop,
        progress=progress,
    )  # fmt: skip

    assert not result.complete


def test_a_case_ends_where_it_may_not_go_on(disk_path):
    result = run(disk_path, duration_ns=3600 * 1000 * MILLISECOND, may_go_on=lambda: "the disk is nearly full")

    assert (result.complete, result.error, result.verified) == (False, "the disk is nearly full", None)
    assert result.ops > 0


@pytest.mark.parametrize("model", MODEL_NAMES)
def test_an_io_error_ends_a_case_with_its_text(model, disk_path):
    faults = FaultTable(Fault(Site.SYNC, 8, code=errno.EIO))

    result = run(disk_path, model=model, threads=3, iterations=500, faults=faults)

    assert not result.complete
    assert result.verified is None
    assert "the log stopped after an I/O error: Input/output error (EIO)" in result.error
    assert 0 < result.ops < 1500


def test_an_io_error_in_the_warm_up_ends_a_case_with_its_text(disk_path):
    faults = FaultTable(Fault(Site.WRITE, 5, code=errno.ENOSPC))

    result = run(disk_path, warmup_ns=3600 * 1000 * MILLISECOND, iterations=5, faults=faults)

    assert "No space left on device (ENOSPC)" in result.error
    assert (result.complete, result.ops) == (False, 0)


# ---- The read-back.


def damage(path: Path) -> None:
    """Change a byte of the last segment that holds records, in the middle of them."""
    segments = sorted(path.glob("*.wal"), key=lambda file: file.name)
    used = [file for file in segments if file.read_bytes()[:8] == b"TIDEWAL1"]
    content = bytearray(used[-2].read_bytes())
    content[6000] ^= 1
    used[-2].write_bytes(content)


def test_a_read_back_notices_a_byte_that_was_changed_on_disk(disk_path):
    done = []

    def progress(seen: CaseProgress) -> None:
        if seen.phase == "verify" and not done:
            done.append(damage(disk_path / "log"))

    result = run(disk_path, threads=2, iterations=15_000, sync="none", roll=2_000, value_size_bytes=40,
                 progress=progress)  # fmt: skip

    assert done
    assert (result.ops, result.complete, result.verified) == (30_000, True, False)
    assert "damaged at byte" in result.error
