"""HBase's own WALPerformanceEvaluation, built from tests/cluster/hbase and run on the disk that is measured."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import platformdirs

from tests.bench.rounds import Plan, Skipped

SOURCES = Path(__file__).resolve().parents[1] / "cluster" / "hbase"
FOLDER = "TIDEGAUGE_HBASE"  # names a folder to build in, or where it was built already

_BUILD_SECONDS, _RUN_SECONDS = 1200.0, 300.0
_SUMMARY = re.compile(r"Summary: .*?([0-9.]+)ops/s")


def build() -> Path:
    """Return a folder outside the source tree with walpe.sh and all that it runs; the first time Maven fetches HBase.

    Raises Skipped where Java or Maven is not installed, or HBase cannot be had.
    """
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise Skipped(f"{program} is not installed (Debian: default-jdk-headless, maven)")
    folder = Path(os.environ.get(FOLDER) or platformdirs.user_cache_path("tidegauge") / f"hbase-{_fingerprint()}")
    if not (folder / "cp.txt").exists() or not (folder / "target" / "classes").is_dir():
        shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
        command = [
            "mvn",
            "-q",
            "-B",
            "-ntp",
            "-Dstyle.color=never",
            "compile",
            "dependency:build-classpath",
            "-Dmdep.outputFile=cp.txt",
        ]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise Skipped(f"Maven did not build HBase's tool within {_BUILD_SECONDS:.0f} s") from error
        if done.returncode != 0:
            errors = [
                line
                for line in done.stdout.splitlines()
                if line.startswith("[ERROR]") and not line.rstrip().endswith(":")
            ]
            said = " ".join(line.removeprefix("[ERROR]").strip() for line in errors[:2])
            raise Skipped(f"Maven could not build HBase's tool: {said or done.returncode}")
    return folder


def ops_per_second(folder: Path, how: Plan, threads: int) -> float:
    """Return what WALPerformanceEvaluation says of its last run: FSHLog, raw local file system, real fsync.

    It has a process of its own, warms up in two runs, and then commits for about as long as the others measure.
    """
    with how.place("hbase") as work:
        command = [str(folder / "walpe.sh"), "raw", "filesystem", "true", str(threads), "0", "1", str(work)]
        settings = {**os.environ, "JOPTS": f"-Dsecs={how.seconds:g}"}
        done = subprocess.run(
            command, env=settings, capture_output=True, text=True, timeout=_RUN_SECONDS + how.seconds, check=False
        )
    found = _SUMMARY.findall(done.stderr)
    if done.returncode != 0 or not found:
        raise RuntimeError(f"walpe.sh ended with {done.returncode}: {done.stderr[-800:]}")
    return float(found[-1])


def _fingerprint() -> str:
    """Return a name for what is built, so that changed sources are built anew."""
    digest = hashlib.sha256()
    for path in sorted(file for file in SOURCES.rglob("*") if file.is_file()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
