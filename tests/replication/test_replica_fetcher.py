"""Brokers that follow each other over connections: what a leader has comes to all, through kills of either."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
import trio.lowlevel

from pykbroker.protocol.messages.fetch import FetchRequest, FetchResponse
from pykbroker.protocol.messages.metadata_records import PartitionRecord
from pykbroker.protocol.schema import Message
from pykbroker.replication.partition import ACKS_ALL
from pykbroker.server.replicas.replica_fetcher import ReplicaFetchers, ResponseT
from tests.api.api_node import ApiNode, batch, in_virtual_time

from .brokers_on_a_network import BrokersOnANetwork, until

Run = Callable[[Callable[[], Awaitable[None]]], None]


@pytest.fixture
def cluster(tmp_path: Path) -> BrokersOnANetwork:
    return BrokersOnANetwork(tmp_path, (1, 2, 3), {"replica.lag.time.max.ms": "2000"})


def run(cluster: BrokersOnANetwork, test: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        async with cluster.running():
            await test()

    in_virtual_time(within)


def append(cluster: BrokersOnANetwork, leader: int, *values: bytes) -> int:
    node = cluster.nodes[leader].api
    return node.replicas.append(node.partition("apples"), batch(*values), 1000, ACKS_ALL).last_offset + 1


def test_what_is_appended_to_the_leader_comes_to_all(cluster: BrokersOnANetwork) -> None:
    cluster.create_topic(min_insync_replicas="2")

    async def test() -> None:
        for number in range(20):
            end = append(cluster, 1, b"a%d" % number, b"b")
            await until(lambda end=end: cluster.nodes[1].partition.high_watermark == end)  # type: ignore[misc]
        await until(lambda: all(node.partition.high_watermark == 40 for node in cluster.nodes.values()))

    run(cluster, test)
    assert len({node.bytes() for node in cluster.nodes.values()}) == 1


def test_what_each_message_is_flushed_for_is_on_all_disks_before_it_is_replicated(cluster: BrokersOnANetwork) -> None:
    cluster.create_topic(min_insync_replicas="2", flush_messages="1")

    async def test() -> None:
        leader = cluster.nodes[1]
        for number in range(5):
            end = append(cluster, 1, b"a%d" % number, b"b")
            await leader.api.replicas.flush(leader.partition, end)
            await until(lambda end=end: leader.partition.high_watermark == end)  # type: ignore[misc]
            assert [node.partition.log.recovery_point for node in cluster.nodes.values()] == [end] * 3

    run(cluster, test)


def test_who_is_killed_falls_out_and_comes_back(cluster: BrokersOnANetwork) -> None:
    cluster.create_topic(min_insync_replicas="2")

    async def test() -> None:
        append(cluster, 1, b"a")
        await until(lambda: cluster.nodes[1].partition.high_watermark == 1)
        await cluster.nodes[3].kill()
        append(cluster, 1, b"b")
        await until(lambda: cluster.nodes[1].partition.isr == (1, 2))
        assert cluster.nodes[1].partition.high_watermark == 2
        await cluster.restart(3)
        await until(lambda: set(cluster.nodes[1].partition.isr) == {1, 2, 3})

    run(cluster, test)
    assert len({node.bytes() for node in cluster.nodes.values()}) == 1
    states = [
        (each.broker_id, each.broker_epoch) for each in cluster.asked[-1].topics[0].partitions[0].new_isr_with_epochs
    ]
    assert states == [(node.id, node.epoch) for node in cluster.nodes.values()]


def test_another_leader_is_followed_at_once_and_the_old_one_cuts_off_what_nobody_has(
    cluster: BrokersOnANetwork,
) -> None:
    cluster.create_topic(min_insync_replicas="2")

    async def test() -> None:
        append(cluster, 1, b"a")
        await until(lambda: cluster.nodes[1].partition.high_watermark == 1)
        await cluster.nodes[2].kill()
        await cluster.nodes[3].kill()
        append(cluster, 1, b"nobody has it")
        await cluster.nodes[1].kill()
        cluster.change(leader=2, isr=[2, 3])
        for each in cluster.nodes:
            await cluster.restart(each)
        append(cluster, 2, b"b")
        await until(lambda: cluster.nodes[2].partition.high_watermark == 2)
        await until(lambda: set(cluster.nodes[2].partition.isr) == {1, 2, 3})

    run(cluster, test)
    assert len({node.bytes() for node in cluster.nodes.values()}) == 1


def test_counts_of_what_is_not_as_it_should_be(cluster: BrokersOnANetwork) -> None:
    cluster.create_topic(min_insync_replicas="3")

    async def test() -> None:
        await until(lambda: cluster.nodes[1].partition.in_sync.followers[3].log_end_offset == 0)
        assert not any(cluster.nodes[1].api.replicas.replication_counts())
        await cluster.nodes[3].kill()
        append(cluster, 1, b"a")
        await until(lambda: cluster.nodes[1].partition.isr == (1, 2))
        assert cluster.nodes[1].api.replicas.replication_counts() == (1, 1, 0)
        assert cluster.nodes[2].api.replicas.replication_counts() == (0, 0, 0)
        await trio.lowlevel.checkpoint()

    run(cluster, test)


class SlowLeader:
    """Has nothing to tell, and takes the whole time for it. asked: when, and which partitions were named. closed: when
    the connection was, on which it may still answer.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[float, list[int]]] = []
        self.closed: list[float] = []

    async def request(
        self,
        node_id: int,
        request: Message,
        response_type: type[ResponseT],
        *,
        purpose: str = "",
        timeout_ms: int | None = None,
    ) -> ResponseT:
        assert isinstance(request, FetchRequest)
        named = [each.partition for topic in request.topics for each in topic.partitions]
        self.asked.append((round(trio.current_time(), 3), named))
        await trio.sleep(request.max_wait_ms / 1000)
        response = FetchResponse(session_id=7)
        assert isinstance(response, response_type)
        return response

    async def close(self, node_id: int, purpose: str = "") -> None:
        self.closed.append(round(trio.current_time(), 3))
        await trio.lowlevel.checkpoint()


def test_a_new_partition_is_asked_for_at_once_and_many_that_come_one_by_one_together(tmp_path: Path) -> None:
    node = ApiNode(tmp_path, node_id=2)
    leader = SlowLeader()
    fetchers = ReplicaFetchers(
        node.config,
        leader,
        flush=node.replicas.flush,
        truncate=node.replicas.truncations.run,
        clock=node.clock,
        on_disk_failure=lambda partition, failure: None,
    )
    node.replicas.replicate_with(fetchers)

    async def test() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetchers.run, lambda: 102)
            topic_id = node.create_topic("apples", 1, replicas=[1, 2], leader=1)
            await trio.sleep(2.1)
            for index in range(1, 4):
                node.replay(
                    PartitionRecord(partition_id=index, topic_id=topic_id, replicas=[1, 2], isr=[1, 2], leader=1)
                )
                await trio.sleep(0.1)
            await trio.sleep(1)
            nursery.cancel_scope.cancel()

    in_virtual_time(test)
    assert leader.asked[:5] == [(0, [0]), (0.5, []), (1, []), (1.5, []), (2, [])]
    assert leader.asked[5:7] == [(2.1, [1, 0]), (2.6, [2, 3])]
    assert leader.closed[:1] == [2.1], "what is asked next does not wait behind an answer that nobody wants"
