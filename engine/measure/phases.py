"""Phase trees: what a start-up is doing, how far it is and where its time went.

A phase is named as the NameNode names it (LoadingFsImage, with a step Inodes). It is pending, running or complete, has
a count and, where one is known, a total of what it works through, bytes, elapsed time and the processor time of the
thread that ran it; phases inside it are its children, in the order in which they were first named.

    tree = PhaseTree(clock, cpu)
    with tree.phase("LoadingFsImage", size_bytes=...) as loading:
        with loading.phase("Inodes", total=20_000_000) as inodes:
            inodes.advance(4096, read=...)          # from any thread
    tree.snapshot()                                 # from any thread; frozen

The share done of a phase is count/total of itself and what is inside it, and 1 once it is complete: the NameNode's
rule. A phase that ends by an exception is failed, not complete. Times are totals; rates are for whoever shows them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, Self

import msgspec

from engine.measure.clock import Clock
from engine.units import Bytes, Nanoseconds

PhaseState = Literal["pending", "running", "complete", "failed"]


class PhaseSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One phase at one instant, and the phases inside it."""

    name: str
    state: PhaseState
    count: int
    total: int | None  # None while nobody knows
    read_bytes: Bytes
    size_bytes: Bytes | None
    elapsed_ns: Nanoseconds  # so far, while it runs
    cpu_ns: Nanoseconds | None  # of the thread that ran it; None until it has ended
    children: tuple[PhaseSnapshot, ...]

    @property
    def share_done(self) -> float:
        """How much is done, 0 to 1."""
        if self.state == "complete":
            return 1.0
        count, total = self._counted()
        return min(count / total, 1.0) if total else 0.0

    def walk(self, depth: int = 0) -> Iterator[tuple[int, PhaseSnapshot]]:
        """Yield (depth, phase) of this phase and all inside it, parents before children."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)

    def _counted(self) -> tuple[int, int]:
        pairs = [(min(self.count, self.total), self.total)] if self.total else []
        pairs += [child._counted() for child in self.children]
        return sum(count for count, _ in pairs), sum(total for _, total in pairs)


class Phase:
    """One phase as its thread sees it; made by PhaseTree.phase or Phase.phase.

    Fields are guarded by the tree's lock, which is held for a few assignments and never while a clock is read.
    """

    def __init__(self, tree: PhaseTree, name: str, total: int | None, size_bytes: Bytes | None) -> None:
        self._tree, self._name, self._total, self._size_bytes = tree, name, total, size_bytes
        self._state: PhaseState = "pending"
        self._count, self._read_bytes = 0, 0
        self._began_ns, self._elapsed_ns = 0, 0
        self._cpu_ns: int | None = None
        self._children: dict[str, Phase] = {}

    def advance(self, count: int = 1, *, read: int = 0) -> None:
        """Add what was just done: `count` of the total, and `read` bytes."""
        with self._tree.lock:
            self._count += count
            self._read_bytes += read

    def expect(self, total: int) -> None:
        """Say how much there will be, once that is known."""
        with self._tree.lock:
            self._total = total

    def announce(self, name: str, *, total: int | None = None, size_bytes: Bytes | None = None) -> Phase:
        """Name a phase inside this one before it begins, so that it shows as pending."""
        return self._tree.child(self._children, name, total, size_bytes)

    @contextmanager
    def phase(self, name: str, *, total: int | None = None, size_bytes: Bytes | None = None) -> Iterator[Phase]:
        """Run a phase inside this one; a name that was announced or run before goes on where it stood."""
        with self.announce(name, total=total, size_bytes=size_bytes)._run() as child:
            yield child

    @contextmanager
    def _run(self) -> Iterator[Self]:
        tree = self._tree
        began, cpu_began = tree.clock.monotonic_ns(), tree.thread_cpu_ns()
        with tree.lock:
            if self._state == "running":
                raise RuntimeError(f"phase {self._name} is running already")  # a bug of the caller, not of the user
            self._state, self._began_ns = "running", began
        outcome: PhaseState = "failed"
        try:
            yield self
            outcome = "complete"
        finally:
            ended, cpu_ended = tree.clock.monotonic_ns(), tree.thread_cpu_ns()
            with tree.lock:
                self._state = outcome
                self._elapsed_ns += ended - began
                self._cpu_ns = (self._cpu_ns or 0) + cpu_ended - cpu_began

    def _snapshot(self, now: int) -> PhaseSnapshot:
        running = now - self._began_ns if self._state == "running" else 0
        return PhaseSnapshot(
            name=self._name,
            state=self._state,
            count=self._count,
            total=self._total,
            read_bytes=Bytes(self._read_bytes),
            size_bytes=self._size_bytes,
            elapsed_ns=Nanoseconds(self._elapsed_ns + max(running, 0)),
            cpu_ns=None if self._cpu_ns is None else Nanoseconds(self._cpu_ns),
            children=tuple(child._snapshot(now) for child in self._children.values()),
        )


class PhaseTree:
    """The phases of one start-up. One lock guards all of them: phases change thousands of times a second at most."""

    def __init__(self, clock: Clock, thread_cpu_ns: Callable[[], int] = time.thread_time_ns) -> None:
        self.clock, self.thread_cpu_ns = clock, thread_cpu_ns
        self.lock = threading.Lock()
        self._phases: dict[str, Phase] = {}

    def announce(self, name: str, *, total: int | None = None, size_bytes: Bytes | None = None) -> Phase:
        """Name a phase before it begins, so that it shows as pending."""
        return self.child(self._phases, name, total, size_bytes)

    @contextmanager
    def phase(self, name: str, *, total: int | None = None, size_bytes: Bytes | None = None) -> Iterator[Phase]:
        """Run a phase: running inside the `with`, complete after it, failed where an exception leaves it."""
        with self.announce(name, total=total, size_bytes=size_bytes)._run() as phase:
            yield phase

    def snapshot(self) -> tuple[PhaseSnapshot, ...]:
        """Return every phase as it is now."""
        now = self.clock.monotonic_ns()
        with self.lock:
            return tuple(phase._snapshot(now) for phase in self._phases.values())

    def child(self, among: dict[str, Phase], name: str, total: int | None, size_bytes: Bytes | None) -> Phase:
        """Return the phase of that name in `among`, made if it is new; what is said now replaces what was not known."""
        with self.lock:
            phase = among.setdefault(name, Phase(self, name, total, size_bytes))
            if total is not None:
                phase._total = total
            if size_bytes is not None:
                phase._size_bytes = size_bytes
            return phase
