"""The tracker: which replicas are at risk, which may be evicted, and in what order; each operation O(1).

    at_risk   finalised and not yet durable, oldest first: its head is the age of the data at risk
    evictable persisted, nobody has it open, least recently read first

A replica is in one of the two at most, so one pair of links for it is enough, and leaving from the middle costs what
leaving from the end does. (HDFS keeps a linked list it must scan for every completed copy.) The links are numbers in
two flat arrays: to change a neighbour's link is to touch 4 bytes of 4 MB that a cache holds, not an object that a
million others have driven out. The work of the lazy writers stands beside it: one queue that every volume takes from,
one for each volume with what only that volume can do, and a heap of failed ones by when they are due. Entries of
replicas that were deleted meanwhile stay until they are taken, once each.
"""

from __future__ import annotations

import heapq
import itertools
from array import array
from collections import deque
from collections.abc import Iterator

from engine.ramdisk.replica import Replica, State

_NOWHERE = 0  # the link of a slot that is in no chain; no slot has this number
_AT_RISK, _EVICTABLE = 1, 2  # the slots that are the ends of the two chains


class Slots:
    """A number for each replica, and the links of the chains by those numbers. Numbers are used again."""

    def __init__(self) -> None:
        self.before, self.after = array("I", (0, 1, 2)), array("I", (0, 1, 2))
        self.holder: list[Replica | None] = [None, None, None]
        self._vacant: list[int] = []

    def take(self, replica: Replica) -> None:
        """Give a replica a number unless it has one."""
        if replica.slot != _NOWHERE:
            return
        if self._vacant:
            replica.slot = self._vacant.pop()
            self.holder[replica.slot] = replica
            return
        replica.slot = len(self.holder)
        self.holder.append(replica)
        self.before.append(_NOWHERE)
        self.after.append(_NOWHERE)

    def give_back(self, replica: Replica) -> None:
        """Take its number from a replica that is in no chain."""
        if replica.slot != _NOWHERE:
            self.holder[replica.slot] = None
            self._vacant.append(replica.slot)
            replica.slot = _NOWHERE


class Chain:
    """A doubly linked list of replicas, through their slots. A replica is in one chain at most."""

    def __init__(self, slots: Slots, end: int) -> None:
        self._slots, self._end = slots, end
        self._before, self._after = slots.before, slots.after
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __contains__(self, replica: object) -> bool:
        """Return whether a replica is in this chain or in the other one."""
        return isinstance(replica, Replica) and self._after[replica.slot] != _NOWHERE

    def append(self, replica: Replica) -> None:
        """Put a replica last; it has a slot and is in no chain."""
        slot, end = replica.slot, self._end
        before, after = self._before, self._after
        assert slot != _NOWHERE and after[slot] == _NOWHERE
        last = before[end]
        before[slot], after[slot] = last, end
        after[last] = before[end] = slot
        self._length += 1

    def remove(self, replica: Replica) -> None:
        """Take a replica out; it must be in this chain."""
        slot = replica.slot
        before, after = self._before, self._after
        left, right = before[slot], after[slot]
        assert right != _NOWHERE
        after[left], before[right] = right, left
        before[slot] = after[slot] = _NOWHERE
        self._length -= 1

    @property
    def first(self) -> Replica | None:
        """Return the first, or None."""
        return self._slots.holder[self._after[self._end]]

    def newest(self, count: int) -> list[Replica]:
        """Return the last `count`, last first."""
        return list(itertools.islice(self._walk(self._before), count))

    def __iter__(self) -> Iterator[Replica]:
        return self._walk(self._after)

    def _walk(self, links: array[int]) -> Iterator[Replica]:
        at = links[self._end]
        while (replica := self._slots.holder[at]) is not None:
            yield replica
            at = links[at]


