"""What the keys of the RAM disk screen do: each asks the lane for something and says so in the footer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import keys
from dashboard.screens.dialogs import ConfirmDialog
from engine.snapshot import Absent, RamdiskSnapshot
from engine.units import format_size

if TYPE_CHECKING:
    from dashboard.app import TideApp
    from dashboard.sources import RamdiskControls


class RamdiskKeys:
    """One method a key, found by its name in the table of keys."""

    def __init__(self, app: TideApp) -> None:
        self._app = app

    def press(self, what: str) -> None:
        """Do what the table of keys calls `what`."""
        controls = self._app.ramdisk_controls()
        if controls is None:
            return
        snapshot = self._app.history.snapshot
        ram = snapshot.ramdisk if snapshot is not None else Absent("no snapshot yet")
        if isinstance(ram, RamdiskSnapshot):
            getattr(self, f"_{what}")(controls, ram)
        elif what == "stream":
            controls.start()
            self._app.say("trying to open the RAM disk")
        else:
            self._app.say(f"no RAM disk to control: {ram.reason}")

    def _stream(self, controls: RamdiskControls, ram: RamdiskSnapshot) -> None:
        if (self._app.pending.get("stream") or ram.state) == "streaming":
            self._app.pending.ask("stream", "idle")
            controls.stop()
            self._app.say("stopping the stream; the lazy writer goes on")
        else:
            self._app.pending.ask("stream", "streaming")
            controls.start()
            self._app.say("starting the stream")

    def _faster(self, controls: RamdiskControls, ram: RamdiskSnapshot) -> None:
        self._change_rate(controls, ram, 1)

    def _slower(self, controls: RamdiskControls, ram: RamdiskSnapshot) -> None:
        self._change_rate(controls, ram, -1)

    def _change_rate(self, controls: RamdiskControls, ram: RamdiskSnapshot, direction: int) -> None:
        now = int(self._app.pending.get("stream rate") or ram.stream_rate_bytes)
        wanted = keys.next_rate(now, direction)
        if wanted == now:
            self._app.say(f"{shown_rate(now)}: no {'more' if direction > 0 else 'less'}")
            return
        self._app.pending.ask("stream rate", str(wanted))
        controls.set_rate(wanted)
        self._app.say(f"stream {self._app.glyphs.arrow} {shown_rate(wanted)}")

    def _checksum(self, controls: RamdiskControls, ram: RamdiskSnapshot) -> None:
        wanted = self._next("checksum", ram.checksum, keys.CHECKSUMS)
        controls.set_checksum(wanted)
        self._app.say(f"checksums of new files {self._app.glyphs.arrow} {wanted}")

    def _copy(self, controls: RamdiskControls, ram: RamdiskSnapshot) -> None:
        wanted = self._next("copy", ram.copy_mode, keys.COPY_MODES)
        controls.set_copy_mode(wanted)
        self._app.say(f"copy mode {self._app.glyphs.arrow} {wanted}")

    def _throttle(self, controls: RamdiskControls, ram: RamdiskSnapshot) -> None:
        limits = tuple(str(limit) for limit in keys.THROTTLES)
        wanted = int(self._next("throttle", str(ram.persist_rate_bytes), limits))
        controls.set_persist_rate(wanted)
        shown = f"limited to {format_size(wanted)}/s (simulated slow disk)" if wanted else "as fast as it is"
        self._app.say(f"disk {self._app.glyphs.arrow} {shown}")

    def _fill(self, controls: RamdiskControls, ram: RamdiskSnapshot) -> None:
        self._app.pending.ask("stream", "streaming")
        controls.fill()
        self._app.say(f"filling {format_size(ram.capacity_bytes)} of memory as fast as it goes")

    def _wipe(self, controls: RamdiskControls, ram: RamdiskSnapshot) -> None:
        words = [
            "A simulated reboot: everything that is in memory only is lost.",
            f"At risk now: {ram.backlog_blocks:,} blocks, {format_size(ram.backlog_bytes)}.",
            "What is persisted stays; files that lose a block are named in the events.",
        ]

        def answered(agreed: bool | None) -> None:
            if agreed:
                controls.wipe()
                self._app.say("simulated reboot: memory is wiped, the store opens again")
            else:
                self._app.draw_now()

        self._app.push_screen(ConfirmDialog("wipe the RAM disk?", words, self._app.glyphs), answered)

    def _next(self, what: str, shown: str, choices: tuple[str, ...]) -> str:
        wanted = keys.next_choice(self._app.pending.get(what) or shown, choices)
        self._app.pending.ask(what, wanted)
        return wanted


def shown_rate(rate: int) -> str:
    """Write a stream's rate."""
    return f"{format_size(rate)}/s" if rate > 0 else "as fast as it goes"
