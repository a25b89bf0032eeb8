"""An engine with 50 handlers and an exporter, in a process of its own: what the dashboard is measured against.

    python -m tests.bench.bare_engine FOLDER PORT [--busy]

--busy adds a Python thread that never rests: the worst neighbour a library user can put beside handlers. Runs until
its standard input ends.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from dashboard.exporter.server import Exporter
from engine.engine import Engine
from engine.workloads.wal_lane import WalSettings

HANDLERS = 50


def main() -> None:
    folder, port = Path(sys.argv[1]), int(sys.argv[2])
    engine = Engine(WalSettings(path=folder, handlers=HANDLERS))
    exporter = Exporter(engine.sample, port=port)
    engine.start()
    exporter.start()
    if "--busy" in sys.argv[3:]:
        threading.Thread(target=_never_rest, name="busy", daemon=True).start()
    sys.stdin.read()
    exporter.stop()
    engine.stop()


def _never_rest() -> None:
    while True:
        pass


if __name__ == "__main__":
    main()
