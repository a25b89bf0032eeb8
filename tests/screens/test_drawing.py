"""The app draws what is due on the open screen, and nothing else."""

from __future__ import annotations

import pytest
from textual import events

from dashboard.screens.wal import WalScreen
from dashboard.widgets.pane import Pane
from tests.screens.stage import Stage


class Counted:
    """Counts calls of the WAL screen's draw methods."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.text = self.plots = self.tables = 0
        for name in ("text", "plots", "tables"):
            monkeypatch.setattr(WalScreen, f"draw_{name}", self._counting(name, getattr(WalScreen, f"draw_{name}")))

    def _counting(self, name, draw):
        def counted(screen, frame):
            setattr(self, name, getattr(self, name) + 1)
            draw(screen, frame)

        return counted

    def take(self) -> tuple[int, int, int]:
        counts, self.text, self.plots, self.tables = (self.text, self.plots, self.tables), 0, 0, 0
        return counts


def test_text_is_drawn_at_each_tick_plots_at_every_second_tables_at_every_fourth(perform, monkeypatch) -> None:
    counted = Counted(monkeypatch)

    async def play(stage: Stage) -> None:
        counted.take()
        stage.pass_time(2)
        assert counted.take() == (8, 4, 2)

    perform(play)


def test_a_screen_that_is_not_open_is_not_drawn(perform, monkeypatch) -> None:
    counted = Counted(monkeypatch)

    async def play(stage: Stage) -> None:
        await stage.press("1")
        counted.take()
        stage.pass_time(2)
        assert counted.take() == (0, 0, 0)

    perform(play)


@pytest.mark.parametrize("why", ["paused", "blurred"])
def test_a_paused_view_and_a_terminal_without_focus_draw_once_a_second(perform, monkeypatch, why: str) -> None:
    counted = Counted(monkeypatch)

    async def play(stage: Stage) -> None:
        if why == "paused":
            await stage.press("space")
        else:
            stage.app.post_message(events.AppBlur())
            await stage.settle()
        counted.take()
        stage.pass_time(3)
        assert counted.take() == (3, 3, 3)

    perform(play)


def test_rows_that_did_not_change_are_not_drawn_again(perform, monkeypatch) -> None:
    drawn: list[tuple[str, int]] = []
    render_line = Pane.render_line
    monkeypatch.setattr(Pane, "render_line", lambda pane, y: drawn.append((pane.name, y)) or render_line(pane, y))

    async def play(stage: Stage) -> None:
        await stage.settle()
        drawn.clear()
        await stage.settle()
        assert [place for place, _ in drawn if place not in ("header", "footer")] == []

        stage.pass_time(0.25)
        await stage.pilot.pause()
        assert ("headline", 1) in drawn
        assert ("headline", 0) not in drawn, "names of numbers stay"

    perform(play)


def test_a_resize_lays_out_anew_and_back(perform) -> None:
    async def play(stage: Stage) -> None:
        before = stage.text()

        await stage.resize(40, 10)
        assert "terminal too small" in stage.text()
        await stage.resize(160, 45)
        assert "durable txid" in stage.text()
        await stage.resize(100, 30)
        assert stage.text() == before

    perform(play)


@pytest.mark.parametrize("size", [(1, 1), (20, 5), (61, 17), (77, 29), (96, 28), (131, 37), (300, 100)], ids=str)
def test_no_size_breaks_a_screen(perform, size: tuple[int, int]) -> None:
    async def play(stage: Stage) -> None:
        for key in "12345":
            await stage.press(key)
            assert len(stage.text().splitlines()) <= size[1]
            assert max(map(len, stage.text().splitlines())) <= size[0]
        await stage.press("question_mark", "escape", "f", "escape")

    perform(play, size=size, seconds=2)


def test_text_from_outside_cannot_reach_the_terminal_raw(perform) -> None:
    async def play(stage: Stage) -> None:
        stage.engine._say("warn", "evil \x1b]0;title\x07 \x9b31m text")
        stage.engine._path = "/tmp/\x1b[2J"
        stage.pass_time(1)
        for key in "12":
            await stage.press(key)
            assert not any(c in stage.text() for c in "\x1b\x07\x9b")
        assert "evil \\x1b]0;title" in stage.text()

    perform(play, size=(160, 45))
