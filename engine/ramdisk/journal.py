"""The journal: which files are there, and where their blocks are; a write-ahead log on the first disk volume.

    Closed      a file is whole: its settings and blocks, each with its place. Durable before `close` returns,
                so that a file whose memory is lost can still be named.
    Persisted   a block has a durable copy on a volume. Not waited for: the copy itself proves it, being there
                under its final name only when it is whole and synced.
    Deleted     a file is gone. Durable before its blocks are removed.

Records are idempotent and say the whole truth about a file, so the journal is compacted by writing every live file
again and letting go of all that came before.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from engine.errors import quoted
from engine.measure.clock import Clock
from engine.ramdisk.errors import NotAStore
from engine.ramdisk.replica import Checksum, Policy, Replica, State, StoredFile
from engine.units import MIB, Txid
from engine.wal.log import Log
from engine.wal.reading import read_records

SEGMENT_SIZE = 8 * MIB
MAX_BLOCKS = 200_000  # of a file: what one record holds
_COMPACT_EVERY = 20_000  # records, or as many as four times the files that live, whichever is more

IN_RAM = -1


class Closed(msgspec.Struct, frozen=True, array_like=True, tag="closed"):
    """A file is whole. blocks: (block id, length, volume or IN_RAM, whether it is durable there) in order."""

    file_id: int
    name: str
    block_size: int
    chunk: int
    checksum: str
    policy: str
    blocks: tuple[tuple[int, int, int, bool], ...]


class Persisted(msgspec.Struct, frozen=True, array_like=True, tag="persisted"):
    """A block has a durable copy on a volume."""

    block_id: int
    volume: int


class Deleted(msgspec.Struct, frozen=True, array_like=True, tag="deleted"):
    """A file is gone."""

    file_id: int


Record = Closed | Persisted | Deleted
_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Record)


class Replay(msgspec.Struct):
    """What the journal says when it is read from its beginning. persisted: block id -> volume, of live files."""

    files: dict[int, StoredFile]
    persisted: dict[int, int]
    highest_block: int
    highest_file: int


class Journal:
    """The open journal. Any thread may note; it has its own locks."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._since_compaction = 0

    @classmethod
    def open(cls, folder: Path, clock: Clock) -> tuple[Journal, Replay]:
        """Open or make it; return it and what it says. Raises what Log.open raises, NotAStore for foreign records."""
        log = Log.open(folder, segment_size=SEGMENT_SIZE, clock=clock)
        try:
            return cls(log), _replay(folder)
        except BaseException:
            log.close()
            raise

    def note_closed(self, file: StoredFile, *, durable: bool = True) -> None:
        """Say that a file is whole. Raises LogPoisoned, RecordTooLarge."""
        self._commit(_closed(file), durable=durable)

    def note_persisted(self, replica: Replica) -> None:
        """Say that a block has a durable copy."""
        self._commit(Persisted(replica.block_id, replica.volume), durable=False)

    def note_deleted(self, file: StoredFile) -> None:
        """Say that a file is gone; durable on return."""
        self._commit(Deleted(file.file_id), durable=True)

    def wants_compaction(self, files: int) -> bool:
        """Return whether so much was noted that compacting is worth it."""
        return self._since_compaction > max(_COMPACT_EVERY, 4 * files)

    def begin_compaction(self) -> Txid:
        """Return the txid that everything needed comes after, once each live file was noted again."""
        self._since_compaction = 0
        return Txid(self._log.watermarks()["appended"])

    def end_compaction(self, base: Txid) -> None:
        """Let go of all up to `base`."""
        self._log.flush()
        self._log.checkpoint(base)

    def flush(self) -> None:
        """Make all that was noted durable."""
        self._log.flush()

    def close(self) -> None:
        """Flush and close."""
        self._log.close()

    def _commit(self, record: Record, *, durable: bool) -> None:
        self._since_compaction += 1  # a lost increment of two threads costs nothing
        self._log.commit(_encode(record), durable=durable)


def _closed(file: StoredFile) -> Closed:
    return Closed(
        file.file_id,
        file.name,
        file.block_size,
        file.chunk,
        file.checksum.value,
        file.policy.value,
        tuple((b.block_id, b.length, b.volume, b.state in (State.PERSISTED, State.ON_DISK)) for b in file.blocks),
    )


def _replay(folder: Path) -> Replay:
    replay = Replay({}, {}, 0, 0)
    for txid, payload in read_records(folder):
        try:
            record = _decoder.decode(payload)
            _apply(replay, record)
        except (msgspec.MsgspecError, ValueError) as error:
            raise NotAStore(folder, found=f"record {txid:,} of its journal is none of ours: {quoted(error)}") from error
    live = {block.block_id for file in replay.files.values() for block in file.blocks}
    replay.persisted = {block_id: volume for block_id, volume in replay.persisted.items() if block_id in live}
    return replay


def _apply(replay: Replay, record: Record) -> None:
    if isinstance(record, Closed):
        if min(record.block_size, record.chunk, len(record.name)) < 1 or record.chunk % 8:
            raise ValueError("sizes below 1")
        file = StoredFile(
            record.file_id,
            record.name,
            block_size=record.block_size,
            chunk=record.chunk,
            checksum=Checksum(record.checksum),
            policy=Policy(record.policy),
        )
        for index, (block_id, length, volume, is_durable) in enumerate(record.blocks):
            if length < 1 or length > record.block_size:
                raise ValueError(f"block of {length} bytes")
            block = Replica(block_id, file, index)
            block.length, block.volume, block.state = length, volume, State.LOST
            file.blocks.append(block)
            file.length += length
            replay.highest_block = max(replay.highest_block, block_id)
            if is_durable and volume >= 0:
                replay.persisted[block_id] = volume
        replay.files[file.file_id] = file
        replay.highest_file = max(replay.highest_file, file.file_id)
    elif isinstance(record, Persisted):
        replay.persisted[record.block_id] = record.volume
        replay.highest_block = max(replay.highest_block, record.block_id)
    else:
        replay.files.pop(record.file_id, None)
        replay.highest_file = max(replay.highest_file, record.file_id)
