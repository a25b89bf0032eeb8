"""The checks of `tidegauge doctor`. Each is one function that returns one Finding; none raises."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from dashboard.terminal import LEAST_HEIGHT, LEAST_WIDTH, find_terminal, why_no_screen
from engine import environment
from engine.environment import NETWORK_FILE_SYSTEMS, mount_of
from engine.errors import FileTrouble, printable
from engine.units import GIB, format_size

Level = Literal["ok", "warn", "fail"]

_COLOURS = {
    "none": "no colours, as NO_COLOR asks",
    "16": "16 colours",
    "256": "256 colours",
    "truecolor": "16 million colours",
}

ENOUGH_MEMORY = GIB
ENOUGH_FREE = 2 * GIB
FAST_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")


class Finding(msgspec.Struct, frozen=True):
    """One line of the doctor."""

    name: str
    level: Level
    text: str


def check_all(path: Path) -> Iterator[Finding]:
    """Yield the findings in the order they are shown, each as soon as it is known."""
    yield from (check(path) for check in _CHECKS)


def check_platform(_: Path) -> Finding:
    """Look at the operating system, libc and processor the kernels are compiled for."""
    from engine.native.kernel import require_platform

    problem = require_platform()
    if problem:
        return Finding("platform", "fail", problem)
    libc, release = platform.libc_ver()
    text = f"{platform.system()} {platform.release()}, {libc} {release}, {platform.machine()}, {environment.cpu_name()}"
    return Finding("platform", "ok", text)


def check_sync(path: Path) -> Finding:
    """Time fdatasync against a direct durable write."""
    from engine.storage.probes import judge_sync, probe_sync

    mount = mount_of(path)
    block = environment.block_device_of(mount) if mount else None
    virtual = environment.is_virtual_machine() or (block is not None and block.virtual)
    try:
        level, why = judge_sync(probe_sync(path), mount, virtual=virtual)
    except FileTrouble as error:
        return Finding("fdatasync", "fail", str(error))
    return Finding("fdatasync", level, why)


def check_file_system(path: Path) -> Finding:
    """Look at what the folder is on."""
    mount = mount_of(path)
    if mount is None:
        return Finding("file system", "warn", "unknown: /proc/self/mountinfo cannot be read")
    block = environment.block_device_of(mount)
    disk = "" if block is None else f", disk {block.name}{' (virtual)' if block.virtual else ''}"
    cache = "" if block is None or block.write_cache is None else f", write cache: {block.write_cache}"
    text = f"{mount.file_system} on {mount.source} at {printable(mount.point)}{disk}{cache}"
    if mount.is_memory:
        return Finding("file system", "warn", f"{text}: memory, nothing here survives a reboot; use --path on a disk")
    if mount.file_system in NETWORK_FILE_SYSTEMS:
        return Finding("file system", "warn", f"{text}: a network file system; its server decides what a sync means")
    if mount.file_system == "overlay":
        return Finding("file system", "warn", f"{text}: a container's layer; a mounted volume says more about the disk")
    if {"nobarrier", "barrier=0"} & mount.options:
        return Finding(
            "file system", "fail", f"{text}: mounted without barriers, so a sync does not flush the disk's cache"
        )
    if "ro" in mount.options:
        return Finding("file system", "fail", f"{text}: mounted read-only")
    return Finding("file system", "ok", text)


def check_free_space(path: Path) -> Finding:
    """Look at how much a run could write."""
    usage = shutil.disk_usage(path)
    text = f"{format_size(usage.free)} of {format_size(usage.total)}"
    if usage.free < ENOUGH_FREE:
        return Finding("free space", "warn", f"{text}: a default run can need up to 1.1 GiB")
    return Finding("free space", "ok", text)


def check_shared_memory(_: Path) -> Finding:
    """Look at /dev/shm, where a RAM disk would be."""
    folder = Path("/dev/shm")
    if not folder.is_dir():
        return Finding("/dev/shm", "warn", "is not there; a RAM disk needs a tmpfs elsewhere")
    usage = shutil.disk_usage(folder)
    mount = mount_of(folder)
    text = f"{format_size(usage.free)} of {format_size(usage.total)} free"
    if mount is None or not mount.is_memory:
        return Finding(
            "/dev/shm", "warn", f"{text}, but {'unknown' if mount is None else mount.file_system}, not tmpfs"
        )
    if usage.total < GIB:
        return Finding("/dev/shm", "warn", f"{text}, tmpfs: small, as in a container (docker: --shm-size)")
    return Finding("/dev/shm", "ok", f"{text}, tmpfs")


def check_cores(_: Path) -> Finding:
    """Look at the processor time we may use."""
    usable, online, limit = environment.usable_cores(), os.cpu_count() or 1, environment.cpu_limit()
    text = f"{usable} of {online} usable"
    if limit is not None and limit < usable:
        return Finding("cores", "warn", f"{text}, but a cgroup allows {limit:g}: throttling will look like slow syncs")
    if usable < 2:
        return Finding("cores", "warn", f"{text}: the screen and the handlers share it")
    return Finding("cores", "ok", f"{text}, no cgroup limit" if limit is None else f"{text}, cgroup limit {limit:g}")


def check_memory(_: Path) -> Finding:
    """Look at the memory that is left."""
    total, available = environment.memory_bytes(), environment.memory_available_bytes()
    if total is None or available is None:
        return Finding("memory", "warn", "unknown: /proc/meminfo cannot be read")
    text = f"{format_size(available)} of {format_size(total)} available"
    return Finding("memory", "ok" if available >= ENOUGH_MEMORY else "warn", text)


def check_clock(_: Path) -> Finding:
    """Look at what a clock reading costs: each commit takes several."""
    source = environment.clock_source()
    if source in FAST_CLOCKS:
        return Finding("clock", "ok", source)
    if source == "unknown":
        return Finding("clock", "warn", "source unknown: /sys does not say")
    return Finding("clock", "warn", f"{source}: each reading is a system call, so stages look longer than they are")


def check_terminal(_: Path) -> Finding:
    """Look at the terminal's size and colours."""
    if problem := why_no_screen():
        return Finding("terminal", "warn", problem)
    columns, rows = shutil.get_terminal_size((0, 0))
    text = f"{columns}x{rows}, TERM={printable(os.environ.get('TERM', ''))}, {_COLOURS[find_terminal().colour]}"
    if columns < LEAST_WIDTH or rows < LEAST_HEIGHT:
        return Finding("terminal", "warn", f"{text}: the dashboard needs {LEAST_WIDTH}x{LEAST_HEIGHT}")
    return Finding("terminal", "ok", text)


