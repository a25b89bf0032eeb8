"""Phase trees: state, counts and times of what runs, as any thread may ask for them."""

from __future__ import annotations

import msgspec
import pytest

from engine.measure.phases import Phase, PhaseSnapshot, PhaseTree
from engine.units import SECOND, Bytes
from tests.fakes.fake_clock import FakeClock
from tests.waiting import run_threads


class FakeProcessor:
    """Processor time of a thread, moved by hand."""

    def __init__(self) -> None:
        self.spent = 0

    def __call__(self) -> int:
        return self.spent


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def processor() -> FakeProcessor:
    return FakeProcessor()


@pytest.fixture
def tree(clock: FakeClock, processor: FakeProcessor) -> PhaseTree:
    return PhaseTree(clock, processor)


def only(tree: PhaseTree) -> PhaseSnapshot:
    (phase,) = tree.snapshot()
    return phase


def test_a_phase_goes_from_pending_through_running_to_complete(tree: PhaseTree) -> None:
    tree.announce("LoadingFsImage")
    states = [only(tree).state]

    with tree.phase("LoadingFsImage"):
        states.append(only(tree).state)
    states.append(only(tree).state)

    assert states == ["pending", "running", "complete"]


def test_elapsed_time_runs_while_the_phase_does_and_then_stays(tree: PhaseTree, clock: FakeClock) -> None:
    with tree.phase("LoadingEdits"):
        clock.advance(30)
        during = only(tree).elapsed_ns
        clock.advance(12)
    clock.advance(1000)

    assert (during, only(tree).elapsed_ns) == (30 * SECOND, 42 * SECOND)


def test_processor_time_is_that_of_the_phase_and_known_at_its_end(tree: PhaseTree, processor: FakeProcessor) -> None:
    processor.spent = 5
    with tree.phase("LoadingFsImage"):
        processor.spent = 25
        during = only(tree).cpu_ns

    assert (during, only(tree).cpu_ns) == (None, 20)


def test_counts_and_bytes_add_up(tree: PhaseTree) -> None:
    with tree.phase("LoadingFsImage", size_bytes=Bytes(921)) as phase:
        phase.advance(4, read=100)
        phase.advance(2, read=50)
        phase.advance()

    assert (only(tree).count, only(tree).read_bytes, only(tree).size_bytes) == (7, 150, 921)


def test_no_count_is_lost_when_threads_advance_one_phase(tree: PhaseTree) -> None:
    def advance(phase: Phase) -> None:
        for _ in range(5_000):
            phase.advance(2, read=3)

    with tree.phase("Inodes") as phase:
        run_threads(*[lambda: advance(phase)] * 4)

    assert (only(tree).count, only(tree).read_bytes) == (40_000, 60_000)


def test_children_stand_inside_their_phase_in_the_order_they_were_named(tree: PhaseTree) -> None:
    with tree.phase("LoadingFsImage") as loading:
        loading.announce("Inodes")
        loading.announce("DelegationTokens")
        with loading.phase("Inodes") as inodes:
            inodes.announce("CachePools")

    assert [(depth, phase.name, phase.state) for depth, phase in only(tree).walk()] == [
        (0, "LoadingFsImage", "complete"),
        (1, "Inodes", "complete"),
        (2, "CachePools", "pending"),
        (1, "DelegationTokens", "pending"),
    ]


def test_a_phase_that_an_exception_leaves_is_failed_with_its_time(tree: PhaseTree, clock: FakeClock) -> None:
    with pytest.raises(ValueError, match="damaged"), tree.phase("LoadingFsImage", total=10) as phase:
        phase.advance(4)
        clock.advance(9)
        raise ValueError("damaged")

    failed = only(tree)
    assert (failed.state, failed.elapsed_ns, failed.share_done) == ("failed", 9 * SECOND, 0.4)


def test_a_phase_that_runs_again_goes_on_with_its_totals(tree: PhaseTree, clock: FakeClock) -> None:
    for _ in range(2):
        with tree.phase("SavingCheckpoint") as phase:
            phase.advance(3)
            clock.advance(10)

    assert (only(tree).count, only(tree).elapsed_ns) == (6, 20 * SECOND)


def test_a_phase_does_not_run_twice_at_once(tree: PhaseTree) -> None:
    with tree.phase("SafeMode"):
        with pytest.raises(RuntimeError, match="SafeMode is running already"), tree.phase("SafeMode"):
            pass
        assert only(tree).state == "running"


def test_what_was_not_known_when_a_phase_was_announced_may_be_said_later(tree: PhaseTree) -> None:
    tree.announce("Inodes")
    before = only(tree).total

    with tree.phase("Inodes", total=20) as phase:
        at_begin = only(tree).total
        phase.expect(30)

    assert (before, at_begin, only(tree).total) == (None, 20, 30)


def leaf(count: int, total: int | None, *children: PhaseSnapshot, state: str = "running") -> PhaseSnapshot:
    return msgspec.convert(
        {
            "name": "phase",
            "state": state,
            "count": count,
            "total": total,
            "read_bytes": 0,
            "size_bytes": None,
            "elapsed_ns": 0,
            "cpu_ns": None,
            "children": [msgspec.to_builtins(child) for child in children],
        },
        PhaseSnapshot,
    )


@pytest.mark.parametrize(
    ("phase", "share"),
    [
        pytest.param(leaf(0, 10), 0.0, id="begun"),
        pytest.param(leaf(5, 20), 0.25, id="a-quarter"),
        pytest.param(leaf(25, 20), 1.0, id="more-than-was-expected"),
        pytest.param(leaf(5, None), 0.0, id="no-total-known"),
        pytest.param(leaf(0, 0), 0.0, id="nothing-to-do"),
        pytest.param(leaf(0, None, state="complete"), 1.0, id="complete"),
        pytest.param(leaf(0, None, leaf(10, 20), leaf(0, 20)), 0.25, id="sum-of-its-steps"),
        pytest.param(leaf(0, None, leaf(30, 20), leaf(0, 20)), 0.5, id="a-step-beyond-its-total-counts-as-done"),
    ],
)
def test_the_share_done_follows_the_namenodes_rule(phase: PhaseSnapshot, share: float) -> None:
    assert phase.share_done == share


def test_a_snapshot_keeps_its_values_while_the_phase_goes_on(tree: PhaseTree) -> None:
    with tree.phase("Inodes") as phase:
        phase.advance(1)
        early = tree.snapshot()
        phase.advance(1)

        assert [snapshot.count for snapshot in early] == [1]
        assert only(tree).count == 2


def test_a_snapshot_survives_the_wire(tree: PhaseTree) -> None:
    with tree.phase("LoadingFsImage", total=3, size_bytes=Bytes(10)) as loading, loading.phase("Inodes") as inodes:
        inodes.advance(2)
        snapshot = tree.snapshot()

    assert msgspec.msgpack.decode(msgspec.msgpack.encode(snapshot), type=tuple[PhaseSnapshot, ...]) == snapshot
