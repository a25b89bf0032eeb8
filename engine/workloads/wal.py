"""The WAL workload: HBase's HLogPerformanceEvaluation, with warm-up, open loop, quantiles and a read-back.

One case is a model, a number of handlers, a device and the rest of its settings. Its log is made for it, runs warm-up
and measured time with the same handlers, and is read back if asked. Only the measured part counts: meters restart
between the two. In a case without read-back, on a log of its own, the log is checkpointed as it goes, so its space
stays bounded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from engine.errors import TidegaugeError
from engine.measure.buckets import quantile_ns
from engine.measure.clock import Clock, SystemClock
from engine.storage.faults import FaultTable
from engine.units import MIB, Bytes, Nanoseconds, Txid
from engine.wal.errors import LogPoisoned
from engine.wal.log import Log
from engine.wal.record import record_size
from engine.wal.segment import BLOCK
from engine.workloads.crew import Crew, HandlerSettings
from engine.workloads.readback import check_log

_TICK_SECONDS = 0.1
_QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999))
_PREPARE_PATIENCE_TICKS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class WalCase:
    """What one case runs. iterations (records per handler) or duration_ns, not both."""

    model: str
    threads: int
    device: str = "real"
    value_size_bytes: int = 1024
    sync: str = "fdatasync"
    sync_every: int = 1
    rate: int | None = None
    iterations: int | None = None
    duration_ns: int | None = None
    warmup_ns: int = 1_000_000_000
    roll: int | None = None
    segment_size: int = 64 << 20
    verify: bool = False
    keeps_all: bool = False  # the log holds records that are not the case's own: no segment of it may go
    seed: int = 1


class Latency(msgspec.Struct, frozen=True):
    """Commit latency in seconds; an open loop's counts from the intended start. None where nothing was measured."""

    p50: float | None
    p90: float | None
    p99: float | None
    p999: float | None
    max: float | None


class StageSeconds(msgspec.Struct, frozen=True):
    """Mean seconds of a commit in each stage; their sum is the mean latency."""

    queue: float
    write: float
    sync: float
    wake: float


class WalResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one case measured, in base units; the field names are the contract of `--json`."""

    model: str
    threads: int
    device: str
    value_size_bytes: int
    sync: str
    sync_every: int
    rate: int | None
    ops: int
    elapsed_seconds: float
    ops_per_second: float
    syncs: int
    syncs_per_second: float
    ops_per_sync: float | None
    latency_seconds: Latency
    sync_seconds_mean: float | None
    stage_seconds: StageSeconds
    written_bytes: int
    rolls: int
    slow_syncs: int
    verified: bool | None  # None: not asked for
    complete: bool
    error: str = ""


class CaseProgress(msgspec.Struct, frozen=True):
    """Where a running case is; ops counts from the beginning of its phase."""

    phase: Literal["preallocate", "warm-up", "measure", "verify"]
    fraction: float | None
    ops: int
    ops_per_second: float


def run_case(
    case: WalCase,
    path: Path,
    *,
    stop: threading.Event,
    progress: Callable[[CaseProgress], None],
    clock: Clock | None = None,
    may_go_on: Callable[[], str | None] = lambda: None,
    faults: FaultTable | None = None,
) -> WalResult:
    """Run one case on a log in the folder `path`; return what was measured, also when it was cut short.

    stop: ends the case early. may_go_on: asked a few times a second; a text it returns ends the case with that as its
    error (a disk about to be full). An I/O error, and a log that reads back as something else, end it with `error`
    set. The log stays for the caller to remove. Raises what Log.open raises, and RecordTooLarge.
    """
    run = _Run(case, stop, progress, clock or SystemClock(), may_go_on)
    with Log.open(
        path,
        model=case.model,
        device=case.device,
        sync=case.sync,
        segment_size=_segment_size(case),
        roll_records=case.roll or 0,
        faults=faults,
        clock=clock,
    ) as log:
        return run.run(log, path)


class _Run:
    """One case in progress."""

    def __init__(
        self,
        case: WalCase,
        stop: threading.Event,
        progress: Callable[[CaseProgress], None],
        clock: Clock,
        may_go_on: Callable[[], str | None],
    ) -> None:
        self._case, self._stop, self._progress, self._clock = case, stop, progress, clock
        self._may_go_on = may_go_on
        self._trouble = ""

    def run(self, log: Log, path: Path) -> WalResult:
        """Warm up, measure, and read back if asked."""
        case = self._case
        self._await_prepared(log)
        if case.warmup_ns and not self._ended():
            warm, _ = self._phase(log, self._settings(limit=0), "warm-up", case.warmup_ns)
            self._note_error(log, warm)
        if not self._trouble:
            log.flush()
        base = log.durable_txid
        log.reset_meters()
        rolls = log.watermarks()["rolls"]
        crew, elapsed = self._phase(log, self._settings(limit=case.iterations or 0), "measure", case.duration_ns)
        whole = not self._ended()
        self._note_error(log, crew)
        result = self._result(log, crew, elapsed, whole=whole and not self._trouble, rolls_before=rolls)
        if case.verify and not self._trouble:
            result = self._verify(log, crew, result, path, base)
        return result

    def _settings(self, *, limit: int) -> HandlerSettings:
        case = self._case
        return HandlerSettings(
            value_size_bytes=Bytes(case.value_size_bytes),
            sync_every=case.sync_every,
            limit=limit,
            rate=case.rate or 0,
            seed=case.seed,
        )

    def _ended(self) -> bool:
        return self._stop.is_set() or bool(self._trouble)

    def _await_prepared(self, log: Log) -> None:
        """Wait for the second segment, so that zeroing it does not share the disk with what is measured."""
        for _ in range(_PREPARE_PATIENCE_TICKS):
            marks = log.watermarks()
            if marks["next_segment"] or marks["prepare_error"]:
                return
            self._progress(CaseProgress("preallocate", None, 0, 0.0))
            if self._clock.wait(self._stop, _TICK_SECONDS):
                return

    def _phase(
        self, log: Log, settings: HandlerSettings, name: Literal["warm-up", "measure"], duration_ns: int | None
    ) -> tuple[Crew, Nanoseconds]:
        """Run handlers until the time is over or each has reached its limit; return the crew and the time it took."""
        case = self._case
        crew = Crew(log, settings)
        began = self._clock.monotonic_ns()
        crew.resize(case.threads, start_ns=began)
        before_ops, before_ns = 0, began
        while not crew.wait(0.0):
            left = duration_ns - (self._clock.monotonic_ns() - began) if duration_ns else None
            if self._ended() or (left is not None and left <= 0):
                crew.ask_to_stop()
                crew.wait(_TICK_SECONDS)
                continue
            self._clock.wait(self._stop, min(_TICK_SECONDS, left / 1e9) if left else _TICK_SECONDS)
            now, ops = self._clock.monotonic_ns(), int(crew.records().sum())
            rate = (ops - before_ops) * 1e9 / max(now - before_ns, 1)
            before_ops, before_ns = ops, now
            target = settings.limit * case.threads
            done = ops / target if target else min((now - began) / duration_ns, 1.0) if duration_ns else None
            self._progress(CaseProgress(name, done, ops, rate))
            self._housekeeping(log)
        return crew, crew.span_ns()

    def _housekeeping(self, log: Log) -> None:
        if not (self._case.verify or self._case.keeps_all):
            log.checkpoint(log.durable_txid)
        self._trouble = self._trouble or self._may_go_on() or ""

    def _note_error(self, log: Log, crew: Crew) -> None:
        if crew.result():
            self._trouble = self._trouble or str(log.poison or LogPoisoned(-crew.result(), path=log.folder))

    def _result(self, log: Log, crew: Crew, elapsed: Nanoseconds, *, whole: bool, rolls_before: int) -> WalResult:
        case, totals = self._case, log.meter_totals()
        ops, seconds = int(crew.records().sum()), elapsed / 1e9
        syncs, commits = int(totals["sync"].sum()), int(totals["commit"].sum())
        synced = int(totals["ops_synced"])
        stage_means = totals["stage_ns"] / 1e9 / max(commits, 1)
        return WalResult(
            model=case.model,
            threads=case.threads,
            device=log.device.label,
            value_size_bytes=case.value_size_bytes,
            sync=case.sync,
            sync_every=case.sync_every,
            rate=case.rate,
            ops=ops,
            elapsed_seconds=seconds,
            ops_per_second=ops / seconds if seconds else 0.0,
            syncs=syncs,
            syncs_per_second=syncs / seconds if seconds else 0.0,
            ops_per_sync=synced / syncs if syncs else None,
            latency_seconds=_latency(totals["commit"], int(totals["commit_max_ns"])),
            sync_seconds_mean=int(totals["sync_ns"]) / 1e9 / syncs if syncs else None,
            stage_seconds=StageSeconds(*(float(mean) for mean in stage_means)),
            written_bytes=int(totals["written_bytes"]),
            rolls=log.watermarks()["rolls"] - rolls_before,
            slow_syncs=int(totals["slow_syncs"]),
            verified=None,
            complete=whole,
            error=self._trouble,
        )

    def _verify(self, log: Log, crew: Crew, result: WalResult, path: Path, base: Txid) -> WalResult:
        """Read the measured records back and compare count, order and content."""
        records = crew.records()[: self._case.threads]

        def tell(done: int) -> None:
            self._progress(CaseProgress("verify", done / max(result.ops, 1), done, 0.0))

        try:
            log.flush()
            found = check_log(path, after=base, records=records, pool=crew.pool, durable=log.durable_txid, tell=tell)
        except TidegaugeError as trouble:
            found = str(trouble)
        return msgspec.structs.replace(result, verified=not found, error=result.error or found)


def _segment_size(case: WalCase) -> Bytes:
    """Return the segment size to use: no more than a case that rolls by records needs, so that little is zeroed."""
    if not case.roll:
        return Bytes(case.segment_size)
    enough = 2 * case.roll * record_size(case.value_size_bytes) + MIB
    return Bytes(min(case.segment_size, -(-enough // BLOCK) * BLOCK))


def _latency(counts: npt.NDArray[np.int64], maximum: int) -> Latency:
    if not counts.sum():
        return Latency(None, None, None, None, None)
    values = {name: quantile_ns(counts, quantile, maximum) / 1e9 for name, quantile in _QUANTILES}
    return Latency(**values, max=maximum / 1e9)
