"""What the screen costs: processor time of the thread that draws, and how soon the first frame is there.

    python -m tests.bench.screen_cost [seconds]

Each size runs the dashboard on the fake engine in a real terminal (tmux), so what is measured is drawing, and reads the
processor time of its threads from /proc from outside. The share of the main thread is the screen; the others sample the
fake engine and write to the terminal. First frames are timed on a pseudo-terminal, from the start of the process and
beside what the imports alone take.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import statistics
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

from tests.bench.rounds import show_target

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-m", "tests.fakes.fake_dashboard"]
SIZES = ((160, 45), (100, 30), (80, 24), (60, 16))
WARM_SECONDS = 6.0
SCREENS = (("wal", "2"), ("overview", "1"), ("ramdisk", "3"), ("sources", "5"))
FIRST_FRAMES = 5
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    if shutil.which("tmux") is None:
        print("screen_cost: needs tmux", file=sys.stderr)
        return 1
    print(f"{'screen':10} {'size':>8} {'screen':>8} {'others':>8}")
    for width, height in SIZES if seconds else ():
        for name, key in SCREENS if (width, height) == SIZES[0] else SCREENS[:1]:
            screen, others = share_of_a_core(width, height, key, seconds)
            print(f"{name:10} {width}x{height:<4} {screen:7.1%} {others:7.1%}", flush=True)
            if (width, height) == SIZES[0]:
                show_target(f"cores that drawing {name} at 160x45, 4 fps takes", screen, most=0.05)
    imports = statistics.median(seconds_of([sys.executable, "-c", "import dashboard.app"]) for _ in range(FIRST_FRAMES))
    first = statistics.median(first_frame() for _ in range(FIRST_FRAMES))
    print(f"first frame {first:.2f} s after the start of the process; a bare import takes {imports:.2f} s")
    show_target("seconds to the first frame after import", first - imports, most=1.0)
    return 0


def share_of_a_core(width: int, height: int, key: str, seconds: float) -> tuple[float, float]:
    """Return the processor time of the main thread and of all others, over time."""
    server = f"tidegauge-bench-{os.getpid()}-{width}-{key}"
    command = f"cd {ROOT} && exec env COLORTERM=truecolor {' '.join(PROGRAM)}"
    tmux("-L", server, "new-session", "-d", "-x", str(width), "-y", str(height), command)
    try:
        process = int(tmux("-L", server, "list-panes", "-F", "#{pane_pid}"))
        wait(WARM_SECONDS)
        tmux("-L", server, "send-keys", key)
        wait(WARM_SECONDS)
        before, began = cpu_ticks(process), time.monotonic()
        wait(seconds)
        after, took = cpu_ticks(process), time.monotonic() - began
    finally:
        tmux("-L", server, "kill-server")
    main_thread = after[process] - before[process]
    others = sum(ticks - before.get(thread, 0) for thread, ticks in after.items() if thread != process)
    return main_thread / TICKS / took, others / TICKS / took


def cpu_ticks(process: int) -> dict[int, int]:
    """Return user and system time of each thread, in clock ticks; the main thread has the process's number."""
    ticks = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        ticks[int(task.name)] = int(fields[11]) + int(fields[12])
    return ticks


def first_frame() -> float:
    """Return the seconds from the start of the process until a frame with words is drawn, kernels still compiling."""
    began = time.monotonic()
    child, master = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        os.execve(sys.executable, [*PROGRAM, "--compile", "30"], {**os.environ, "TERM": "xterm-256color"})
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 160, 0, 0))
    seen = b""
    try:
        while b"compiling" not in seen and time.monotonic() - began < 30:
            if select.select([master], [], [], 0.05)[0]:
                seen += os.read(master, 65536)
        return time.monotonic() - began
    finally:
        os.kill(child, 15)
        drain(master)
        os.waitpid(child, 0)
        os.close(master)


def drain(master: int) -> None:
    try:
        while os.read(master, 65536):
            pass
    except OSError:  # the other end is closed
        pass


def seconds_of(command: list[str]) -> float:
    began = time.monotonic()
    subprocess.run(command, cwd=ROOT, check=True)
    return time.monotonic() - began


def tmux(*words: str) -> str:
    return subprocess.run(["tmux", *words], check=True, capture_output=True, text=True).stdout.strip()


def wait(seconds: float) -> None:
    threading.Event().wait(seconds)


if __name__ == "__main__":
    sys.exit(main())
