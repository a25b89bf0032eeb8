"""The tracker: which replicas are at risk, which may be evicted, and in what order; each operation O(1).

    at_risk   finalised and not yet durable, oldest first: its head is the age of the data at risk
    evictable persisted, nobody has it open, least recently read first

A replica is in one of the two at most, so one pair of links in it is enough, and leaving from the middle costs what
leaving from the end does. (HDFS keeps a linked list it must scan for every completed copy.) The work of the lazy
writers stands beside it: one queue that every volume takes from, one for each volume with what only that volume can
do, and a heap of failed ones by when they are due. Entries of replicas that were deleted meanwhile stay until they
are taken, once each.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterator

from engine.ramdisk.replica import Replica, State


class Chain:
    """A doubly linked list through the replicas themselves."""

    def __init__(self) -> None:
        self._end = Replica(0, None, 0)
        self._end.previous = self._end.next = self._end
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, replica: Replica) -> None:
        """Put a replica last; it must be in no chain."""
        assert replica.next is None
        last = self._end.previous
        assert last is not None
        replica.previous, replica.next = last, self._end
        last.next = self._end.previous = replica
        self._length += 1

    def remove(self, replica: Replica) -> None:
        """Take a replica out; it must be in this chain."""
        before, after = replica.previous, replica.next
        assert before is not None and after is not None
        before.next, after.previous = after, before
        replica.previous = replica.next = None
        self._length -= 1

    @property
    def first(self) -> Replica | None:
        """Return the first, or None."""
        first = self._end.next
        return None if first is self._end else first

    def newest(self, count: int) -> list[Replica]:
        """Return the last `count`, last first."""
        found: list[Replica] = []
        at = self._end.previous
        while at is not None and at is not self._end and len(found) < count:
            found.append(at)
            at = at.previous
        return found

    def __iter__(self) -> Iterator[Replica]:
        at = self._end.next
        while at is not None and at is not self._end:
            yield at
            at = at.next


class Tracker:
    """What the store must do next. Every method runs under the store's guard."""

    def __init__(self, volumes: int) -> None:
        self.by_id: dict[int, Replica] = {}
        self.at_risk, self.evictable = Chain(), Chain()
        self.backlog_bytes = self.evictable_bytes = 0
        self._copies: deque[Replica] = deque()
        self._syncs: list[deque[Replica]] = [deque() for _ in range(volumes)]
        self._later: list[tuple[int, int, Replica]] = []
        self._order = itertools.count()
        self._failures: dict[int, int] = {}  # block id: how often in a row

    def add(self, replica: Replica) -> None:
        """Track a replica that is not at risk, or not in need of us."""
        self.by_id[replica.block_id] = replica

    def add_at_risk(self, replica: Replica) -> None:
        """Track a finalised replica and queue it for the lazy writer."""
        self.by_id[replica.block_id] = replica
        replica.state = State.AT_RISK
        self.at_risk.append(replica)
        self.backlog_bytes += replica.length
        self._queue(replica)

    def take(self, volume: int, now_ns: int) -> Replica | None:
        """Return what a volume's lazy writer does next, or None."""
        while self._later and self._later[0][0] <= now_ns:
            replica = heapq.heappop(self._later)[2]
            if replica.state is State.AT_RISK:
                self._queue(replica)
        for queue in (self._syncs[volume], self._copies):
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
        if replica.state is State.PERSISTED and replica.next is not None:
            self.evictable.remove(replica)
            self.evictable_bytes -= replica.stored_bytes
