"""Reading a log back: whether all that a workload was promised is there, in order and with its content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.units import Txid
from engine.wal.reading import read_records
from engine.workloads.handlers import POOL_ROWS, STAMP_BYTES

_TELL_EVERY = 20_000


def check_log(
    folder: Path,
    *,
    after: Txid,
    records: npt.NDArray[np.int64],
    pool: npt.NDArray[np.uint8],
    durable: Txid,
    tell: Callable[[int], None],
) -> str:
    """Read the records above `after` up to `durable`; return "" if they are what the handlers committed, else why not.

    records: int64[handlers], how many each handler committed, all durable by now. Each handler's records must come
    with ascending sequence and no gap. Payloads below 16 bytes cannot name their handler in full: there the count and
    the txids are checked. Raises LogDamaged where the log does not decode.
    """
    wanted = int(records.sum())
    if durable - after != wanted:
        return f"the log holds {durable - after:,} records, the handlers committed {wanted:,}"
    rows = [row[STAMP_BYTES:].tobytes() for row in pool]
    size = pool.shape[1]
    following = [0] * len(records)
    count, last = 0, int(after)
    for txid, payload in read_records(folder, start_txid=after + 1, up_to=durable):
        if txid != last + 1:
            return f"txid {txid:,} follows txid {last:,}"
        count, last = count + 1, txid
        if len(payload) != size:
            return f"txid {txid:,} holds {len(payload):,} bytes, committed were {size:,}"
        if size >= STAMP_BYTES:
            trouble = _check_stamp(txid, payload, following, rows)
            if trouble:
                return trouble
        if count % _TELL_EVERY == 0:
            tell(count)
    tell(count)
    if count != wanted:
        return f"{count:,} records were read back, the handlers committed {wanted:,}"
    if size >= STAMP_BYTES and following != records.tolist():
        return "the records of a handler are not those it committed"
    return ""


def _check_stamp(txid: int, payload: bytes, following: list[int], rows: list[bytes]) -> str:
    handler = int.from_bytes(payload[:8], "little")
    sequence = int.from_bytes(payload[8:16], "little")
    if handler >= len(following) or sequence != following[handler]:
        due = following[handler] if handler < len(following) else 0
        return f"txid {txid:,} is record {sequence:,} of handler {handler}, due was {due:,}"
    if payload[STAMP_BYTES:] != rows[(handler + sequence) % POOL_ROWS]:
        return f"txid {txid:,} does not hold what handler {handler} committed"
    following[handler] += 1
    return ""
