"""Where a measurement was taken: processor, cores, kernel, file system and block device, Python, versions.

Everything is read from /proc and /sys, which differ by kernel, container and privilege: what cannot be read
is None or "unknown", never an error.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import msgspec

from engine.errors import printable
from engine.units import Bytes

MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs"})
NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "virtiofs"})
_VERSIONED = ("numba", "llvmlite", "numpy", "msgspec", "textual", "prometheus-client")


class Mount(NamedTuple):
    """The mount that a path is on."""

    point: str
    file_system: str  # ext4, xfs, overlay, tmpfs, ...
    source: str  # /dev/vda, tmpfs, host:/export
    options: frozenset[str]
    major_minor: str  # "254:0"; "0:NN" where no block device is behind it

    @property
    def is_memory(self) -> bool:
        """Whether what is written here is only memory, so that a sync makes nothing durable."""
        return self.file_system in MEMORY_FILE_SYSTEMS

    @property
    def has_huge_pages(self) -> bool:
        """Whether a tmpfs may give plain writes huge pages: its own option says so, and the default is not to.

        `huge=advise` does not: it asks for advice on mapped memory, and what is written is not mapped.
        """
        return not self.options.isdisjoint({"huge=always", "huge=within_size"})


class BlockDevice(msgspec.Struct, frozen=True):
    """The disk below a file system, as /sys describes it."""

    name: str  # the whole disk's: vda, nvme0n1, sda
    model: str  # "" where the driver gives none, as virtio does not
    rotational: bool | None
    write_cache: str | None  # "write back": a flush has work to do; "write through": the kernel sends none
    virtual: bool


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The `environment` object of a run's JSON."""

    cpu: str
    cores: int  # that this process may use
    cores_online: int | None
    cpu_limit: float | None  # of a cgroup, in cores; None is no limit
    memory_bytes: Bytes | None
    kernel: str
    machine: str
    file_system: str
    file_system_source: str
    device: str
    block_device: BlockDevice | None
    python: str
    versions: dict[str, str]


def environment_of(path: Path) -> Environment:
    """Describe this computer, and the file system that holds `path` (or would: its nearest existing parent)."""
    mount = mount_of(path)
    block = block_device_of(mount) if mount else None
    return Environment(
        cpu=cpu_name(),
        cores=usable_cores(),
        cores_online=os.cpu_count(),
        cpu_limit=cpu_limit(),
        memory_bytes=memory_bytes(),
        kernel=f"{platform.system()} {platform.release()}",
        machine=platform.machine(),
        file_system=mount.file_system if mount else "unknown",
        file_system_source=mount.source if mount else "unknown",
        device=block.name if block else (mount.source if mount else "unknown"),
        block_device=block,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        versions=versions(),
    )


