"""The picture in the README: the dashboard itself, on an engine that works on this disk for a minute.

    .venv/bin/python docs/screenshot.py [SECONDS]

Handlers grow from 1 to 50 meanwhile, as somebody who tries it would press +. Needs no terminal.
"""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dashboard.sources import WalControls
    from dashboard.sources.local import LocalSource

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "wal.svg"
SIZE = (120, 36)
STEPS = (1, 5, 20, 50)


def main() -> None:
    """Write docs/images/wal.svg."""
    from dashboard.cli.engine_flags import EngineFlags
    from dashboard.cli.local_engine import local_engine
    from dashboard.cli.progress import Progress
    from dashboard.sources.local import LocalSource
    from engine.units import KIB

    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    flags = EngineFlags(threads=STEPS[0], model="group", device="real", value_size=KIB, sync="fdatasync", path=None)
    with local_engine(flags, Progress(), threading.Event()) as engine:
        source = LocalSource(engine)
        source.start()
        try:
            svg = asyncio.run(_look(source, engine.wal, seconds))
        finally:
            source.close(2.0)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(without_foreign_fonts(svg), encoding="utf-8")


async def _look(source: LocalSource, controls: WalControls, seconds: float) -> str:
    """Show the WAL screen for a while; return it as SVG."""
    from dashboard.app import TideApp
    from dashboard.terminal import Terminal

    app = TideApp(lambda: source, terminal=Terminal("truecolor", plain=False), theme="tide-dark")
    async with app.run_test(size=SIZE) as pilot:
        for handlers in STEPS:
            controls.set_handlers(handlers)
            await _pass(seconds / len(STEPS))
        await pilot.pause()
        return app.export_screenshot(title="tidegauge")


async def _pass(seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), seconds)


def without_foreign_fonts(svg: str) -> str:
    """Return the picture without the fonts that it would fetch from elsewhere; the viewer's own serve."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S).replace("Fira Code", "ui-monospace, monospace")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
