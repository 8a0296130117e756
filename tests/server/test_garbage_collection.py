"""Full passes of the garbage collector come in quiet moments, and new objects are looked at a few at a time."""

from __future__ import annotations

import gc
from collections import Counter

import pytest
import trio

from pykbroker.server.runtime.garbage_collection import (
    GarbageCollection,
    no_full_collections,
    passes_between_rounds,
)
from tests.collector import needs_full_passes

FEW, SOME, MANY = 4, 5, 11
"""Collections of the middle generation between two looks: nothing to do yet, a pass, too many for one."""


class World:
    """A process with so much work, and so many new objects between two looks. It is its own collector."""

    def __init__(self, *, busy_share: float, new: int) -> None:
        self.now_s = 0.0
        self.cpu_s = 0.0
        self._busy_share = busy_share
        self._new = new
        self._count = 0
        self._is_frozen = False
        self.passes: Counter[str] = Counter()
        self.full_passes_s: list[int] = []

    def collect(self) -> int:
        if self._is_frozen:
            self.passes["new"] += 1
        else:
            self.full_passes_s.append(round(self.now_s))
        self._count = 0
        return 0

    def freeze(self) -> None:
        self._is_frozen = True
        self._count = 0
        self.passes["freeze"] += 1

    def unfreeze(self) -> None:
        self._is_frozen = False

    def get_count(self) -> tuple[int, int, int]:
        return 0, 0, self._count

    async def sleep(self, seconds: float) -> None:
        await trio.lowlevel.checkpoint()
        self.now_s += seconds
        self.cpu_s += seconds * self._busy_share
        self._count += self._new

    def run(self, seconds: float) -> None:
        self.freeze()  # as a start ends
        trio.run(self._run, seconds)

    async def _run(self, seconds: float) -> None:
        collection = GarbageCollection(self, wall_s=lambda: self.now_s, cpu_s=lambda: self.cpu_s, sleep=self.sleep)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collection.run)
            while self.now_s < seconds:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()


def test_nothing_happens_where_there_is_nothing_new() -> None:
    world = World(busy_share=0.0, new=0)
    world.run(4000)
    assert not world.full_passes_s
    assert not world.passes["new"]


def test_what_is_new_is_looked_at_while_it_is_little() -> None:
    world = World(busy_share=1.0, new=FEW)
    world.run(10)
    assert world.passes["new"] > 10
    assert not world.full_passes_s


def test_what_is_too_much_to_look_at_is_frozen() -> None:
    world = World(busy_share=1.0, new=MANY)
    world.run(1)
    assert not world.passes["new"]
    assert world.passes["freeze"] >= 2


@pytest.mark.parametrize(("busy_share", "first_s"), [(0.05, 600), (0.5, 3600)], ids=["quiet", "busy"])
def test_a_full_pass_waits_for_a_quiet_moment_or_an_hour(busy_share: float, first_s: int) -> None:
    world = World(busy_share=busy_share, new=SOME)
    world.run(3700)
    assert world.full_passes_s[0] == first_s
    assert len(world.full_passes_s) == (6 if first_s == 600 else 1)


@needs_full_passes
def test_cpython_counts_anew_behind_a_freeze() -> None:
    thresholds = gc.get_threshold()
    collection = GarbageCollection()
    gc.set_threshold(100, 2, 10)
    try:
        with no_full_collections():
            kept = [[number] for number in range(20_000)]
            assert gc.get_count()[2] > MANY
            collection._collect_new()
            assert gc.get_count()[2] < FEW
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
    assert kept


def test_what_a_round_makes_and_leaves_sets_off_no_pass() -> None:
    passes: list[str] = []

    def note(phase: str, _info: dict[str, int]) -> None:
        passes.append(phase)

    thresholds = gc.get_threshold()
    was_enabled = gc.isenabled()
    gc.enable()
    gc.set_threshold(700, 10, 10)
    try:
        with passes_between_rounds():
            gc.collect()
            gc.callbacks.append(note)
            for _ in range(20):
                held = [[number] for number in range(2_000)]
                del held
            assert not passes
            held = [[number] for number in range(10_000)]
            assert passes, "what stays is looked at"
        assert gc.get_threshold() == (700, 10, 10)
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*thresholds)
        if not was_enabled:
            gc.disable()
    assert len(held) == 10_000


@needs_full_passes
def test_allocations_set_off_no_full_pass() -> None:
    full_passes = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            full_passes.append(info)

    thresholds = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(700, 10, 10)
    try:
        with no_full_collections():
            kept = [[number] for number in range(1_000_000)]
            assert not full_passes
        kept += [[number] for number in range(1_000_000)]
        assert full_passes, "a process without it has them"
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*thresholds)
    assert len(kept) == 2_000_000
