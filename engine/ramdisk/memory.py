"""Memory of the RAM disk: what is reserved, used, and kept for reuse. Plain sums; the store's guard protects them.

    capacity = reserved (blocks being written, whole block up front)
             + used     (finalised replicas, what their files really take)
             + spare    (files of replicas that are gone, kept because overwriting tmpfs pages is twice as fast as
                         touching new ones; given up the moment something else needs the memory)
             + free

The file system may have less than that: someone else can fill a tmpfs. So a reservation that needs new pages also
asks what is really free, less what other open blocks were promised and have not touched yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from engine.units import Bytes

PAGE = 4096


class Spare(NamedTuple):
    """A file that holds nothing any more, and whose pages are worth keeping."""

    path: Path
    size: int


class Grant(NamedTuple):
    """A reservation: its bytes, and a spare to write over (None: a new file)."""

    size: int
    spare: Spare | None
    growth: int  # pages it may still touch for the first time


class MemoryBudget:
    """The sums. remove: takes the path of a spare that is given up; really_free: bytes the file system has left."""

    def __init__(
        self,
        capacity: int,
        *,
        really_free: Callable[[], int],
        remove: Callable[[Path], None],
        keeps_spares: bool = True,
    ) -> None:
        self.capacity = capacity
        self.reserved = self.used = self.spare = 0
        self._promised = 0  # of the reserved bytes, what has no pages yet
        self._spares: deque[Spare] = deque()
        self._really_free, self._remove, self._keeps_spares = really_free, remove, keeps_spares

    @property
    def free(self) -> int:
        """Return what a reservation could get without evicting anything; negative after capacity was lowered."""
        return self.capacity - self.reserved - self.used

    @property
    def spare_count(self) -> int:
        """Return how many files are kept for reuse."""
        return len(self._spares)

    def reserve(self, size: int) -> Grant | None:
        """Set `size` bytes aside, or return None where neither capacity nor the file system has them."""
        size = to_pages(size)
        if size > self.free:
            return None
        spare = self._spares.pop() if self._spares else None
        self.spare -= spare.size if spare else 0
        self._make_space(size)
        growth = max(size - (spare.size if spare else 0), 0)
        if growth and not self._has_pages(growth):
            if spare is not None:
                self.keep(spare)
            return None
        self.reserved += size
        self._promised += growth
        return Grant(size, spare, growth)

    def finalise(self, grant: Grant, size: int) -> None:
        """Turn a reservation into use: what the file really takes, which is no more; the rest is free again."""
        self.cancel(grant)
        self.used += to_pages(size)

    def cancel(self, grant: Grant) -> None:
        """Give a reservation back."""
        self.reserved -= grant.size
        self._promised -= grant.growth

    def take_over(self, size: int) -> None:
        """Count a replica that was found on the RAM disk after a restart."""
        self.used += to_pages(size)

    def release(self, size: int) -> None:
        """Uncount a replica whose file is gone."""
        self.used -= to_pages(size)

    def keep(self, spare: Spare) -> bool:
        """Keep a file for reuse; return False where there is no place for it: the caller removes it."""
        if not self._keeps_spares or self.reserved + self.used + self.spare + spare.size > self.capacity:
            return False
        self._spares.append(spare)
        self.spare += spare.size
        return True

    def drop_spares(self) -> None:
        """Give all kept files up."""
        while self._spares:
            self._drop_one()

    def _make_space(self, size: int) -> None:
        while self._spares and self.reserved + self.used + self.spare + size > self.capacity:
            self._drop_one()

    def _has_pages(self, growth: int) -> bool:
        while self._really_free() - self._promised < growth:
            if not self._spares:
                return False
            self._drop_one()
        return True

    def _drop_one(self) -> None:
        spare = self._spares.popleft()
        self.spare -= spare.size
        self._remove(spare.path)


def to_pages(size: int) -> Bytes:
    """Round up to whole pages."""
    return Bytes(-(-size // PAGE) * PAGE)
