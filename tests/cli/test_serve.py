"""`tidegauge serve`: the real engine, scraped over HTTP, until a signal ends it."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from dashboard.cli.serve import status_line
from dashboard.cli.wal_folder import is_log
from engine.snapshot import Absent, WalSnapshot, from_json
from tests.cli.commands import finish, start
from tests.fakes.fake_clock import FakeClock
from tests.fakes.fake_engine import FakeEngine
from tests.waiting import wait_for


@contextmanager
def serving(*words: object) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start serve on a free port; yield it and its port once it has printed its address."""
    child = start("serve", "--port", 0, *words)
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        assert line, child.stderr.read() if child.stderr else ""
        yield child, urlsplit(line.strip()).port or 0
    finally:
        child.kill()
        child.communicate()


def get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_metrics_are_of_a_log_that_commits_and_a_signal_ends_it_cleanly(disk_path: Path) -> None:
    with serving("--threads", 5, "--model", "pipeline:1", "--path", disk_path / "log") as (child, port):

        def committed() -> bool:
            snapshot = from_json(get(port, "/snapshot")[1])
            return isinstance(snapshot.wal, WalSnapshot) and bool(snapshot.wal.commits)

        wait_for(committed, what="commits")
        families = {family.name: family for family in parse_text(get(port, "/metrics")[1].decode())}
        sample = families["tidegauge_wal_commits"].samples[0]
        assert sample.value > 0
        assert sample.labels == {"model": "pipeline:1", "device": "real"}
        assert get(port, "/healthz") == (200, b"ok\n")
        assert get(port, "/")[0] == 404

        child.send_signal(signal.SIGTERM)
        _, errors = child.communicate(timeout=60)

    assert child.returncode == 0
    assert errors.endswith("stopped\n")
    assert is_log(disk_path / "log"), "a log at --path stays"


def test_a_port_in_use_is_named_and_the_engine_runs_on(disk_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        child = start("serve", "--port", port, "--threads", 1, "--path", disk_path / "log")
        try:
            assert child.stderr is not None
            said = ""
            while "in use" not in said:
                line = child.stderr.readline()
                assert line, said
                said += line
            assert f"tidegauge: port {port} on 127.0.0.1 is in use by another program" in said
            assert "running without it and trying again every 5 s" in said
            assert child.poll() is None
            wait_for(lambda: is_log(disk_path / "log"), what="the log of an engine that runs")
        finally:
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=60)
    assert child.returncode == 0


def test_an_address_that_is_not_ours_ends_it_with_one_line(disk_path: Path) -> None:
    done = finish("serve", "--bind", "203.0.113.7", "--port", 0, "--path", disk_path / "log", "--threads", 1)

    assert done.returncode == 1
    assert done.stderr.endswith("tidegauge: cannot listen on 203.0.113.7:0: Cannot assign requested address\n")


def test_a_log_that_another_process_writes_is_refused_with_one_line(disk_path: Path) -> None:
    from engine.wal.log import Log

    with Log.open(disk_path / "log"):
        done = finish("serve", "--port", 0, "--path", disk_path / "log")

    assert done.returncode == 1
    assert "has this log open for writing" in done.stderr.splitlines()[-1]
    assert done.stdout == ""


@pytest.fixture
def engine() -> tuple[FakeEngine, FakeClock]:
    clock = FakeClock()
    return FakeEngine(clock=clock), clock


def test_the_status_line_is_about_the_time_between(engine: tuple[FakeEngine, FakeClock]) -> None:
    fake, clock = engine
    before = fake.sample()
    clock.advance(10)
    after = fake.sample()

    line = status_line(before, after)

    assert line.startswith("wal: running, group on real, sync fdatasync, 50 handlers, ")
    assert " ops/s over 10 s, durable txid " in line
    assert "\n" not in line


def test_the_status_line_shows_no_rate_over_a_change(engine: tuple[FakeEngine, FakeClock]) -> None:
    fake, clock = engine
    before = fake.sample()
    fake.wal.set_model("handler")
    clock.advance(1)

    assert "ops/s" not in status_line(before, fake.sample())
    gone = msgspec.structs.replace(before, wal=Absent("the log is being opened"))
    assert status_line(before, gone) == "wal: the log is being opened"
