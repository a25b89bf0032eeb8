"""The keys: one table, which bindings, footer, help and palette all read."""

from __future__ import annotations

from typing import Literal, NamedTuple

Group = Literal["Screens", "View", "Engine", "Program"]


class Key(NamedTuple):
    """One key. `action` is a method action_NAME of the app, with its arguments."""

    keys: str  # as Textual names them, comma between several
    shown: str
    action: str
    label: str  # one or two words, for the footer
    help: str
    group: Group
    in_footer: bool = False


SCREENS = ("overview", "wal", "ramdisk", "image", "sources")
SCREEN_TITLES = {"overview": "Overview", "wal": "WAL", "ramdisk": "RAM disk", "image": "Image", "sources": "Sources"}

KEYS: tuple[Key, ...] = (
    *(
        Key(str(number), str(number), f"show('{name}')", SCREEN_TITLES[name], f"show {SCREEN_TITLES[name]}", "Screens")
        for number, name in enumerate(SCREENS, 1)
    ),
    Key("space", "space", "pause", "pause", "freeze the view, not the engine; again to go on", "View", True),
    Key("left", "left", "scrub(-1)", "back", "while paused: one second back", "View"),
    Key("right", "right", "scrub(1)", "on", "while paused: one second on", "View"),
    Key("up,pageup", "up", "scrub(-10)", "back 10", "while paused: ten seconds back", "View"),
    Key("down,pagedown", "down", "scrub(10)", "on 10", "while paused: ten seconds on", "View"),
    Key("home", "home", "scrub_to('oldest')", "oldest", "while paused: the oldest kept", "View"),
    Key("end", "end", "scrub_to('newest')", "newest", "while paused: the newest", "View"),
    Key("z", "z", "span", "span", "how long the plots look back: 1 minute, 5, 30", "View"),
    Key("s", "s", "start_stop", "start/stop", "start or stop the log; reopen it when it is poisoned", "Engine", True),
    Key("plus,equals_sign", "+", "handlers(1)", "handlers", "more handlers: 1 2 5 10 20 50 100 200", "Engine", True),
    Key("minus", "-", "handlers(-1)", "fewer", "fewer handlers", "Engine", True),
    Key("m", "m", "next('model')", "model", "next write-thread model", "Engine", True),
    Key("d", "d", "next('device')", "device", "next device: real, or a simulated latency", "Engine", True),
    Key("y", "y", "next('sync')", "sync", "next sync mode", "Engine", True),
    Key("f", "f", "faults", "fault", "inject a fault: a stalled sync, an I/O error", "Engine", True),
    Key("t", "t", "next_theme", "theme", "next theme", "Program", True),
    Key("c", "c", "copy", "copy", "copy this screen as text (OSC 52)", "Program"),
    Key("question_mark", "?", "help", "help", "this list", "Program", True),
    Key("ctrl+p", "ctrl+p", "command_palette", "palette", "every command, by name", "Program"),
    Key("q,ctrl+q,ctrl+c", "q", "leave", "quit", "stop the engine and leave", "Program", True),
)

HANDLER_STEPS = (1, 2, 5, 10, 20, 50, 100, 200)
MODELS = ("group", "pipeline:1", "pipeline:5", "handler", "handler-recheck")
DEVICES = ("real", "serial:5ms", "serial:1ms", "parallel:1ms")
SYNCS = ("fdatasync", "fsync", "dsync", "none")
SPANS = (60, 300, 1800)  # seconds that a plot looks back


def next_handlers(now: int, direction: int) -> int:
    """Return the next step of handlers above (1) or below (-1) the number now; the number itself at either end."""
    if direction > 0:
        return next((step for step in HANDLER_STEPS if step > now), now)
    return next((step for step in reversed(HANDLER_STEPS) if step < now), now)


def next_choice(shown: str, choices: tuple[str, ...]) -> str:
    """Return the choice after the one a snapshot shows, such as "serial 5 ms (simulated)"; the first if unknown."""
    now = spec_of(shown)
    known = [spec_of(choice) for choice in choices]
    return choices[(known.index(now) + 1) % len(choices)] if now in known else choices[0]


def spec_of(shown: str) -> str:
    """Return what a name shown and the name asked for have in common: `serial5ms` of both spellings."""
    return "".join(c for c in shown.partition(" (")[0] if c.isalnum() or c in ".-")
