"""The shared state of a log: one record that kernels of all threads read and write, and who guards what.

Locks, in the order they are taken:

    flush      the right to write the file (models handler, handler-recheck); group has its leader instead and
               pipeline its AsyncWriter, so there the lock is not used
    one_sync   the right to sync, in the order asked for (handler-recheck alone)
    mutex      everything else in this record; never held over a write, a sync or a sleep

A *batch* is what is written together: records are copied into the filling buffer and belong to batch `filling`;
whoever writes takes the buffer, and the next batch fills the other one. Handlers wait on one of WAIT_SLOTS
conditions chosen by batch number, so that only those are woken whose records are durable.
"""

from __future__ import annotations

import numpy as np

from engine.measure.histogram import BUCKETS, LADDER_BUCKETS
from engine.native.kernel import type_of_record
from engine.native.locks import CONDITION, MUTEX
from engine.native.memory import record_type
from engine.native.turns import TURNS

WAIT_SLOTS = 64
STAMP_SLOTS = 1024
NAME_BYTES = 32
OPS_PER_SYNC_BUCKETS = 20  # bounds in engine.metrics, and one above

GROUP, PIPELINE, HANDLER, HANDLER_RECHECK = 0, 1, 2, 3
MAX_SYNCERS = 16

# Codes a commit returns besides txids (> 0) and minus an errno (> -4096).
CLOSED = -10_001

# Columns of a batch's stamps, monotonic ns.
S_BATCH, S_WRITE_BEGAN, S_WRITE_ENDED, S_SYNC_BEGAN, S_SYNC_ENDED, S_LAST_TXID = range(6)
STAMP_COLUMNS = 6

# Which call failed first, for the message.
AT_NOTHING, AT_WRITE, AT_SYNC, AT_ROLL = 0, 1, 2, 3

LOG_DTYPE = record_type(
    [
        ("mutex", MUTEX),
        ("flush", MUTEX),
        ("one_sync", MUTEX),
        ("one_sync_turns", TURNS),
        ("one_sync_next", "i8"),
        ("one_sync_served", "i8"),
        ("done", CONDITION, (WAIT_SLOTS,)),  # handlers, by batch
        ("space", CONDITION),  # handlers that found both buffers full
        ("segment_offered", CONDITION),  # whoever rolls
        ("segment_taken", CONDITION),  # the thread that prepares segments
        ("work", CONDITION),  # AsyncWriter
        ("written_news", CONDITION, (MAX_SYNCERS,)),  # AsyncSyncers
        ("flushed_news", CONDITION),  # AsyncNotifier
        ("model", "i8"),
        ("syncers", "i8"),
        # Watermarks. durable <= flushed <= written <= appended.
        ("appended", "i8"),
        ("written", "i8"),
        ("flushed", "i8"),  # synced; in pipeline the notifier has yet to say so
        ("durable", "i8"),
        ("poison", "i8"),  # errno of the first failure, 0 while all is well; never cleared
        ("poison_site", "i8"),
        ("closed", "i8"),  # 1: no commit is taken any more
        ("stop_threads", "i8"),  # 1: the model's own threads end once there is no work
        ("waiting", "i8"),  # handlers inside commit
        ("space_waiters", "i8"),
        # The buffers: two sides of uint8[buffer_bytes].
        ("buffer_bytes", "i8"),
        ("side", "i8"),
        ("used", "i8"),
        ("filling", "i8"),  # number of the batch that fills
        ("chain", "i8"),
        # group
        ("leading", "i8"),
        ("expected", "i8"),  # records that took part lately; the window waits for as many
        ("recent_sync_ns", "i8"),
        # The segment being written; owned by whoever has the right to write.
        ("folder", "i8"),  # descriptor of the log's folder
        ("descriptor", "i8"),
        ("segment", "i8"),
        ("segment_used", "i8"),
        ("segment_size", "i8"),
        ("segment_records", "i8"),
        ("segment_first", "i8"),  # first txid of the segment
        ("previous_used", "i8"),  # bytes used in the one before
        ("created_ns", "i8"),
        ("segment_name", "u1", (NAME_BYTES,)),
        ("written_chain", "i8"),
        ("log_id", "u1", (16,)),
        ("seed", "i8"),  # checksum state after log_id (record.log_seed)
        ("roll_records", "i8"),  # roll after that many; 0: by size alone
        ("roll_asked", "i8"),
        ("rolls", "i8"),
        ("roll_version", "i8"),  # odd while segment, segment_first and previous_used change
        # The prepared segment, offered by the preparing thread; -1 while there is none.
        ("next_descriptor", "i8"),
        ("next_segment", "i8"),
        ("next_size", "i8"),
        ("next_created_ns", "i8"),
        ("next_name", "u1", (NAME_BYTES,)),
        ("prepare_error", "i8"),  # errno of the last attempt; a roll that needs the segment fails with it
        # pipeline: mailboxes that keep the newest only.
        ("mailbox", "i8", (MAX_SYNCERS,)),
        ("syncer_busy", "i8", (MAX_SYNCERS,)),
        ("notified_batch", "i8"),
        ("flushed_batch", "i8"),
        ("written_batch", "i8"),
        ("slow_sync_ns", "i8"),
        ("stamps", "i8", (STAMP_SLOTS, STAMP_COLUMNS)),
        ("header", "u1", (4096,)),  # scratch of whoever rolls
    ]
)
LOG = type_of_record(LOG_DTYPE)

# One row a thread, written by that thread alone. A count is the sum of its buckets.
METER_DTYPE = record_type(
    [
        ("commit", "i8", (BUCKETS,)),
        ("commit_ns", "i8"),
        ("commit_max_ns", "i8"),
        ("payload_bytes", "i8"),
        ("unsynced", "i8"),  # records acked before they were durable, as their caller asked
        ("stage", "i8", (4, LADDER_BUCKETS)),  # queue, write, sync, wake
        ("stage_ns", "i8", (4,)),
        ("sync", "i8", (BUCKETS,)),
        ("sync_ns", "i8"),
        ("sync_max_ns", "i8"),
        ("slow_syncs", "i8"),
        ("ops_per_sync", "i8", (OPS_PER_SYNC_BUCKETS,)),
        ("ops_synced", "i8"),
        ("write", "i8", (LADDER_BUCKETS,)),
        ("write_ns", "i8"),
        ("written_bytes", "i8"),
        ("write_errors", "i8"),
        ("sync_errors", "i8"),
        ("unmetered", "i8"),  # 1: commits of this row are not recorded (to measure what metering costs)
        # The row's own open file description, for models whose syncs overlap.
        ("descriptor", "i8"),  # -1 while not open
        ("descriptor_segment", "i8"),
        ("name", "u1", (NAME_BYTES,)),
    ]
)
METER = type_of_record(METER_DTYPE)
METERS = METER[::1]
METER_TOTALS = tuple(
    name
    for name in METER_DTYPE.names or ()
    if name not in ("unmetered", "descriptor", "descriptor_segment", "name", "cache_line_padding")
)


def pack_name(name: str) -> np.ndarray:
    """Return a segment's file name as NUL-ended bytes for a record's field."""
    raw = name.encode("ascii")
    if len(raw) >= NAME_BYTES:
        raise ValueError(f"segment name {name!r} is longer than {NAME_BYTES - 1} bytes")
    return np.frombuffer(raw.ljust(NAME_BYTES, b"\0"), np.uint8)
