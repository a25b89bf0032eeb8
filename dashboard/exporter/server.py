"""The HTTP server of /metrics, /snapshot and /healthz.

    GET /metrics    Prometheus text, or OpenMetrics where the Accept header asks for it
    GET /snapshot   the snapshot as JSON, 503 before the first one
    GET /healthz    200 "ok" while snapshots come, 503 before the first one
    anything else   404; any other method 405

It answers one request per connection. A client can be slow or hostile: at most MAX_CONNECTIONS are served at a
time, each has CONNECTION_SECONDS from connect to end however it drips its bytes, and stopping closes what is open.
There is no password and no TLS: it listens on this computer's own address unless told otherwise.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder, generate_latest

from dashboard.exporter.collector import SnapshotCollector
from engine.errors import TidegaugeError, quoted
from engine.snapshot import Snapshot, to_json

MAX_CONNECTIONS = 16
CONNECTION_SECONDS = 10.0
READ_SECONDS = 5.0
POLL_SECONDS = 0.1

_PATHS = "/metrics, /snapshot and /healthz"


class CannotListen(TidegaugeError):
    """The address cannot be had; `in_use` says whether it is only that another program has it."""

    def __init__(self, *, bind: str, port: int, error: OSError) -> None:
        self.in_use = error.errno == errno.EADDRINUSE
        self.port = port
        where = f"[{bind}]:{port}" if ":" in bind else f"{bind}:{port}"
        if self.in_use:
            super().__init__(f"port {port} on {bind} is in use by another program; choose another with --port")
        elif isinstance(error, socket.gaierror):
            super().__init__(f"--bind {quoted(bind)} is no address or name of this computer; for example 127.0.0.1")
        else:
            super().__init__(f"cannot listen on {where}: {error.strerror or error}")


class Exporter:
    """Serves the snapshots that `latest` returns, from `start` until `stop`.

    latest: called once per request from the request's thread; None is "none yet". It may raise; the request
    is then answered as if there were none.
    """

    def __init__(self, latest: Callable[[], Snapshot | None], *, bind: str = "127.0.0.1", port: int = 9755) -> None:
        self._bind, self._port = bind, port
        self.collector = SnapshotCollector(latest)
        self._latest = latest
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen and serve in a thread. Raises CannotListen, and can then be started again later."""
        server = _Server(self._bind, self._port, self.collector.registry(), self._latest)
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": POLL_SECONDS}, name="exporter", daemon=True
        )
        self._server, self._thread = server, thread
        thread.start()

    @property
    def port(self) -> int:
        """The port it listens on: the one that was free where 0 was asked for."""
        return self._server.server_port if self._server is not None else self._port

    @property
    def url(self) -> str:
        """Where /metrics is."""
        host = f"[{self._bind}]" if ":" in self._bind else self._bind
        return f"http://{host}:{self.port}/metrics"

    def stop(self, seconds: float = 2.0) -> bool:
        """Stop listening, close open connections, and join; return whether all threads ended in time."""
        server, thread = self._server, self._thread
        if server is None or thread is None:
            return True
        self._server = self._thread = None
        deadline = time.monotonic() + seconds
        server.shutdown()
        server.server_close()
        thread.join(max(0.0, deadline - time.monotonic()))
        return server.close_connections(deadline) and not thread.is_alive()


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # a stuck one must not keep the program alive
    block_on_close = False  # we join with a bound of our own
    request_queue_size = 32

    def __init__(
        self, bind: str, port: int, registry: CollectorRegistry, latest: Callable[[], Snapshot | None]
    ) -> None:
        self.registry, self.latest = registry, latest
        self._tracking = threading.Lock()  # guards _open
        self._open: dict[socket.socket, tuple[float, threading.Thread]] = {}
        try:
            family, _, _, _, _ = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
            self.address_family = family
            super().__init__((bind, port), _Handler)
        except OSError as error:  # gaierror is one
            raise CannotListen(bind=bind, port=port, error=error) from error
        except UnicodeError as error:  # a name that no resolver would take
            raise CannotListen(bind=bind, port=port, error=socket.gaierror(socket.EAI_NONAME, str(error))) from error

    def server_bind(self) -> None:
        """Bind without asking a name server who we are, as HTTPServer does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, or close it at once where too many are open."""
        with self._tracking:
            crowded = len(self._open) >= MAX_CONNECTIONS
            if not crowded:
                thread = threading.Thread(
                    target=self.process_request_thread,
                    args=(request, client_address),
                    name="exporter-request",
                    daemon=True,
                )
                self._open[request] = (time.monotonic() + CONNECTION_SECONDS, thread)
        if crowded:
            self.shutdown_request(request)
        else:
            thread.start()

    def shutdown_request(self, request: Any) -> None:
        """Close a connection and forget it."""
        with self._tracking:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Cut connections that have had their time; runs at every poll."""
        now = time.monotonic()
        with self._tracking:
            late = [request for request, (deadline, _) in self._open.items() if deadline < now]
        for request in late:
            _cut(request)

    def close_connections(self, deadline: float) -> bool:
        """Cut every open connection and join its thread until `deadline`; return whether all ended."""
        with self._tracking:
            open_now = dict(self._open)
        for request, (_, thread) in open_now.items():
            _cut(request)
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for _, thread in open_now.values())

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that goes away is no news, and the terminal belongs to the screen."""


class _Handler(BaseHTTPRequestHandler):
    timeout = READ_SECONDS
    server: _Server
    error_message_format, error_content_type = "%(code)d %(message)s\n", "text/plain; charset=utf-8"

    def __getattr__(self, name: str) -> Any:
        """Answer 405 for every method but GET: the base class looks for do_POST, do_HEAD and so on."""
        if name.startswith("do_"):
            return self._refuse_method
        raise AttributeError(name)

    def do_GET(self) -> None:
        """Answer one of the three paths."""
        path = urlsplit(self.path).path
        if path == "/metrics":
            self._answer(HTTPStatus.OK, *self._metrics())
        elif path in ("/snapshot", "/healthz"):
            snapshot = self._snapshot()
            if snapshot is None:
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, b"no snapshot yet\n")
            elif path == "/healthz":
                self._answer(HTTPStatus.OK, b"ok\n")
            else:
                self._answer(HTTPStatus.OK, to_json(snapshot), "application/json")
        else:
            self._answer(HTTPStatus.NOT_FOUND, f"not here; there are {_PATHS}\n".encode())

    def version_string(self) -> str:
        """Return the Server header: our name, and no version for whoever collects them."""
        return "tidegauge"

    def log_message(self, *_: object) -> None:
        """Log nothing: a scrape each second is no news."""

    def _metrics(self) -> tuple[bytes, str]:
        registry = self.server.registry
        try:
            encode, content_type = choose_encoder(self.headers.get("Accept", ""))
            return encode(registry), content_type
        except Exception:  # noqa: BLE001 - an Accept header that asks for nonsense gets the format everyone reads
            return generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4

    def _snapshot(self) -> Snapshot | None:
        try:
            return self.server.latest()
        except Exception:  # noqa: BLE001 - whatever a source does, a request still gets an answer
            return None

    def _refuse_method(self) -> None:
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET\n", allow="GET")

    def _answer(
        self, status: HTTPStatus, body: bytes, content_type: str = "text/plain; charset=utf-8", allow: str = ""
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        if allow:
            self.send_header("Allow", allow)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _cut(request: socket.socket) -> None:
    with contextlib.suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)  # wakes a thread that is blocked in recv or send
