"""Where a run's log goes: the folder's rules, and that it is gone afterwards.

With --path the folder is the person's: made if missing (not its parent), refused where it holds something else.
Without it a temporary folder is made on a disk, never on memory. What the run made it removes, however it ends; the
folder of a run that was killed is removed by the next run, which can tell because nobody holds its lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.environment import mount_of
from engine.errors import FileTrouble, TidegaugeError, printable

_TEMPORARY = "tidegauge-run-"
_HELD = ".held"  # locked by the run that uses the temporary folder
# As engine.wal.listing sorts them; here by name alone, which loads nothing.
_LOG_FILE = re.compile(r"LOCK|[0-9]+\.wal(\.tmp|(\.[0-9]+)?\.broken)?")


class BadFolder(TidegaugeError):
    """--path names something that cannot become a log's folder."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"--path {printable(str(path))}: {problem}")
        self.path = path


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A folder that exists, can be written and is ours to fill.

    temporary: made without --path. existing_log: it already held a log of ours, which the run continues and keeps.
    """

    path: Path
    temporary: bool
    existing_log: bool

    @property
    def memory(self) -> str:
        """The file system's name where the folder is in memory, so that a sync makes nothing durable; else ""."""
        mount = mount_of(self.path)
        return mount.file_system if mount is not None and mount.is_memory else ""


@contextlib.contextmanager
def run_folder(path: Path | None, *, keep: bool) -> Iterator[RunFolder]:
    """Yield the folder for a run's logs, and afterwards remove what the run put there unless keep.

    Raises BadFolder or FileTrouble before anything was made.
    """
    if path is None:
        with temporary_folder(folder_on_disk(), keep=keep) as folder:
            yield RunFolder(folder, temporary=True, existing_log=False)
        return
    made, existing_log = _prepare(path)
    before = set(_names(path))
    try:
        yield RunFolder(path, temporary=False, existing_log=existing_log)
    finally:
        if not keep and not existing_log:
            for name in set(_names(path)) - before:
                remove(path / name)
        if made:
            with contextlib.suppress(OSError):  # it holds a log to keep, or someone put a file of theirs there
                path.rmdir()


def is_log(folder: Path) -> bool:
    """Whether a folder holds a log of ours and nothing else: segments, their .broken copies and the lock file."""
    names = _names(folder)
    return any(name.endswith(".wal") for name in names) and all(_is_log_file(folder, name) for name in names)


def remove(path: Path) -> None:
    """Remove a file, or a folder with all in it; a link is removed, not what it points to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _prepare(path: Path) -> tuple[bool, bool]:
    """Make or check --path; return (made, holds a log of ours)."""
    try:
        if path.is_dir():
            return False, _check_existing(path)
        if os.path.lexists(path):
            raise BadFolder(path, "this is a file, not a folder" if path.exists() else "this is a link to nothing")
        parent = path.absolute().parent
        if not parent.is_dir():
            missing = "is a file" if parent.exists() else "does not exist"
            raise BadFolder(path, f"its parent folder {printable(str(parent))} {missing}; make it first")
        path.mkdir()
    except OSError as error:
        raise FileTrouble(path, "use it for the log", error) from error
    except ValueError as error:  # a NUL in the name
        raise BadFolder(path, "not a name a folder can have") from error
    return True, False


def _check_existing(path: Path) -> bool:
    names = _names(path)
    foreign = next((name for name in sorted(names) if not _is_log_file(path, name) and not is_log(path / name)), None)
    if foreign is not None:
        raise BadFolder(
            path,
            f"it holds something else than a log, such as {printable(foreign)[:80]!r}; give an empty or a new folder",
        )
    with tempfile.TemporaryFile(dir=path):  # the only way to know that it can be written
        pass
    return bool(names)


def _is_log_file(folder: Path, name: str) -> bool:
    return _LOG_FILE.fullmatch(name) is not None and (folder / name).is_file()


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []


@contextlib.contextmanager
def temporary_folder(parent: Path, *, keep: bool) -> Iterator[Path]:
    """Yield a new folder in `parent`, gone afterwards unless keep; removes those of runs that were killed.

    Raises FileTrouble where it cannot be made.
    """
    _sweep(parent)
    try:
        folder = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=parent))
        unnamed = folder / (_HELD + ".new")
        held = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unnamed.rename(folder / _HELD)  # locked before it has the name that a sweep looks for
    except OSError as error:
        raise FileTrouble(parent, "make a temporary folder", error) from error
    try:
        yield folder
    finally:
        if keep:
            (folder / _HELD).unlink(missing_ok=True)  # without it no later run sweeps the folder away
        else:
            remove(folder)
        os.close(held)


def folder_on_disk() -> Path:
    """Return the first usual place for temporary files that is on a disk and can be written."""
    named = os.environ.get("TMPDIR", "")
    for candidate in (*([Path(named)] if named else []), Path("/var/tmp"), Path("/tmp"), Path.cwd()):
        mount = mount_of(candidate)
        if candidate.is_dir() and os.access(candidate, os.W_OK | os.X_OK) and (mount is None or not mount.is_memory):
            return candidate
    raise TidegaugeError(
        "no folder for a temporary log: $TMPDIR, /var/tmp, /tmp and this folder are in memory or cannot be written; "
        "use --path DIR"
    )


def _sweep(parent: Path) -> None:
    """Remove temporary folders of runs that were killed: ours, with a lock file that nobody holds."""
    for folder in parent.glob(_TEMPORARY + "*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            held = os.open(folder / _HELD, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(folder)
        except OSError:
            pass  # someone is using it
        finally:
            os.close(held)
