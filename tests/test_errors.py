"""Messages: one printable line that says what was given, what is allowed and what may have been meant."""

from __future__ import annotations

import errno
import importlib
import inspect
import pkgutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
from engine.errors import BadValue, FileTrouble, TidegaugeError, UnknownChoice, error_text, printable, quoted

MODELS = ("group", "pipeline:1", "pipeline:5", "handler", "handler-recheck")


def test_a_bad_value_says_what_was_given_and_what_is_allowed() -> None:
    error = BadValue(what="--threads", given="0", allowed="1 to 512", example="1,5,50")

    assert str(error) == "--threads '0': allowed is 1 to 512; for example 1,5,50"


@pytest.mark.parametrize(
    ("given_name", "nearest"),
    [("grop", "group"), ("PIPELINE:1", "pipeline:1"), ("handlr", "handler"), ("handler-rechek", "handler-recheck")],
)
def test_an_unknown_name_gets_its_nearest_match(given_name: str, nearest: str) -> None:
    error = UnknownChoice(what="model", given=given_name, choices=MODELS)

    assert str(error).endswith(f"allowed is {', '.join(MODELS)}; did you mean {nearest}?")


def test_a_name_like_nothing_known_gets_the_list_alone() -> None:
    assert "did you mean" not in str(UnknownChoice(what="model", given="xyzzy", choices=MODELS))


def test_trouble_with_a_file_names_it_and_says_why_in_words() -> None:
    error = FileTrouble("/var/log/tide", "write", OSError(errno.ENOSPC, "ignored"))

    assert str(error) == "/var/log/tide: cannot write: No space left on device"
    assert error.errno == errno.ENOSPC


def test_trouble_without_an_errno_keeps_the_reason() -> None:
    assert str(FileTrouble("log", "read", OSError("it is gone"))) == "log: cannot read: it is gone"


def test_a_path_cannot_reach_the_terminal_raw() -> None:
    error = FileTrouble("/tmp/\x1b]0;owned\x07\n", "open", OSError(errno.ENOENT, ""))

    assert str(error) == r"/tmp/\x1b]0;owned\x07\n: cannot open: No such file or directory"


@pytest.mark.parametrize(
    ("code", "text"), [(errno.EIO, "Input/output error (EIO)"), (99999, "Unknown error 99999 (errno 99999)")]
)
def test_an_errno_is_written_in_words_and_by_name(code: int, text: str) -> None:
    assert error_text(code) == text


@given(text=st.text(st.characters(), max_size=200))
def test_quoted_text_is_short_printable_and_in_quotes(text: str) -> None:
    shown = quoted(text)

    assert shown.isprintable()
    assert len(shown) <= 80
    assert shown[0] == shown[-1]
    assert shown[0] in "'\""


@given(text=st.text(st.characters(), max_size=200))
def test_printable_text_is_printable_and_keeps_what_was(text: str) -> None:
    assert printable(text).isprintable()
    if text.isprintable():
        assert printable(text) == text


def all_errors() -> list[type[TidegaugeError]]:
    for module in pkgutil.walk_packages(engine.__path__, "engine."):
        importlib.import_module(module.name)
    found, pending = [], [TidegaugeError]
    while pending:
        error = pending.pop()
        found.append(error)
        pending += error.__subclasses__()
    return [error for error in found if error.__module__.startswith("engine.")]


@pytest.mark.parametrize("error", all_errors(), ids=lambda error: error.__name__)
def test_each_error_says_what_it_is(error: type[TidegaugeError]) -> None:
    assert inspect.getdoc(error)
    assert error.__doc__ != TidegaugeError.__doc__ or error is TidegaugeError
