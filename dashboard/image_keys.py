"""What the keys of the Image screen do: each asks the lane for something and says so in the footer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dashboard import keys
from dashboard.image_verdict import image_name
from dashboard.image_window import RUNNING
from dashboard.screens.image_browser import BrowserDialog
from dashboard.screens.image_picker import PickedImage, PickerDialog
from engine.snapshot import Absent, ImageSnapshot

if TYPE_CHECKING:
    from dashboard.app import TideApp
    from dashboard.sources import ImageControls

SYNTHETIC_INODES = "1M"


class ImageKeys:
    """One method a key, found by its name in the table of keys."""

    def __init__(self, app: TideApp) -> None:
        self._app = app
        self._folder: Path | None = None  # where the picker was left

    def press(self, what: str) -> None:
        """Do what the table of keys calls `what`."""
        controls = self._app.image_controls()
        if controls is None:
            return
        snapshot = self._app.history.snapshot
        image = snapshot.image if snapshot is not None else Absent("no snapshot yet")
        if isinstance(image, Absent):
            self._app.say(f"no image lane to control: {image.reason}")
        else:
            getattr(self, f"_{what}")(controls, image)

    def _load(self, controls: ImageControls, image: ImageSnapshot) -> None:
        if image.state in RUNNING:
            self._app.say("a load is running; x cancels it")
            return
        controls.start()
        self._app.say(f"loading {image_name(image.next_image)}")

    def _open(self, controls: ImageControls, _: ImageSnapshot) -> None:
        def picked(choice: PickedImage | None) -> None:
            if choice is None:
                self._app.draw_now()
            elif choice.path is None:
                controls.open_synthetic(choice.layout)
                self._app.say(f"loading a synthetic image, {choice.layout}")
            else:
                self._folder = choice.path.parent
                controls.open(choice.path)
                self._app.say(f"loading {choice.path.name}")

        folder = self._folder or _current_folder()
        self._app.push_screen(PickerDialog(folder, SYNTHETIC_INODES, self._app.glyphs), picked)

    def _strategy(self, controls: ImageControls, image: ImageSnapshot) -> None:
        wanted = keys.next_choice(self._app.pending.get("strategy") or image.next_strategy, keys.STRATEGIES)
        self._app.pending.ask("strategy", wanted)
        controls.set_strategy(wanted)
        self._app.say(f"strategy of the next load {self._app.glyphs.arrow} {wanted}{keys.STRATEGY_NOTES[wanted]}")

    def _more(self, controls: ImageControls, image: ImageSnapshot) -> None:
        self._change_threads(controls, image, 1)

    def _fewer(self, controls: ImageControls, image: ImageSnapshot) -> None:
        self._change_threads(controls, image, -1)

    def _change_threads(self, controls: ImageControls, image: ImageSnapshot, direction: int) -> None:
        now = int(self._app.pending.get("image threads") or image.next_threads)
        wanted = keys.next_threads(now, direction)
        if wanted == now:
            self._app.say(f"{now} {'thread' if now == 1 else 'threads'}: no {'more' if direction > 0 else 'fewer'}")
            return
        self._app.pending.ask("image threads", str(wanted))
        controls.set_threads(wanted)
        self._app.say(f"threads of the next load {self._app.glyphs.arrow} {wanted}")

    def _cancel(self, controls: ImageControls, image: ImageSnapshot) -> None:
        if image.state in RUNNING:
            controls.cancel()
            self._app.say("cancelling the load")
        elif image.state == "loaded" and not isinstance(image.summary, Absent):
            controls.cancel()
            self._app.say("letting the image go")
        else:
            self._app.say("nothing to cancel: no load is running and no image is loaded")

    def _browse(self, controls: ImageControls, image: ImageSnapshot) -> None:
        if isinstance(image.summary, Absent):
            self._app.say("no tree to browse: no image is loaded" if image.state not in RUNNING else "still loading")
            return
        name = image_name(image.next_image if image.is_synthetic else image.image)
        dialog = BrowserDialog(name, controls, self._app.glyphs)
        self._app.push_screen(dialog, lambda _: self._app.draw_now())


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:  # it was removed
        return Path("/")
