"""Opening the dashboard from the command line: what the screen is given, and that nothing of it is left."""

from __future__ import annotations

import http.client
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dashboard.cli import screen
from dashboard.starter import Note, Progress, StartCancelled
from engine.snapshot import WalSnapshot
from tests.cli.commands import run
from tests.waiting import wait_for

Use = Callable[[Callable[[Progress], Any]], int]


@pytest.fixture
def open_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[Use], None]:
    """Put `use` where the screen would be: it gets what makes the engine, and returns the exit code."""

    def install(use: Use) -> None:
        monkeypatch.setattr(screen, "why_no_screen", lambda: None)
        monkeypatch.setitem(sys.modules, "dashboard.app", SimpleNamespace(run_dashboard=use))

    return install


def test_the_screen_gets_the_engine_that_the_flags_describe_and_metrics_are_served(
    disk_path: Path, open_with: Callable[[Use], None]
) -> None:
    seen: dict[str, Any] = {}

    def use(make_engine: Callable[[Progress], Any]) -> int:
        progress = Progress()
        engine = make_engine(progress)
        engine.start()
        try:
            seen["wal"] = wait_for(lambda: isinstance(wal := engine.sample().wal, WalSnapshot) and wal, what="the log")
            (seen["note"],) = progress.notes
            port = int(seen["note"].text.removesuffix("/metrics").rpartition(":")[2])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/healthz")
            seen["health"] = connection.getresponse().read()
            connection.close()
        finally:
            engine.stop()
        return 0

    open_with(use)

    result = run(
        *("--threads", 3, "--model", "handler-recheck", "--device", "parallel:1ms", "--sync", "fsync"),
        *("--value-size", "100B", "--path", disk_path / "log", "--port", 0),
    )

    assert (result.exit_code, result.stderr) == (0, "")
    wal = seen["wal"]
    assert (wal.model, wal.device, wal.sync) == ("handler-recheck", "parallel 1 ms (simulated)", "fsync")
    assert wal.value_size_bytes == 100
    assert seen["note"].text.startswith("serving http://127.0.0.1:")
    assert seen["health"] == b"ok\n"
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("exporter")]


def test_a_port_in_use_is_noted_and_the_dashboard_goes_on(disk_path: Path, open_with: Callable[[Use], None]) -> None:
    notes: list[Note] = []

    def use(make_engine: Callable[[Progress], Any]) -> int:
        progress = Progress()
        make_engine(progress).stop()
        notes.extend(progress.notes)
        return 0

    open_with(use)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = run("--path", disk_path / "log", "--port", port)

    assert result.exit_code == 0
    text = f"no /metrics: port {port} on 127.0.0.1 is in use by another program; choose another with --port"
    assert notes == [Note(text, "warn")]


def test_without_an_exporter_nothing_listens(disk_path: Path, open_with: Callable[[Use], None]) -> None:
    notes: list[str] = []

    def use(make_engine: Callable[[Progress], Any]) -> int:
        progress = Progress()
        make_engine(progress).stop()
        notes.extend(progress.notes)
        return 0

    open_with(use)

    assert run("--path", disk_path / "log", "--no-exporter").exit_code == 0
    assert notes == []


def test_leaving_while_the_kernels_compile_ends_at_once_and_cleans_up(
    disk_path: Path, open_with: Callable[[Use], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(disk_path))

    def use(make_engine: Callable[[Progress], Any]) -> int:
        progress = Progress()
        progress.cancel()
        with pytest.raises(StartCancelled):
            make_engine(progress)
        return 130

    open_with(use)

    assert run().exit_code == 130
    assert not list(disk_path.iterdir())


def test_a_path_that_cannot_be_used_is_said_before_the_screen_opens(
    disk_path: Path, open_with: Callable[[Use], None]
) -> None:
    (disk_path / "notes.txt").write_text("mine")
    open_with(lambda make_engine: pytest.fail("the screen was opened"))

    result = run("--path", disk_path)

    assert result.exit_code == 2
    assert "it holds something else than a log, such as 'notes.txt'" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_screen_has_opened_still_cleans_up(
    disk_path: Path, open_with: Callable[[Use], None], monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("TMPDIR", str(disk_path))

    def use(make_engine: Callable[[Progress], Any]) -> int:
        assert list(disk_path.iterdir())
        signal.raise_signal(number)
        return 0

    open_with(use)

    result = run()

    assert (result.exit_code, result.stderr.strip()) == (130, "tidegauge: interrupted")
    assert not list(disk_path.iterdir())