def check_locale(_: Path) -> Finding:
    """Look at whether the terminal is told in UTF-8."""
    encoding = (getattr(sys.stdout, "encoding", None) or "unknown").lower()
    if encoding.replace("-", "") == "utf8":
        return Finding("locale", "ok", "UTF-8")
    return Finding("locale", "warn", f"{encoding}: plots need UTF-8 (LANG=C.UTF-8), else they are drawn in ASCII")


def check_python(_: Path) -> Finding:
    """Look at the interpreter."""
    build = environment.python_build()
    if "debug" in build:
        return Finding("python", "warn", f"{build}: the screen and Python callers are slower than they should be")
    if "free-threaded" in build:
        return Finding("python", "warn", f"{build}: not tested with")
    return Finding("python", "ok", build)


def check_kernels(_: Path) -> Finding:
    """Look at whether compiled kernels can be kept, and whether they are there."""
    from engine.native.cache import ROOT, fingerprint, kernel_root

    root = kernel_root()
    if root is None or "tidegauge-kernels-" in root.name:
        return Finding("kernels", "warn", "no folder can keep them, so each start compiles them; set TIDEGAUGE_KERNELS")
    sources = [path for path in (ROOT / "engine").rglob("*.py") if "@kernel(" in path.read_text(encoding="utf-8")]
    ready = sum(any((root / f"{path.stem}-{fingerprint(path)}").rglob("*.nbc")) for path in sources)
    where = "beside the program" if root.is_relative_to(ROOT) else f"in {printable(str(root))}"
    if ready < len(sources):
        return Finding(
            "kernels",
            "ok",
            f"{ready} of {len(sources)} files compiled; the next start compiles the rest, once, and keeps them {where}",
        )
    return Finding("kernels", "ok", f"all {len(sources)} files compiled, kept {where}")


_CHECKS: tuple[Callable[[Path], Finding], ...] = (
    check_platform,
    check_sync,
    check_file_system,
    check_free_space,
    check_shared_memory,
    check_cores,
    check_memory,
    check_clock,
    check_terminal,
    check_locale,
    check_python,
    check_kernels,
)
