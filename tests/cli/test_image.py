"""`tidegauge image info|load|save|synth`: data on stdout, one line for what went wrong, exit codes."""

from __future__ import annotations

import json
import signal

import pytest

from dashboard.cli.exits import Exit
from tests.cli.commands import run, start
from tests.programs import printed_by
from tests.waiting import wait_for

RICH = "data/hdfs/fsimage/rich_plain.fsimage"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A synthetic image, made by the command."""
    path = tmp_path_factory.mktemp("images") / "fsimage_7"
    result = run("image", "synth", path, "--inodes", "2k", "--seed", "3")
    assert result.exit_code == Exit.DONE, result.output
    return path


def test_info_says_what_the_image_says(shared):
    result = run("image", "info", shared / RICH)

    assert (result.exit_code, result.stderr) == (Exit.DONE, "")
    lines = {line.split("  ")[0]: " ".join(line.split()[1:]) for line in result.stdout.splitlines()}
    assert lines["layout"] == "-67 (NVDIMM; Hadoop 3.4 and 3.5)"
    assert lines["inodes"] == "2,324"
    assert lines["INODE_DIR"] == "118,470 8,573"


@pytest.mark.parametrize("encoding", ["plain", "deflate", "gzip", "bzip2", "lz4", "snappy", "parallel_gzip"])
def test_info_counts_behind_every_codec(shared, encoding):
    result = run("image", "info", shared / f"data/hdfs/fsimage/rich_{encoding}.fsimage", "--json", "-")

    outline = json.loads(result.stdout)
    assert outline["schema"] == "tidegauge.image-info/1"
    assert outline["counts"] == {
        "inodes": 2324,
        "HDFS snapshots": 5,
        "delegation keys": 2,
        "delegation tokens": 1,
        "cache pools": 2,
        "cache directives": 2,
        "strings": 30,
        "erasure coding policies": 6,
    }


@pytest.mark.parametrize(
    "name, layout, inodes",
    [
        ("hadoop-0.18-layout16", "-16 (namespace quotas; Hadoop 0.18)", 22),
        ("hadoop-1.2-layout41", "-41 (reserved for 1.2; Hadoop 1.2)", None),
        ("hadoop-2.0-layout40", "-40 (block lists as differences; Hadoop 2.0)", 9),
    ],
)
def test_info_reads_legacy_headers(shared, name, layout, inodes):
    result = run("image", "info", shared / f"data/fsimages/legacy/{name}.img")

    assert f"layout            {layout}" in result.stdout or layout in result.stdout
    assert inodes is None or f"{inodes}" in result.stdout


@pytest.mark.parametrize("name", [RICH, "data/fsimages/legacy/hadoop-2.0-layout40.img"])
def test_info_loads_no_compiler(shared, name):
    program = (
        f"import sys\nsys.argv = ['tidegauge', 'image', 'info', {str(shared / name)!r}, '--json', '/dev/null']\n"
        "from dashboard.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\nprint('LOADED', 'numba' in sys.modules, 'textual' in sys.modules)"
    )

    assert printed_by(program).endswith("LOADED False False")


def test_what_is_no_image_fails_in_one_line(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"\x1b[2Jno image")

    for words in (("info", path), ("load", path), ("save", path, tmp_path / "out")):
        result = run("image", *words)
        assert result.exit_code == Exit.FAILED
        assert "not an fsimage" in result.stderr
        assert result.stderr.count("\n") == 1 and result.stderr.strip().isprintable()


def test_what_is_no_image_is_refused_before_a_kernel_is_loaded(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"no image")
    program = (
        f"import sys\nsys.argv = ['tidegauge', 'image', 'load', {str(path)!r}]\n"
        "from dashboard.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\nprint('LOADED', 'numba' in sys.modules)"
    )

    assert printed_by(program).endswith("LOADED False")


def test_load_prints_counts_phases_and_a_verdict(made):
    result = run("image", "load", made)
    as_json = json.loads(run("image", "load", made, "--json", "-").stdout)

    assert result.exit_code == Exit.DONE
    assert result.stdout.endswith("the tree is whole\n")
    assert "LoadingFsImage" in result.stdout
    assert (as_json["inodes"], as_json["whole"], as_json["md5_problem"]) == (2000, True, "")


def test_load_fails_where_the_md5_file_disagrees(made, tmp_path):
    copy = tmp_path / "fsimage_7"
    copy.write_bytes(made.read_bytes())
    copy.with_name("fsimage_7.md5").write_text("0" * 32 + " *fsimage_7\n")

    assert run("image", "load", copy).exit_code == Exit.FAILED
    assert "the .md5 file says 0000" in run("image", "load", copy).stdout
    assert run("image", "load", copy, "--no-md5").exit_code == Exit.DONE


def test_save_moves_an_image_from_layout_to_layout(made, tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"

    assert run("image", "save", made, old, "--layout", "legacy", "--layout-version", "-16").exit_code == Exit.DONE
    result = run("image", "save", old, new, "--codec", "gzip", "--sections", "4", "--json", tmp_path / "j")

    assert result.exit_code == Exit.DONE
    assert "GzipCodec" in result.stdout
    assert json.loads((tmp_path / "j").read_text())["inodes"] == 2000
    assert run("image", "load", new).stdout.endswith("the tree is whole\n")


def test_save_drops_nothing_unasked(shared, tmp_path):
    words = ("image", "save", shared / RICH, tmp_path / "out", "--layout", "legacy")
    refused, dropped = run(*words), run(*words, "--drop")

    assert (refused.exit_code, dropped.exit_code) == (Exit.FAILED, Exit.DONE)
    assert "no place for 3 symbolic links" in refused.stderr
    assert "left out: 3 symbolic links" in dropped.stderr


@pytest.mark.parametrize("strategy", ["lean", "objects"])
def test_save_strategies_write_the_same_bytes(made, tmp_path, strategy):
    for name, words in (("a", ()), ("b", ("--strategy", strategy))):
        assert run("image", "save", made, tmp_path / name, "--layout", "legacy", *words).exit_code == Exit.DONE

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_is_there_is_replaced_with_force_alone(made, tmp_path):
    out = tmp_path / "out"
    words = ("image", "synth", out, "--inodes", "100")

    assert run(*words).exit_code == Exit.DONE
    again = run(*words, "--layout", "legacy")
    assert (again.exit_code, again.stderr.count("\n")) == (Exit.FAILED, 1)
    assert "there is a file of that name already" in again.stderr
    assert run(*words, "--layout", "legacy", "--force").exit_code == Exit.DONE


@pytest.mark.parametrize(
    "words, line",
    [
        (("synth", "OUT", "--inodes", "3"), "--inodes '3': allowed is 10 to 1,000,000,000; the nearest is 10"),
        (("synth", "OUT", "--codec", "gzp"), "did you mean gzip?"),
        (("synth", "OUT", "--layout", "legcy"), "did you mean legacy?"),
        (("synth", "OUT", "--layout", "legacy", "--codec", "lz4"), "--codec and --sections are for --layout protobuf"),
        (("save", "IN", "OUT", "--strategy", "fast"), "allowed is columnar, lean, objects"),
    ],
)
def test_a_wrong_value_gets_one_line(tmp_path, words, line):
    result = run("image", *(tmp_path / word if word in ("IN", "OUT") else word for word in words))

    assert result.exit_code == Exit.USAGE
    assert line in result.stderr
    assert result.stderr.count("\n") == 1


def test_ctrl_c_leaves_no_file_behind(tmp_path):
    child = start("image", "synth", tmp_path / "out", "--inodes", "30M", "--codec", "bzip2")
    try:
        wait_for((tmp_path / "out.tmp").exists, deadline=90, what="the file to be begun")
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    finally:
        child.kill()
        child.communicate()

    assert child.returncode == Exit.INTERRUPTED
    assert errors.endswith("tidegauge: interrupted\n")
    assert list(tmp_path.iterdir()) == []
