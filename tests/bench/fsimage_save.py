"""How fast is a namespace of 10 million inodes saved? A NameNode saves 1.7 million a second, and syncs nothing."""

from __future__ import annotations

import os
import statistics
from pathlib import Path
from typing import NamedTuple

from engine.fsimage.load import load_image
from engine.fsimage.save import SaveOptions, save_image
from engine.measure.clock import SystemClock
from tests.bench.fsimage_kit import image_in, name_folder
from tests.bench.rounds import plan, say, show_target, take_turns

INODES = 10_000_000
PLAIN = "protobuf"
CASES = {
    PLAIN: SaveOptions(sub_sections=12),
    "legacy -18": SaveOptions("legacy"),
    "protobuf, lz4": SaveOptions(codec="lz4", sub_sections=12),
}


class Save(NamedTuple):
    """One save: until all was written and hashed, and until it was durable under its name."""

    written: float
    durable: float
    size: int


def main() -> None:
    with plan(__doc__, short=1.0, full=1.0) as how, how.place("saved") as folder:
        folder.mkdir()
        name, maker = name_folder(folder / "name", INODES)
        namespace = load_image(image_in(name), clock=SystemClock(), check_md5=False).namespace
        rows = namespace.rows
        say(f"{rows:,} inodes of {maker}; 2 threads, and one for the MD5")

        def save(options: SaveOptions) -> Save:
            out = folder / "out"
            for old in (out, Path(f"{out}.md5")):
                old.unlink(missing_ok=True)
            os.sync()  # so that no contender pays for what another left behind
            clock = SystemClock()
            began = clock.monotonic_ns()
            saved = save_image(namespace, out, options, clock=clock)
            durable = (clock.monotonic_ns() - began) / 1e9
            (saving,) = (phase for phase in saved.phases if phase.name == "SavingCheckpoint")
            synced = sum(step.elapsed_ns for step in saving.children if step.name == "sync")
            return Save((saving.elapsed_ns - synced) / 1e9, durable, saved.size_bytes)

        turns = take_turns({case: lambda o=options: save(o) for case, options in CASES.items()}, how.rounds)
        say(
            f"{'':16}{'MB':>7}{'written, hashed: s':>20}{'durable: s':>12}{'lowest':>8}{'highest':>9}{'M inodes/s':>12}"
        )
        for case, saves in turns.found.items():
            durable = [each.durable for each in saves]
            middle = statistics.median(durable)
            say(
                f"{case:16}{saves[0].size / 1e6:7,.0f}{statistics.median(s.written for s in saves):20.2f}"
                f"{middle:12.2f}{min(durable):8.2f}{max(durable):9.2f}{rows / middle / 1e6:12.2f}"
            )
        plain = turns.found[PLAIN]
        written = statistics.median(each.written for each in plain)
        show_target("M inodes/s written and hashed, as a NameNode does it", rows / written / 1e6, least=5)
        show_target("M inodes/s durable", rows / statistics.median(each.durable for each in plain) / 1e6, least=5)


if __name__ == "__main__":
    main()