class Tracker:
    """What the store must do next. Every method runs under the store's guard."""

    def __init__(self, volumes: int) -> None:
        self.by_id: dict[int, Replica] = {}
        self._slots = Slots()
        self.at_risk, self.evictable = Chain(self._slots, _AT_RISK), Chain(self._slots, _EVICTABLE)
        self.backlog_bytes = self.evictable_bytes = 0
        self._copies: deque[Replica] = deque()
        self._syncs: list[deque[Replica]] = [deque() for _ in range(volumes)]
        self._later: list[tuple[int, int, Replica]] = []
        self._order = itertools.count()
        self._failures: dict[int, int] = {}  # block id: how often in a row

    def add(self, replica: Replica) -> None:
        """Track a replica that is not at risk, or not in need of us."""
        self._slots.take(replica)
        self.by_id[replica.block_id] = replica

    def add_at_risk(self, replica: Replica) -> None:
        """Track a finalised replica and queue it for the lazy writer."""
        self._slots.take(replica)
        self.by_id[replica.block_id] = replica
        replica.state = State.AT_RISK
        self.at_risk.append(replica)
        self.backlog_bytes += replica.length
        self._queue(replica)

    def take(self, volume: int, now_ns: int, *, shared: bool = True) -> Replica | None:
        """Return what a volume's lazy writer does next, or None. shared: whether any volume's work is its too."""
        while self._later and self._later[0][0] <= now_ns:
            replica = heapq.heappop(self._later)[2]
            if replica.state is State.AT_RISK:
                self._queue(replica)
        for queue in (self._syncs[volume], self._copies) if shared else (self._syncs[volume],):
            while queue:
                replica = queue.popleft()
                if replica.state is State.AT_RISK:
                    return replica
        return None

    def next_due_ns(self) -> int | None:
        """Return when the first failed one is due again, or None."""
        return self._later[0][0] if self._later else None

    def note_failure(self, replica: Replica) -> int:
        """Count a failed attempt; return how many there were in a row."""
        failures = self._failures[replica.block_id] = self._failures.get(replica.block_id, 0) + 1
        return failures

    def retry_at(self, replica: Replica, due_ns: int) -> None:
        """Queue a failed one again for later."""
        heapq.heappush(self._later, (due_ns, next(self._order), replica))

    def retry_now(self) -> None:
        """Make all that failed due at once."""
        self._later = [(0, order, replica) for _, order, replica in self._later]
        heapq.heapify(self._later)

    def settle(self, replica: Replica, state: State) -> None:
        """Take a replica out of the backlog: it is durable, or beyond help."""
        self.at_risk.remove(replica)
        self.backlog_bytes -= replica.length
        self._failures.pop(replica.block_id, None)
        replica.state = state
        self._offer(replica)

    def pin(self, replica: Replica) -> None:
        """Keep a replica where it is until `unpin`."""
        if replica.pins == 0:
            self._withdraw(replica)
        replica.pins += 1

    def unpin(self, replica: Replica) -> None:
        """Let go; with the last one it becomes the most recently read."""
        replica.pins -= 1
        self._offer(replica)

    def take_victim(self) -> Replica | None:
        """Return the least recently read replica that may be evicted, out of the chain, or None."""
        replica = self.evictable.first
        if replica is not None:
            self._withdraw(replica)
        return replica

    def forget(self, replica: Replica) -> None:
        """Track a deleted replica no longer."""
        if replica.state is State.AT_RISK:
            self.at_risk.remove(replica)
            self.backlog_bytes -= replica.length
        self._withdraw(replica)
        self._failures.pop(replica.block_id, None)
        self.by_id.pop(replica.block_id, None)
        self._slots.give_back(replica)
        replica.state = State.DELETED

    @property
    def failing(self) -> int:
        """Return how many replicas failed to persist and are still at risk."""
        return len(self._failures)

    def _queue(self, replica: Replica) -> None:
        (self._copies if replica.in_ram else self._syncs[replica.volume]).append(replica)

    def _offer(self, replica: Replica) -> None:
        if replica.state is State.PERSISTED and replica.in_ram and replica.pins == 0:
            self.evictable.append(replica)
            self.evictable_bytes += replica.stored_bytes

    def _withdraw(self, replica: Replica) -> None:
        if replica.state is State.PERSISTED and replica in self.evictable:
            self.evictable.remove(replica)
            self.evictable_bytes -= replica.stored_bytes
