"""How fast does a protobuf image of 10 million inodes load, beside a real NameNode that loads the same file?"""

from __future__ import annotations

from pathlib import Path

from tests.bench.fsimage_kit import Load, image_in, load, median, name_folder, show_loads, warm
from tests.bench.namenode import NameNodeRun, run_namenode
from tests.bench.rounds import Plan, plan, ratio, say, show_target, take_turns

INODES = 10_000_000
NAMENODE = "NameNode"


def main() -> None:
    with plan(__doc__, short=1.0, full=1.0, rounds=3) as how, how.place("name") as made:
        folder, maker = name_folder(made, INODES)
        image = image_in(folder)
        warm(image)
        say(f"image of {maker}: {image.stat().st_size / 1e6:,.0f} MB")

        def ours(threads: int) -> Load:
            return load(image, threads)

        turns = take_turns(
            {"1 thread": lambda: ours(1), "2 threads": lambda: ours(2), NAMENODE: lambda: _namenode(how, folder)},
            how.rounds,
        )
        theirs: list[NameNodeRun] = turns.found.pop(NAMENODE, [])  # type: ignore[assignment]
        loads: dict[str, list[Load]] = turns.found  # type: ignore[assignment]
        show_loads(loads)
        one, two = loads.values()
        rows, took = two[0].rows, median(two, "seconds")
        show_target("M inodes/s on 2 threads", rows / took / 1e6, least=5)
        show_target("2 threads against 1", ratio(_seconds(one), _seconds(two)), least=1.6)
        if not theirs:
            say(f"{NAMENODE}: skipped: {turns.skipped.get(NAMENODE, '')}")
            return
        heap = median(theirs, "heap") / rows
        mine = median(two, "held") / rows
        say(
            f"{NAMENODE}: {median(theirs, 'seconds'):.1f} s, {rows / median(theirs, 'seconds') / 1e6:.2f} M inodes/s, "
            f"{heap:.0f} B of heap an inode after a collection; ours {mine:.0f} B with names"
        )
        show_target("against the NameNode (parallel load)", ratio(_seconds(theirs), _seconds(two)), least=8)
        show_target("memory, of the NameNode's heap", mine / heap, most=1 / 3)


def _namenode(how: Plan, folder: Path) -> NameNodeRun:
    with how.place("namenode") as work:
        return run_namenode(folder, work)


def _seconds(runs: list[Load] | list[NameNodeRun]) -> list[float]:
    return [each.seconds for each in runs]


if __name__ == "__main__":
    main()
