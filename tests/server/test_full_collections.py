"""Full passes of the garbage collector come in quiet moments, and not while requests are served."""

from __future__ import annotations

import gc

import pytest
import trio

from pykbroker.server.full_collections import FullCollections, no_full_collections


class World:
    """A process with so much work in each second, and so many passes over new objects since the last full one."""

    def __init__(self, *, busy_share: float, passes: int) -> None:
        self.now_s = 0.0
        self.cpu_s = 0.0
        self.busy_share = busy_share
        self.passes = passes
        self.collected_at_s: list[float] = []

    async def sleep(self, seconds: float) -> None:
        await trio.lowlevel.checkpoint()
        self.now_s += seconds
        self.cpu_s += seconds * self.busy_share

    def collect(self) -> None:
        self.collected_at_s.append(self.now_s)

    async def run(self, seconds: float) -> None:
        collections = FullCollections(
            collect=self.collect,
            passes=lambda: self.passes,
            wall_s=lambda: self.now_s,
            cpu_s=lambda: self.cpu_s,
            sleep=self.sleep,
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collections.run)
            while self.now_s < seconds:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("busy_share", "passes", "first_s"),
    [(0.0, 10, 30), (0.05, 10, 30), (0.0, 9, None), (0.5, 10_000, 600), (1.0, 9, None)],
    ids=["idle", "nearly idle", "nothing to free", "busy", "busy with nothing to free"],
)
def test_a_full_pass_waits_for_a_quiet_second_or_ten_minutes(
    busy_share: float, passes: int, first_s: float | None
) -> None:
    world = World(busy_share=busy_share, passes=passes)
    trio.run(world.run, 601.0)
    assert (world.collected_at_s[:1] or [None]) == [first_s]


def test_a_quiet_broker_does_not_collect_all_the_time() -> None:
    world = World(busy_share=0.0, passes=10)
    trio.run(world.run, 301.0)
    assert len(world.collected_at_s) == 10


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
