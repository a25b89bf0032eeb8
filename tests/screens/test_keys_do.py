"""Each key does what its table says, on the app and on the engine."""

from __future__ import annotations

import pytest

from dashboard.app import TideApp
from dashboard.keys import KEYS, MODELS, SCREENS, keys_on
from dashboard.terminal import Terminal
from tests.screens.stage import Stage


def test_pause_freezes_the_view_and_not_the_engine(perform) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("space")
        before, known = stage.text().splitlines()[2:-1], stage.app.history.newest_ns

        stage.let_work(10)
        await stage.settle()

        assert stage.text().splitlines()[2:-1] == before
        assert stage.app.history.newest_ns == known + 10_000_000_000
        assert "PAUSED −10 s" in stage.text()

        await stage.press("space")
        assert "LIVE" in stage.text()
        assert stage.text().splitlines()[2:-1] != before

    perform(play)


def test_figures_go_on_under_a_dialog(perform) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("question_mark")
        before = stage.text()

        stage.let_work(10)
        await stage.settle()

        assert stage.text() != before

        await stage.press("escape")

    perform(play)


def test_arrows_home_and_end_scrub_while_paused(perform) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("left")
        assert "press space to pause" in stage.text()

        await stage.press("space", "left", "left", "up")
        assert "PAUSED −12 s" in stage.text()
        await stage.press("right")
        assert "PAUSED −11 s" in stage.text()
        await stage.press("home")
        assert "PAUSED −20 s" in stage.text()
        await stage.press("left")
        assert "PAUSED −20 s" in stage.text(), "nothing is older than the oldest"
        await stage.press("end", "right")
        assert "PAUSED −0 s" in stage.text()

    perform(play, seconds=20.25)


def test_plus_and_minus_go_through_the_steps_without_waiting_for_snapshots(perform) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("plus", "plus", "plus")
        assert stage.calls == [("handlers", 100), ("handlers", 200)]
        assert "200 handlers: no more" in stage.text()

        stage.let_work(5)
        await stage.press("minus")
        assert stage.calls[-1] == ("handlers", 100)

    perform(play)


@pytest.mark.parametrize(
    ("key", "what", "wanted"),
    [
        ("m", "model", ["pipeline:1", "pipeline:5", "handler"]),
        ("d", "device", ["serial:5ms", "serial:1ms", "parallel:1ms"]),
        ("y", "sync", ["fsync", "dsync", "none"]),
    ],
)
def test_a_choice_pressed_quickly_goes_on_from_what_was_asked_for(
    perform, key: str, what: str, wanted: list[str]
) -> None:
    async def play(stage: Stage) -> None:
        await stage.press(key, key, key)

        assert stage.calls == [(what, name) for name in wanted]
        assert wanted[-1] in stage.text()

    perform(play)


def test_a_choice_goes_on_from_what_the_snapshot_shows(perform) -> None:
    async def play(stage: Stage) -> None:
        stage.engine.wal.set_device("parallel:1ms")
        stage.let_work(5)

        await stage.press("d")

        assert stage.calls[-1] == ("device", "real")

    perform(play)


def test_s_stops_starts_and_reopens(perform) -> None:
    async def play(stage: Stage) -> None:
        for state, asked in (("running", ("state", "stopped")), ("stopped", ("state", "running"))):
            assert stage.app.history.snapshot.wal.state == state
            await stage.press("s")
            assert stage.calls[-1] == asked
            stage.let_work(1)
        stage.engine.wal.fail_next_sync()
        stage.let_work(1)
        await stage.settle()
        assert "press s to reopen" in stage.text()

        await stage.press("s")
        assert stage.calls[-1] == ("reopen",)
        stage.let_work(1)
        assert stage.app.history.snapshot.wal.state == "running"

    perform(play)


def test_a_stall_is_injected_at_once(perform) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("f", "1")

        assert stage.calls == [("stall", 500_000_000)]

    perform(play)


@pytest.mark.parametrize(("answer", "calls"), [("y", [("fail",)]), ("n", []), ("escape", [])])
def test_an_io_error_is_injected_only_after_a_yes(perform, answer: str, calls: list[tuple[str]]) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("f", "2")
        assert "poisoned" in stage.text()
        assert stage.calls == []

        await stage.press(answer)
        assert stage.calls == calls
        assert "verdict" in stage.text()

    perform(play)


def test_help_lists_every_key_even_where_it_must_scroll(perform) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("question_mark")
        shown = stage.text()
        while "more" in stage.text().splitlines()[-2] or "more" in stage.text().splitlines()[-3]:
            await stage.press("down")
            shown += stage.text()

        for key in KEYS:
            assert any(key.shown in line and key.help[:30] in line for line in shown.splitlines()), key.shown

    perform(play, size=(60, 16))


def test_every_key_has_an_action_and_no_key_has_two() -> None:
    names = [key.action.partition("(")[0] for key in KEYS]
    assert [name for name in names if not hasattr(TideApp, f"action_{name}")] == []

    for screen in SCREENS:
        pressed = [key for row in keys_on(screen) for key in row.keys.split(",")]
        assert len(pressed) == len(set(pressed)), screen


def test_the_palette_offers_the_table_of_keys(perform) -> None:
    async def play(stage: Stage) -> None:
        offered = {command.title for command in stage.app.get_system_commands(stage.app.screen)}
        assert {"Engine: model", "View: pause", "Theme: tide-light"} <= offered

        await stage.press("ctrl+p")
        assert "Search" in stage.text()
        await stage.press("escape")
        assert "verdict" in stage.text()

    perform(play)


def test_t_goes_through_the_themes_and_colours_follow(perform) -> None:
    async def play(stage: Stage) -> None:
        dark = stage.app.screen.styles.background
        await stage.press("t")
        assert stage.app.theme == "tide-light"
        assert stage.app.screen.styles.background.brightness > dark.brightness
        await stage.press("t")
        assert stage.app.screen.styles.background == dark

    perform(play)


def test_t_says_why_there_is_only_one_theme(perform) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("t")
        assert "tide-16 is the only theme here: this terminal has 16 colours" in stage.text()

    perform(play, terminal=Terminal("16", plain=False))


def test_c_copies_the_screen_as_text(perform) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("c")
        assert "verdict  sync-bound" in stage.app.clipboard
        assert "where a commit's time goes" in stage.app.clipboard

    perform(play)


def test_z_lets_plots_look_further_back(perform) -> None:
    async def play(stage: Stage) -> None:
        assert "−60 s" in stage.text()
        await stage.press("z")
        assert "−5 m" in stage.text()
        await stage.press("z", "z")
        assert "−60 s" in stage.text()

    perform(play)


def test_q_leaves_with_code_0(perform) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("q")
        assert stage.app.return_value == 0

    perform(play)


def test_keys_of_the_engine_say_so_where_there_is_no_log(perform) -> None:
    async def play(stage: Stage) -> None:
        for key in ("s", "plus", "m", "f"):
            await stage.press(key)
            assert "no log to control: disk full" in stage.text()
        assert stage.calls == []

    perform(play, without_wal="disk full")


def test_the_models_offered_are_those_of_the_command_line() -> None:
    from dashboard.cli.engine_flags import MODELS as FLAGS

    assert MODELS == FLAGS
