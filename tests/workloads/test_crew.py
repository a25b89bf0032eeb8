"""The crew: handlers come, go, end and fail, and each one's records stay in order."""

from __future__ import annotations

import errno
import os
import resource
import threading

import pytest

from engine.errors import FileTrouble, TidegaugeError
from engine.storage.faults import Fault, Site
from engine.units import MIB, Bytes
from engine.wal.errors import RecordTooLarge
from engine.wal.log import Log
from engine.wal.models import MODEL_NAMES
from engine.workloads import crew as crews
from engine.workloads.crew import Crew, HandlerSettings
from engine.workloads.handlers import expected_payload
from tests.waiting import wait_for
from tests.wal.gate import DEVICE, Gate
from tests.wal.logs import open_log, records_of


def crew_of(log: Log, *, limit: int = 0, sync_every: int = 1, size: int = 64) -> Crew:
    return Crew(log, HandlerSettings(value_size_bytes=Bytes(size), limit=limit, sync_every=sync_every))


@pytest.mark.parametrize("model", MODEL_NAMES)
def test_handlers_come_and_go_and_no_record_of_theirs_is_lost_or_repeated(model, disk_path):
    with open_log(disk_path / "log", model=model) as log:
        crew = crew_of(log)
        for count in (3, 1, 6, 6, 2, 0, 4):
            before = int(crew.records().sum())
            crew.resize(count)
            assert crew.size == count
            if count:
                wait_for(lambda before=before: int(crew.records().sum()) > before + 5, what="commits")
        crew.resize(0)
        assert crew.result() == 0
        committed = crew.records()

    following = dict.fromkeys(range(6), 0)
    for _, payload in records_of(disk_path / "log"):
        number = int.from_bytes(payload[:8], "little")
        assert payload == expected_payload(crew.pool, number, following[number])
        following[number] += 1
    assert list(following.values()) == committed[:6].tolist()


def test_a_handler_at_its_limit_ends_by_itself(disk_path):
    with open_log(disk_path / "log") as log:
        crew = crew_of(log, limit=7)
        crew.resize(3)
        wait_for(lambda: crew.wait(0.01))

        assert crew.records()[:4].tolist() == [7, 7, 7, 0]
        assert crew.span_ns() > 0


def test_a_count_below_none_or_beyond_all_is_the_nearest_that_can_be(disk_path):
    with open_log(disk_path / "log") as log:
        crew = crew_of(log, limit=1)
        crew.resize(-5)

        assert crew.size == 0


def test_a_stopped_log_ends_every_handler_with_its_error(disk_path):
    log = open_log(disk_path / "log")
    crew = crew_of(log)
    crew.resize(8)
    log.arm(Fault(Site.SYNC, 3, code=errno.EIO))

    wait_for(lambda: crew.wait(0.01), what="all handlers to end")

    assert crew.result() == -errno.EIO
    crew.resize(0)
    log.close()


def test_a_closed_log_ends_handlers_as_asked(disk_path):
    log = open_log(disk_path / "log")
    crew = crew_of(log)
    crew.resize(4)
    wait_for(lambda: crew.records().sum() > 10)
    log.close()

    wait_for(lambda: crew.wait(0.01))

    assert crew.result() == 0
    assert log.durable_txid == crew.records().sum()


def test_a_handler_that_failed_counts_anew_once_it_is_started_again(disk_path):
    with open_log(disk_path / "log") as log:
        crew = crew_of(log)
        crew._handlers["result"][0] = -errno.EIO  # of an earlier run
        crew.resize(1)
        wait_for(lambda: crew.records().sum() > 0)
        crew.resize(0)

        assert crew.result() == 0


def test_rows_come_back_when_handlers_end(disk_path):
    with open_log(disk_path / "log") as log:
        crew = crew_of(log)
        for _ in range(5):
            crew.resize(4)
            crew.resize(0)

        assert log._rows.high_water <= 4


def test_values_that_the_log_cannot_take_are_refused_before_a_handler_starts(disk_path):
    with open_log(disk_path / "log") as log, pytest.raises(RecordTooLarge):
        crew_of(log, size=log.max_payload + 1)


def test_no_handler_starts_over_one_that_a_hung_disk_keeps(disk_path, monkeypatch):
    """Both would write the same record of state, and commit the same sequence twice."""
    monkeypatch.setattr(crews, "_JOIN_SECONDS", 0.05)
    with open_log(disk_path / "log", device=DEVICE) as log:
        crew = crew_of(log)
        with Gate(log) as gate:
            crew.resize(3)
            wait_for(lambda: gate.waiting() == 1 and log.watermarks()["waiting"] == 3, what="all to be inside")
            crew.resize(1)  # bounded, though two are still inside

            with pytest.raises(TidegaugeError, match="stopped handlers that are still inside a commit: 2; "):
                crew.resize(3)
            assert crew.size == 1
        wait_for(crew._have_left)
        crew.resize(3)
        wait_for(lambda: crew.records().sum() > 20)
        crew.resize(0)
        wait_for(crew._have_left)


@pytest.mark.parametrize("model", ["handler", "handler-recheck"])
def test_a_handler_that_gets_no_descriptor_does_not_start_and_does_not_stop_the_log(model, disk_path):
    """Found inside a commit, it would be the log's first failed sync."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open_log(disk_path / "log", model=model, segment_size=16 * MIB) as log:  # none is prepared meanwhile
        crew = crew_of(log)
        crew.resize(1)
        wait_for(lambda: log.watermarks()["next_segment"], what="the next segment, which needs a descriptor, too")
        lowest_free = os.dup(0)
        os.close(lowest_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free + 2, hard))
        try:
            with pytest.raises(FileTrouble, match="cannot open the log for one more handler: Too many open files"):
                crew.resize(100)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        before = int(crew.records().sum())
        wait_for(lambda: int(crew.records().sum()) > before, what="the handlers that did start")
        assert log.poison is None


def test_a_handler_that_gets_no_thread_is_told_of_in_one_line(disk_path, monkeypatch):
    class Refused(threading.Thread):
        def start(self) -> None:
            if self.name == "handler-2":
                raise RuntimeError("can't start new thread")
            super().start()

    with open_log(disk_path / "log") as log:
        crew = crew_of(log)
        with monkeypatch.context() as patch:
            patch.setattr(crews.threading, "Thread", Refused)
            with pytest.raises(TidegaugeError, match="handler 3 of 5 did not start: can't start new thread"):
                crew.resize(5)
        assert crew.size == 2
        crew.ask_to_stop()
        wait_for(lambda: crew.wait(0.01))
