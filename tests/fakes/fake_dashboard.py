"""The dashboard on the fake engine, for tests in a terminal: `python -m tests.fakes.fake_dashboard [flags]`.

--compile SECONDS spends that long "compiling"; --fail TEXT cannot make its engine; --broken gives snapshots that
nobody can draw; --ascii draws plain.
"""

from __future__ import annotations

import argparse
import sys
import threading

from dashboard.app import run_dashboard
from dashboard.starter import Progress
from engine.errors import TidegaugeError
from tests.fakes.fake_engine import FakeEngine


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--compile", type=float, default=0.0)
    parser.add_argument("--fail", default="")
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--theme")
    parser.add_argument("--ascii", action="store_true", default=None)
    parser.add_argument("--device", default="real")
    flags = parser.parse_args()

    def make_engine(progress: Progress) -> FakeEngine:
        never = threading.Event()
        for done in range(40):
            progress(done, 40)
            never.wait(flags.compile / 40)
        if flags.fail:
            raise TidegaugeError(flags.fail)
        engine = FakeEngine(device=flags.device)
        if flags.broken:
            engine.sample = object  # type: ignore[method-assign]
        return engine

    try:
        return run_dashboard(make_engine, theme=flags.theme, plain=flags.ascii)
    except AttributeError as error:  # the command line turns what is raised into a line
        print(f"raised {type(error).__name__}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
