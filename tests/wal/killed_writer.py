"""The program whose processes are killed: each commits to a log and reports what was acked, until SIGKILL.

    python -m tests.wal.killed_writer LEDGER_DESCRIPTOR

Loading kernels takes seconds and a hundred writers are killed, so this process loads them once and forks: for each
line on stdin (JSON, a Life) it forks a writer, which is a process of its own, says its pid, and when it is gone says
how it ended. A writer tells the ledger of every ack with one write to a pipe: what it wrote before it died is there.
Python threads commit what the ledger judges; native handlers beside them give it company at full speed.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.native.kernel import compile_all
from engine.units import KIB, Bytes, Txid
from engine.wal.log import Log
from engine.workloads.crew import Crew, HandlerSettings

ENTRY = struct.Struct("<qqqqq")  # life, kind, then txid, thread, sequence; whole in one write to a pipe
ACKED, CHECKPOINT, ENDED = 1, 2, 3

STAMP = struct.Struct("<QQQ")
PYTHON = 1 << 63  # the first word of a payload: this and the thread, or the number of a native handler
NATIVE_BYTES = 200
LONGEST_SECONDS = 60  # no writer outlives its test
KEPT_RECORDS = 400


@dataclass(frozen=True, slots=True)
class Life:
    """One writer, from its fork to its death."""

    number: int
    folder: str
    model: str
    sync: str
    threads: int
    handlers: int
    checkpoints: bool

    def to_line(self) -> str:
        return json.dumps(asdict(self)) + "\n"


def payload_of(life: int, thread: int, sequence: int) -> bytes:
    """Return the payload of one commit: a stamp, and up to 2,000 bytes that follow from it."""
    size = (life * 131 + thread * 37 + sequence * 211) % 2000
    return STAMP.pack(PYTHON | thread, life, sequence) + bytes((sequence + k) % 256 for k in range(size))


def write_until_killed(life: Life, ledger: int) -> None:
    """Recover the log, commit to it, report each ack."""

    def tell(kind: int, txid: int, thread: int = 0, sequence: int = 0) -> None:
        os.write(ledger, ENTRY.pack(life.number, kind, txid, thread, sequence))

    log = Log.open(Path(life.folder), model=life.model, sync=life.sync, segment_size=64 * KIB, roll_records=150)

    def commit(thread: int) -> None:
        for sequence in range(1 << 30):
            txid = log.commit(payload_of(life.number, thread, sequence))
            tell(ACKED, txid, thread, sequence)
            if life.checkpoints and thread == 0 and txid > KEPT_RECORDS:
                tell(CHECKPOINT, txid - KEPT_RECORDS)  # before it takes effect
                log.checkpoint(Txid(txid - KEPT_RECORDS))

    Crew(log, HandlerSettings(value_size_bytes=Bytes(NATIVE_BYTES))).resize(life.handlers)
    for thread in range(life.threads):
        threading.Thread(target=commit, args=(thread,), daemon=True).start()
    threading.Event().wait(LONGEST_SECONDS)


def main() -> None:
    """Fork a writer for each line of stdin; answer with its pid, and once it is gone with its wait status."""
    ledger = int(sys.argv[1])
    compile_all()
    print("ready", flush=True)
    for line in sys.stdin:
        life = Life(**json.loads(line))
        pid = os.fork()
        if pid == 0:
            signal.alarm(LONGEST_SECONDS)
            try:
                write_until_killed(life, ledger)
            finally:
                sys.excepthook(*sys.exc_info()) if sys.exc_info()[0] else None  # type: ignore[func-returns-value]
                os._exit(1)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        os.write(ledger, ENTRY.pack(life.number, ENDED, 0, 0, 0))
        print(status, flush=True)


if __name__ == "__main__":
    main()
