"""Where a measurement was taken: read from text the kernel writes, hostile names included."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from engine import environment
from engine.environment import environment_of, mount_of, tidegauge_version

MOUNTS = r"""
21 1 254:1 / / rw,relatime shared:1 - ext4 /dev/root rw,errors=remount-ro
22 21 0:20 / /data rw - xfs /dev/old rw
23 21 0:21 / /data rw,nosuid - btrfs /dev/new\040disk rw,space_cache
24 21 0:22 / /data/deep\040er rw - tmpfs tmpfs rw,size=1k
25 21 0:23 / /database rw - nfs4 server:/export rw
not a mount line
26 21 0:24 / /odd rw master:3 propagate_from:2 - 9p none ro
"""


@pytest.mark.parametrize(
    ("path", "file_system", "source"),
    [
        ("/", "ext4", "/dev/root"),
        ("/var/tmp", "ext4", "/dev/root"),
        ("/data/x/y", "btrfs", "/dev/new disk"),
        ("/data/deep er/z", "tmpfs", "tmpfs"),
        ("/database", "nfs4", "server:/export"),
        ("/odd", "9p", "none"),
    ],
)
def test_the_deepest_and_latest_mount_above_a_path_wins(path: str, file_system: str, source: str) -> None:
    mount = mount_of(Path(path), MOUNTS)

    assert mount is not None
    assert (mount.file_system, mount.source) == (file_system, source)


def test_options_of_mount_and_file_system_are_both_seen() -> None:
    mount = mount_of(Path("/odd"), MOUNTS)

    assert mount is not None
    assert mount.options == {"rw", "ro"}


def test_names_with_control_characters_are_made_visible() -> None:
    mount = mount_of(Path("/"), "21 1 1:1 / / rw - ext4 /dev/\\033[31m rw")

    assert mount is not None
    assert mount.source == "/dev/\\x1b[31m"


def test_memory_is_told_from_disk() -> None:
    assert [bool(m and m.is_memory) for m in (mount_of(Path(p), MOUNTS) for p in ("/", "/data/deep er"))] == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("option", "has"), [("", False), (",huge=never", False), (",huge=advise", False), (",huge=within_size", True)]
)
def test_a_tmpfs_says_whether_it_gives_huge_pages(option: str, has: bool) -> None:
    mount = mount_of(Path("/dev/shm"), f"21 1 0:1 / /dev/shm rw - tmpfs tmpfs rw,size=1g{option}")

    assert mount is not None and mount.has_huge_pages is has


def test_nothing_to_read_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_read", lambda path: "")

    found = environment_of(Path("/"))

    assert found.file_system == "unknown"
    assert found.memory_bytes is None
    assert found.cores >= 1


CGROUPS = {
    "/proc/self/cgroup": "0::/a/b\n",
    "/sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
    "/sys/fs/cgroup/a/cpu.max": "150000 100000\n",
    "/sys/fs/cgroup/cpu.max": "",
}


def test_the_tightest_limit_of_all_parents_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_read", lambda path: CGROUPS.get(str(path), ""))

    assert environment.cpu_limit() == 1.5


def test_a_real_environment_goes_into_json(tmp_path: Path) -> None:
    found = msgspec.json.decode(msgspec.json.encode(environment_of(tmp_path)))

    assert found["cores"] >= 1
    assert found["python"].startswith("CPython 3.")
    assert found["versions"]["tidegauge"] == tidegauge_version()


def test_the_version_is_that_of_this_checkout() -> None:
    assert f'version = "{tidegauge_version()}"' in Path("pyproject.toml").read_text()
