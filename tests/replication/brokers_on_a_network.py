"""Brokers of one process on a simulated network: real logs, listeners, handlers and fetchers, and a controller that
does what the test says and answers AlterPartition by its rules.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

import pykbroker.api.api_versions
import pykbroker.api.fetch
import pykbroker.api.list_offsets  # noqa: F401 - importing the modules registers their handlers
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from pykbroker.protocol.messages.metadata_records import (
    BrokerEndpoint,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from pykbroker.protocol.schema import Message
from pykbroker.replication.partition import Partition
from pykbroker.server.network.dispatch import Dispatcher
from pykbroker.server.network.listener import Listener
from pykbroker.server.network.receive_buffer import BufferPool
from pykbroker.server.node.composition.replicas import node_replication
from pykbroker.server.node.handlers import HANDLERS
from pykbroker.server.runtime.log_lines import RateLimitedLog
from pykbroker.sim.network import SimulatedNetwork
from tests.api.api_node import ApiNode
from tests.server.serving import connection_quotas, limits

TOPIC_ID = b"t" * 16


class BrokerNode:
    """A broker that can be stopped as by a kill, and started again on the same files."""

    def __init__(self, cluster: BrokersOnANetwork, node_id: int, path: Path, properties: dict[str, str]) -> None:
        self.cluster = cluster
        self.id = node_id
        self.api = ApiNode(path, properties, node_id=node_id, network=cluster.network)
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self.epoch = 0

    @property
    def partition(self) -> Partition:
        return self.api.partition("apples")

    def bytes(self) -> bytes:
        log = self.partition.log
        return b"".join(segment.file.read_at(0, segment.size) for segment in log.segments)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        acceptor = await self.cluster.network.listen(f"host-{self.id}", 9092)
        dispatcher = Dispatcher(
            self.api.broker,
            HANDLERS.broker,
            self.api.threads,
            disk_failed=self.api.replicas.failures.at_path,
        )
        refusals = RateLimitedLog(logging.getLogger("refusals"), self.api.clock)
        quotas = connection_quotas("PLAINTEXT", self.api.clock)
        listener = Listener("PLAINTEXT", acceptor, dispatcher, limits(), BufferPool(), refusals, quotas)
        replication = node_replication(
            self.api.config, self.api.replicas, self.api.transactions.inter_broker, self.api.clock
        )
        for partition in self.api.replicas.partitions():
            replication.fetchers.applied(partition)
        with self.scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(listener.serve)
                nursery.start_soon(self.api.replicas.run)
                nursery.start_soon(replication.run, self.cluster.submit, lambda: self.epoch)
                task_status.started()
                await trio.sleep_forever()
        acceptor.close()
        self.ended.set()

    async def kill(self) -> None:
        self.scope.cancel()
        await self.ended.wait()


class BrokersOnANetwork:
    """records: the metadata log, which every broker follows at once."""

    def __init__(self, path: Path, ids: tuple[int, ...], properties: dict[str, str] | None = None) -> None:
        self.network = SimulatedNetwork(random.Random(1))
        self.records: list[Message] = []
        self.asked: list[AlterPartitionRequest] = []
        self._nursery: trio.Nursery
        self.nodes = {each: BrokerNode(self, each, path / str(each), properties or {}) for each in ids}
        for each in ids:
            self.register(each)

    def register(self, node_id: int) -> None:
        node = self.nodes[node_id]
        node.epoch = len(self.records) + 100
        endpoint = BrokerEndpoint(name="PLAINTEXT", host=f"host-{node_id}", port=9092)
        self.replay(
            RegisterBrokerRecord(broker_id=node_id, broker_epoch=node.epoch, end_points=[endpoint], fenced=False)
        )

    def replay(self, *records: Message) -> None:
        self.records.extend(records)
        for node in self.nodes.values():
            node.api.replay(*records)

    def create_topic(self, **configs: str) -> None:
        ids = list(self.nodes)
        self.replay(
            TopicRecord(name="apples", topic_id=TOPIC_ID),
            PartitionRecord(partition_id=0, topic_id=TOPIC_ID, replicas=ids, isr=ids, leader=ids[0]),
        )
        for node in self.nodes.values():
            node.api.configure_topic("apples", **configs)

    def change(self, **changes: object) -> None:
        self.replay(PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, **changes))  # type: ignore[arg-type]

    async def submit(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """As the controller, which checks no more than the epochs here."""
        await trio.lowlevel.checkpoint()
        self.asked.append(request)
        response = AlterPartitionResponse()
        for topic in request.topics:
            answers = []
            for asked in topic.partitions:
                image = next(iter(self.nodes.values())).api.image
                known = image.topics["apples"].partitions[asked.partition_index]
                answer = AlterPartitionResponsePartitionData(partition_index=asked.partition_index)
                answers.append(answer)
                if asked.partition_epoch != known.partition_epoch:
                    answer.error_code = ErrorCode.INVALID_UPDATE_VERSION
                    continue
                answer.leader_id, answer.leader_epoch = known.leader, known.leader_epoch
                answer.isr = [each.broker_id for each in asked.new_isr_with_epochs]
                answer.partition_epoch = known.partition_epoch + 1
                self.change(isr=answer.isr)
            response.topics.append(AlterPartitionResponseTopicData(topic_id=topic.topic_id, partitions=answers))
        return response

    async def start(self, node_id: int) -> None:
        await self._nursery.start(self.nodes[node_id].run)

    async def restart(self, node_id: int) -> None:
        """After a kill: another process on the same files."""
        node = self.nodes[node_id]
        node.api.restart(clean=False)
        node.scope, node.ended = trio.CancelScope(), trio.Event()
        self.register(node_id)
        await self.start(node_id)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with trio.open_nursery() as self._nursery:
            for each in self.nodes:
                await self.start(each)
            yield
            self._nursery.cancel_scope.cancel()


async def until(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    """Time is virtual: it passes when nobody has anything to do."""
    with trio.fail_after(timeout_s):
        while not condition():  # noqa: ASYNC110 - it may depend on anything
            await trio.sleep(0.01)
