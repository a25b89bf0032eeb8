"""Where a section can be cut: a quick pass over the lengths of its messages, so that every core has a piece.

Sub-sections in the file serve the same end, but most images have none. The pass reads one or two bytes a message and
jumps, so it runs at the speed of memory.
"""

from __future__ import annotations

import numpy as np

from engine.fsimage.column_types import BYTES, I64, I64S
from engine.fsimage.varints import read_length
from engine.native.kernel import kernel

PIECE_BYTES = 1 << 20


@kernel(I64(BYTES, I64, I64, I64, I64S, I64S, I64S), bare=True)
def find_boundaries(data, start, end, piece_bytes, offsets, firsts, state):  # type: ignore[no-untyped-def]
    """Cut data[start:end] between messages, each piece at least `piece_bytes` long (the last may be shorter).

    offsets, firsts: int64[p]; filled with each piece's first byte and the number of messages before it. state:
    int64[2]; messages so far, carried over calls; then the offset of a message that does not fit. Returns how many
    pieces were found, at most p, or minus one. The caller provides p >= (end - start) / piece_bytes + 1.
    """
    at, pieces, messages = start, 0, state[0]
    cut = start
    while at < end:  # each turn moves at least one byte
        if at >= cut:
            if pieces == offsets.size:
                break
            offsets[pieces], firsts[pieces] = at, messages
            pieces += 1
            cut = at + piece_bytes
        body, stop = read_length(data, at, end)
        if body < 0:
            state[0], state[1] = messages, at
            return np.int64(-1)
        at = stop
        messages += 1
    state[0], state[1] = messages, at
    return np.int64(pieces)
