"""What a node does by time for the in-sync replicas of what it leads, however much that is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import AlterPartitionRequest, AlterPartitionResponse
from pykbroker.replication.partition import Partition
from pykbroker.server.node.composition.replicas import node_replication
from tests.api.api_node import ApiNode, in_virtual_time
from tests.server.work_per_step import WorkPerStep

PARTITIONS = 1500
MOST_PER_STEP = 700
LAG_TIME_MAX_S = 30


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ApiNode]:
    node = ApiNode(tmp_path)
    yield node
    for directory in node.directories:
        directory.release()  # it has very many files open


class Controller:
    """Leaves everything unanswered."""

    def __init__(self) -> None:
        self.asked: list[AlterPartitionRequest] = []

    async def submit(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self.asked.append(request)
        await trio.sleep_forever()
        raise AssertionError


def while_replicating(node: ApiNode, controller: Controller, test: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        replication = node_replication(node.config, node.replicas, node.transactions.inter_broker, node.clock)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(replication.run, controller.submit, lambda: 1)
            await test()
            nursery.cancel_scope.cancel()

    in_virtual_time(run)


def test_others_run_while_a_leader_of_many_partitions_looks_for_laggards(
    node: ApiNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.create_topic("apples", PARTITIONS, replicas=[1, 2])
    controller = Controller()
    work = WorkPerStep(monkeypatch, at_least=PARTITIONS, most=MOST_PER_STEP)
    work.count(Partition, "maybe_shrink_isr")

    async def look() -> None:
        with work.watching():
            await trio.sleep(LAG_TIME_MAX_S / 2 + 1)
        await trio.sleep(LAG_TIME_MAX_S)

    while_replicating(node, controller, look)
    pending = [each.in_sync.pending for each in node.replicas.partitions()]
    assert all(change is not None and change.isr == (1,) for change in pending)
    assert controller.asked


def test_topics_may_go_and_come_while_a_leader_looks_for_laggards(
    node: ApiNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.create_topic("apples", PARTITIONS, replicas=[1, 2])
    node.create_topic("beets", replicas=[1, 2])
    looked_at: list[Partition] = []
    look = Partition.maybe_shrink_isr

    def counted(partition: Partition, now_ms: int) -> None:
        looked_at.append(partition)
        if len(looked_at) == PARTITIONS // 2:
            node.delete_topic("apples")
            node.create_topic("cherries", replicas=[1, 2])
        look(partition, now_ms)

    monkeypatch.setattr(Partition, "maybe_shrink_isr", counted)

    async def wait() -> None:
        await trio.sleep(3 * LAG_TIME_MAX_S)

    while_replicating(node, Controller(), wait)
    assert node.replicas.get_partition("apples", 0) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for topic in ("beets", "cherries"):
        change = node.partition(topic).in_sync.pending
        assert change is not None
        assert change.isr == (1,)
