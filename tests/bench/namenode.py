"""A real NameNode that loads an image, for a benchmark: how long, how much heap, and what a save takes.

The class path is the one of tests.bench.hdfs, in a folder of the user's cache. The NameNode gets hard links to the
image, so nothing of it is copied or changed.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.hdfs import build
from tests.bench.programs import end_process

HEAP = "6g"
_CLASS = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
_START_SECONDS, _END_SECONDS, _SAVE_SECONDS = 180.0, 30.0, 120.0
_LAST_WORDS = 600


class NameNodeRun(NamedTuple):
    """What a NameNode says of itself. heap: used after a collection. save_seconds: SavingCheckpoint, 0 if not asked."""

    seconds: float
    rows: int
    heap: int
    save_seconds: float


def run_namenode(folder: Path, work: Path, *, save: bool = False) -> NameNodeRun:
    """Start a NameNode on a copy of a name folder, wait until the image is loaded, end it. Raises Skipped."""
    path = build()
    (work / "current").mkdir(parents=True)
    for file in (folder / "current").iterdir():
        if file.name.startswith("fsimage") or file.name in ("VERSION", "seen_txid"):
            os.link(file, work / "current" / file.name)
    http, rpc = _free_port(), _free_port()
    settings = {
        "fs.defaultFS": f"hdfs://127.0.0.1:{rpc}",
        "dfs.namenode.rpc-address": f"127.0.0.1:{rpc}",
        "dfs.namenode.http-address": f"127.0.0.1:{http}",
        "dfs.namenode.name.dir": work.as_uri(),
        "dfs.image.parallel.load": "true",
    }
    command = ["java", f"-Xms{HEAP}", f"-Xmx{HEAP}", "-cp", path, _CLASS]
    for name, value in settings.items():
        command += ["-D", f"{name}={value}"]
    said = work / "said.txt"
    with said.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        loading = _wait_loaded(process, http, said)
        rows = sum(step["count"] for step in loading["steps"] if step.get("name") == "Inodes")
        subprocess.run(["jcmd", str(process.pid), "GC.run"], capture_output=True, check=False)
        heap = _get(http, "jmx?qry=java.lang:type=Memory")["beans"][0]["HeapMemoryUsage"]["used"]
        saving = 0.0
        if save:
            admin = ["java", "-cp", path, _ADMIN, "-fs", settings["fs.defaultFS"], "-saveNamespace"]
            subprocess.run(admin, capture_output=True, timeout=_SAVE_SECONDS, check=True)
            saving = _phase(_get(http, "startupProgress"), "SavingCheckpoint")["elapsedTime"] / 1e3
        return NameNodeRun(loading["elapsedTime"] / 1e3, rows, int(heap), saving)
    finally:
        end_process(process, seconds=_END_SECONDS)


def _wait_loaded(process: subprocess.Popen[bytes], port: int, said: Path) -> dict[str, Any]:
    """Return the phase LoadingFsImage once it is complete."""
    never, give_up = threading.Event(), time.monotonic() + _START_SECONDS
    while time.monotonic() < give_up and process.poll() is None:
        never.wait(0.2)
        try:
            phase = _phase(_get(port, "startupProgress"), "LoadingFsImage")
        except (OSError, urllib.error.URLError, ValueError):  # not up yet
            continue
        if phase["status"] == "COMPLETE":
            return phase
    raise RuntimeError(f"the NameNode did not load the image: {said.read_text(errors='replace')[-_LAST_WORDS:]}")


def _phase(progress: Any, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(phase for phase in progress["phases"] if phase["name"] == name)
    return found


def _get(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=20) as answer:
        return json.loads(answer.read())


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port
