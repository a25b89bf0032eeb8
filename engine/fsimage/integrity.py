"""What an image contradicts itself about: found while loading, reported with ids and offsets, never fatal.

An image that a NameNode wrote can be wrong in ways that it loads without a word (HDFS-13101, HDFS-13314, HDFS-13818),
so every load checks, and the report is part of what it returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MOST = 100  # of each trouble are listed; all are counted


class Trouble(Enum):
    """One way for an image to be wrong; the value is what a person reads."""

    DUPLICATE_ID = "inodes with the id of an earlier one"
    ORPHAN = "inodes that no directory lists and no snapshot holds"
    CYCLE = "inodes that are their own ancestors, or below such"
    MISSING_PARENT = "directory entries of an inode that is not there"
    PARENT_IS_NO_DIRECTORY = "directory entries of an inode that is no directory"
    MISSING_CHILD = "children that are not there"
    LISTED_TWICE = "inodes that two places list"
    ROOT_LISTED = "directories that list the root"
    BAD_REFERENCE = "children by a reference that is not there"
    DANGLING_REFERENCE = "references to an inode that is not there"
    SAME_NAME = "inodes with the name of a sibling"
    NO_NAME = "inodes without a name"
    COUNT = "counts that disagree"
    MISSING_STRING = "owners or groups that the string table lacks"
    OPEN_FILE = "open files that are not there"
    DUPLICATE_BLOCK = "blocks that two files have, or one twice"
    DANGLING_SNAPSHOT = "snapshot entries of an inode that is not there"


@dataclass(frozen=True, slots=True)
class Problem:
    """One contradiction. `inode_id` and `offset` (in its section) are -1 where they say nothing."""

    trouble: Trouble
    inode_id: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class IntegrityReport:
    """All that was found: counts are complete, `problems` holds at most MOST of each trouble."""

    counts: tuple[tuple[Trouble, int], ...]
    problems: tuple[Problem, ...]
    snapshot_only: int  # inodes that only snapshots hold: no trouble

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not self.counts

    def count(self, trouble: Trouble) -> int:
        """Return how many of a trouble there are."""
        return dict(self.counts).get(trouble, 0)

    def lines(self) -> list[str]:
        """Return one line for each trouble, and its first problems, for people."""
        if self.is_clean:
            return ["the tree is whole"]
        out: list[str] = []
        for trouble, count in self.counts:
            out.append(f"{count:,} {trouble.value}")
            out += [f"    {problem.text}" for problem in self.problems if problem.trouble is trouble][:3]
        return out


class Findings:
    """Collects problems while a load goes on; one thread at a time writes."""

    def __init__(self) -> None:
        self._counts: dict[Trouble, int] = {}
        self._problems: list[Problem] = []
        self.snapshot_only = 0

    def add(self, trouble: Trouble, text: str, *, inode_id: int = -1, offset: int = -1) -> None:
        """Count one problem, and keep it if it is among the first."""
        self.count(trouble, 1)
        self.example(trouble, text, inode_id=inode_id, offset=offset)

    def count(self, trouble: Trouble, number: int) -> None:
        """Count problems whose examples are added apart."""
        if number:
            self._counts[trouble] = self._counts.get(trouble, 0) + number

    def example(self, trouble: Trouble, text: str, *, inode_id: int = -1, offset: int = -1) -> None:
        """Keep an example of a problem that is counted apart."""
        if sum(problem.trouble is trouble for problem in self._problems) < MOST:
            self._problems.append(Problem(trouble, inode_id, offset, text))

    def report(self) -> IntegrityReport:
        """Return what was found, in the order of `Trouble`."""
        counts = tuple((trouble, self._counts[trouble]) for trouble in Trouble if trouble in self._counts)
        return IntegrityReport(counts, tuple(self._problems), self.snapshot_only)
