"""`tidegauge run wal` on the real log: what it prints, writes, leaves and how it ends."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from dashboard.cli.engine_flags import MODELS, MOST_SYNCERS, SYNCS
from dashboard.cli.wal_folder import is_log
from tests.cli.commands import finish, run, start
from tests.wal.logs import records_of

RESULT_FIELDS = {
    *("model", "threads", "device", "value_size_bytes", "sync", "sync_every", "rate", "ops", "elapsed_seconds"),
    *("ops_per_second", "syncs_per_second", "ops_per_sync", "latency_seconds", "sync_seconds_mean", "stage_seconds"),
    *("verified", "complete"),
}
SMALL = ("--segment-size", "1MiB", "--warmup", "0s")


def test_a_matrix_is_measured_verified_and_written_as_json(disk_path: Path) -> None:
    out = disk_path / "out.json"

    result = run(
        *("run", "wal", *SMALL, "--threads", "1,3", "--model", "group,handler", "--iterations", 50),
        *("--device", "real,serial:200us", "--verify", "--path", disk_path / "logs", "--json", out),
    )

    assert result.exit_code == 0, result.stderr
    document = json.loads(out.read_text())
    assert document["schema"] == "tidegauge.run/1"
    assert document["lane"] == "wal"
    assert document["complete"] is True
    assert {"cpu", "cores", "kernel", "file_system", "device", "python", "versions"} <= set(document["environment"])
    assert document["settings"]["threads"] == [1, 3]
    assert document["settings"]["iterations"] == 50
    cases = [(each["device"], each["model"], each["threads"]) for each in document["results"]]
    assert cases == [
        (device, model, threads)
        for device in ("real", "serial 200 us (simulated)")
        for model in ("group", "handler")
        for threads in (1, 3)
    ]
    for each in document["results"]:
        assert set(each) >= RESULT_FIELDS
        assert each["ops"] == 50 * each["threads"]
        assert each["verified"] is True
        assert set(each["latency_seconds"]) == {"p50", "p90", "p99", "p999", "max"}
        assert set(each["stage_seconds"]) == {"queue", "write", "sync", "wake"}
    assert "device real, on " in result.stdout
    assert "device serial 200 us (simulated), on " in result.stdout
    assert [path.name for path in disk_path.iterdir()] == ["out.json"], "the folder it made is gone"


def test_json_on_stdout_is_one_object_and_the_table_moves_to_stderr(disk_path: Path) -> None:
    result = run("run", "wal", *SMALL, "--threads", 2, "--iterations", 20, "--path", disk_path / "log", "--json", "-")

    assert json.loads(result.stdout)["results"][0]["ops"] == 40
    assert "ops/sync" in result.stderr


def test_a_single_case_kept_is_a_log_at_path_itself(disk_path: Path) -> None:
    path = disk_path / "log"

    result = run("run", "wal", *SMALL, "--threads", 2, "--iterations", 20, "--path", path, "--keep", "--verify")

    assert result.exit_code == 0, result.stderr
    assert is_log(path)
    assert f"the log is kept in {path}" in result.stderr


def test_a_kept_matrix_is_a_log_a_case_and_a_second_run_finds_them_its_own(disk_path: Path) -> None:
    words = ("run", "wal", *SMALL, "--threads", "1,2", "--iterations", 20, "--path", disk_path / "logs")

    assert run(*words, "--keep").exit_code == 0
    assert sorted(path.name for path in (disk_path / "logs").iterdir()) == ["01-group-1-real", "02-group-2-real"]
    again = run(*words)

    assert again.exit_code == 0, again.stderr
    assert "already holds a log: the run adds to it, and it stays" in again.stderr
    assert is_log(disk_path / "logs" / "01-group-1-real")


def test_the_seed_table_is_printed_beside_ours(disk_path: Path) -> None:
    result = run(
        *("run", "wal", *SMALL, "--threads", "1,5", "--iterations", 20, "--seed-table", "--path", disk_path / "log")
    )

    assert "1,021.125" in result.stdout
    assert "Not measured in this run: 50 threads" in result.stdout


def test_what_is_not_durable_is_labelled(disk_path: Path) -> None:
    words = ("run", "wal", *SMALL, "--threads", 2, "--iterations", 20, "--path", disk_path / "log")

    none = run(*words, "--sync", "none")
    lazy = run(*words, "--sync-every", 5)

    assert "sync none (not durable)" in none.stdout
    assert "every 5th record; the others are acked un-synced" in " ".join(lazy.stdout.split())


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ("--value-size", "128KiB", "--segment-size", "64KiB"),
            "--value-size 128 KiB does not fit a segment of 64 KiB: allowed is up to 61,416 bytes, "
            "or a larger --segment-size",
        ),
        (
            ("--model", "pipeline:99"),
            "--model 'pipeline:99': allowed is pipeline:1 to pipeline:16; the nearest is pipeline:16",
        ),
    ],
    ids=["value-larger-than-a-segment", "too-many-syncers"],
)
def test_values_that_do_not_go_together_get_one_line(words: tuple[str, ...], line: str) -> None:
    result = run("run", "wal", *words)

    assert (result.stderr, result.exit_code) == (f"tidegauge: {line}\n", 2)


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (lambda at: at / "file", 2, "this is a file, not a folder"),
        (lambda at: at / "missing" / "log", 2, "its parent folder"),
        (lambda at: at, 2, "it holds something else than a log, such as 'file'"),
        (lambda at: Path("/proc/log"), 1, "cannot use it for the log"),
    ],
    ids=["a-file", "in-a-missing-folder", "a-folder-of-something-else", "refused-by-the-file-system"],
)
def test_a_path_that_cannot_be_used_gets_one_line(disk_path: Path, make, code: int, words: str) -> None:
    (disk_path / "file").write_text("mine")

    result = run("run", "wal", "--path", make(disk_path))

    assert result.exit_code == code
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert (disk_path / "file").read_text() == "mine"


def test_a_second_writer_on_a_log_gets_one_line(disk_path: Path) -> None:
    from engine.wal.log import Log

    with Log.open(disk_path / "log", segment_size=1 << 20) as log:
        log.commit(b"kept")

        done = finish("run", "wal", *SMALL, "--threads", 1, "--iterations", 5, "--path", disk_path / "log")

    assert done.returncode == 1
    assert "has this log open for writing" in done.stderr
    assert "Traceback" not in done.stderr
    assert is_log(disk_path / "log"), "a log that was there stays"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_with_what_was_measured(disk_path: Path, number: signal.Signals) -> None:
    out, path = disk_path / "out.json", disk_path / "logs"
    child = start(
        *("run", "wal", *SMALL, "--threads", "2,3", "--duration", "60s", "--path", path, "--json", out),
    )
    assert child.stderr is not None
    said: list[str] = []
    while not any("measure" in line for line in said):
        line = child.stderr.readline()
        assert line, f"it ended before it measured: {said}"
        said.append(line)

    child.send_signal(number)
    stdout, stderr = child.communicate(timeout=60)

    assert child.returncode == 130, stderr
    assert stderr.endswith("tidegauge: interrupted; the results are of what was measured until then\n")
    assert "interrupted after" in " ".join(stdout.split())
    document = json.loads(out.read_text())
    assert document["complete"] is False
    assert [each["complete"] for each in document["results"]] == [False]
    assert document["results"][0]["ops"] > 0
    assert not path.exists()


def test_a_log_that_meets_an_io_error_ends_the_run_with_exit_code_1(disk_path: Path, monkeypatch) -> None:
    import msgspec

    import engine.workloads.wal as workload

    real = workload.run_case

    def failing(case, path, **settings):  # a real run, told by its own way out that something broke
        return msgspec.structs.replace(
            real(case, path, **settings), error="EIO at a sync: the log stopped", complete=False
        )

    monkeypatch.setattr(workload, "run_case", failing)

    result = run("run", "wal", *SMALL, "--threads", "1,2", "--iterations", 5, "--path", disk_path / "log")

    assert result.exit_code == 1
    assert result.stderr.endswith("tidegauge: EIO at a sync: the log stopped\n")
    assert "group, 1 handler: EIO at a sync" in result.stdout
    assert "2 handlers" not in result.stdout, "the matrix ends with the case that failed"


def test_names_on_the_command_line_are_the_engines() -> None:
    from dashboard.cli.engine_flags import MAX_HANDLERS
    from engine.storage.device import SYNC_MODES
    from engine.wal.models import MODEL_NAMES
    from engine.wal.opening import MAX_CALLERS
    from engine.wal.state import MAX_SYNCERS

    assert MODELS == MODEL_NAMES
    assert set(SYNCS) == set(SYNC_MODES)
    assert MOST_SYNCERS == MAX_SYNCERS
    assert MAX_HANDLERS <= MAX_CALLERS


def test_headers_counted_for_the_disk_are_the_logs() -> None:
    from dashboard.cli.wal_flags import RECORD_HEADER, SEGMENT_HEADER
    from engine.wal.record import HEADER_SIZE
    from engine.wal.segment import HEADER_BLOCK

    assert (SEGMENT_HEADER, RECORD_HEADER) == (HEADER_BLOCK, HEADER_SIZE)


def test_a_run_on_a_log_that_was_there_removes_no_record_of_it(disk_path: Path) -> None:
    words = ("run", "wal", "--segment-size", "64KiB", "--warmup", "0s", "--threads", 2, "--path", disk_path / "log")
    assert run(*words, "--keep", "--verify", "--iterations", 200).exit_code == 0
    kept = records_of(disk_path / "log")
    assert len(kept) == 400

    assert run(*words, "--duration", "500ms").exit_code == 0

    assert records_of(disk_path / "log")[:400] == kept
