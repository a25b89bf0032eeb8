"""How commands end: one line, the right exit code, and quiet where nobody listens."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from dashboard.cli.program import SHOW_TRACEBACK, LazyGroup, Program
from engine.errors import TidegaugeError
from tests.cli.commands import environment, finish, program, run


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
        (["run"], "tidegauge run needs a command: wal, ramdisk, image"),
        (["run", "wla"], "No such command 'wla'. Did you mean 'wal'?"),
        (["run", "wal", "--thread", "5"], "No such option '--thread'. Did you mean '--threads'?"),
        (["run", "wal", "--threads"], "Option '--threads' requires an argument."),
        (["run", "wal", "--threads", "0"], "--threads '0': allowed is 1 to 1,000; the nearest is 1"),
        (
            ["run", "wal", "--model", "gruop"],
            "--model 'gruop': allowed is group, pipeline:1, pipeline:5, handler, handler-recheck; did you mean group?",
        ),
        (
            ["run", "wal", "--device", "reel"],
            "--device 'reel': allowed is real, serial:LATENCY, parallel:LATENCY; did you mean real?",
        ),
        (
            ["run", "wal", "--value-size", "5 apples"],
            "--value-size: size '5 apples': allowed is a number with a unit (the unit 'apples' is not one of "
            "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB); for example 64MiB",
        ),
        (
            ["run", "wal", "--iterations", "5", "--duration", "1s"],
            "--iterations and --duration cannot be given together: one says when a case ends",
        ),
        (["run", "wal", "extra"], "Got unexpected extra argument (extra)"),
        (["doctor", "--path", "/does/not/exist"], "--path: Directory '/does/not/exist' does not exist."),
        (["--threads", "0"], "--threads '0': allowed is 1 to 1,000; the nearest is 1"),
        (
            ["--threads", "5", "metrics"],
            "--threads is the dashboard's; give it after the command: tidegauge metrics ...",
        ),
    ],
)
def test_bad_usage_gets_one_line_and_exit_code_2(words: list[str], line: str) -> None:
    result = run(*words)

    assert result.stderr == f"tidegauge: {line}\n"
    assert result.stdout == ""
    assert result.exit_code == 2


def test_the_dashboard_without_a_terminal_says_what_to_use_instead() -> None:
    done = finish()

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("tidegauge: the dashboard needs a terminal, and stdin is none")
    assert done.stderr.count("\n") == 1


def test_version_is_printed() -> None:
    result = run("--version")

    assert result.stdout.startswith("tidegauge 0.")
    assert result.exit_code == 0


def _program_that(raises: BaseException) -> Program:
    @click.group(cls=Program)
    def root() -> None:
        pass

    @root.command("go")
    def go() -> None:
        raise raises

    return root


@pytest.mark.parametrize(
    ("raises", "line", "code"),
    [
        (TidegaugeError("the log is damaged"), "tidegauge: the log is damaged\n", 1),
        (TidegaugeError("two\nlines\x1b[31m"), "tidegauge: two lines\\x1b[31m\n", 1),
        (KeyboardInterrupt(), "tidegauge: interrupted\n", 130),
        (OSError(28, "No space left on device"), "tidegauge: OSError: [Errno 28] No space left on device\n", 1),
        (
            KeyError("colour"),
            f"tidegauge: unexpected error: KeyError: 'colour' (set {SHOW_TRACEBACK}=1 to see where)\n",
            1,
        ),
        (BrokenPipeError(32, "Broken pipe"), "", 1),
    ],
    ids=["ours", "with-control-characters", "interrupt", "operating-system", "a-mistake-of-ours", "broken-pipe"],
)
def test_no_exception_becomes_a_traceback(
    raises: BaseException, line: str, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SHOW_TRACEBACK, raising=False)
    monkeypatch.setattr("dashboard.cli.program._drop_stdout", lambda: None)

    with pytest.raises(SystemExit) as ended:
        _program_that(raises).main(["go"])

    assert capsys.readouterr().err.lstrip("\n") == line  # Ctrl+C first ends the line that shows ^C
    assert ended.value.code == code


def test_a_group_leaves_out_commands_whose_module_is_not_there() -> None:
    group = LazyGroup("group", lazy={"missing": "dashboard.cli.no_such_module:command"})

    assert group.list_commands(click.Context(group)) == []


def test_a_group_does_not_hide_a_module_that_fails_to_import(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_command.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    group = LazyGroup("group", lazy={"broken": "broken_command:command"})

    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        group.get_command(click.Context(group), "broken")


def test_a_reader_that_goes_away_is_no_error_message() -> None:
    child = subprocess.Popen(
        program("metrics"), env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()  # before anything was printed: every write meets a closed pipe
    with child.stderr as errors:
        said = errors.read()

    assert child.wait(timeout=60) == 1
    assert said == b""


@pytest.mark.parametrize("closed", ["0", "1", "2", "0 1 2"])
def test_closed_standard_streams_do_not_matter(closed: str, tmp_path) -> None:
    redirections = " ".join(f"{number}>&-" if number != "0" else "0<&-" for number in closed.split())
    command = " ".join([f"'{word}'" for word in program("metrics")])

    done = subprocess.run(
        ["bash", "-c", f"{command} {redirections}"],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert ("tidegauge_build_info" in done.stdout) == ("1" not in closed.split())


def test_standard_descriptors_are_held_so_that_no_file_of_ours_gets_their_numbers(tmp_path) -> None:
    source = (
        "from dashboard.cli.program import hold_standard_descriptors; hold_standard_descriptors()\n"
        f"import os; os._exit(os.open({str(tmp_path / 'log')!r}, os.O_CREAT | os.O_RDWR))"
    )

    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -c \"{source}\" <&- >&- 2>&-"], env=environment(), timeout=60, check=False
    )

    assert done.returncode > 2
    assert (tmp_path / "log").exists()
