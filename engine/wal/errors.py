"""What can go wrong with a log: one class for each thing a caller does differently.

LogPoisoned         a write or sync failed: open the folder again, which runs recovery
LogDamaged          bytes that were durable no longer decode: `tidegauge wal repair --salvage`
LogLocked           another process writes this log
NotALog             the folder holds something else, or nothing
UnsupportedVersion  a segment of a newer tidegauge
RecordTooLarge      a payload that no record, or no segment of this log, can hold
LogClosed           the log was closed
LogBusy             the disk hangs: commits in progress do not end
"""

from __future__ import annotations

from pathlib import Path

from engine.errors import TidegaugeError, error_text, printable
from engine.units import Bytes, Offset


class LogPoisoned(TidegaugeError):
    """The first failed write or sync stopped this log for good; nothing above its durable txid was acknowledged."""

    def __init__(self, errno: int, *, path: Path | None = None) -> None:
        where = f"{printable(str(path))}: " if path is not None else ""
        super().__init__(f"{where}the log stopped after an I/O error: {error_text(errno)}; open it again to recover")
        self.errno, self.path = errno, path


class LogDamaged(TidegaugeError):
    """Bytes that were durable once no longer decode."""

    def __init__(self, *, segment: Path, offset: int, found: str, allowed: str) -> None:
        super().__init__(f"{printable(str(segment))}: damaged at byte {offset:,}: found {found}, allowed {allowed}")
        self.segment, self.offset, self.found, self.allowed = segment, Offset(offset), found, allowed


class LogLocked(TidegaugeError):
    """Another writer has this log open."""

    def __init__(self, path: Path, *, holder: int | None = None) -> None:
        who = f"process {holder}" if holder else "another process"
        super().__init__(f"{printable(str(path))}: {who} has this log open for writing; a log has one writer at a time")
        self.path, self.holder = path, holder


class NotALog(TidegaugeError):
    """The path is not a log: a file, an empty folder where a log was wanted, or a folder of something else."""

    def __init__(self, path: Path, *, found: str) -> None:
        super().__init__(f"{printable(str(path))}: not a tidegauge log: {found}")
        self.path, self.found = path, found


class UnsupportedVersion(TidegaugeError):
    """A segment that is whole, but of a format version this program does not read."""

    def __init__(self, segment: Path, *, version: int, supported: int) -> None:
        text = f"segment format version {version}, this program reads version {supported}; use a newer tidegauge"
        super().__init__(f"{printable(str(segment))}: {text}")
        self.segment, self.version, self.supported = segment, version, supported


class RecordTooLarge(TidegaugeError):
    """A payload over the limit; nothing was appended."""

    def __init__(self, *, size: int, limit: int) -> None:
        super().__init__(f"a record of {size:,} bytes does not fit; allowed are {limit:,} bytes")
        self.size, self.limit = Bytes(size), Bytes(limit)


class LogClosed(TidegaugeError):
    """The log was closed; nothing was appended."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{printable(str(path))}: this log is closed")
        self.path = path


class LogBusy(TidegaugeError):
    """Commits or threads of this log did not end in time: the disk hangs."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{printable(str(path))}: commits in progress do not end; the disk seems to hang")
        self.path = path


class BadReference(TidegaugeError):
    """A txid that the log does not hold was asked for."""

    def __init__(self, *, asked: int, first: int, last: int) -> None:
        held = f"it holds txid {first:,} to {last:,}" if last >= first else "it holds no record"
        super().__init__(f"txid {asked:,} is not in this log; {held}")
        self.asked, self.first, self.last = asked, first, last
