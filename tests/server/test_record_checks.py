"""Checks that take long: what they leave to others, what they do in threads, and what ends them."""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable
from mmap import mmap
from typing import TypeVar, TypeVarTuple, Unpack

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.protocol.errors import ApiError
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.checking import TURN_UNITS
from pykbroker.protocol.records.compression import Compression, LargePayload
from pykbroker.server.logs.record_checks import RecordChecks, proceed
from pykbroker.server.runtime.fair_queue import FairShare
from pykbroker.server.runtime.threads import OnTheLoop, WorkerThreads
from pykbroker.storage.log.log import LogConfig
from pykbroker.storage.segments.validation import CheckedBatch, budget_of_request, client_batch_steps

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

NOW_MS = 1_700_000_000_000


class CountingThreads(OnTheLoop):
    """Jobs that are under way at the same time; each waits until the others had a chance to begin."""

    def __init__(self) -> None:
        self.running = self.most = self.runs = 0
        self.most_large = 0
        self._large: list[weakref.ref[mmap]] = []

    async def run(self, fn: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        self.running += 1
        self.runs += 1
        self.most = max(self.most, self.running)
        try:
            for _ in range(3):
                await trio.lowlevel.checkpoint()
            result = fn(*args)
            if isinstance(result, LargePayload) and isinstance(result.data, mmap):
                self._large = [each for each in self._large if each() is not None] + [weakref.ref(result.data)]
                self.most_large = max(self.most_large, len(self._large))
            return result
        finally:
            self.running -= 1


def batch(count: int, compression: Compression = Compression.NONE, value_size: int = 0) -> bytes:
    """Of records that have no neighbours of their length."""
    records = [Record(None, bytes(value_size + index % 2), (), NOW_MS) for index in range(count)]
    return encode_batch(records, compression=compression)


async def check(checks: RecordChecks, data: bytes, client: FairShare) -> CheckedBatch:
    budget = budget_of_request(len(data))
    config = LogConfig.from_properties({"max.message.bytes": str(1 << 30)})
    steps = client_batch_steps(data, config, NOW_MS, budget)
    found = proceed(steps.__next__)
    assert not isinstance(found, CheckedBatch), "this is done at once"
    return await checks.finish(found, steps, budget, client)


def run(test: Callable[[], Awaitable[None]]) -> None:
    trio.run(test)


class Steps(trio.abc.Instrument):
    """Which tasks had a step, in their order."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.names.append(task.name)


async def tick() -> None:
    while True:
        await trio.lowlevel.checkpoint()


def test_others_have_a_turn_after_each_turn_of_all_checks_together() -> None:
    data = batch(20_000)

    async def main() -> None:
        checks, steps = RecordChecks(OnTheLoop()), Steps()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick, name="others")
            trio.lowlevel.add_instrument(steps)
            async with trio.open_nursery() as checking:
                for number in range(5):
                    checking.start_soon(check, checks, data, FairShare(), name=f"check {number}")
            trio.lowlevel.remove_instrument(steps)
            nursery.cancel_scope.cancel()
        turns = 5 * 20_000 / TURN_UNITS
        assert steps.names.count("others") >= turns

    run(main)


@pytest.mark.parametrize("codec", [codec for codec in Compression if codec is not Compression.NONE])
def test_what_decompresses_to_much_is_decompressed_in_a_thread(codec: Compression) -> None:
    async def main() -> None:
        threads = CountingThreads()
        found = await check(RecordChecks(threads), batch(50, codec, 20_000), FairShare())
        assert found.header.records_count == 50
        assert threads.runs == 1

    run(main)


def test_few_threads_work_for_checks_at_the_same_time() -> None:
    async def main() -> None:
        threads = CountingThreads()
        checks = RecordChecks(threads)
        async with trio.open_nursery() as nursery:
            for _ in range(30):
                nursery.start_soon(check, checks, batch(50, Compression.ZSTD, 20_000), FairShare())
        assert threads.runs == 30
        assert threads.most == 2

    run(main)


def test_one_check_at_a_time_has_the_memory_of_a_large_one() -> None:
    large = batch(2, Compression.ZSTD, 10 << 20)

    async def main() -> None:
        threads = CountingThreads()
        checks = RecordChecks(threads)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(check, checks, large, FairShare())
        assert threads.runs == 6  # each was tried as one of a medium size first
        assert threads.most_large == 1

    run(main)


def test_damage_that_a_thread_finds_is_the_refusal_of_the_batch() -> None:
    good, bomb = batch(50, Compression.LZ4, 20_000), batch(2, Compression.ZSTD, 40 << 20)

    async def main() -> None:
        checks, client = RecordChecks(WorkerThreads()), FairShare()
        for data, reason in ((bomb, "decompresses to more than"), (good[:-1] + b"\x01", "checksum")):
            with pytest.raises(ApiError, match=reason):
                await check(checks, data, client)
        assert (await check(checks, good, client)).header.records_count == 50

    run(main)


def test_a_check_whose_client_has_left_ends_and_leaves_its_places() -> None:
    data = batch(100_000, Compression.GZIP)

    async def main() -> None:
        checks, steps = RecordChecks(CountingThreads()), Steps()
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(check, checks, data, FairShare())
            for _ in range(20):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        trio.lowlevel.add_instrument(steps)
        await wait_all_tasks_blocked()
        trio.lowlevel.remove_instrument(steps)
        assert len(steps.names) < 10
        assert (await check(checks, data, FairShare())).header.records_count == 100_000

    run(main)


def test_a_small_check_does_not_wait_for_the_large_ones_of_others() -> None:
    hostile, honest = batch(40_000), batch(4_000)

    async def main() -> None:
        checks, done = RecordChecks(OnTheLoop()), list[str]()

        async def one(name: str, data: bytes, client: FairShare) -> None:
            await check(checks, data, client)
            done.append(name)

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(one, "hostile", hostile, FairShare())
            await trio.lowlevel.checkpoint()
            for _ in range(3):
                await one("honest", honest, FairShare())
                assert done.count("hostile") == 0
        assert done.count("hostile") == 20

    run(main)
