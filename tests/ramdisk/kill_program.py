"""Kill a store at a named line, open it again, compare with a ledger; again and again on the same store.

    python -m tests.ramdisk.kill_program RAM_DIR DISK_DIR ROUNDS SEED

One process stays single-threaded and forks: a worker that writes, reads and deletes files until it is killed at the
chosen call of the chosen place, and then a checker that recovers and compares. The ledger is a file that the worker
appends a line to before and after each step, so what it says is what was promised when the worker died:

    writing NAME SEED SIZE POLICY, closed NAME, deleting NAME, deleted NAME, persisted (all closed lazy files are)

Every fifth round the RAM folder is removed between the two, as a reboot would. Prints a line for each mistake.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

from engine.native.kernel import compile_all
from engine.ramdisk.core import StoreSettings
from engine.ramdisk.replica import Checksum, Policy
from engine.ramdisk.store import Store
from engine.storage.file_calls import FileCalls, Place
from engine.units import KIB

BLOCK = 16 * KIB
PLACES = tuple(Place)
WIPE_EVERY = 5
KEPT = 12  # files that live at a time: each round reads them all, so more of them make a round long and test no more


def settings(ram: Path, disk: Path, chance: random.Random) -> StoreSettings:
    return StoreSettings(
        ram_dir=ram,
        disk_dirs=(disk / "one", disk / "two"),
        ram_capacity=12 * (BLOCK + 4096),
        block_size=BLOCK,
        chunk=4096,
        copy_mode=chance.choice(("buffered", "sendfile", "direct", "fadvise")),
        checksum=chance.choice(tuple(Checksum)),
        low_watermark=2 * BLOCK,
    )


def content(seed: int, size: int) -> bytes:
    return np.random.default_rng(seed).bytes(size)


class Ledger:
    """Lines that survive the writer's death."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, *words: object) -> None:
        os.write(self._descriptor, (" ".join(map(str, words)) + "\n").encode())


class Promises:
    """What a ledger says."""

    def __init__(self, path: Path) -> None:
        self.begun: dict[str, tuple[int, int, str]] = {}
        self.closed: set[str] = set()
        self.unsure: set[str] = set()
        self.persisted: set[str] = set()
        self.lost: set[str] = set()
        for line in path.read_text().splitlines() if path.exists() else ():
            verb, *rest = line.split()
            if verb == "writing":
                self.begun[rest[0]] = int(rest[1]), int(rest[2]), rest[3]
                self.unsure.add(rest[0])
            elif verb == "closed":
                self.closed.add(rest[0])
                self.unsure.discard(rest[0])
            elif verb == "deleting":
                self.closed.discard(rest[0])
                self.unsure.add(rest[0])
            elif verb in ("deleted", "forgotten"):
                self.closed.discard(rest[0])
                self.unsure.discard(rest[0])
            elif verb == "persisted":
                self.persisted |= self.closed - self.lost
            elif verb == "lost":
                self.lost.add(rest[0])


def work(ram: Path, disk: Path, ledger: Path, place: Place, nth: int, seed: int) -> None:
    """Use the store until the nth call at `place`, and die there; or at the end."""
    chance, calls = random.Random(seed), Counter[Place]()

    def strike(where: Place) -> None:
        calls[where] += 1
        if where is place and calls[where] == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    store = Store.open(settings(ram, disk, chance), calls=FileCalls(strike))
    names = {info.name for info in store.files()}
    notes = Ledger(ledger)
    for step in range(14):
        name = f"f{seed}-{step}"
        size, policy = chance.randint(1, 4 * BLOCK), chance.choice((Policy.LAZY,) * 6 + (Policy.DISK, Policy.DISK_SYNC))
        notes.note("writing", name, seed * 100 + step, size, policy.value)
        with store.create(name, policy=policy) as file:
            file.write(content(seed * 100 + step, size))
        notes.note("closed", name)
        names.add(name)
        while len(names) > KEPT or (len(names) > 3 and chance.random() < 0.3):
            victim = chance.choice(sorted(names))
            names.discard(victim)
            notes.note("deleting", victim)
            store.delete(victim)
            notes.note("deleted", victim)
        if chance.random() < 0.3:
            readable = [info.name for info in store.files() if not info.lost_bytes]
            if readable:
                store.read(chance.choice(readable))
        if chance.random() < 0.25 and store.wait_persisted(10):
            notes.note("persisted")
    os.kill(os.getpid(), signal.SIGKILL)


