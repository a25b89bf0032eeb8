"""A real HDFS for benchmarks: a NameNode and a DataNode with a RAM disk, and a client that writes when it is told to.

Built once, with Maven, in a folder of the user's cache (TIDEGAUGE_HDFS names another), from tests/cluster/hdfs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import platformdirs

from tests.bench.programs import end_process
from tests.bench.rounds import Skipped

SOURCES = Path(__file__).resolve().parents[1] / "cluster" / "hdfs"
FOLDER = "TIDEGAUGE_HDFS"  # names a folder to build in, or where it was built already
CLASSPATH = "cp.txt"

_BUILD_SECONDS, _START_SECONDS, _END_SECONDS = 1200.0, 120.0, 30.0
_LAST_WORDS = 600


def build() -> str:
    """Return the class path of the server and the writer; the first time Maven fetches Hadoop. Raises Skipped."""
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            raise Skipped(f"{program} is not installed (Debian: default-jdk-headless, maven)")
    folder = Path(os.environ.get(FOLDER) or platformdirs.user_cache_path("tidegauge") / f"hdfs-{_fingerprint()}")
    classes, jars = folder / "classes", folder / CLASSPATH
    if not jars.exists():
        shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
        command = ["mvn", "-q", "-B", "-ntp", "-Dstyle.color=never", "dependency:build-classpath"]
        _run([*command, f"-Dmdep.outputFile={CLASSPATH}.new"], folder, "Maven could not fetch Hadoop")
        (folder / f"{CLASSPATH}.new").rename(jars)
    path = f"{classes}:{jars.read_text(encoding='utf-8').strip()}"
    if not (classes / "tg" / "Writer.class").exists():
        java = [str(each) for each in sorted(folder.glob("src/main/java/tg/*.java"))]
        _run(["javac", "-nowarn", "-d", str(classes), "-cp", path, *java], folder, "javac failed")
    return path


class Hdfs:
    """A running server and its client."""

    def __init__(self, writer: subprocess.Popen[str]) -> None:
        self._writer = writer

    def seconds_a_file(self, place: str, checksum: str, mib: int, files: int) -> tuple[float, str]:
        """Write files one after another; return (mean seconds of a file, where it was put)."""
        assert self._writer.stdin is not None
        self._writer.stdin.write(f"{place} {checksum} {mib} {files}\n")
        self._writer.stdin.flush()
        words = _next_line(self._writer).split()
        return float(words[0]), words[1]


@contextmanager
def hdfs(base: Path, ram: Path, log: Path, *settings: str) -> Iterator[Hdfs]:
    """Yield a running HDFS whose disk is under `base` and whose RAM disk is `ram`. log: takes what Java says."""
    path = build()
    with log.open("w") as said:
        server = _start(["java", "-Xmx1g", "-cp", path, "tg.Server", str(base), str(ram), *settings], said)
        try:
            address = _ready(server, log)
            writer = _start(["java", "-Xmx512m", "-cp", path, "tg.Writer", address], said)
            try:
                _ready(writer, log)
                yield Hdfs(writer)
            finally:
                end_process(writer, seconds=_END_SECONDS)
        finally:
            end_process(server, seconds=_END_SECONDS)


def _start(command: list[str], said: IO[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True)


def _ready(process: subprocess.Popen[str], log: Path) -> str:
    """Return what follows READY. Raises RuntimeError with the last words of a process that ended or hangs."""
    timer = threading.Timer(_START_SECONDS, process.kill)
    timer.start()
    try:
        while line := _next_line(process):
            if line.startswith("READY"):
                return line.removeprefix("READY").strip()
    finally:
        timer.cancel()
    raise RuntimeError(f"HDFS did not start: {log.read_text(errors='replace')[-_LAST_WORDS:]}")


def _next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def _run(command: list[str], folder: Path, trouble: str) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise Skipped(f"{trouble}: not within {_BUILD_SECONDS:.0f} s") from error
    if done.returncode != 0:
        raise Skipped(f"{trouble}: {' '.join((done.stdout + done.stderr).split())[:_LAST_WORDS]}")


def _fingerprint() -> str:
    """Return a name for what is built, so that changed sources are built anew."""
    digest = hashlib.sha256()
    for path in sorted(file for file in SOURCES.rglob("*") if file.is_file()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
