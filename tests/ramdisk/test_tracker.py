"""The tracker against a model of plain lists."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.ramdisk.memory import MemoryBudget, Spare
from engine.ramdisk.replica import Checksum, Policy, Replica, State, StoredFile
from engine.ramdisk.tracker import Tracker


def a_file() -> StoredFile:
    return StoredFile(1, "f", block_size=4096, chunk=512, checksum=Checksum.OFF, policy=Policy.LAZY)


class TrackerMachine(RuleBasedStateMachine):
    """Random operations; the model keeps at-risk and evictable replicas as lists in order."""

    def __init__(self) -> None:
        super().__init__()
        self.tracker, self.file = Tracker(1), a_file()
        self.at_risk: list[Replica] = []
        self.evictable: list[Replica] = []
        self.taken: list[Replica] = []
        self.pinned: list[Replica] = []
        self.number = 0

    @rule(length=st.integers(1, 4096))
    def add(self, length: int) -> None:
        self.number += 1
        replica = Replica(self.number, self.file, 0)
        replica.length, replica.in_ram = length, True
        self.tracker.add_at_risk(replica)
        self.at_risk.append(replica)

    @rule()
    def take(self) -> None:
        replica = self.tracker.take(0, 0)
        waiting = [each for each in self.at_risk if each not in self.taken]
        assert replica is (waiting[0] if waiting else None)
        if replica is not None:
            self.taken.append(replica)

    @precondition(lambda self: self.taken)
    @rule(pick=st.randoms())
    def persist(self, pick) -> None:  # type: ignore[no-untyped-def]
        replica = pick.choice(self.taken)
        self.taken.remove(replica)
        if replica in self.at_risk:
            self.tracker.settle(replica, State.PERSISTED)
            self.at_risk.remove(replica)
            self.evictable.append(replica)

    @precondition(lambda self: self.evictable)
    @rule(pick=st.randoms())
    def read(self, pick) -> None:  # type: ignore[no-untyped-def]
        replica = pick.choice(self.evictable)
        self.tracker.pin(replica)
        self.evictable.remove(replica)
        self.pinned.append(replica)

    @precondition(lambda self: self.pinned)
    @rule(pick=st.randoms())
    def read_done(self, pick) -> None:  # type: ignore[no-untyped-def]
        replica = pick.choice(self.pinned)
        self.pinned.remove(replica)
        self.tracker.unpin(replica)
        if replica.state is State.PERSISTED:
            self.evictable.append(replica)

    @rule()
    def evict(self) -> None:
        victim = self.tracker.take_victim()
        assert victim is (self.evictable.pop(0) if self.evictable else None)
        if victim is not None:
            victim.state, victim.in_ram = State.ON_DISK, False

    @precondition(lambda self: self.at_risk or self.evictable or self.pinned)
    @rule(pick=st.randoms())
    def delete(self, pick) -> None:  # type: ignore[no-untyped-def]
        replica = pick.choice([*self.at_risk, *self.evictable, *self.pinned])
        self.tracker.forget(replica)
        for each in (self.at_risk, self.evictable):
            if replica in each:
                each.remove(replica)

    @invariant()
    def agrees(self) -> None:
        tracker = self.tracker
        assert list(tracker.at_risk) == self.at_risk and len(tracker.at_risk) == len(self.at_risk)
        assert list(tracker.evictable) == self.evictable and len(tracker.evictable) == len(self.evictable)
        assert tracker.backlog_bytes == sum(replica.length for replica in self.at_risk)
        assert tracker.evictable_bytes == sum(replica.stored_bytes for replica in self.evictable)


TestTracker = TrackerMachine.TestCase


def test_a_failed_one_comes_back_when_it_is_due() -> None:
    tracker, replica = Tracker(1), Replica(1, a_file(), 0)
    replica.in_ram = True
    tracker.add_at_risk(replica)
    assert tracker.take(0, 0) is replica

    tracker.retry_at(replica, 100)

    assert tracker.take(0, 99) is None
    assert tracker.next_due_ns() == 100
    assert tracker.take(0, 100) is replica


@pytest.mark.parametrize("really_free", [1 << 40, 8192], ids=["capacity-binds", "file-system-binds"])
def test_reservations_never_exceed_capacity_or_what_is_there(really_free: int) -> None:
    memory = MemoryBudget(16384, really_free=lambda: really_free, remove=lambda path: None)

    grants = [memory.reserve(4096) for _ in range(6)]

    allowed = min(16384, really_free) // 4096
    assert [grant is not None for grant in grants] == [k < allowed for k in range(6)]
    first = grants[0]
    assert first is not None
    memory.finalise(first, 100)
    assert (memory.reserved, memory.used) == ((allowed - 1) * 4096, 4096)


def test_a_spare_counts_until_it_is_used_or_given_up(tmp_path) -> None:  # type: ignore[no-untyped-def]
    removed: list[object] = []
    memory = MemoryBudget(8192, really_free=lambda: 1 << 40, remove=removed.append)
    assert memory.keep(Spare(tmp_path / "a", 4096)) and memory.keep(Spare(tmp_path / "b", 4096))
    assert not memory.keep(Spare(tmp_path / "c", 4096))

    big = memory.reserve(8192)

    assert big is not None and big.spare is not None and big.spare.path == tmp_path / "b"
    assert removed == [tmp_path / "a"]
    assert (memory.spare, big.growth) == (0, 4096)
