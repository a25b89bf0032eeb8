"""The HTTP server over a real socket: what it answers, and that no client can hold it."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from dashboard.exporter import server
from dashboard.exporter.server import CannotListen, Exporter
from engine.snapshot import Snapshot, from_json
from tests.fakes.fake_clock import FakeClock
from tests.fakes.fake_engine import FakeEngine
from tests.waiting import run_threads, wait_for

OPENMETRICS = "application/openmetrics-text; version=1.0.0,text/plain;version=0.0.4;q=0.5"


class Answer:
    """One response, read to its end."""

    def __init__(self, port: int, path: str, *, method: str = "GET", host: str = "127.0.0.1", **headers: str) -> None:
        connection = http.client.HTTPConnection(host, port, timeout=20)
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            self.status, self.headers, self.body = response.status, response.headers, response.read()
        finally:
            connection.close()


@pytest.fixture
def engine() -> FakeEngine:
    clock = FakeClock()
    engine = FakeEngine(clock=clock)
    engine.sample()
    clock.advance(1)
    return engine


@pytest.fixture
def exporter(engine: FakeEngine) -> Iterator[Exporter]:
    exporter = Exporter(engine.sample, port=0)
    exporter.start()
    yield exporter
    assert exporter.stop()


def test_metrics_are_prometheus_text(exporter: Exporter) -> None:
    answer = Answer(exporter.port, "/metrics")

    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    names = {family.name for family in parse_text(answer.body.decode())}
    assert {"tidegauge_wal_commits", "tidegauge_wal_sync_seconds", "tidegauge_scrape_errors"} <= names


def test_metrics_are_openmetrics_for_who_asks(exporter: Exporter) -> None:
    answer = Answer(exporter.port, "/metrics", Accept=OPENMETRICS)

    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert answer.body.endswith(b"# EOF\n")
    assert {family.name for family in parse_openmetrics(answer.body.decode())} >= {"tidegauge_wal_commits"}


@pytest.mark.parametrize(
    "accept", ["application/openmetrics-text; version=banana", "text/plain; version=1.0.0; escaping=?", "*/*", ",;,=;"]
)
def test_metrics_are_served_whatever_accept_says(exporter: Exporter, accept: str) -> None:
    answer = Answer(exporter.port, "/metrics", Accept=accept)

    assert answer.status == 200
    assert b"tidegauge_wal_commits_total" in answer.body


def test_snapshot_is_what_a_remote_screen_can_read(exporter: Exporter, engine: FakeEngine) -> None:
    answer = Answer(exporter.port, "/snapshot")

    assert answer.headers["Content-Type"] == "application/json"
    assert json.loads(answer.body)["schema"] == "tidegauge.snapshot/1"
    received = from_json(answer.body)
    now = engine.sample()
    assert msgspec.structs.replace(received, process=now.process) == now


def test_health_is_ok_once_there_is_a_snapshot(exporter: Exporter) -> None:
    assert (Answer(exporter.port, "/healthz").status, Answer(exporter.port, "/healthz").body) == (200, b"ok\n")


@pytest.mark.parametrize("path", ["/", "/metric", "/metrics/", "/favicon.ico", "/../snapshot", "/%6detrics"])
def test_other_paths_are_not_found(exporter: Exporter, path: str) -> None:
    answer = Answer(exporter.port, path)

    assert answer.status == 404
    assert answer.body == b"not here; there are /metrics, /snapshot and /healthz\n"


def test_a_query_does_not_change_the_path(exporter: Exporter) -> None:
    assert Answer(exporter.port, "/metrics?x=1").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "BREW"])
def test_other_methods_are_refused(exporter: Exporter, method: str) -> None:
    answer = Answer(exporter.port, "/metrics", method=method)

    assert answer.status == 405
    assert answer.headers["Allow"] == "GET"


@pytest.mark.parametrize("latest", [lambda: None, lambda: 1 // 0], ids=["none-yet", "source-raises"])
def test_without_a_snapshot_metrics_answer_and_the_others_say_so(latest: object) -> None:
    exporter = Exporter(latest, port=0)  # type: ignore[arg-type]
    exporter.start()
    try:
        assert Answer(exporter.port, "/healthz").status == 503
        assert Answer(exporter.port, "/snapshot").status == 503
        metrics = Answer(exporter.port, "/metrics")
        assert metrics.status == 200
        assert b"tidegauge_scrape_errors_total" in metrics.body
    finally:
        assert exporter.stop()


def test_a_port_in_use_is_named_and_can_be_tried_again(engine: FakeEngine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        exporter = Exporter(engine.sample, port=port)
        with pytest.raises(CannotListen) as raised:
            exporter.start()
        assert str(raised.value) == f"port {port} on 127.0.0.1 is in use by another program; choose another with --port"
        assert raised.value.in_use
        assert exporter.stop(), "stopping what never started is nothing to wait for"

    exporter.start()

    assert Answer(port, "/healthz").status == 200
    assert exporter.stop()


@pytest.mark.parametrize(
    ("bind", "words"),
    [
        ("no such host.invalid", "--bind 'no such host.invalid' is no address or name of this computer"),
        ("203.0.113.7", "cannot listen on 203.0.113.7:0: Cannot assign requested address"),
        ("a" * 300, "is no address or name of this computer"),
    ],
    ids=["not-a-name", "not-ours", "too-long"],
)
def test_an_address_that_is_not_ours_gets_one_line(engine: FakeEngine, bind: str, words: str) -> None:
    with pytest.raises(CannotListen) as raised:
        Exporter(engine.sample, bind=bind, port=0).start()

    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not raised.value.in_use


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_listens_on_ipv6(engine: FakeEngine) -> None:
    exporter = Exporter(engine.sample, bind="::1", port=0)
    try:
        exporter.start()
    except CannotListen:
        pytest.skip("no IPv6 address here")

    assert exporter.url == f"http://[::1]:{exporter.port}/metrics"
    assert Answer(exporter.port, "/healthz", host="::1").status == 200
    assert exporter.stop()


def test_by_default_only_this_computer_is_listened_to(exporter: Exporter) -> None:
    assert exporter.url.startswith("http://127.0.0.1:")


def test_many_scrapes_at_once_are_all_answered(exporter: Exporter) -> None:
    answers = run_threads(*[lambda: Answer(exporter.port, "/metrics").status] * 8)

    assert answers == [200] * 8


def test_clients_that_say_nothing_do_not_keep_others_out(exporter: Exporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTION_SECONDS", 0.2)
    silent = [socket.create_connection(("127.0.0.1", exporter.port)) for _ in range(server.MAX_CONNECTIONS + 4)]

    def answered() -> bool:
        try:
            return Answer(exporter.port, "/healthz").status == 200
        except (OSError, http.client.HTTPException):  # still crowded: closed without an answer
            return False

    wait_for(answered, what="an answer beside silent clients")
    for client in silent:
        client.close()


def test_a_client_that_drips_its_request_is_cut_off(exporter: Exporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTION_SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", exporter.port)) as client:
        client.settimeout(0.01)

        def cut() -> bool:
            try:
                client.sendall(b"G")
                return client.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        wait_for(cut, what="the connection to be cut")


def test_a_client_that_never_reads_does_not_hold_up_the_end(engine: FakeEngine) -> None:
    exporter = Exporter(engine.sample, port=0)
    exporter.start()
    with socket.create_connection(("127.0.0.1", exporter.port)) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\n")  # and never the rest
        wait_for(lambda: any(t.name == "exporter-request" for t in threading.enumerate()))

        assert exporter.stop()

        assert not [t for t in threading.enumerate() if t.name.startswith("exporter")]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"GET http://[::1/metrics HTTP/1.1\r\n\r\n",
        b"",
    ],
    ids=["binary", "no-path", "long-path", "odd-version", "many-headers", "bad-url", "nothing"],
)
def test_nonsense_leaves_the_server_working_and_silent(
    exporter: Exporter, request_bytes: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", exporter.port)) as client:
        client.sendall(request_bytes)
        client.shutdown(socket.SHUT_WR)
        client.settimeout(20)
        try:
            while client.recv(65536):
                pass
        except ConnectionResetError:
            pass

    assert Answer(exporter.port, "/healthz").status == 200
    assert capfd.readouterr() == ("", "")


def test_starting_and_stopping_leaves_no_thread_and_frees_the_port(engine: FakeEngine) -> None:
    exporter = Exporter(engine.sample, port=0)
    exporter.start()
    port = exporter.port
    assert Answer(port, "/healthz").status == 200

    assert exporter.stop()

    assert not [t for t in threading.enumerate() if t.name.startswith("exporter")]
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_each_request_takes_one_snapshot(engine: FakeEngine) -> None:
    taken: list[Snapshot] = []

    def latest() -> Snapshot:
        taken.append(engine.sample())
        return taken[-1]

    exporter = Exporter(latest, port=0)
    exporter.start()
    try:
        Answer(exporter.port, "/metrics")
        assert len(taken) == 1
    finally:
        assert exporter.stop()
