"""Parking: sleeping until a word in memory changes, and waking those who sleep on it (Linux futex).

A condition wakes its waiters into a queue for the mutex. Where a waiter only needs to see that its work is done, it
parks instead: it reads the word under the mutex, lets the mutex go, sleeps while the word is still the same, and looks
at an atomic watermark when it wakes. Whoever changes what is waited for bumps the word under the mutex, and wakes
sleepers once the mutex is free. A bump between reading and parking makes the park return at once: no wake is lost.
"""

from __future__ import annotations

import numpy as np
from numba import types

from engine.native.atomics import address_of
from engine.native.kernel import inner

_SYS_FUTEX = {"x86_64": 202, "aarch64": 98}
_WAIT_PRIVATE, _WAKE_PRIVATE = 128, 129
EVERYONE = np.int64((1 << 31) - 1)


def _futex_number() -> int:
    import platform

    return _SYS_FUTEX.get(platform.machine(), -1)


_NUMBER = np.int64(_futex_number())
_syscall = types.ExternalFunction(
    "syscall", types.int64(types.int64, types.uintp, types.int64, types.int64, types.uintp, types.uintp, types.int64)
)


@inner
def park(record, words, index, seen):  # type: ignore[no-untyped-def]
    """Sleep while word `index` of the int64 field `words` is `seen`; may return early. No lock is held.

    The kernel compares the low 32 bits; the words count bumps, so they would have to wrap while a thread falls asleep.
    """
    low = np.int64(np.uint64(seen) & np.uint64(0xFFFFFFFF))
    address = address_of(record, words) + np.uint64(8 * index)
    _syscall(_NUMBER, address, np.int64(_WAIT_PRIVATE), low, np.uint64(0), np.uint64(0), np.int64(0))


@inner
def unpark(record, words, index, count):  # type: ignore[no-untyped-def]
    """Wake at most `count` threads parked on word `index`; the caller has bumped it. No lock need be held."""
    address = address_of(record, words) + np.uint64(8 * index)
    _syscall(_NUMBER, address, np.int64(_WAKE_PRIVATE), count, np.uint64(0), np.uint64(0), np.int64(0))
