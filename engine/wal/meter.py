"""What each thread notes in its own meter row. Called without any lock held; never decides anything."""

from __future__ import annotations

import numpy as np

from engine.measure.histogram import fine_bucket, ladder_bucket
from engine.metrics import OPS_PER_SYNC
from engine.native.atomics import load
from engine.native.kernel import inner
from engine.wal.state import S_SYNC_BEGAN, S_SYNC_ENDED, S_WRITE_BEGAN, S_WRITE_ENDED

_OPS_BOUNDS = np.array(OPS_PER_SYNC.bounds, np.int64)
QUEUE, WRITE, SYNC, WAKE = 0, 1, 2, 3


@inner
def note_commit(meter, began, ended, stamps, payload_bytes):  # type: ignore[no-untyped-def]
    """Record one durable commit and where its time went.

    began, ended: ns; began is the intended start in an open loop. stamps: the commit's batch, six int64. Where a
    batch was written before the record's own clock started, the stage is cut at `began`, so that the four stages
    always sum to the latency.
    """
    if meter.unmetered != 0:
        return
    total = ended - began
    meter.commit[fine_bucket(total)] += 1
    meter.commit_ns += total
    meter.commit_max_ns = max(meter.commit_max_ns, total)
    meter.payload_bytes += payload_bytes
    write_began = min(max(stamps[S_WRITE_BEGAN], began), ended)
    write_ended = min(max(stamps[S_WRITE_ENDED], write_began), ended)
    sync_began = min(max(stamps[S_SYNC_BEGAN], write_ended), ended)
    sync_ended = min(max(stamps[S_SYNC_ENDED], sync_began), ended)
    _note_stage(meter, QUEUE, write_began - began + sync_began - write_ended)
    _note_stage(meter, WRITE, write_ended - write_began)
    _note_stage(meter, SYNC, sync_ended - sync_began)
    _note_stage(meter, WAKE, ended - sync_ended)


@inner
def note_unsynced(meter, payload_bytes):  # type: ignore[no-untyped-def]
    """Record one commit that did not wait until it was durable."""
    if meter.unmetered == 0:
        meter.unsynced += 1
        meter.payload_bytes += payload_bytes


@inner
def _note_stage(meter, stage, duration):  # type: ignore[no-untyped-def]
    meter.stage[stage, ladder_bucket(duration)] += 1
    meter.stage_ns[stage] += duration


@inner
def note_write(meter, duration, length, error):  # type: ignore[no-untyped-def]
    """Record one write of a batch."""
    if error != 0:
        meter.write_errors += 1
        return
    meter.written_bytes += length
    meter.write[ladder_bucket(duration)] += 1
    meter.write_ns += duration


@inner
def note_sync(log, meter, duration, error):  # type: ignore[no-untyped-def]
    """Record one sync."""
    if error != 0:
        meter.sync_errors += 1
        return
    meter.sync[fine_bucket(duration)] += 1
    meter.sync_ns += duration
    meter.sync_max_ns = max(meter.sync_max_ns, duration)
    if duration >= load(log, "slow_sync_ns"):
        meter.slow_syncs += 1


@inner
def note_group(meter, records):  # type: ignore[no-untyped-def]
    """Record how many records one sync made durable; 0 where others had done so already."""
    bucket = 0
    while bucket < _OPS_BOUNDS.size and records > _OPS_BOUNDS[bucket]:
        bucket += 1
    if records > 0:
        meter.ops_per_sync[bucket] += 1
        meter.ops_synced += records
