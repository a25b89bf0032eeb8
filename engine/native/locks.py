"""Mutexes and conditions for kernels: pthread's, living inside the shared record they guard.

A record reserves MUTEX_BYTES or CONDITION_BYTES for each (`MUTEX` and `CONDITION` are field types) and
`make_mutex` / `make_condition` prepare the zeroed bytes before any thread sees them. Conditions measure
CLOCK_MONOTONIC, so a change of the wall clock neither wakes nor delays anyone.
"""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.native.atomics import address_of
from engine.native.clock import timespec_from
from engine.native.kernel import inner

MUTEX_BYTES = 64  # glibc: 40 on x86-64, 48 on aarch64; padded to a cache line
CONDITION_BYTES = 64  # glibc: 48
MUTEX = np.dtype(("u1", (MUTEX_BYTES,)))
CONDITION = np.dtype(("u1", (CONDITION_BYTES,)))

_pointer = types.uintp
_mutex_lock = types.ExternalFunction("pthread_mutex_lock", types.int32(_pointer))
_mutex_unlock = types.ExternalFunction("pthread_mutex_unlock", types.int32(_pointer))
_cond_wait = types.ExternalFunction("pthread_cond_wait", types.int32(_pointer, _pointer))
_cond_signal = types.ExternalFunction("pthread_cond_signal", types.int32(_pointer))
_cond_broadcast = types.ExternalFunction("pthread_cond_broadcast", types.int32(_pointer))
sched_yield = types.ExternalFunction("sched_yield", types.int32())


def make_mutex(field: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
    """Prepare the bytes of a mutex field, before any thread sees it."""
    _check(_libc().pthread_mutex_init(ctypes.c_void_p(field.ctypes.data), None))


def make_condition(field: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
    """Prepare the bytes of a condition field whose timed waits measure CLOCK_MONOTONIC."""
    libc = _libc()
    attributes = ctypes.create_string_buffer(64)
    _check(libc.pthread_condattr_init(attributes))
    _check(libc.pthread_condattr_setclock(attributes, time.CLOCK_MONOTONIC))
    _check(libc.pthread_cond_init(ctypes.c_void_p(field.ctypes.data), attributes))
    _check(libc.pthread_condattr_destroy(attributes))


@inner
def lock(record, mutex):  # type: ignore[no-untyped-def]
    """Lock the mutex in field `mutex` of `record`."""
    _mutex_lock(address_of(record, mutex))


@inner
def unlock(record, mutex):  # type: ignore[no-untyped-def]
    """Unlock the mutex in field `mutex` of `record`; the caller holds it."""
    _mutex_unlock(address_of(record, mutex))


@inner
def wait(record, condition, mutex):  # type: ignore[no-untyped-def]
    """Wait on `condition`, giving up `mutex` meanwhile. May return early: test again in a loop."""
    _cond_wait(address_of(record, condition), address_of(record, mutex))


@inner
def wait_until(record, condition, mutex, deadline):  # type: ignore[no-untyped-def]
    """Wait as above, at most until monotonic `deadline` ns; return 0 or ETIMEDOUT."""
    return _timed_wait(address_of(record, condition), address_of(record, mutex), deadline)


@inner
def signal(record, condition):  # type: ignore[no-untyped-def]
    """Wake one waiter of `condition`."""
    _cond_signal(address_of(record, condition))


@inner
def broadcast(record, condition):  # type: ignore[no-untyped-def]
    """Wake all waiters of `condition`."""
    _cond_broadcast(address_of(record, condition))


@inner
def wait_at(record, conditions, index, mutex):  # type: ignore[no-untyped-def]
    """Wait on the condition at `index` of a field that holds several; the caller has checked the index."""
    _cond_wait(address_of(record, conditions) + np.uint64(index * CONDITION_BYTES), address_of(record, mutex))


@inner
def signal_at(record, conditions, index):  # type: ignore[no-untyped-def]
    """Wake one waiter of the condition at `index`."""
    _cond_signal(address_of(record, conditions) + np.uint64(index * CONDITION_BYTES))


@inner
def broadcast_at(record, conditions, index):  # type: ignore[no-untyped-def]
    """Wake all waiters of the condition at `index`."""
    _cond_broadcast(address_of(record, conditions) + np.uint64(index * CONDITION_BYTES))


@intrinsic
def _timed_wait(typing_context, condition, mutex, deadline):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        timespec = timespec_from(builder, arguments[2])
        word, result = ir.IntType(64), ir.IntType(32)
        kind = ir.FunctionType(result, [word, word, timespec.type])
        function = cgutils.get_or_insert_function(builder.module, kind, "pthread_cond_timedwait")
        return builder.call(function, [arguments[0], arguments[1], timespec])

    return types.int32(types.uintp, types.uintp, types.int64), build


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _check(error: int) -> None:
    if error:
        raise OSError(error, os.strerror(error))
