"""A store under random use, restarts and lost memory, against a dict."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.ramdisk.errors import FileLost, NoSuchFile
from engine.ramdisk.replica import Checksum, Policy, State
from tests.ramdisk.store_kit import SHM, Kit, content, put
from tests.waiting import wait_for

BLOCK = 8192


class StoreMachine(RuleBasedStateMachine):
    """One store for a whole run; `files` is the truth, `safe` what a reboot may not lose."""

    def __init__(self) -> None:
        super().__init__()
        self.ram = Path(tempfile.mkdtemp(prefix="tidegauge-test-", dir=SHM))
        self.disk = Path(tempfile.mkdtemp(prefix="tidegauge-test-", dir="/var/tmp"))
        self.kit = Kit(self.ram, self.disk, volumes=2)
        self.store = self.kit.open(block_size=BLOCK, chunk=512, ram_capacity=5 * (BLOCK + 4096), low_watermark=BLOCK)
        self.files: dict[str, tuple[bytes, Policy]] = {}
        self.safe: set[str] = set()
        self.lost: set[str] = set()
        self.number = 0

    @rule(
        size=st.integers(0, 4 * BLOCK),
        policy=st.sampled_from([Policy.LAZY, Policy.LAZY, Policy.DISK, Policy.DISK_SYNC]),
        checksum=st.sampled_from(list(Checksum)),
    )
    def write(self, size: int, policy: Policy, checksum: Checksum) -> None:
        self.number += 1
        name, data = f"f{self.number}", content(self.number, size)
        put(self.store, name, data, policy=policy, checksum=checksum)
        self.files[name] = data, policy
        if policy is not Policy.LAZY or not size:
            self.safe.add(name)

    @precondition(lambda self: self.files)
    @rule(pick=st.randoms(), offset=st.integers(0, 4 * BLOCK), size=st.integers(0, 2 * BLOCK))
    def read(self, pick, offset: int, size: int) -> None:  # type: ignore[no-untyped-def]
        name = pick.choice(sorted(self.files))
        if name in self.lost:
            with pytest.raises(FileLost):
                self.store.read(name)
        else:
            assert self.store.read(name, offset, size) == self.files[name][0][offset : offset + size]

    @precondition(lambda self: self.files)
    @rule(pick=st.randoms())
    def delete(self, pick) -> None:  # type: ignore[no-untyped-def]
        name = pick.choice(sorted(self.files))
        self.store.delete(name)
        del self.files[name]
        self.lost.discard(name)
        with pytest.raises(NoSuchFile):
            self.store.read(name)

    @rule()
    def persist(self) -> None:
        self.store.hold_persist(False)
        assert self.store.wait_persisted(20)
        self.safe |= self.files.keys() - self.lost

    @rule(held=st.booleans(), mode=st.sampled_from(["buffered", "sendfile", "direct", "fadvise"]))
    def set_controls(self, held: bool, mode: str) -> None:
        self.store.hold_persist(held)
        self.store.set_copy_mode(mode)

    @rule(held=st.booleans())
    def restart(self, held: bool) -> None:
        self.store.close()
        self.store = self.kit.open(held=held)
        assert {lost.name for lost in self.store.recovered.lost} == self.lost

    @rule()
    def reboot(self) -> None:
        self.store.close()
        for folder in self.ram.glob("*"):
            shutil.rmtree(folder)
        self.store = self.kit.open()
        lost = {lost.name for lost in self.store.recovered.lost}
        assert self.lost <= lost
        assert not (lost - self.lost) & self.safe
        self.lost = lost
        for name in self.files.keys() - lost:  # what is not named is whole
            assert self.store.read(name) == self.files[name][0]

    @invariant()
    def sums_agree(self) -> None:
        wait_for(self._sums_agree)  # a block that was deleted while it was copied is counted until the copy ends
        assert {info.name for info in self.store.files()} == self.files.keys()

    def _sums_agree(self) -> bool:
        core = self.store.core
        with core.guard:
            assert core.memory.reserved == 0
            assert core.memory.used + core.memory.spare <= core.memory.capacity
            blocks = [block for file in core.files.values() for block in file.blocks]
            assert core.tracker.backlog_bytes == sum(b.length for b in blocks if b.state is State.AT_RISK)
            return core.memory.used == sum(b.stored_bytes for b in blocks if b.in_ram)

    def teardown(self) -> None:
        self.kit.close_all()
        shutil.rmtree(self.ram)
        shutil.rmtree(self.disk)


StoreMachine.TestCase.settings = hypothesis.settings(
    max_examples=12,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    phases=(hypothesis.Phase.generate,),
)
TestStore = StoreMachine.TestCase
