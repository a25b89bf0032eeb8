"""Killing writers at random moments, and judging what they leave by a ledger of what they had acked."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO

from engine.units import Bytes
from engine.wal.models import MODEL_NAMES
from engine.wal.reading import read_records
from engine.wal.recovery import recover
from engine.workloads.handlers import POOL_ROWS, make_pool
from tests.programs import ROOT
from tests.wal.killed_writer import ACKED, CHECKPOINT, ENDED, ENTRY, NATIVE_BYTES, PYTHON, STAMP, Life, payload_of

SYNCS = ("fdatasync", "fsync", "dsync", "none")  # none too: what the operating system took outlives the process
LIVES_OF_A_LOG = 8  # then a new log, so that reading it whole after each death stays cheap
MOST_ACKS = 150
_SEED_OF_CREW = 1
_PATIENCE = 60.0


@dataclass
class Ledger:
    """What one log's writers reported, life after life."""

    acked: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # txid: life, thread, sequence
    checkpoint: int = 0

    def acked_by(self, life: int) -> int:
        return sum(entry[0] == life for entry in tuple(self.acked.values()))


class KilledWriters:
    """The forking program, and the thread that reads its ledger."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance = folder, random.Random(seed)
        self.kills = self.acks = self.deaths_before_first_ack = 0
        self._ledger = Ledger()
        self._ended = threading.Condition()  # guards the next, and the ledger while a writer lives
        self._last_ended = -1
        self._rows = [row[16:].tobytes() for row in make_pool(Bytes(NATIVE_BYTES), _SEED_OF_CREW)]

    def __enter__(self) -> KilledWriters:
        reading, writing = os.pipe()
        self._errors: IO[str] = tempfile.TemporaryFile("w+")
        command = [sys.executable, "-m", "tests.wal.killed_writer", str(writing)]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            pass_fds=[writing],
            text=True,
        )
        os.close(writing)
        self._reader = threading.Thread(target=self._read, args=(reading,), name="ledger")
        self._reader.start()
        assert self._line() == "ready", self.errors()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._reader.join(_PATIENCE)
        self._errors.close()

    def errors(self) -> str:
        """Return what the program and its writers wrote to stderr."""
        self._errors.seek(0)
        return self._errors.read()

    def kill(self, times: int) -> None:
        """Let `times` writers live and die; judge the log after each. Raises AssertionError."""
        for _ in range(times):
            number = self.kills
            if number % LIVES_OF_A_LOG == 0:
                shutil.rmtree(self.folder / "log", ignore_errors=True)
                self._ledger = Ledger()
            self._live_and_die(number)
            acks = self._ledger.acked_by(number)
            self.kills, self.acks = self.kills + 1, self.acks + acks
            self.deaths_before_first_ack += not acks
            self._judge(number)

    def _live_and_die(self, number: int) -> None:
        """Start one writer and kill it: after so many acks, or at once, while it makes or recovers the log."""
        life = Life(
            number=number,
            folder=str(self.folder / "log"),
            model=MODEL_NAMES[number % len(MODEL_NAMES)],
            sync=self.chance.choice(SYNCS),
            threads=self.chance.randint(1, 6),
            handlers=self.chance.choice((0, 0, 3, 12)),
            checkpoints=number // LIVES_OF_A_LOG % 2 == 1,
        )
        wanted = self.chance.choice((0, self.chance.randint(1, 20), self.chance.randint(1, MOST_ACKS)))
        moment = self.chance.random() * 0.02
        assert self._process.stdin is not None
        self._process.stdin.write(life.to_line())
        self._process.stdin.flush()
        pid = int(self._line())
        with self._ended:
            reached = self._ended.wait_for(
                lambda: wanted and (self._ledger.acked_by(number) >= wanted or self._last_ended == number),
                timeout=_PATIENCE if wanted else moment,
            )
        assert reached or not wanted, f"life {number} makes no progress: {life}\n{self.errors()}"
        os.kill(pid, signal.SIGKILL)
        status = int(self._line())
        with self._ended:
            assert self._ended.wait_for(lambda: self._last_ended == number, timeout=_PATIENCE)
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, f"{life}\n{self.errors()}"

    def _judge(self, number: int) -> None:
        """Read the whole log: every acked record above the checkpoint, none foreign, no gap, no duplicate."""
        folder, ledger = self.folder / "log", self._ledger
        if not folder.exists() or not list(folder.glob("*.wal")):
            assert not ledger.acked, f"life {number}: the log is gone"
            return
        recover(folder)
        missing = {txid for txid in ledger.acked if txid > ledger.checkpoint}
        following: dict[int, int] = {}
        expected = None
        for txid, payload in read_records(folder):
            if expected is None:
                assert txid <= ledger.checkpoint + 1, f"life {number}: the log begins at txid {txid}"
            else:
                assert txid == expected, f"life {number}: txid {txid} follows {expected - 1}"
            expected = txid + 1
            self._check_content(txid, payload, following)
            missing.discard(txid)
        assert not missing, f"life {number}: acked and gone: {sorted(missing)[:5]} ({len(missing)})"

    def _check_content(self, txid: int, payload: bytes, following: dict[int, int]) -> None:
        first, second = STAMP.unpack_from(payload)[:2]
        if first >= PYTHON:
            thread, life, sequence = first - PYTHON, second, STAMP.unpack_from(payload)[2]
            assert payload == payload_of(life, thread, sequence), f"txid {txid} was changed"
            assert self._ledger.acked.get(txid, (life, thread, sequence)) == (life, thread, sequence)
            return
        assert txid not in self._ledger.acked, f"txid {txid} was acked to another"
        assert payload[16:] == self._rows[(first + second) % POOL_ROWS], f"txid {txid} was changed"
        due = following.get(first)
        assert due is None or second in (due, 0), f"txid {txid}: record {second} of handler {first}, due was {due}"
        following[first] = second + 1

    def _read(self, descriptor: int) -> None:
        """Be the ledger's reader until every writer and the program are gone."""
        with os.fdopen(descriptor, "rb") as pipe:
            while entry := pipe.read(ENTRY.size):
                life, kind, txid, thread, sequence = ENTRY.unpack(entry)
                with self._ended:
                    if kind == ACKED:
                        assert txid not in self._ledger.acked, f"txid {txid} was acked twice"
                        self._ledger.acked[txid] = (life, thread, sequence)
                    elif kind == CHECKPOINT:
                        self._ledger.checkpoint = txid
                    elif kind == ENDED:
                        self._last_ended = life
                    self._ended.notify_all()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()
