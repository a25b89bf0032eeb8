"""Checksums of a block while it is written: in line, or beside the write on another core.

In line, a piece is written and checksummed while the processor's cache still holds it. Beside, a helper checksums
the caller's bytes while the write copies them: both leave Python's lock, and `write` returns when both are done, so
the caller may change its buffer then.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor

import numpy as np
import numpy.typing as npt

from engine.native import chunks
from engine.ramdisk.replica_file import checksum_count

_INLINE_PIECE = 512 << 10  # still in a cache between write and checksum; the calls cost 2 % of it, of 256 KiB 5 %
_WORTH_A_HELPER = 1 << 20  # handing over costs some 50 us, the checksums of 1 MiB some 100


class BlockChecksums:
    """The checksums of one block as it grows. Used from one thread."""

    def __init__(self, block_size: int, chunk: int, helper: Executor | None) -> None:
        """Prepare for a block of at most `block_size` bytes. helper: None computes in line."""
        self._chunk, self._helper = chunk, helper
        self._cells = np.zeros(checksum_count(block_size, chunk), np.uint32)
        self._stream = chunks.new_stream()

    def write(self, data: memoryview, write: Callable[[memoryview, int], None]) -> None:
        """Write `data` and take it in. write: takes a piece and where in `data` it begins; may raise OSError.

        After an error the checksums cover an unknown part of `data`: the caller gives them up with the block.
        """
        if self._helper is not None and len(data) >= _WORTH_A_HELPER:
            beside = self._helper.submit(self.take_in, data)
            try:
                write(data, 0)
            finally:
                beside.result()
            return
        for at in range(0, len(data), _INLINE_PIECE):
            piece = data[at : at + _INLINE_PIECE]
            write(piece, at)
            self.take_in(piece)

    def take_in(self, data: memoryview) -> None:
        """Checksum bytes that go elsewhere."""
        code = chunks.take_in(np.frombuffer(data, np.uint8), self._chunk, self._stream, self._cells)
        assert code >= 0, "more bytes than the block holds"

    def finish(self) -> npt.NDArray[np.uint32]:
        """Return the checksums of all that was taken in."""
        return self._cells[: chunks.finish(self._chunk, self._stream, self._cells)]
