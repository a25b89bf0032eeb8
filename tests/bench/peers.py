"""Peers: embedded stores that make one small value durable per call, opened for that as their manuals say.

All but ours also build an index, and ours only appends: this compares how durable commits are grouped, not databases.
Each `open_*` yields what makes a Python thread's operation; a store that is not installed raises Skipped.
"""

from __future__ import annotations

import importlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.wal.log import Log
from tests.bench.rounds import VALUE_BYTES, Skipped

Operation = Callable[[int], object]
MakeOperation = Callable[[int], Operation]

_VALUES = [os.urandom(VALUE_BYTES) for _ in range(64)]  # random: no store may compress what the others write
_MAP_BYTES = 8 << 30


@contextmanager
def open_ours(path: Path) -> Iterator[MakeOperation]:
    """Log.commit of the default model."""
    with Log.open(path) as log:

        def make(number: int) -> Operation:
            commit = log.commit

            def operation(count: int) -> object:
                if number == 0 and count % 4096 == 0:
                    log.checkpoint(log.durable_txid)  # as the native handlers' run does, so that segments are recycled
                return commit(_value(count))

            return operation

        yield make


@contextmanager
def open_plyvel(path: Path) -> Iterator[MakeOperation]:
    """LevelDB, `put(sync=True)`: it groups commits, and releases Python's lock."""
    store = _installed("plyvel").DB(str(path), create_if_missing=True)
    try:
        yield lambda number: lambda count: store.put(_key(number, count), _value(count), sync=True)
    finally:
        store.close()


@contextmanager
def open_sqlite(path: Path) -> Iterator[MakeOperation]:
    """SQLite in WAL mode with synchronous=FULL, a connection a thread, each insert a transaction."""
    path.mkdir()
    connections = []

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path / "store", timeout=60, isolation_level=None, check_same_thread=False)
        connection.execute("pragma synchronous = full")
        connections.append(connection)
        return connection

    def make(number: int) -> Operation:
        insert = connect().execute
        return lambda count: insert("insert into record (payload) values (?)", (_value(count),))

    first = connect()
    first.execute("pragma journal_mode = wal")
    first.execute("create table record (id integer primary key, payload blob)")
    try:
        yield make
    finally:
        for connection in connections:
            connection.close()


@contextmanager
def open_lmdb(path: Path) -> Iterator[MakeOperation]:
    """LMDB with its default, a synced commit: one writer at a time, no group commit."""
    store = _installed("lmdb").open(str(path), map_size=_MAP_BYTES)

    def make(number: int) -> Operation:
        def operation(count: int) -> None:
            with store.begin(write=True) as transaction:
                transaction.put(_key(number, count), _value(count))

        return operation

    try:
        yield make
    finally:
        store.close()


@contextmanager
def open_rocksdict(path: Path) -> Iterator[MakeOperation]:
    """RocksDB through rocksdict with WriteOptions.sync; a put keeps Python's lock, so nothing can be grouped."""
    rocksdict = _installed("rocksdict")
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    store = rocksdict.Rdict(str(path), options)
    synced = rocksdict.WriteOptions()
    synced.sync = True
    store.set_write_options(synced)
    try:
        yield lambda number: lambda count: store.put(_key(number, count), _value(count))
    finally:
        store.close()


def _installed(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Skipped(f"{module} is not installed: {error}") from error


def _key(number: int, count: int) -> bytes:
    return b"%04d-%08d" % (number, count)


def _value(count: int) -> bytes:
    return _VALUES[count % len(_VALUES)]
