"""Reading a file: from memory where a block still is, else from disk, checked against its checksums.

A block that is being read is pinned, so it is not evicted, and its file is not written over, under its reader. A RAM
copy that turns out bad or missing is given up for the disk copy, if there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from engine.errors import BadValue, FileTrouble, TidegaugeError
from engine.native import chunks
from engine.ramdisk.core import Core
from engine.ramdisk.errors import CorruptReplica, FileLost, NoSuchFile
from engine.ramdisk.replica import Replica, State, StoredFile
from engine.ramdisk.replica_file import Footer, Kind, read_checksums, read_footer
from engine.storage.file_calls import Place
from engine.units import MIB

_PIECE = 8 * MIB


class FileReader:
    """An open file, for one thread. A file that is deleted meanwhile ends with NoSuchFile at its next block."""

    def __init__(self, core: Core, file: StoredFile) -> None:
        self._core, self._file = core, file
        self._open: _OpenBlock | None = None

    @property
    def length(self) -> int:
        """Return the file's bytes."""
        return self._file.length

    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        """Return up to `size` bytes from `offset`, fewer at the end. Raises as `read_into`."""
        length = max(min(size if size is not None else self.length, self.length - offset), 0)
        data = bytearray(length)
        if length:
            self.read_into(memoryview(data), offset)
        return bytes(data)

    def read_into(self, into: memoryview, offset: int) -> None:
        """Fill `into` from `offset`; all of it must be in the file.

        Raises BadValue, CorruptReplica, FileLost, NoSuchFile, FileTrouble.
        """
        if offset < 0 or offset + len(into) > self.length:
            raise BadValue(what="range", given=f"{offset} to {offset + len(into)}", allowed=f"0 to {self.length}")
        size = self._file.block_size
        while len(into):
            index, start = divmod(offset, size)
            replica = self._file.blocks[index]
            count = min(len(into), replica.length - start)
            self._read_block(replica, into[:count], start)
            into, offset = into[count:], offset + count

    def verify(self) -> int:
        """Read every byte and check it; return how many were under a checksum."""
        buffer = memoryview(bytearray(min(_PIECE, max(self.length, 1))))
        checked = 0
        for replica in self._file.blocks:
            for at in range(0, replica.length, _PIECE):
                piece = buffer[: min(_PIECE, replica.length - at)]
                self._read_block(replica, piece, at)
                checked += len(piece) if self._open is not None and self._open.checksums is not None else 0
        return checked

    def close(self) -> None:
        """Let the block at hand go."""
        block, self._open = self._open, None
        if block is not None:
            self._core.calls.close(block.descriptor)
            self._core.unpin(block.replica)

    def __enter__(self) -> FileReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _read_block(self, replica: Replica, into: memoryview, start: int) -> None:
        """Fill `into` from byte `start` of a block, from the copy at hand or, if that is no good, from the other."""
        try:
            self._read_copy(replica, into, start)
        except (CorruptReplica, FileTrouble) as error:
            was_in_ram = self._open.in_ram if self._open is not None and self._open.replica is replica else True
            self.close()
            if not was_in_ram or not self._core.drop_bad_ram_copy(replica):
                raise
            self._core.report("error", f"{error}; the disk copy is used instead")
            self._read_copy(replica, into, start)

    def _read_copy(self, replica: Replica, into: memoryview, start: int) -> None:
        if self._open is None or self._open.replica is not replica:
            self.close()
            self._open = self._open_block(replica)
        block = self._open
        try:
            if block.checksums is None:
                self._core.calls.read(block.descriptor, into, start, Place.READ)
            else:
                self._read_checked(block, into, start)
        except OSError as error:
            raise FileTrouble(block.path, "read the block", error) from error

    def _read_checked(self, block: _OpenBlock, into: memoryview, start: int) -> None:
        """Read the chunks that hold the range, check them, and keep the range."""
        chunk, length = self._file.chunk, block.replica.length
        first = start // chunk
        begin, end = first * chunk, min(-(-(start + len(into)) // chunk) * chunk, length)
        is_whole = begin == start and end == start + len(into)
        data = into if is_whole else memoryview(bytearray(end - begin))
        self._core.calls.read(block.descriptor, data, begin, Place.READ)
        bad = int(chunks.first_bad_chunk(np.frombuffer(data, np.uint8), chunk, block.checksums, first))
        if bad >= 0:
            raise self._corrupt(block, begin + bad * chunk)
        if not is_whole:
            into[:] = data[start - begin : start - begin + len(into)]

    def _open_block(self, replica: Replica) -> _OpenBlock:
        core = self._core
        path = core.pin(replica)
        if path is None:
            raise self._gone(replica)
        in_ram = path.parent == core.ram.path
        descriptor = -1
        try:
            descriptor = core.calls.open_existing(path, Place.READ)
            footer = read_footer(core.calls, descriptor)
            block = _OpenBlock(replica, path, descriptor, in_ram, None)
            if isinstance(footer, str) or not self._is_ours(footer, replica):
                raise self._corrupt(block, 0)
            if footer.kind is Kind.CRC32C:
                cells = read_checksums(core.calls, descriptor, footer)
                if isinstance(cells, str):
                    raise self._corrupt(block, 0)
                block.checksums = cells
            return block
        except (OSError, TidegaugeError) as error:
            core.calls.close(descriptor)
            core.unpin(replica)
            if isinstance(error, OSError):
                raise FileTrouble(path, "read the block", error) from error
            raise

    def _is_ours(self, footer: Footer, replica: Replica) -> bool:
        wanted = (self._core.store_id, replica.block_id, replica.length)
        return (footer.store_id, footer.block_id, footer.length) == wanted and (
            footer.kind is Kind.NONE or footer.chunk == self._file.chunk
        )

    def _corrupt(self, block: _OpenBlock, offset: int) -> CorruptReplica:
        index = block.replica.index
        at = index * self._file.block_size + offset
        return CorruptReplica(self._file.name, block=index, offset=at, path=block.path)

    def _gone(self, replica: Replica) -> TidegaugeError:
        if replica.state is State.LOST:
            return file_lost(self._file)
        return NoSuchFile(self._file.name)


@dataclass(slots=True)
class _OpenBlock:
    """A pinned block and the descriptor of one of its copies. checksums: None where it has none."""

    replica: Replica
    path: Path
    descriptor: int
    in_ram: bool
    checksums: npt.NDArray[np.uint32] | None


def file_lost(file: StoredFile) -> FileLost:
    """Return the error that says what of a file is lost."""
    lost = [block for block in file.blocks if block.state is State.LOST]
    return FileLost(file.name, lost=len(lost), blocks=len(file.blocks), size=sum(block.length for block in lost))
