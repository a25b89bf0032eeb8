"""`tidegauge doctor`: each check says what it found; none can take the others down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dashboard.cli import checkup
from dashboard.cli.checkup import check_all
from engine import environment
from engine.environment import Mount
from tests.cli.commands import run

NAMES = [
    *("platform", "fdatasync", "file system", "free space", "/dev/shm", "cores", "memory", "clock", "terminal"),
    *("locale", "python", "kernels"),
]


def test_one_line_a_check_with_its_level_and_why(disk_path: Path) -> None:
    result = run("doctor", "--path", disk_path)

    lines = result.stdout.splitlines()
    assert [line[6:19].strip() for line in lines] == NAMES
    for line in lines:
        assert line[:4].strip() in ("ok", "warn", "fail")
        assert line[19:].strip()
    assert result.exit_code == int(any(line.startswith("fail") for line in lines))


def test_json_holds_the_same(disk_path: Path) -> None:
    document = json.loads(run("doctor", "--path", disk_path, "--json").stdout)

    assert document["schema"] == "tidegauge.doctor/1"
    assert [check["name"] for check in document["checks"]] == NAMES
    assert {check["level"] for check in document["checks"]} <= {"ok", "warn", "fail"}


def mounted(file_system: str, *options: str) -> Mount:
    return Mount("/data", file_system, "/dev/sdz", frozenset(options), "0:0")


@pytest.mark.parametrize(
    ("mount", "level", "words"),
    [
        (mounted("ext4", "rw"), "ok", "ext4 on /dev/sdz at /data"),
        (mounted("tmpfs", "rw"), "warn", "memory, nothing here survives a reboot"),
        (mounted("nfs4", "rw"), "warn", "a network file system"),
        (mounted("overlay", "rw"), "warn", "a container's layer"),
        (mounted("ext4", "rw", "nobarrier"), "fail", "mounted without barriers"),
        (mounted("ext4", "ro"), "fail", "mounted read-only"),
        (None, "warn", "unknown"),
    ],
    ids=["disk", "tmpfs", "nfs", "overlay", "nobarrier", "read-only", "unknown"],
)
def test_the_file_system_is_judged(monkeypatch, mount: Mount | None, level: str, words: str) -> None:
    monkeypatch.setattr(checkup, "mount_of", lambda path: mount)

    finding = checkup.check_file_system(Path())

    assert finding.level == level
    assert words in finding.text


def test_a_cgroup_limit_below_the_cores_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "usable_cores", lambda: 8)
    monkeypatch.setattr(environment, "cpu_limit", lambda: 1.5)

    finding = checkup.check_cores(Path())

    assert finding.level == "warn"
    assert "a cgroup allows 1.5" in finding.text


@pytest.mark.parametrize(("source", "level"), [("tsc", "ok"), ("hpet", "warn"), ("unknown", "warn")])
def test_a_slow_clock_is_a_warning(monkeypatch: pytest.MonkeyPatch, source: str, level: str) -> None:
    monkeypatch.setattr(environment, "clock_source", lambda: source)

    assert checkup.check_clock(Path()).level == level


def test_a_folder_that_cannot_be_probed_fails_that_check_alone() -> None:
    findings = {finding.name: finding for finding in check_all(Path("/proc"))}

    assert findings["fdatasync"].level == "fail"
    assert "cannot probe its syncs" in findings["fdatasync"].text
    assert list(findings) == NAMES


def test_the_probe_leaves_nothing_behind(disk_path: Path) -> None:
    checkup.check_sync(disk_path)

    assert not list(disk_path.iterdir())


def test_kernels_that_cannot_be_kept_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.native.cache.kernel_root", lambda: None)

    finding = checkup.check_kernels(Path())

    assert finding.level == "warn"
    assert "each start compiles them" in finding.text