def tidegauge_version() -> str:
    """Return this program's version: of the checkout it runs from, else of the installed package."""
    project = Path(__file__).resolve().parents[1] / "pyproject.toml"
    try:
        table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        if table["name"] == "tidegauge":
            return str(table["version"])
    except (OSError, KeyError, TypeError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        pass
    try:
        return version("tidegauge")
    except PackageNotFoundError:
        return "unknown"


def versions() -> dict[str, str]:
    """Return the versions of this program and of what its measurements depend on."""
    found = {"tidegauge": tidegauge_version()}
    for name in _VERSIONED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    libc, release = platform.libc_ver()
    if libc:
        found[libc] = release
    return found


def cpu_name() -> str:
    """Return the processor's name as the kernel has it; aarch64 kernels give none, then the architecture."""
    for line in _read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model") and value.strip():
            return printable(value.strip())
    return platform.machine() or "unknown"


def is_virtual_machine() -> bool:
    """Whether the processor says that a hypervisor is above it (x86 only; elsewhere the device tells)."""
    return bool(re.search(r"^flags\s*:.*\bhypervisor\b", _read("/proc/cpuinfo"), re.M))


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    return len(os.sched_getaffinity(0))


def cpu_limit() -> float | None:
    """Return the processor time a cgroup allows, in cores; the tightest of ours and its parents; None is no limit."""
    limits = [limit for limit in (*_limits_v2(), *_limits_v1()) if limit is not None]
    return min(limits, default=None)


def memory_bytes() -> Bytes | None:
    """Return the memory of this computer."""
    match = re.search(r"^MemTotal:\s*(\d+) kB", _read("/proc/meminfo"), re.M)
    return Bytes(int(match[1]) * 1024) if match else None


def memory_available_bytes() -> Bytes | None:
    """Return the memory that could be used without swapping."""
    match = re.search(r"^MemAvailable:\s*(\d+) kB", _read("/proc/meminfo"), re.M)
    return Bytes(int(match[1]) * 1024) if match else None


def clock_source() -> str:
    """Return what the kernel reads the time from: tsc and kvm-clock are fast, hpet and acpi_pm are not."""
    return _read("/sys/devices/system/clocksource/clocksource0/current_clocksource").strip() or "unknown"


def python_build() -> str:
    """Return the interpreter in words: version, whether its lock is there, whether it is a debug build."""
    has_lock: bool = getattr(sys, "_is_gil_enabled", lambda: True)()  # from 3.13 on
    words = [f"{platform.python_implementation()} {platform.python_version()}"]
    words.append("with its lock" if has_lock else "without its lock (free-threaded)")
    if hasattr(sys, "gettotalrefcount"):
        words.append("debug build")
    return ", ".join(words)


def mount_of(path: Path, mountinfo: str | None = None) -> Mount | None:
    """Return the mount that holds `path`, or would.

    mountinfo: the text of /proc/self/mountinfo, where a test brings its own. The deepest mount point above the
    path wins; of two at one point the later covers the earlier.
    """
    real = Path(os.path.realpath(path))
    best: Mount | None = None
    for line in (_read("/proc/self/mountinfo") if mountinfo is None else mountinfo).splitlines():
        mount = _parse_mount(line)
        if (
            mount is not None
            and real.is_relative_to(mount.point)
            and (best is None or len(mount.point) >= len(best.point))
        ):
            best = mount
    return best


def block_device_of(mount: Mount) -> BlockDevice | None:
    """Return the disk below a mount, or None where there is none (network, memory, overlay)."""
    folder = Path("/sys/dev/block") / mount.major_minor
    if mount.major_minor.startswith("0:"):  # btrfs and others have a number of their own: go by the source
        try:
            number = Path(mount.source).stat().st_rdev
        except (OSError, ValueError):
            return None
        folder = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    disk = Path(os.path.realpath(folder))
    if not disk.is_dir():
        return None
    if (disk / "partition").exists():
        disk = disk.parent
    rotational = _read(disk / "queue" / "rotational").strip()
    name, model = printable(disk.name), printable(_read(disk / "device" / "model").strip())
    words = (name + " " + model).lower()
    virtual = name.startswith(("vd", "xvd")) or any(
        word in words for word in ("virtual", "qemu", "persistentdisk", "elastic block")
    )
    return BlockDevice(
        name=name,
        model=model,
        rotational=None if rotational not in ("0", "1") else rotational == "1",
        write_cache=_read(disk / "queue" / "write_cache").strip() or None,
        virtual=virtual,
    )


def _parse_mount(line: str) -> Mount | None:
    # 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
    left, dash, right = line.partition(" - ")
    fields, tail = left.split(" "), right.split(" ")
    if not dash or len(fields) < 6 or len(tail) < 3:
        return None
    options = frozenset((*fields[5].split(","), *tail[2].split(",")))
    return Mount(_unescape(fields[4]), printable(tail[0]), printable(_unescape(tail[1])), options, fields[2])


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)  # a space is \040


def _limits_v2() -> list[float | None]:
    match = re.search(r"^0::(/.*)$", _read("/proc/self/cgroup"), re.M)
    folder = Path("/sys/fs/cgroup" + (match[1] if match else "/"))
    limits: list[float | None] = []
    while folder.is_relative_to("/sys/fs/cgroup"):
        quota, _, period = _read(folder / "cpu.max").strip().partition(" ")
        limits.append(int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else None)
        folder = folder.parent
    return limits


def _limits_v1() -> list[float | None]:
    folder = Path("/sys/fs/cgroup/cpu")
    quota, period = _read(folder / "cpu.cfs_quota_us").strip(), _read(folder / "cpu.cfs_period_us").strip()
    return [int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else None]


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