def check(ram: Path, disk: Path, ledger: Path, *, wiped: bool, seed: int) -> list[str]:
    """Recover and compare; return the mistakes."""
    said = Promises(ledger)
    notes = Ledger(ledger)
    wrong = []
    with Store.open(settings(ram, disk, random.Random(seed)), held=True) as store:
        found = {info.name: info for info in store.files()}
        named_lost = {file.name for file in store.recovered.lost}
        for name in said.closed - found.keys():
            wrong.append(f"{name} was closed and is not there")
        for name in found.keys() - said.closed - said.unsure:
            wrong.append(f"{name} is there and should not be")
        for name, info in found.items():
            file_seed, size, policy = said.begun[name]
            if info.lost_bytes:
                if name not in named_lost:
                    wrong.append(f"{name} lost blocks and is not named")
                if name not in said.lost and not wiped:
                    wrong.append(f"{name} lost {info.lost_bytes} bytes though memory survived")
                if name in said.persisted or policy != "lazy":
                    wrong.append(f"{name} was persisted ({policy}) and lost {info.lost_bytes} bytes")
                notes.note("lost", name)
            elif store.read(name) != content(file_seed, size):
                wrong.append(f"{name} has other content")
        for name in said.unsure:
            if name not in found:
                notes.note("forgotten", name)
            elif name not in said.closed:
                notes.note("closed", name)
        used = sum(block.stored_bytes for file in store.core.files.values() for block in file.blocks if block.in_ram)
        if store.core.memory.used != used:
            wrong.append(f"memory counts {store.core.memory.used}, the replicas take {used}")
        expected = {block.block_id for file in store.core.files.values() for block in file.blocks}
        for folder in (*ram.glob("tidegauge-*"), disk / "one" / "replicas", disk / "two" / "replicas"):
            for path in folder.iterdir():
                stem, _, kind = path.name.partition(".")
                if kind != "replica" or int(stem, 16) not in expected:
                    wrong.append(f"{path.name} was left over")
    return wrong


def forked(action: object, *arguments: object, **how: object) -> tuple[int, str]:
    """Run in a child; return (wait status, what it printed)."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            result = action(*arguments, **how)  # type: ignore[operator]
            os.write(writing, "\n".join(result or ()).encode()[:60000])
        except BaseException:  # noqa: BLE001 - the parent prints it
            os.write(writing, traceback.format_exc().encode()[:60000])
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode(errors="replace")
    return os.waitpid(child, 0)[1], text


def warm_up(ram: Path, disk: Path) -> None:
    """Use a store once, so that what is imported late is imported before the forks; its threads end with it."""
    with (
        tempfile.TemporaryDirectory(dir=ram) as memory,
        tempfile.TemporaryDirectory(dir=disk) as folder,
        Store.open(settings(Path(memory), Path(folder), random.Random(0))) as store,
    ):
        with store.create("a") as file:
            file.write(content(0, BLOCK))
        store.wait_persisted(10)
        store.read("a")


def main() -> int:
    ram, disk, rounds, seed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    compile_all()
    warm_up(ram, disk)
    ledger, chance = disk / "ledger", random.Random(seed)
    killed, mistakes = Counter[str](), 0
    for number in range(rounds):
        place, nth = PLACES[number % len(PLACES)], chance.randint(1, 12)
        worker_seed = seed * 100_000 + number
        status, text = forked(work, ram, disk, ledger, place, nth, worker_seed)
        if not os.WIFSIGNALED(status):
            print(f"round {number}, {place.name} {nth}: the worker failed: {text}")
            return 1
        wiped = number % WIPE_EVERY == WIPE_EVERY - 1
        if wiped:
            for folder in ram.glob("tidegauge-*"):
                shutil.rmtree(folder)
        status, text = forked(check, ram, disk, ledger, wiped=wiped, seed=worker_seed)
        if text or status:
            mistakes += 1
            print(f"round {number}, {place.name} {nth}{', wiped' if wiped else ''}: {text or status}")
        killed[place.name] += 1
    print(f"{rounds} kills at {len(killed)} places, {mistakes} mistakes", file=sys.stderr)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
