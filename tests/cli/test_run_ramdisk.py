"""`tidegauge run ramdisk`: what it prints, writes, refuses and leaves behind."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dashboard.cli.exits import Exit
from dashboard.cli.ramdisk_flags import RamdiskFlags
from dashboard.cli.ramdisk_table import results_text, seed_text
from engine.ramdisk.probe import choose
from engine.units import MIB
from engine.workloads.ramdisk import RamdiskResult, StreamPoint, compare
from tests.cli.commands import finish, run, start
from tests.ramdisk.store_kit import ram_parent
from tests.waiting import wait_for

SMALL = ("--files", 2, "--file-size", "3MiB", "--block-size", "1MiB", "--ram-capacity", "16MiB", "--copy", "buffered")


@pytest.fixture
def folders(disk_path: Path):  # type: ignore[no-untyped-def]
    """Return (options, ram, disk): flags that keep a run inside private folders."""
    with ram_parent() as ram:
        disk = disk_path / "disk"
        disk.mkdir()
        yield ("--ram-dir", ram, "--disk-dir", disk), ram, disk


def result(**changes: Any) -> RamdiskResult:
    plain: dict[str, Any] = {
        "policy": "lazy",
        "checksum": "on",
        "block_size_bytes": 128 * MIB,
        "state": "clean",
        "copy": "direct",
        "ram": "tmpfs",
        "files": 3,
        "file_size_bytes": 2048 * MIB,
        "chunk_bytes": 65536,
        "mean_file_seconds": 0.5,
        "file_seconds": [0.4, 0.5, 0.6],
        "mean_first_use_file_seconds": 0.9,
        "first_use_file_seconds": [0.8, 0.9, 1.0],
        "persist_bytes_per_second": 1e9,
        "drain_seconds": 2.5,
        "at_risk_bytes": 5 << 30,
        "fallback_blocks": 0,
        "evicted_blocks": 0,
        "write_stalls": 0,
        "write_stall_seconds": 0.0,
        "persist_errors": 0,
        "caches_dropped": True,
        "other_dirty_bytes": 0,
    }
    return RamdiskResult(**(plain | changes))


def test_a_matrix_is_measured_verified_and_leaves_nothing_behind(  # type: ignore[no-untyped-def]
    folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.workloads.ramdisk.empty_page_cache", lambda: True)  # seven syncs of a busy machine
    options, ram, disk = folders
    target = tmp_path / "out.json"

    done = run("run", "ramdisk", *options, *SMALL, "--checksum", "on,deferred,off", "--verify", "--json", target)

    assert done.exit_code == Exit.DONE, done.stderr
    document = json.loads(target.read_text())
    assert (document["schema"], document["lane"], document["complete"]) == ("tidegauge.run/1", "ramdisk", True)
    cases = [(case["policy"], case["checksum"]) for case in document["results"]]
    assert cases == [
        ("disk", "on"),
        ("disk-sync", "on"),
        ("lazy", "on"),
        ("lazy", "deferred"),
        ("disk", "off"),
        ("disk-sync", "off"),
        ("lazy", "off"),
    ]
    for case in document["results"]:
        assert case["verified"] is True and len(case["file_seconds"]) == 2
        assert len(case["first_use_file_seconds"]) == 2 and case["mean_first_use_file_seconds"] > 0  # disk cases too
        assert case["mean_file_seconds"] == pytest.approx(sum(case["file_seconds"]) / 2)
        assert set(case["improvement_ratio"]) == {"disk", "disk-sync"} - {case["policy"]}
        assert (case["copy"], case["persist_bytes_per_second"] is not None) == (
            ("buffered", True) if case["policy"] == "lazy" else (None, False)
        )
    assert "lazy" in done.stdout and "A power cut right after the last close loses nothing of disk-sync." in done.stdout
    assert list(ram.iterdir()) == [] and list(disk.iterdir()) == []


def test_json_on_stdout_is_all_there_is_on_stdout(folders) -> None:  # type: ignore[no-untyped-def]
    options, _, _ = folders

    done = run("run", "ramdisk", *options, *SMALL, "--policy", "lazy", "--json", "-")

    assert json.loads(done.stdout)["results"][0]["policy"] == "lazy"
    assert "mean/file" in done.stderr


@pytest.mark.parametrize("state", ["full-ram", "dirty-cache"])
def test_each_state_is_prepared_and_cleaned_up(folders, state: str, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("engine.workloads.ramdisk.dirty_limit", lambda: 8 * MIB)
    options, ram, disk = folders

    done = run("run", "ramdisk", *options, *SMALL, "--state", state, "--policy", "disk,lazy", "--json", "-")

    assert done.exit_code == Exit.DONE, done.stderr
    disk_case, lazy_case = json.loads(done.stdout)["results"]
    if state == "full-ram":
        assert lazy_case["fallback_blocks"] + lazy_case["evicted_blocks"] >= 1
        assert disk_case["at_risk_bytes"] == 6 * MIB  # the files that fill memory are not the case's
    else:
        assert lazy_case["other_dirty_bytes"] == disk_case["other_dirty_bytes"] == 8 * MIB
        assert "8 MiB of other dirty data" in done.stderr
    assert list(ram.iterdir()) == [] and list(disk.iterdir()) == []


def test_a_stream_shows_its_backlog(folders) -> None:  # type: ignore[no-untyped-def]
    options, ram, _ = folders

    done = run(
        "run", "ramdisk", *options, "--policy", "lazy", "--rate", "20MB/s", "--duration", "1s", "--file-size", "4MiB",
        "--block-size", "1MiB", "--ram-capacity", "16MiB", "--persist-rate", "5MB/s", "--copy", "buffered",
        "--json", "-",
    )  # fmt: skip

    assert done.exit_code == Exit.DONE, done.stderr
    (case,) = json.loads(done.stdout)["results"]
    assert case["backlog_bytes_max"] >= 2 * MIB
    assert len(case["stream"]) >= 2 and case["drain_seconds"] > 0
    assert "backlog" in done.stderr
    assert list(ram.iterdir()) == []


def test_sizes_scale_down_to_the_room_and_say_so(folders, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("dashboard.cli.ramdisk_room.memory_available_bytes", lambda: 20 * MIB)
    options, _, _ = folders

    done = run("run", "ramdisk", *options, "--files", 2, "--policy", "lazy", "--copy", "buffered", "--json", "-")

    assert done.exit_code == Exit.DONE, done.stderr
    assert "note: RAM capacity 10 MiB instead of 8 GiB" in done.stderr
    assert "note: file size 4 MiB instead of 2 GiB" in done.stderr
    settings = json.loads(done.stdout)["settings"]
    assert (settings["file_size_bytes"], settings["file_size_bytes_asked"]) == (4 * MIB, 2048 * MIB)


def test_a_directory_that_is_no_tmpfs_is_refused_or_labelled(disk_path: Path) -> None:
    refused = run("run", "ramdisk", "--ram-dir", disk_path, "--disk-dir", disk_path, *SMALL)
    labelled = run("run", "ramdisk", "--ram-dir", disk_path, "--ram-dir-is-not-tmpfs", "--disk-dir", disk_path, *SMALL)

    assert refused.exit_code == Exit.FAILED
    assert "not tmpfs: what is written there is not in memory" in refused.stderr
    assert labelled.exit_code == Exit.DONE
    assert "(not tmpfs: no memory)" in labelled.stdout and "(not tmpfs: no memory)" in labelled.stderr
    assert list(disk_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policy", "lasy"), "did you mean lazy?"),
        (("--checksum", "maybe"), "allowed is on, deferred, off"),
        (("--copy", "sendfle"), "did you mean sendfile?"),
        (("--state", "dirty"), "did you mean dirty-cache?"),
        (("--chunk", "3000B"), "the nearest is 2048B"),
        (("--block-size", "5000B"), "not a multiple of 4 KiB"),
        (("--rate", "200"), "did you mean 200MB/s?"),
        (("--duration", "5s"), "it needs --rate"),
        (("--rate", "1MB/s", "--verify"), "not both"),
        (("--files", "0"), "allowed is 1 to 10,000"),
    ],
    ids=lambda value: value[0].lstrip("-") if isinstance(value, tuple) else "",
)
def test_a_wrong_value_gets_one_line(words: tuple[str, ...], message: str) -> None:
    done = run("run", "ramdisk", *words)

    assert done.exit_code == Exit.USAGE
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_a_disk_directory_that_is_not_there_is_said(folders) -> None:  # type: ignore[no-untyped-def]
    options, ram, _ = folders

    done = run("run", "ramdisk", *options[:2], "--disk-dir", ram / "nothing", *SMALL)

    assert done.exit_code == Exit.FAILED
    assert "cannot use it as a disk directory: Not a directory" in done.stderr


def test_an_interrupt_prints_what_there_is_and_cleans_up(folders) -> None:  # type: ignore[no-untyped-def]
    options, ram, disk = folders
    child = start(
        "run", "ramdisk", *options, "--files", 1, "--file-size", "1MiB", "--block-size", "1MiB", "--copy", "buffered",
        "--ram-capacity", "16MiB", "--policy", "disk,lazy", "--persist-rate", "10kB/s", "--json", "-",
    )  # fmt: skip
    try:
        wait_for(lambda: list(ram.glob("tidegauge-run-*/tidegauge-*/*.replica")), deadline=60)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()

    assert child.returncode == Exit.INTERRUPTED, err
    document = json.loads(out)
    assert document["complete"] is False
    assert [case["policy"] for case in document["results"]] == ["disk", "lazy"]
    assert list(ram.iterdir()) == [] and list(disk.iterdir()) == []


def test_the_memory_of_a_killed_run_is_freed_by_the_next(folders) -> None:  # type: ignore[no-untyped-def]
    options, ram, disk = folders
    child = start(
        "run", "ramdisk", *options, *SMALL, "--policy", "lazy", "--persist-rate", "10kB/s"
    )  # fmt: skip
    try:
        wait_for(lambda: list(ram.glob("tidegauge-run-*/tidegauge-*/*.replica")), deadline=60)
    finally:
        child.kill()
        child.communicate()
    assert list(ram.iterdir()) != []

    done = finish("run", "ramdisk", *options, *SMALL, "--policy", "lazy")

    assert done.returncode == Exit.DONE, done.stderr
    assert list(ram.iterdir()) == [] and list(disk.iterdir()) == []


def test_improvement_is_against_the_same_block_size_state_and_checksums() -> None:
    results = compare(
        [
            result(policy="disk", mean_file_seconds=1.0),
            result(policy="disk-sync", mean_file_seconds=2.0),
            result(policy="disk", checksum="off", mean_file_seconds=0.8),
            result(policy="disk", block_size_bytes=MIB, mean_file_seconds=9.0),
            result(policy="disk", state="dirty-cache", mean_file_seconds=9.0),
            result(),
            result(checksum="deferred"),
            result(checksum="off"),
        ]
    )

    lazy = [{name: round(ratio, 4) for name, ratio in each.improvement_ratio.items()} for each in results[-3:]]

    assert lazy == [
        {"disk": 0.5, "disk-sync": 0.75},
        {"disk": 0.5, "disk-sync": 0.75},
        {"disk": 0.375, "disk-sync": 0.75},
    ]


def test_a_clean_page_cache_that_is_as_fast_is_said_so_and_what_a_power_cut_takes() -> None:
    results = compare(
        [
            result(policy="disk", mean_file_seconds=0.49, at_risk_bytes=6 << 30, drain_seconds=0.0),
            result(policy="disk-sync", mean_file_seconds=1.0, at_risk_bytes=0, drain_seconds=0.0),
            result(),
        ]
    )

    text = " ".join(results_text(results, width=100, where="here").split())

    assert "50% faster than a write that is durable at close, 2% slower than a buffered write" in text
    assert "a clean page cache is about as fast as a RAM disk" in text
    much = compare([result(policy="disk", mean_file_seconds=0.2), result()])
    assert "a clean page cache is faster than a RAM disk" in " ".join(results_text(much, width=100, where="").split())
    assert "first use" in text and "900 ms" in text and "Every case writes its files twice" in text
    assert "loses up to 6 GiB of disk: nobody syncs it" in text
    assert "loses up to 5 GiB of lazy, 2.5 s later nothing" in text


def test_the_reports_table_stands_beside_ours() -> None:
    text = seed_text([result(policy="disk", mean_file_seconds=1.0), result(), result(checksum="off")], width=140)

    (row,) = [line for line in text.splitlines() if line.startswith("lazy, checksums on")]
    assert "5,015 (+30.7%)" in row and "500 (+50.0%)" in row
    assert "Not measured in this run: blocks of 1024 MiB" in text


def test_a_stream_that_outruns_the_disk_is_called_so() -> None:
    def stream(backlogs: list[int], **changes: Any) -> str:
        points = [StreamPoint(float(k), k * 100, backlog, 0.5) for k, backlog in enumerate(backlogs)]
        case = result(rate=1000, elapsed_seconds=4.0, stream=points, oldest_at_risk_seconds_max=0.5, **changes)
        return " ".join(results_text([case], width=200, where="here").split())

    assert "the lazy writer keeps up: at most 0.5 s" in stream([0, 5, 5, 5, 5, 5])
    assert "the backlog grows by 500 B/s" in stream([0, 500, 1000, 1500, 2000, 2500])
    assert "does not keep up: memory was full, 7 blocks went to disk" in stream([0, 1, 1, 1], fallback_blocks=7)


@pytest.mark.parametrize(
    ("rates", "mode"),
    [
        ({"buffered": 100.0, "direct": 95.0, "fadvise": 99.0, "sendfile": 101.0}, "direct"),
        ({"buffered": 100.0, "direct": 60.0, "fadvise": 95.0, "sendfile": 101.0}, "fadvise"),
        ({"buffered": 100.0, "sendfile": 105.0}, "sendfile"),
        ({}, "buffered"),
    ],
    ids=["equals-spare-the-cache", "direct-is-slow", "no-direct", "nothing-measured"],
)
def test_the_probe_prefers_what_leaves_the_page_cache_alone(rates: dict[str, float], mode: str) -> None:
    assert choose(rates) == mode


def test_results_name_what_the_contract_names() -> None:
    promised = {
        "policy", "checksum", "block_size_bytes", "state", "copy", "mean_file_seconds", "file_seconds",
        "improvement_ratio", "persist_bytes_per_second", "fallback_blocks", "verified", "rate",
    }  # fmt: skip

    assert promised <= {field.name for field in msgspec.structs.fields(RamdiskResult)}
    assert "seed_table" in RamdiskFlags.__slots__
