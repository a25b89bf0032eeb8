"""The verdict of one measured case, in the words the screen uses for the same figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard.verdict import wal_verdict
from dashboard.wal_window import STAGES, Stages, WalWindow
from engine.snapshot import Absent, WalSnapshot
from engine.units import Bytes, Nanoseconds, Txid, format_count

if TYPE_CHECKING:
    from engine.workloads.wal import WalResult

_NOT_KEPT = Absent("a result does not keep this")


_KEPT_UP = 0.98  # of the rate that was asked for


def case_verdict(result: WalResult) -> str:
    """Return one line without hints about keys."""
    if result.rate is not None and result.ops_per_second >= _KEPT_UP * result.rate:
        return f"keeps up: the {format_count(result.rate)} ops/s that were asked for, whatever bounds more than that"
    return wal_verdict(_window(result)).text


def _window(result: WalResult) -> WalWindow:
    """Put a result where the screen keeps a window; what only a live log has is absent."""
    stage_ns = tuple(getattr(result.stage_seconds, stage) * 1e9 for stage in STAGES)
    spent = sum(stage_ns)
    syncing = result.sync != "none" and result.syncs_per_second > 0
    return WalWindow(
        last=WalSnapshot(
            epoch=1,
            epoch_started_ns=Nanoseconds(0),
            state="running",
            poison="",
            model=result.model,
            device=result.device,
            sync="none (not durable)" if result.sync == "none" else result.sync,
            path="",
            handlers=result.threads,
            value_size_bytes=Bytes(result.value_size_bytes),
            waiting_handlers=_NOT_KEPT,
            durable_txid=Txid(0),
            written_txid=Txid(0),
            appended_txid=Txid(0),
            commits=result.ops,
            payload_bytes=_NOT_KEPT,
            written_bytes=_NOT_KEPT,
            pending_bytes=_NOT_KEPT,
            pending_limit_bytes=_NOT_KEPT,
            sync_errors=0,
            write_errors=0,
            rolls=_NOT_KEPT,
            slow_syncs=_NOT_KEPT,
            slow_sync_ns=Nanoseconds(0),
            commit_latency=_NOT_KEPT,
            sync_latency=_NOT_KEPT,
            write_latency=_NOT_KEPT,
            ops_per_sync=_NOT_KEPT,
            stages=_NOT_KEPT,
            segments=_NOT_KEPT,
        ),
        seconds=result.elapsed_seconds,
        commits=result.ops,
        ops_per_second=result.ops_per_second,
        syncs_per_second=result.syncs_per_second,
        payload_bytes_per_second=_NOT_KEPT,
        written_bytes_per_second=_NOT_KEPT,
        ops_per_sync=result.ops_per_sync if syncing and result.ops_per_sync else _NOT_KEPT,
        ops_per_sync_counts=_NOT_KEPT,
        commit=_NOT_KEPT,
        sync=_NOT_KEPT,
        sync_busy=result.syncs_per_second * (result.sync_seconds_mean or 0.0) if syncing else _NOT_KEPT,
        write_mean_ns=_NOT_KEPT,
        stages=Stages(stage_ns, tuple(part / spent for part in stage_ns)) if spent > 0 else _NOT_KEPT,
        slow_syncs=_NOT_KEPT,
        rolls=_NOT_KEPT,
    )
