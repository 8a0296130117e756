"""Group commit: how many syncs there are, and who waits for which."""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random
from typing import TypeVar

import pytest
import trio

from pykbroker.server.logs.log_flushes import LogFlushes
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.files.errors import FileError
from pykbroker.storage.files.faulty_disk import Fault, FaultyDisk
from pykbroker.storage.log.log import Log
from tests.api.api_node import in_virtual_time
from tests.storage.batches import NOW_MS, batch, config, open_log

T = TypeVar("T")


class SlowThreads:
    """Each step is done after some seconds, is told after some more, and counts."""

    def __init__(self, before_s: float, after_s: float) -> None:
        self._before_s = before_s
        self._after_s = after_s
        self.started = 0
        self.at_once = 0
        self._now = 0

    async def run(self, fn: Callable[..., T], *args: object) -> T:
        self.started += 1
        self._now += 1
        self.at_once = max(self.at_once, self._now)
        try:
            await trio.sleep(self._before_s)
            result = fn(*args)
            await trio.sleep(self._after_s)
            return result
        finally:
            self._now -= 1


class World:
    def __init__(self, *, before_s: float = 1, after_s: float = 0) -> None:
        inner = SimulatedDisk(Random(1))
        inner.make_directory("/data")
        self.disk = FaultyDisk(inner, Random(1))
        self.threads = SlowThreads(before_s, after_s)
        self.failures: list[FileError] = []
        self.flushes = LogFlushes(self.threads, lambda log, failure: self.failures.append(failure))
        self.log = open_log(self.disk, "/data/t-0", config())

    async def produce(self, log: Log | None = None, done: list[int] | None = None) -> int:
        """Returns the recovery point that the answer saw."""
        log = log or self.log
        end_offset = log.append_as_leader(batch(1), 0, NOW_MS).last_offset + 1
        await self.flushes.flush(log, end_offset)
        if done is not None:
            done.append(end_offset)
        return log.recovery_point


def test_one_flush_serves_everybody_who_came_while_another_was_under_way() -> None:
    async def main() -> None:
        world = World(before_s=0, after_s=1)
        start = trio.current_time()
        ends: dict[int, float] = {}

        async def produce(number: int) -> None:
            recovery_point = await world.produce()
            assert recovery_point > number
            ends[number] = trio.current_time() - start

        async with trio.open_nursery() as nursery:
            nursery.start_soon(produce, 0)
            await trio.sleep(0.5)
            for number in range(1, 65):
                nursery.start_soon(produce, number)
        assert world.threads.started == 2
        assert world.threads.at_once == 1
        assert ends[0] == pytest.approx(1)
        assert [ends[number] for number in range(1, 65)] == pytest.approx([2.0] * 64)

    in_virtual_time(main)


def test_what_the_running_flush_covers_is_not_synced_again() -> None:
    """The thread looks at the log when it begins: who came before that is served by it."""

    async def main() -> None:
        world = World()
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(world.produce)
        assert world.threads.started == 1
        assert world.log.recovery_point == 10

    in_virtual_time(main)


@pytest.mark.parametrize(("count", "started"), [(4, 4), (100, 8)])
def test_logs_are_synced_beside_each_other_and_many_share_threads(count: int, started: int) -> None:
    async def main() -> None:
        world = World()
        logs = [open_log(world.disk, f"/data/u-{index}", config()) for index in range(count)]
        async with trio.open_nursery() as nursery:
            for log in logs:
                nursery.start_soon(world.produce, log)
        assert world.threads.at_once == 4
        assert world.threads.started <= started
        assert [log.recovery_point for log in logs] == [1] * count

    in_virtual_time(main)


def test_who_gives_up_does_not_leave_the_others_waiting() -> None:
    async def main() -> None:
        world = World()
        done: list[int] = []
        async with trio.open_nursery() as nursery:
            with trio.move_on_after(0.5):
                await world.produce()
            nursery.start_soon(world.produce, None, done)
            await trio.sleep(0.1)
            nursery.start_soon(world.produce, None, done)
        assert sorted(done) == [2, 3]
        assert world.log.recovery_point == 3

    in_virtual_time(main)


def test_a_failed_flush_is_told_once_and_ends_the_waiting_of_all() -> None:
    async def main() -> None:
        world = World()
        world.disk.faults = [Fault(errno.EIO, frozenset(["sync"]))]
        seen = []

        async def produce() -> None:
            seen.append(await world.produce())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(produce)
            await trio.sleep(0.5)
            for _ in range(3):
                nursery.start_soon(produce)
        assert seen == [0, 0, 0, 0]
        assert len(world.failures) == 1
        assert not world.disk.syncs_after_failure

    in_virtual_time(main)


def test_a_log_that_is_closed_meanwhile_is_not_waited_for() -> None:
    async def main() -> None:
        world = World()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.produce)
            await trio.sleep(0.5)
            world.log.abandon()
        assert (world.log.recovery_point, world.failures) == (0, [])

    in_virtual_time(main)


def test_a_flush_that_a_truncation_overtook_ends_and_says_so() -> None:
    async def main() -> None:
        world = World(before_s=0, after_s=1)
        for _ in range(10):
            world.log.append_as_leader(batch(1), 0, NOW_MS)
        durable = []

        async def flush(end_offset: int) -> None:
            durable.append((end_offset, await world.flushes.flush(world.log, end_offset)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(flush, 10)
            await trio.sleep(0.5)
            world.log.truncate_to(5)
            await flush(10)
        assert sorted(durable) == [(10, False), (10, False)]
        assert world.threads.started == 1

    in_virtual_time(main)


def test_records_that_took_the_place_of_those_that_were_to_be_flushed_do_not_count_for_them() -> None:
    async def main() -> None:
        world = World(before_s=1, after_s=1)
        for _ in range(10):
            world.log.append_as_leader(batch(1), 0, NOW_MS)
        durable = []

        async def flush() -> None:
            durable.append(await world.flushes.flush(world.log, 10))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(flush)
            await trio.sleep(0.5)
            world.log.truncate_to(5)
            for offset in range(5, 20):
                world.log.append_as_follower(batch(1, base_offset=offset, epoch=1))
            nursery.start_soon(flush)
        assert sorted(durable) == [False, True], "both are told of the same flush"
        assert world.log.recovery_point == 20

    in_virtual_time(main)
