"""Steps of one turn of the event loop share a batch of the coordinator's log, and its fate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pykbroker.groups.common.records import offset_commit_record
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from pykbroker.protocol.records.batch import iter_batches, iter_records
from pykbroker.server.coordinators.coordinator_log import encode_batches
from pykbroker.server.coordinators.group_coordinator import CONSUMER_OFFSETS
from pykbroker.state_machine import CoordinatorContext

from .scenarios import beat, commit, fetch
from .world import World, marker, run_simulated

CLIENTS = ("a", "b", "c")


def in_world(main: Callable[[World], Awaitable[None]], **config: str) -> World:
    world = World({"offsets.topic.num.partitions": "1", **{key.replace("_", "."): config[key] for key in config}})

    async def run() -> None:
        world.create_topic("events", 3)
        world.create_topic(CONSUMER_OFFSETS, 1)
        async with world.running():
            await world.sleep(100)
            await main(world)

    run_simulated(run)
    return world


def one(offset: int) -> Any:
    return commit("g", {"events": {0: (offset, "")}})


def records_in_batches(world: World) -> list[int]:
    log = world.partitions[0].log
    data = log.read(0, 1 << 20, max_offset=log.log_end_offset).read()
    return [len(list(iter_records(batch))) for batch in iter_batches(data)]


async def codes_of(answers: list[Awaitable[Any]]) -> list[ErrorCode]:
    return [ErrorCode((await answer).topics[0].partitions[0].error_code) for answer in answers]


def test_commits_that_come_together_are_one_batch() -> None:
    async def main(world: World) -> None:
        answers = [world.start(client, one(number), 9) for number, client in enumerate(CLIENTS)]
        assert await codes_of(answers) == [ErrorCode.NONE] * 3
        await world.call("a", one(7), 9)

    assert records_in_batches(in_world(main)) == [3, 1]


def test_without_a_linger_each_step_is_a_batch() -> None:
    async def main(world: World) -> None:
        await codes_of([world.start(client, one(1), 9) for client in CLIENTS])

    assert records_in_batches(in_world(main, group_coordinator_append_linger_ms="0")) == [1, 1, 1]


def test_a_linger_waits_for_more() -> None:
    async def main(world: World) -> None:
        first = world.start("a", one(1), 9)
        await world.sleep(20)
        second = world.start("b", one(2), 9)
        assert await codes_of([first, second]) == [ErrorCode.NONE] * 2

    assert records_in_batches(in_world(main, group_coordinator_append_linger_ms="50")) == [2]


def test_an_answer_tells_of_nothing_that_is_not_written() -> None:
    """The fetch writes nothing, but what it tells is held."""

    async def main(world: World) -> None:
        writing = world.start("a", one(5), 9)
        await world.sleep(1)
        reading = world.start("b", fetch(9, ["g"], {"events": [0]}, {}), 9)
        beating = world.start("c", beat("other", 1, "m"), 4)
        await world.sleep(10)
        assert world.partitions[0].log.log_end_offset == 0
        world.replicas.failure = ErrorCode.NOT_LEADER_OR_FOLLOWER
        answer: Any = await reading
        assert answer.groups[0].error_code == ErrorCode.NOT_COORDINATOR
        answer = await beating
        assert answer.error_code == ErrorCode.NOT_COORDINATOR
        assert await codes_of([writing]) == [ErrorCode.NOT_COORDINATOR]

    in_world(main, group_coordinator_append_linger_ms="50")


def test_what_is_held_when_the_partition_goes_is_refused_and_not_written() -> None:
    async def main(world: World) -> None:
        writing = world.start("a", one(5), 9)
        await world.sleep(1)
        world.resign(0)
        assert await codes_of([writing]) == [ErrorCode.NOT_COORDINATOR]
        await world.sleep(100)

    assert in_world(main, group_coordinator_append_linger_ms="50").partitions[0].log.log_end_offset == 0


def test_a_failed_append_refuses_everybody_of_the_turn() -> None:
    async def main(world: World) -> None:
        world.replicas.failure = ErrorCode.NOT_ENOUGH_REPLICAS
        codes = await codes_of([world.start(client, one(1), 9) for client in CLIENTS])
        assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3
        world.replicas.failure = None
        assert await world.driver.wait_until_active(0)
        assert await codes_of([world.start("a", one(1), 9)]) == [ErrorCode.NONE]

    assert records_in_batches(in_world(main)) == [1]


def test_a_transactions_records_are_a_batch_of_their_own_behind_what_came_before() -> None:
    async def main(world: World) -> None:
        first = world.start("a", one(1), 9)
        await world.sleep(1)
        partition = TxnOffsetCommitRequestPartition(partition_index=1, committed_offset=5, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id="g",
            producer_id=7,
            topics=[TxnOffsetCommitRequestTopic(name="events", partitions=[partition])],
        )
        await world.driver.submit("g", request, CoordinatorContext(api_version=5))
        assert await codes_of([first]) == [ErrorCode.NONE]
        world.driver.complete_transaction(0, marker(coordinator_epoch=0, is_commit=True))

    world = in_world(main, group_coordinator_append_linger_ms="50")
    log = world.partitions[0].log
    batches = list(iter_batches(log.read(0, 1 << 20, max_offset=log.log_end_offset).read()))
    assert [batch.header.producer_id for batch in batches] == [-1, 7, 7]
    assert [batch.header.is_control for batch in batches] == [False, False, True]


@pytest.mark.parametrize(("max_bytes", "expected"), [(100_000, [30]), (1500, [10, 10, 10]), (700, [7, 3] * 3)])
def test_the_records_of_a_step_stay_together_while_they_fit(max_bytes: int, expected: list[int]) -> None:
    steps = [[offset_commit_record(f"g{step}", "t" * 30, index, None) for index in range(10)] for step in range(3)]
    batches = encode_batches(steps, 1, max_bytes)
    assert [len(list(iter_records(batch))) for batch in batches] == expected
    assert all(len(batch) <= max_bytes for batch in batches)
