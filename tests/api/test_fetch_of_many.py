"""Fetches of many partitions are read for in turns: what happens between two turns is not missed, and counts once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import trio

from pykbroker.api.fetch import fetch
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from pykbroker.replication.isr import Replica
from pykbroker.replication.partition import Partition
from pykbroker.server.replicas.delayed_fetch import READ_AT_ONCE
from pykbroker.server.runtime.turns import STEPS_PER_TURN
from tests.api.api_node import ApiNode, in_virtual_time

VERSION = 17
MANY = 1500
"""In several turns."""
MAX_WAIT_MS = 10_000
FOLLOWER, CONSUMER = 2, -1


@pytest.fixture
def crowded(node: ApiNode) -> ApiNode:
    node.create_topic("apples", MANY, replicas=[1, 2])
    return node


def request(node: ApiNode, *offsets: tuple[int, int], replica_id: int = FOLLOWER, max_wait_ms: int = 0) -> FetchRequest:
    asked = [FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=99) for index, offset in offsets]
    return FetchRequest(
        replica_state=ReplicaState(replica_id=replica_id),
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1000,
        session_epoch=0,
        topics=[FetchTopic(topic_id=node.image.topics["apples"].topic_id, partitions=asked)],
    )


def everything(node: ApiNode, **options: Any) -> FetchRequest:
    return request(node, *((index, 0) for index in range(MANY)), **options)


def follower_state(node: ApiNode, index: int) -> Replica:
    return node.partition("apples", index).in_sync.followers[FOLLOWER]


class Reads:
    """Of all partitions, as they come; behind half of them something happens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.meanwhile: Callable[[], None] | None = None
        read = Partition.read

        def counted(*args: Any, **options: Any) -> Any:
            self.count += 1
            if self.count == MANY // 2 and self.meanwhile is not None:
                self.meanwhile()
            return read(*args, **options)

        monkeypatch.setattr(Partition, "read", counted)


@pytest.fixture
def reads(crowded: ApiNode, monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def fetch_now(node: ApiNode, asked: FetchRequest, number: int = 1) -> tuple[FetchResponse, float]:
    """The answer, and how long it took."""

    async def run() -> tuple[FetchResponse, float]:
        began = trio.current_time()
        response = await node.call(fetch, asked, VERSION, number=number)
        return response, trio.current_time() - began

    return in_virtual_time(run)


def at_once(call: Coroutine[Any, Any, Any]) -> None:
    """What has nothing to wait for, in the midst of something else."""
    with pytest.raises(StopIteration):
        call.send(None)


@pytest.mark.parametrize("replica_id", [FOLLOWER, CONSUMER])
@pytest.mark.parametrize("index", [0, MANY - 1])
def test_what_is_appended_between_two_turns_ends_the_wait(
    crowded: ApiNode, reads: Reads, replica_id: int, index: int
) -> None:
    if replica_id == CONSUMER:
        for each in range(MANY):
            crowded.change_partition("apples", each, isr=[1])
    reads.meanwhile = lambda: crowded.append("apples", b"a", index=index)
    response, took_s = fetch_now(crowded, everything(crowded, replica_id=replica_id, max_wait_ms=MAX_WAIT_MS))
    assert took_s < 1
    assert [each.partition_index for each in response.responses[0].partitions if each.records] == [index]


def test_what_is_appended_right_behind_the_reads_of_one_turn_ends_the_wait(crowded: ApiNode, reads: Reads) -> None:
    for index in range(READ_AT_ONCE):
        crowded.change_partition("apples", index, isr=[1])
    offsets = ((index, 0) for index in range(READ_AT_ONCE))
    asked = request(crowded, *offsets, replica_id=CONSUMER, max_wait_ms=MAX_WAIT_MS)

    async def append() -> None:
        while reads.count < READ_AT_ONCE:
            await trio.lowlevel.checkpoint()
        crowded.append("apples", b"a", index=0)

    async def run() -> tuple[FetchResponse, float]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(append)
            began = trio.current_time()
            response = await crowded.call(fetch, asked, VERSION)
            return response, trio.current_time() - began

    response, took_s = in_virtual_time(run)
    assert took_s < 1
    assert [each.partition_index for each in response.responses[0].partitions if each.records] == [0]


def test_what_a_later_request_tells_is_not_taken_back_by_the_turns_of_an_earlier_one(
    crowded: ApiNode, reads: Reads
) -> None:
    last = MANY - 1
    crowded.append("apples", b"a", index=last)

    def tell() -> None:
        assert follower_state(crowded, last).log_end_offset == -1
        at_once(crowded.call(fetch, request(crowded, (last, 1)), VERSION, number=2))
        assert follower_state(crowded, last).log_end_offset == 1

    reads.meanwhile = tell
    fetch_now(crowded, everything(crowded), number=1)
    assert follower_state(crowded, last).log_end_offset == 1
    assert follower_state(crowded, last - 1).log_end_offset == 0


def test_a_follower_of_many_partitions_is_read_for_in_turns(crowded: ApiNode, reads: Reads) -> None:
    most_in_a_turn = 0

    async def others() -> None:
        nonlocal most_in_a_turn
        while True:
            before = reads.count
            await trio.lowlevel.checkpoint()
            most_in_a_turn = max(most_in_a_turn, reads.count - before)

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(others)
            await crowded.call(fetch, everything(crowded), VERSION)
            await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    trio.run(run)
    assert reads.count == MANY
    assert most_in_a_turn <= 3 * STEPS_PER_TURN / 6  # Trio mixes the tasks of a round, and a turn ends with a portion


def test_what_a_session_names_is_taken_over_in_turns_and_settled(crowded: ApiNode, reads: Reads) -> None:
    async def run() -> None:
        first = await crowded.call(fetch, everything(crowded), VERSION)
        for epoch in (1, 2):
            asked = everything(crowded)
            asked.session_id, asked.session_epoch = first.session_id, epoch
            answer = await crowded.call(fetch, asked, VERSION)
            assert (answer.error_code, answer.session_id) == (0, first.session_id)
        before = reads.count
        asked = request(crowded)
        asked.session_id, asked.session_epoch = first.session_id, 3
        await crowded.call(fetch, asked, VERSION)
        assert reads.count == before

    in_virtual_time(run)
