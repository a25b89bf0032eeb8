"""A real NameNode and `hdfs oiv` read what we save and synthesise.

TIDEGAUGE_HADOOP_CLASSPATH: jars of Hadoop 3.4 or later (mvn dependency:build-classpath in shared/cluster/hdfs).
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from engine.fsimage.load import load_image
from engine.fsimage.save import SaveOptions, save_image
from engine.fsimage.synth import SynthOptions, synthesise
from engine.measure.clock import SystemClock

VIEWER = "org.apache.hadoop.hdfs.tools.offlineImageViewer.OfflineImageViewerPB"
VERSION = (
    "namespaceID=1234567\nblockpoolID=BP-1-127.0.0.1-1767225600000\nstorageType=NAME_NODE\ncTime=1767225600000\n"
    "clusterID=testClusterID\nlayoutVersion=-67\n"
)
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def classpath() -> str:
    found = os.environ.get("TIDEGAUGE_HADOOP_CLASSPATH", "")
    if not found or shutil.which("java") is None:
        pytest.skip("no java, or no TIDEGAUGE_HADOOP_CLASSPATH")
    return found


def view(classpath, image, out, processor="XML"):
    """Run oiv; return its output, or None where this Hadoop lacks the codec's library."""
    done = subprocess.run(
        ["java", "-Xmx600m", "-cp", classpath, VIEWER, "-i", image, "-o", out, "-p", processor],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    if re.search(r"NoClassDefFoundError: net/jpountz|native zStandard library not available", done.stderr):
        return None
    assert done.returncode == 0, done.stderr[-2000:]
    return out.read_bytes()


def without_secrets(xml: bytes) -> bytes:
    return re.sub(rb"<SecretManagerSection>.*?</SecretManagerSection>", b"", xml, flags=re.DOTALL)


@pytest.mark.parametrize("codec", ["none", "deflate", "gzip", "bzip2", "lz4", "snappy", "zstd"])
@pytest.mark.parametrize("sub_sections", [0, 4])
def test_oiv_prints_a_saved_image_as_it_printed_the_namenodes(classpath, shared, tmp_path, codec, sub_sections):
    folder = shared / "data" / "hdfs" / "fsimage"
    namespace = load_image(folder / "rich_plain.fsimage", clock=SystemClock(), check_md5=False).namespace
    saved = save_image(
        namespace, tmp_path / "image", SaveOptions(codec=codec, sub_sections=sub_sections), clock=SystemClock()
    )

    ours = view(classpath, saved.path, tmp_path / "xml")

    if ours is None:
        pytest.skip(f"this Hadoop has no library for {codec}")
    theirs = gzip.decompress((folder / "rich_plain.xml.gz").read_bytes())
    assert without_secrets(ours) == without_secrets(theirs)


def test_oiv_lists_every_path_of_a_synthetic_image(classpath, tmp_path):
    made = synthesise(tmp_path / "image", SynthOptions(inodes=20_000), clock=SystemClock())

    lines = view(classpath, made.path, tmp_path / "out", "Delimited").splitlines()[1:]

    assert len(lines) == made.inodes
    fields = [line.split(b"\t") for line in lines]
    assert sum(int(f[6]) for f in fields) == made.content_bytes
    assert sum(int(f[5]) for f in fields) == made.blocks


def test_a_namenode_starts_on_a_synthetic_image(classpath, shared, tmp_path):
    current = tmp_path / "name" / "current"
    current.mkdir(parents=True)
    (current / "VERSION").write_text(VERSION)
    (current / "seen_txid").write_text("0\n")
    made = synthesise(current / f"fsimage_{0:019}", SynthOptions(inodes=200_000), clock=SystemClock())

    tool = shared / "cluster" / "tools" / "nnload.py"
    arguments = [classpath, tmp_path / "name", tmp_path / "work", "1g", "--", "-D", "dfs.image.parallel.load=true"]
    done = subprocess.run([sys.executable, tool, *arguments], capture_output=True, text=True, timeout=250, check=False)

    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    figures = json.loads(done.stdout)
    assert (figures["FilesTotal"], figures["BlocksTotal"]) == (made.inodes, made.blocks)
    assert figures["inodes"] == made.inodes
