"""Committing one record: the interface behind which the write-thread models stand.

`commit` appends and returns when the record is durable, whichever model the log runs. `commit_from_python` is the same
path for a Python caller; workloads call it from native handler loops (engine/workloads/handlers.py).
"""

from __future__ import annotations

import numpy as np
from numba import carray, types

from engine.native.atomics import add, load
from engine.native.clock import monotonic_ns
from engine.native.kernel import i64_array, inner, kernel, u8_matrix, u8_readonly
from engine.native.locks import lock, signal, unlock
from engine.native.memory import bytes_at, record_at
from engine.storage.device import DEVICE
from engine.wal.append import append, has_space, refusal, wait_for_space
from engine.wal.group import lead, wait_group
from engine.wal.handler import commit_alone, own_description
from engine.wal.meter import note_commit, note_unsynced
from engine.wal.pipeline import async_notifier, async_syncer, async_writer, wait_pipeline
from engine.wal.record import payload_crc
from engine.wal.stamps import copy_stamps
from engine.wal.state import GROUP, LOG, METER, METERS, PIPELINE, STAMP_COLUMNS


@inner
def commit(log, device, buffers, meter, stamps, payload, began, durable):  # type: ignore[no-untyped-def]
    """Append `payload`; return its txid once durable, or a code below 0 (minus an errno, or CLOSED).

    buffers: uint8[2, log.buffer_bytes]; meter: the calling thread's row; stamps: int64[STAMP_COLUMNS], its scratch;
    payload: uint8[n], n checked by the caller to fit a buffer; began: monotonic ns the latency counts from.
    durable: 0 returns once appended. Nothing here raises or allocates: log.mutex would stay locked for ever.
    """
    payload_state = payload_crc(payload, log.seed)
    lock(log, "mutex")
    code = refusal(log)
    if code != 0:
        unlock(log, "mutex")
        return code
    add(log, "waiting", 1)  # until the last use of log and meter: whoever closes or reconfigures waits for it
    code = _make_room(log, device, buffers, meter, payload.size)
    if code != 0:
        unlock(log, "mutex")
        add(log, "waiting", -1)
        return code
    batch = log.filling
    txid = append(log, device, buffers, payload, payload_state)
    if durable == 0:
        if log.model == PIPELINE:
            signal(log, "work")
        unlock(log, "mutex")
        note_unsynced(meter, payload.size)
        add(log, "waiting", -1)
        return txid
    _make_durable(log, device, buffers, meter, txid, batch)
    result = _outcome(log, txid)
    copy_stamps(log, batch, stamps)
    if result > 0:
        note_commit(meter, began, monotonic_ns(), stamps, payload.size)
    add(log, "waiting", -1)
    return result


@inner
def flush_all(log, device, buffers, meter):  # type: ignore[no-untyped-def]
    """Make all that is appended durable; return 0 or minus the errno that stopped the log. No lock is held."""
    lock(log, "mutex")
    add(log, "waiting", 1)
    last = log.appended
    _make_durable(log, device, buffers, meter, last, log.filling - (log.used == 0))
    result = min(_outcome(log, last), np.int64(0))
    add(log, "waiting", -1)
    return result


@inner
def _make_durable(log, device, buffers, meter, txid, batch):  # type: ignore[no-untyped-def]
    """Return once `txid` is durable or the log is poisoned. log.mutex is held on entry, not on return."""
    if log.model == GROUP:
        wait_group(log, device, buffers, meter, txid, batch)
    elif log.model == PIPELINE:
        wait_pipeline(log, txid, batch)
    else:
        commit_alone(log, device, buffers, meter, txid)
        unlock(log, "mutex")


@inner
def _outcome(log, txid):  # type: ignore[no-untyped-def]
    """Return `txid` if it is durable, else minus the errno that stopped the log. What was durable stays acked."""
    return txid if load(log, "durable") >= txid else -load(log, "poison")


@inner
def _make_room(log, device, buffers, meter, payload_bytes):  # type: ignore[no-untyped-def]
    """Wait until the filling buffer takes the record; return 0 or why not. log.mutex is held: back-pressure."""
    code = refusal(log)
    while code == 0 and not has_space(log, payload_bytes):
        if log.model == GROUP and log.leading == 0:
            lead(log, device, buffers, meter)
            lock(log, "mutex")
        elif log.model == GROUP:
            wait_for_space(log)
        elif log.model == PIPELINE:
            signal(log, "work")
            wait_for_space(log)
        else:
            commit_alone(log, device, buffers, meter, log.appended)
        code = refusal(log)
    return code


# What a Python caller hands over: addresses, since a record argument costs it a microsecond each with the lock held.
H_LOG, H_DEVICE, H_BUFFERS, H_BUFFER_BYTES, H_METER = range(5)
HANDLE_CELLS = 5

_log_at, _device_at, _meter_at = record_at(LOG), record_at(DEVICE), record_at(METER)


@kernel(types.int64(i64_array, u8_readonly, types.int64))
def commit_from_python(handle, payload, durable):  # type: ignore[no-untyped-def]
    """Commit one record for the Python thread that owns the handle's meter row; the caller has checked the size."""
    log, device = _log_at(np.uint64(handle[H_LOG])), _device_at(np.uint64(handle[H_DEVICE]))
    buffers = carray(bytes_at(np.uint64(handle[H_BUFFERS])), (2, handle[H_BUFFER_BYTES]))
    stamps = np.zeros(STAMP_COLUMNS, np.int64)
    meter = _meter_at(np.uint64(handle[H_METER]))
    return commit(log, device, buffers, meter, stamps, payload, monotonic_ns(), durable)


@kernel(types.int64(LOG, DEVICE, u8_matrix, METERS, types.int64))
def drain(log, device, buffers, meters, row):  # type: ignore[no-untyped-def]
    """Make all that is appended durable; return 0 or minus an errno. The caller owns meter row `row`."""
    return flush_all(log, device, buffers, meters[row])


@kernel(types.int64(LOG, DEVICE, METERS, types.int64))
def open_own_description(log, device, meters, row):  # type: ignore[no-untyped-def]
    """Open what a handler will sync through, before it has a record to lose; return 0 or an errno.

    The caller owns meter row `row`.
    """
    return own_description(log, device, meters[row], load(log, "segment"))


@kernel(types.void(LOG, DEVICE, u8_matrix, METERS, types.int64))
def run_async_writer(log, device, buffers, meters, row):  # type: ignore[no-untyped-def]
    """Be AsyncWriter until stopped."""
    async_writer(log, device, buffers, meters[row])


@kernel(types.void(LOG, DEVICE, METERS, types.int64, types.int64))
def run_async_syncer(log, device, meters, row, syncer):  # type: ignore[no-untyped-def]
    """Be AsyncSyncer number `syncer`, below log.syncers, until stopped."""
    async_syncer(log, device, meters[row], syncer)


@kernel(types.void(LOG))
def run_async_notifier(log):  # type: ignore[no-untyped-def]
    """Be AsyncNotifier until stopped."""
    async_notifier(log)
