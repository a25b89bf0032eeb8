"""Exit codes: an API for scripts."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What a command says by its exit code."""

    DONE = 0
    FAILED = 1  # the work was tried and did not succeed
    USAGE = 2  # nothing was tried: a command, option or value cannot be used as given
    INTERRUPTED = 130  # Ctrl+C, SIGTERM or SIGHUP; what was measured until then was printed
