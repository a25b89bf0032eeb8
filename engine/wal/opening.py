"""Opening a log: claim the folder, and build the shared state that kernels go on from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.measure.clock import Clock
from engine.native.locks import make_condition, make_mutex
from engine.native.memory import make_bytes, make_records
from engine.native.turns import TURN_SLOTS
from engine.storage.contents import PositionedWrite
from engine.storage.descriptors import new_log_id, open_folder, open_for_writing
from engine.storage.device import DeviceSpec, make_device
from engine.storage.folders import FolderLock, create_zeroed, lock_folder, lock_holder, make_folder
from engine.units import MIB, Bytes, Offset
from engine.wal.contents import LogContents
from engine.wal.errors import LogLocked
from engine.wal.listing import list_log
from engine.wal.preparer import ClosedSegment
from engine.wal.record import HEADER_SIZE, MAX_PAYLOAD, log_seed
from engine.wal.segment import HEADER_BLOCK, SegmentHeader, encode_header, segment_name
from engine.wal.state import LOG_DTYPE, MAX_SYNCERS, METER_DTYPE, pack_name

BUFFER_BYTES = Bytes(4 * MIB)  # of each of the two buffers: what may wait to be written before commits wait too
MAX_CALLERS = 1024  # threads inside one log at a time

# Meter rows: callers first, then the model's own threads, then whoever closes or drains.
MODEL_ROW = MAX_CALLERS
CLOSER_ROW = MAX_CALLERS + MAX_SYNCERS + 1
METER_ROWS = CLOSER_ROW + 1


@dataclass(frozen=True, slots=True)
class SharedState:
    """The arrays that the kernels of one log work on."""

    log: npt.NDArray[np.void]  # LOG_DTYPE[1]
    device: npt.NDArray[np.void]  # DEVICE_DTYPE[1]
    buffers: npt.NDArray[np.uint8]  # uint8[2, buffer_bytes]
    meters: npt.NDArray[np.void]  # METER_DTYPE[METER_ROWS]

    @property
    def max_payload(self) -> Bytes:
        """Return the largest payload that fits a buffer, and so every segment."""
        return Bytes(min(MAX_PAYLOAD, self.buffers.shape[1] - HEADER_SIZE))


def claim(folder: Path) -> FolderLock:
    """Make the folder if it is missing, see that it holds a log or nothing, and take its lock.

    A folder of something else is refused before anything is put into it. Raises NotALog, LogLocked, FileTrouble.
    """
    make_folder(folder)
    list_log(folder)
    lock = lock_folder(folder)
    if lock is None:
        raise LogLocked(folder, holder=lock_holder(folder))
    return lock


def load(
    contents: LogContents, size: Bytes, spec: DeviceSpec, sync: str, *, write: PositionedWrite, clock: Clock
) -> SharedState:
    """Return the shared state of a recovered log with its current segment open; a new log gets its first segment.

    size: of segments made from now on. The descriptors in the state are the caller's to close. Raises FileTrouble.
    """
    header, used, chain, last = _tail_of(contents, size, write=write, clock=clock)
    path = contents.folder / segment_name(header.number)
    shared = _make_shared(Bytes(min(BUFFER_BYTES, size - HEADER_BLOCK)), spec, sync)
    state = shared.log
    state["folder"], state["descriptor"] = open_folder(contents.folder), open_for_writing(path)
    state["segment"], state["segment_size"], state["segment_used"] = header.number, header.segment_size, used
    state["segment_first"], state["segment_records"] = header.first_txid, last - header.first_txid + 1
    state["segment_name"][0] = pack_name(path.name)
    state["appended"] = state["written"] = state["flushed"] = state["durable"] = last
    state["chain"] = state["written_chain"] = chain
    state["log_id"][0] = np.frombuffer(header.log_id, np.uint8)
    state["seed"] = log_seed(header.log_id)
    return shared


def closed_segments(contents: LogContents) -> list[ClosedSegment]:
    """Return the segments of a recovered log before the current one."""
    return [
        ClosedSegment(s.number, s.path, s.header.first_txid, s.last_txid, Bytes(s.used)) for s in contents.segments[:-1]
    ]


def _tail_of(
    contents: LogContents, size: Bytes, *, write: PositionedWrite, clock: Clock
) -> tuple[SegmentHeader, int, int, int]:
    """Return the current segment's header, bytes used, chain and last txid, making the first one if there is none."""
    tail = contents.tail
    if tail is not None:
        return tail.header, tail.used, tail.chain, tail.last_txid
    header = SegmentHeader(
        log_id=new_log_id(),
        number=1,
        segment_size=size,
        first_txid=contents.first_txid,
        previous_used=Offset(0),
        previous_chain=0,
        created_wall_ns=clock.wall_ns(),
    )
    create_zeroed(contents.folder / segment_name(1), size, first=encode_header(header), write=write)
    return header, HEADER_BLOCK, 0, 0


def _make_shared(buffer_bytes: Bytes, spec: DeviceSpec, sync: str) -> SharedState:
    log = make_records(1, LOG_DTYPE)
    state = log[0]
    for mutex in ("mutex", "flush", "one_sync"):
        make_mutex(state[mutex])
    for condition in ("space", "segment_offered", "segment_taken", "work", "flushed_news"):
        make_condition(state[condition])
    for field, count in (("written_news", MAX_SYNCERS), ("one_sync_turns", TURN_SLOTS)):
        for k in range(count):
            make_condition(state[field][k])
    state["buffer_bytes"] = buffer_bytes
    state["filling"] = 1
    state["next_descriptor"] = -1
    meters = make_records(METER_ROWS, METER_DTYPE)
    meters["descriptor"] = -1
    buffers = make_bytes(2 * buffer_bytes, alignment=4096).reshape(2, buffer_bytes)
    return SharedState(log, make_device(spec, sync), buffers, meters)
