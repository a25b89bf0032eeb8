"""The few things that Python does to the shared state while kernels use it, each under log.mutex."""

from __future__ import annotations

import numpy as np
from numba import types

from engine.native.atomics import load
from engine.native.clock import monotonic_ns, sleep_until
from engine.native.kernel import i64_array, kernel, u8_readonly
from engine.native.locks import broadcast, lock, unlock, wait_until
from engine.wal.state import LOG
from engine.wal.stop import wake_everyone

_GLANCE_NS = 100_000


@kernel(types.void(LOG, types.int64, types.int64, types.int64, u8_readonly, types.int64))
def offer_segment(log, descriptor, number, size, name, created_ns):  # type: ignore[no-untyped-def]
    """Offer a prepared segment to whoever rolls next. name: uint8[NAME_BYTES], NUL-ended."""
    lock(log, "mutex")
    for k in range(log.next_name.size):
        log.next_name[k] = name[k]
    log.next_segment, log.next_size, log.next_created_ns = number, size, created_ns
    log.prepare_error = 0
    log.next_descriptor = descriptor
    broadcast(log, "segment_offered")
    unlock(log, "mutex")


@kernel(types.void(LOG, types.int64))
def refuse_segment(log, error):  # type: ignore[no-untyped-def]
    """Say why no segment could be prepared (an errno); a roll that needs one fails with it."""
    lock(log, "mutex")
    log.prepare_error = error
    broadcast(log, "segment_offered")
    unlock(log, "mutex")


@kernel(types.int64(LOG, types.int64))
def wait_for_taken(log, patience_ns):  # type: ignore[no-untyped-def]
    """Wait until no prepared segment is on offer, at most `patience_ns`; return whether one is wanted (0 or 1)."""
    lock(log, "mutex")
    deadline = monotonic_ns() + patience_ns
    while log.next_descriptor >= 0 and log.closed == 0 and log.poison == 0 and monotonic_ns() < deadline:
        wait_until(log, "segment_taken", "mutex", deadline)
    wanted = np.int64(log.next_descriptor < 0 and log.poison == 0)
    unlock(log, "mutex")
    return wanted


@kernel(types.int64(LOG))
def withdraw_segment(log):  # type: ignore[no-untyped-def]
    """Take back the prepared segment; return its descriptor or -1."""
    lock(log, "mutex")
    descriptor, log.next_descriptor = log.next_descriptor, np.int64(-1)
    unlock(log, "mutex")
    return descriptor


@kernel(types.void(LOG, types.int64))
def refuse_commits(log, closed):  # type: ignore[no-untyped-def]
    """Take no more commits (1), or take them again (0); those inside commit still end as they would have."""
    lock(log, "mutex")
    log.closed = closed
    wake_everyone(log)
    unlock(log, "mutex")


@kernel(types.void(LOG, types.int64))
def stop_threads(log, stop):  # type: ignore[no-untyped-def]
    """Tell the model's own threads to end once their work is done (1), or not to (0)."""
    lock(log, "mutex")
    log.stop_threads = stop
    wake_everyone(log)
    unlock(log, "mutex")


@kernel(types.int64(LOG, types.int64))
def wait_for_callers(log, patience_ns):  # type: ignore[no-untyped-def]
    """Wait until nobody is inside commit; return whether that came true (0 or 1). Commits are refused already.

    Whoever closes descriptors needs it: a handler of models handler and handler-recheck may still be in a sync that
    others have made needless.
    """
    deadline = monotonic_ns() + patience_ns
    while load(log, "waiting") > 0 and monotonic_ns() < deadline:
        sleep_until(monotonic_ns() + _GLANCE_NS)
    return np.int64(load(log, "waiting") == 0)


@kernel(types.void(LOG, types.int64, types.int64))
def set_model(log, model, syncers):  # type: ignore[no-untyped-def]
    """Make the log run another model. No commit is in progress, all is durable, no model thread runs."""
    lock(log, "mutex")
    log.model, log.syncers = model, syncers
    log.leading, log.expected, log.recent_sync_ns = 0, 0, 0
    log.notified_batch = log.written_batch = log.filling - 1
    for k in range(log.mailbox.size):
        log.mailbox[k], log.syncer_busy[k] = 0, 0
    log.stop_threads = 0
    unlock(log, "mutex")


@kernel(types.void(LOG))
def ask_for_roll(log):  # type: ignore[no-untyped-def]
    """Roll before the next batch is written."""
    lock(log, "mutex")
    log.roll_asked = 1
    unlock(log, "mutex")


_LOOKS = 1000  # a roll changes a few fields: whoever looks again sees them whole
WATERMARKS = (
    "durable",
    "flushed",
    "written",
    "appended",
    "waiting",
    "used",
    "poison",
    "poison_site",
    "segment",
    "segment_used",
    "segment_first",
    "previous_used",
    "rolls",
    "next_segment",
    "prepare_error",
)


@kernel(types.void(LOG, i64_array))
def read_watermarks(log, out):  # type: ignore[no-untyped-def]
    """Copy WATERMARKS to int64[len(WATERMARKS)] without the lock: two hundred handlers would keep a watcher waiting.

    The lower watermark is read before the higher, so durable <= flushed <= written <= appended holds in the copy; the
    fields that a roll changes are of one segment.
    """
    out[0] = load(log, "durable")
    out[1] = max(load(log, "flushed"), out[0])
    out[2] = max(load(log, "written"), out[1])
    out[3] = max(load(log, "appended"), out[2])
    out[4], out[5] = load(log, "waiting"), load(log, "used")
    out[6], out[7] = load(log, "poison"), load(log, "poison_site")
    for _ in range(_LOOKS):
        version = load(log, "roll_version")
        out[8], out[9] = load(log, "segment"), load(log, "segment_used")
        out[10], out[11] = load(log, "segment_first"), load(log, "previous_used")
        out[12] = load(log, "rolls")
        if version % 2 == 0 and version == load(log, "roll_version"):
            break
    out[13] = load(log, "next_segment") if load(log, "next_descriptor") >= 0 else 0
    out[14] = load(log, "prepare_error")
