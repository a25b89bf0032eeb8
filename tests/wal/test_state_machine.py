"""Whatever is done to a log in whatever order, it holds what it acked: hypothesis drives, a ledger judges.

The ledger is plain: what was acked as durable must be there with its bytes; what was appended and not waited for, or
failed, may be there; txids have no gap; nothing at or below the checkpoint is asked for.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from engine.storage.faults import Fault, FaultTable, Site
from engine.units import Bytes, Txid
from engine.wal import control
from engine.wal.errors import LogPoisoned
from engine.wal.log import Log
from engine.wal.models import MODEL_NAMES
from engine.wal.reading import read_records
from engine.wal.record import HEADER_SIZE
from engine.wal.recovery import recover
from tests.waiting import run_threads
from tests.wal.logs import copy_after_crash

TINY = 8192
DURABLE = ("fdatasync", "fsync", "dsync")
SIZES = st.one_of(st.integers(0, 200), st.sampled_from([488, 1000, 2000, 4072]))
FATAL = st.sampled_from([errno.EIO, errno.ENOSPC, errno.EDQUOT])


class Ledger:
    """What a log was asked to keep."""

    def __init__(self) -> None:
        self.acked: dict[int, bytes] = {}  # durable, the log said
        self.appended: dict[int, bytes] = {}  # has a txid, may be lost
        self.attempted: set[bytes] = set()  # failed: may have reached the disk all the same
        self.checkpoint = 0

    @property
    def last(self) -> int:
        return max((*self.acked, *self.appended, 0))

    def settle(self) -> None:
        """All that was appended is durable now."""
        self.acked |= self.appended
        self.appended = {}

    def check(self, found: list[tuple[int, bytes]]) -> None:
        """Assert that recovered records are what they must be; they are durable from now on."""
        if found:
            assert [txid for txid, _ in found] == list(range(found[0][0], found[-1][0] + 1)), "a gap or a repetition"
            assert found[0][0] <= self.checkpoint + 1, "records above the checkpoint are gone"
        held = dict(found)
        for txid, payload in self.acked.items():
            assert txid <= self.checkpoint or held.get(txid) == payload, f"txid {txid} was acked"
        for txid, payload in found:
            known = self.acked.get(txid, self.appended.get(txid))
            assert payload == known or (txid not in self.acked and payload in self.attempted), f"txid {txid} is foreign"
        self.acked = {**{t: p for t, p in self.acked.items() if t <= self.checkpoint}, **held}
        self.appended, self.attempted = {}, set()


class LogMachine(RuleBasedStateMachine):
    """One log, through its life and several deaths."""

    def __init__(self, model: str, folder: Path) -> None:
        super().__init__()
        self.model, self.sync = model, "fdatasync"
        self.home = Path(tempfile.mkdtemp(dir=folder))
        self.counter = 0
        self.ledger = Ledger()
        (self.home / "log").mkdir()
        self.open()

    # What the rules are made of.

    def open(self) -> None:
        self.faults = FaultTable(journal_bytes=4 << 20)
        self.log = Log.open(self.home / "log", model=self.model, sync=self.sync, segment_size=TINY, faults=self.faults)
        assert self.log.durable_txid == self.ledger.last

    def payload(self, size: int) -> bytes:
        """Return a payload that is like no other, as far as its size lets it."""
        self.counter += 1
        return (b"%d:" % self.counter + bytes(k % 256 for k in range(self.counter, self.counter + size)))[:size]

    def note_durable(self, txid: int, payload: bytes) -> None:
        """Take in that a commit returned: it and all before it are durable, unless nothing is synced."""
        self.ledger.appended[txid] = payload
        if self.sync != "none":
            self.ledger.settle()

    @property
    def is_stopped(self) -> bool:
        return self.log.poison is not None

    # The rules. None has a precondition: when the log stops depends on its threads, and a draw must be repeatable.

    @rule(size=SIZES)
    def commit(self, size: int) -> None:
        payload = self.payload(size)
        was_stopped, expected = self.is_stopped, self.ledger.last + 1
        try:
            txid = self.log.commit(payload)
        except LogPoisoned:
            self.ledger.attempted.add(payload)
            assert was_stopped or self.is_stopped
        else:
            assert not was_stopped, "a stopped log acked"
            assert txid == expected
            self.note_durable(txid, payload)

    @rule(sizes=st.lists(SIZES, min_size=1, max_size=4))
    def commit_without_waiting(self, sizes: list[int]) -> None:
        for size in sizes:
            payload = self.payload(size)
            expected = self.ledger.last + 1
            try:
                txid = self.log.commit(payload, durable=False)
            except LogPoisoned:
                self.ledger.attempted.add(payload)
                return
            assert txid == expected
            self.ledger.appended[txid] = payload

    @rule(sizes=st.lists(SIZES, min_size=2, max_size=5))
    def commit_at_once(self, sizes: list[int]) -> None:
        """Commit from as many threads."""
        payloads = [self.payload(size) for size in sizes]

        def run(payload: bytes) -> int:
            try:
                return self.log.commit(payload)
            except LogPoisoned:
                return 0

        txids = run_threads(*[lambda payload=payload: run(payload) for payload in payloads])
        acked = {int(str(txid)): payload for txid, payload in zip(txids, payloads, strict=True) if txid}
        self.ledger.attempted |= {payload for txid, payload in zip(txids, payloads, strict=True) if not txid}
        if acked:
            assert sorted(acked) == list(range(self.ledger.last + 1, self.ledger.last + 1 + len(acked)))
            for txid in sorted(acked):
                self.note_durable(txid, acked[txid])

    @rule()
    def flush(self) -> None:
        try:
            self.log.flush()
        except LogPoisoned:
            assert self.is_stopped
            return
        if self.sync != "none":
            self.ledger.settle()

    @rule(back=st.integers(0, 12))
    def checkpoint(self, back: int) -> None:
        txid = max(min(self.log.durable_txid, max(self.ledger.acked, default=0)) - back, 0)
        self.ledger.checkpoint = max(self.ledger.checkpoint, txid)
        self.log.checkpoint(Txid(txid))

    @rule()
    def roll(self) -> None:
        control.ask_for_roll(self.log.shared.log[0])

    @rule(site=st.sampled_from([Site.WRITE, Site.SYNC]), nth=st.integers(1, 4), code=FATAL)
    def plan_an_error(self, site: Site, nth: int, code: int) -> None:
        self.log.arm(Fault(site, nth, code=code))

    @rule(nth=st.integers(1, 3), short=st.integers(1, 600))
    def plan_an_interruption(self, nth: int, short: int) -> None:
        self.log.arm(Fault(Site.WRITE, nth, code=errno.EINTR), Fault(Site.WRITE, nth + 1, short_bytes=Bytes(short)))

    @rule(model=st.sampled_from(MODEL_NAMES), sync=st.sampled_from([*DURABLE, *DURABLE, "none"]))
    def reconfigure(self, model: str, sync: str) -> None:
        try:
            self.log.reconfigure(model=model, sync=sync)
        except LogPoisoned:
            assert self.is_stopped
            return
        self.ledger.settle()
        self.sync = sync

    @rule(seed=st.one_of(st.none(), st.integers(0, 1000)))
    def crash(self, seed: int | None) -> None:
        if self.sync == "none":
            return  # it promises nothing
        left = copy_after_crash(self.home, self.faults, seed)
        self.log.close()
        shutil.rmtree(self.home / "log")
        left.rename(self.home / "log")
        self.begin_again()

    @rule()
    def close_and_open(self) -> None:
        self.log.close()
        if not self.is_stopped:
            self.ledger.settle()
            found = recover(self.home / "log")
            is_full = found.tail is not None and found.tail.used + HEADER_SIZE > found.tail.header.segment_size
            assert found.is_sealed or is_full or not self.ledger.last
        self.begin_again()

    def begin_again(self) -> None:
        found = recover(self.home / "log")
        records = list(read_records(self.home / "log"))
        assert found.last_txid == max([txid for txid, _ in records], default=found.first_txid - 1)
        self.ledger.check(records)
        if not records:
            assert found.last_txid == self.ledger.last
        self.open()

    # What always holds.

    @invariant()
    def watermarks_are_in_order(self) -> None:
        marks = self.log.watermarks()
        assert marks["durable"] <= marks["flushed"] <= marks["written"] <= marks["appended"]
        assert marks["durable"] >= max(self.ledger.acked, default=0)
        assert marks["waiting"] == 0

    def teardown(self) -> None:
        self.log.close()
        if not self.is_stopped:
            self.ledger.settle()
        self.ledger.check(list(read_records(self.home / "log")))
        shutil.rmtree(self.home)


@pytest.mark.parametrize("model", MODEL_NAMES)
def test_a_log_holds_what_it_acked_whatever_is_done_to_it(model, disk_path):
    profile = hypothesis.settings.default
    assert profile is not None
    settings = hypothesis.settings(profile, max_examples=max(profile.max_examples // 5, 1), stateful_step_count=30)

    run_state_machine_as_test(lambda: LogMachine(model, disk_path), settings=settings)
