"""The keys: one table, which bindings, footer, help and palette all read."""

from __future__ import annotations

from typing import Literal, NamedTuple

from engine.units import MIB

Group = Literal["Screens", "View", "Engine", "RAM disk screen", "Image screen", "Program"]


class Key(NamedTuple):
    """One key. `action` is a method action_NAME of the app, with its arguments."""

    keys: str  # as Textual names them, comma between several
    shown: str
    action: str
    label: str  # one or two words, for the footer
    help: str
    group: Group
    in_footer: bool = False
    lane: str = ""  # the screen that has the key for itself; there it comes before the same key of all others


SCREENS = ("overview", "wal", "ramdisk", "image", "sources")
SCREEN_TITLES = {"overview": "Overview", "wal": "WAL", "ramdisk": "RAM disk", "image": "Image", "sources": "Sources"}

_RAMDISK: tuple[Group, bool, str] = ("RAM disk screen", True, "ramdisk")
_IMAGE: tuple[Group, bool, str] = ("Image screen", True, "image")

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
    Key(
        "plus,equals_sign",
        "+/-",
        "handlers(1)",
        "handlers",
        "more handlers, or fewer: 1 2 5 10 20 50 100 200",
        "Engine",
        True,
    ),
    Key("minus", "-", "handlers(-1)", "fewer", "fewer handlers", "Engine"),
    Key("m", "m", "next('model')", "model", "next write-thread model", "Engine", True),
    Key("d", "d", "next('device')", "device", "next device: real, or a simulated latency", "Engine", True),
    Key("y", "y", "next('sync')", "sync", "next sync mode", "Engine", True),
    Key("f", "f", "faults", "fault", "inject a fault: a stalled sync, an I/O error", "Engine", True),
    Key("s", "s", "ramdisk('stream')", "stream", "start or stop the stream of files", *_RAMDISK),
    Key("plus,equals_sign", "+/-", "ramdisk('faster')", "rate", "a faster stream, or a slower one", *_RAMDISK),
    Key("minus", "-", "ramdisk('slower')", "slower", "a slower stream", "RAM disk screen", False, "ramdisk"),
    Key("m", "m", "ramdisk('copy')", "copy", "next way of copying to disk", *_RAMDISK),
    Key("d", "d", "ramdisk('throttle')", "disk", "next limit of the disk: a simulated slow one", *_RAMDISK),
    Key("y", "y", "ramdisk('checksum')", "checksum", "next checksum mode: on, deferred, off", *_RAMDISK),
    Key("f", "f", "ramdisk('fill')", "fill", "write as fast as it goes until memory is full", *_RAMDISK),
    Key("w", "w", "ramdisk('wipe')", "wipe", "simulate a reboot that takes memory, after a yes", *_RAMDISK),
    Key("s", "s", "image('load')", "load", "load the chosen image; without one, make a synthetic one first", *_IMAGE),
    Key("o", "o", "image('open')", "open", "choose an image from a folder, and load it", *_IMAGE),
    Key("x", "x", "image('cancel')", "cancel", "cancel the load, or let go of the loaded image", *_IMAGE),
    Key("b,enter", "b", "image('browse')", "browse", "go through the tree of the loaded image", *_IMAGE),
    Key("m", "m", "image('strategy')", "strategy", "next strategy: columnar, parent-cache, lean, objects", *_IMAGE),
    Key("plus,equals_sign", "+/-", "image('more')", "threads", "more threads for the next load, or fewer", *_IMAGE),
    Key("minus", "-", "image('fewer')", "fewer", "fewer threads for the next load", "Image screen", False, "image"),
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
CHECKSUMS = ("on", "deferred", "off")
COPY_MODES = ("direct", "fadvise", "buffered", "sendfile")
RATE_STEPS = tuple(rate * MIB for rate in (1, 5, 10, 20, 50, 100, 200, 500, 1000, 0))  # 0: as fast as it goes
THROTTLES = tuple(rate * MIB for rate in (0, 50, 20, 5))  # bytes a second of the simulated slow disk; 0: no limit
STRATEGIES = ("columnar", "parent-cache", "lean", "objects")
STRATEGY_NOTES = {
    "columnar": "",
    "parent-cache": " (as HADOOP-3364; plain Python, one thread)",
    "lean": " (after HADOOP-3248; plain Python, one thread)",
    "objects": " (before HADOOP-3248; plain Python, one thread)",
}
THREAD_STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # of an image's load
SPANS = (60, 300, 1800)  # seconds that a plot looks back


def next_handlers(now: int, direction: int) -> int:
    """Return the next step of handlers above (1) or below (-1) the number now; the number itself at either end."""
    if direction > 0:
        return next((step for step in HANDLER_STEPS if step > now), now)
    return next((step for step in reversed(HANDLER_STEPS) if step < now), now)


def next_threads(now: int, direction: int) -> int:
    """Return the next step of a load's threads above (1) or below (-1) the number now; the number itself at an end."""
    if direction > 0:
        return next((step for step in THREAD_STEPS if step > now), now)
    return next((step for step in reversed(THREAD_STEPS) if step < now), now)


def next_rate(now: int, direction: int) -> int:
    """Return the next faster (1) or slower (-1) rate of a stream; the rate itself at either end."""
    steps = [step or 1 << 62 for step in RATE_STEPS]
    at = now if now > 0 else steps[-1]
    if direction > 0:
        wanted = next((step for step in steps if step > at), at)
    else:
        wanted = next((step for step in reversed(steps) if step < at), at)
    return 0 if wanted == steps[-1] else wanted


def keys_on(screen: str) -> tuple[Key, ...]:
    """Return the keys that work on a screen: its own, and those of all that it does not use for itself."""
    own = {name for key in KEYS if key.lane == screen for name in key.keys.split(",")}
    hidden = "Engine" if screen == "image" else ""  # the log's keys: the app refuses them there
    return tuple(
        key
        for key in KEYS
        if key.lane == screen or (not key.lane and key.group != hidden and not own & set(key.keys.split(",")))
    )


def next_choice(shown: str, choices: tuple[str, ...]) -> str:
    """Return the choice after the one a snapshot shows, such as "serial 5 ms (simulated)"; the first if unknown."""
    now = spec_of(shown)
    known = [spec_of(choice) for choice in choices]
    return choices[(known.index(now) + 1) % len(choices)] if now in known else choices[0]


def spec_of(shown: str) -> str:
    """Return what a name shown and the name asked for have in common: `serial5ms` of both spellings."""
    return "".join(c for c in shown.partition(" (")[0] if c.isalnum() or c in ".-")
