"""`tidegauge run image`: what it measures, prints, writes, refuses and leaves behind."""

from __future__ import annotations

import json
import signal
from typing import Any

import msgspec
import pytest

from dashboard.cli.exits import Exit
from dashboard.cli.run_image_table import results_text, seed_text
from engine.measure.memory import anonymous_bytes
from engine.workloads.image import ImageResult, cases_of
from tests.cli.commands import run, start

RESULT = ImageResult(
    strategy="columnar",
    threads=2,
    inodes=20_000_000,
    image_bytes=2_573_106_710,
    inodes_loaded=20_000_000,
    scaled=False,
    elapsed_seconds=3.5,
    measured_seconds=3.5,
    inodes_per_second=5.7e6,
    bytes_per_inode=94.0,
    name_bytes=320_000_000,
    resolve_calls=1_724_800,
    resolve_seconds=None,
    compile_seconds=0.5,
    phases=(),
)
OBJECTS = msgspec.structs.replace(
    RESULT,
    strategy="objects",
    threads=1,
    inodes_loaded=1_000_000,
    scaled=True,
    elapsed_seconds=900.0,
    name_bytes=None,
    resolve_seconds=60.0,
    resolve_calls=19_999_999,
)


def measured(*words: object) -> dict[str, Any]:
    done = run("run", "image", *words, "--json", "-")
    assert done.exit_code == Exit.DONE, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_every_strategy_loads_a_synthetic_image_that_is_gone_afterwards(tmp_path):
    document = measured("--inodes", "3k", "--sample", "1k", "--threads", "1,2", "--path", tmp_path)

    assert (document["schema"], document["lane"], document["complete"]) == ("tidegauge.run/1", "image", True)
    results = {(each["strategy"], each["threads"]): each for each in document["results"]}
    assert list(results) == [("columnar", 1), ("columnar", 2), ("parent-cache", 1), ("lean", 1), ("objects", 1)]
    for (strategy, _), each in results.items():
        is_scaled = strategy != "columnar"
        assert (each["inodes"], each["inodes_loaded"]) == (3000, 1000 if is_scaled else 3000)
        assert each["scaled"] is is_scaled
        assert each["elapsed_seconds"] == pytest.approx(each["measured_seconds"] * (3 if is_scaled else 1))
        assert each["phases"][0]["name"] == "LoadingFsImage"
        assert (each["resolve_seconds"] is None) is (strategy == "columnar")
    assert results["objects", 1]["resolve_calls"] == results["lean", 1]["resolve_calls"] == 999 * 3
    assert results["parent-cache", 1]["resolve_calls"] < 999 * 3
    assert list(tmp_path.iterdir()) == []


def test_an_image_that_only_columns_can_hold_is_loaded_by_columnar_alone(shared):
    image = shared / "data/hdfs/fsimage/rich_plain.fsimage"

    assert [each["strategy"] for each in measured(image)["results"]] == ["columnar"]
    asked = run("run", "image", image, "--strategy", "columnar,lean")
    assert asked.exit_code == Exit.USAGE
    assert "has layout -67; all but columnar need an uncompressed legacy layout with full paths" in asked.stderr


def test_an_old_image_is_loaded_by_every_strategy(shared):
    document = measured(shared / "data/fsimages/legacy/hadoop-0.18-layout16.img")

    assert [(each["strategy"], each["inodes"]) for each in document["results"]] == [
        (strategy, 22) for strategy in ("columnar", "parent-cache", "lean", "objects")
    ]


@pytest.mark.parametrize(
    "words, code, line",
    [
        (("FILE",), Exit.FAILED, "not an fsimage"),
        (("FILE", "--inodes", "5k"), Exit.USAGE, "--inodes is for a synthetic image; FILE is there already"),
        (("--inodes", "1G"), Exit.FAILED, "1,000,000,000 inodes need 140 GiB of memory"),
        (("--strategy", "object"), Exit.USAGE, "did you mean objects?"),
        (("--path", "FILE"), Exit.FAILED, "Not a directory"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(tmp_path, words, code, line):
    (tmp_path / "x").write_bytes(b"no image")

    done = run("run", "image", *(tmp_path / "x" if word == "FILE" else word for word in words))

    assert (done.exit_code, done.stderr.count("\n")) == (code, 1)
    assert line in done.stderr


def test_ctrl_c_prints_what_was_measured_and_removes_the_image(tmp_path):
    words = ("--inodes", "150k", "--strategy", "columnar,objects", "--sample", "0", "--path", tmp_path)
    child = start("run", "image", *words)
    try:
        assert child.stderr is not None
        for line in child.stderr:
            if "objects" in line:
                break
        child.send_signal(signal.SIGINT)
        out, errors = child.communicate(timeout=60)
    finally:
        child.kill()
        child.communicate()

    assert child.returncode == Exit.INTERRUPTED
    assert "columnar" in out and "objects" not in out
    assert errors.endswith("tidegauge: interrupted; the results are of what was measured until then\n")
    assert list(tmp_path.iterdir()) == []


def test_what_runs_on_one_thread_runs_once():
    cases = [(case.strategy, case.threads) for case in cases_of(("lean", "columnar"), (1, 2, 4), None)]

    assert cases == [("lean", 1), ("columnar", 1), ("columnar", 2), ("columnar", 4)]


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_the_table_fits_and_says_what_was_scaled(width):
    text = results_text([RESULT, OBJECTS], width=width, where="a synthetic image")

    assert all(len(line) <= width for line in text.splitlines())
    words = " ".join(text.split())
    assert "15.0 min scaled" in words
    assert "objects, 1 thread: 7% of the time finds parents, in 19,999,999 walks from the root" in words
    assert "Scaled: measured on the first 1,000,000 inodes and multiplied" in words
    assert "Time against columnar: objects 257x." in words


def test_the_report_stands_beside_ours():
    words = [" ".join(line.split()) for line in seed_text([RESULT, OBJECTS], width=120).splitlines()]

    assert "the report: as it was 40.0 min - - 0.17x" in words
    assert "the report: JVM options tuned 14.0 min - - 0.50x" in words
    assert "the report: and the four changes 7.0 min 4.0 min 19,941,941 1.00x" in words
    assert "here: columnar, 2 threads 3.5 s - 1,724,800 120.00x" in words
    assert "here: objects, 1 thread (scaled) 15.0 min 60 s 19,999,999 0.47x" in words


def test_anonymous_memory_grows_with_what_is_touched():
    before = anonymous_bytes()
    held = bytearray(b"x" * (64 << 20))

    assert anonymous_bytes() - before > 60 << 20
    assert len(held) == 64 << 20
