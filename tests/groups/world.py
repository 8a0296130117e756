"""A coordinator with everything real but the node around it: handlers, driver, shards, partitions and logs.

Time is virtual and the disk simulated, so a scenario of many seconds takes milliseconds and means the same every time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import trio
import trio.testing

import pykbroker.api.alter_share_group_offsets
import pykbroker.api.consumer_group_describe
import pykbroker.api.consumer_group_heartbeat
import pykbroker.api.delete_groups
import pykbroker.api.delete_share_group_offsets
import pykbroker.api.describe_groups
import pykbroker.api.describe_share_group_offsets
import pykbroker.api.find_coordinator
import pykbroker.api.heartbeat
import pykbroker.api.join_group
import pykbroker.api.leave_group
import pykbroker.api.list_groups
import pykbroker.api.offset_commit
import pykbroker.api.offset_delete
import pykbroker.api.offset_fetch
import pykbroker.api.share_group_describe
import pykbroker.api.share_group_heartbeat
import pykbroker.api.streams_group_describe
import pykbroker.api.streams_group_heartbeat
import pykbroker.api.sync_group  # noqa: F401 - importing the modules registers their handlers
from pykbroker.config import BrokerConfig
from pykbroker.metadata.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION
from pykbroker.metadata.image import GROUP_RESOURCE, ImageChanges, MetadataImage
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.framing import RequestHeader
from pykbroker.protocol.messages.metadata_records import (
    BrokerEndpoint,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from pykbroker.protocol.messages.topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from pykbroker.protocol.records.batch import iter_batches, iter_records
from pykbroker.protocol.schema import Message
from pykbroker.replication.partition import Partition
from pykbroker.replication.reads import FetchIsolation, ListedOffset
from pykbroker.server.coordinators.group_coordinator import CONSUMER_OFFSETS, GroupCoordinator
from pykbroker.server.coordinators.leadership import Leadership
from pykbroker.server.coordinators.marker import Marker
from pykbroker.server.network.handlers import ConnectionState, Handler, RequestContext
from pykbroker.server.node.auto_topic_creation import AutoTopicCreation
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import HANDLERS
from pykbroker.server.quorum.controller_channel import ControllerChannel
from pykbroker.sim.clock import SimulatedClock
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.sim.process_disk import ProcessDisk
from pykbroker.sim.threads import SimulatedThreads
from pykbroker.storage.files.errors import CorruptLog
from pykbroker.storage.log.log import AppendOrigin, AppendResult, Log, LogConfig
from pykbroker.storage.segments.verification import Check
from tests.replication.brokers import Proposals
from tests.server.followers import unchallenged
from tests.sharing.memory_persister import MemoryPersister

NODE_ID = 1
LISTENER = "PLAINTEXT"
RECORDS = 0
"""How many each partition has."""


def marker(*, coordinator_epoch: int, is_commit: bool) -> Marker:
    """Of the one producer that has transactions here, 7 in epoch 0."""
    return Marker(
        producer_id=7, producer_epoch=0, coordinator_epoch=coordinator_epoch, is_commit=is_commit, transaction_version=0
    )


@dataclass(frozen=True)
class State:
    """What the controller decides of a partition."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...] = (NODE_ID,)
    isr: tuple[int, ...] = (NODE_ID,)
    adding_replicas: tuple[int, ...] = ()


class FakeReplicas:
    """failure: what every append answers as long as it is set."""

    def __init__(self) -> None:
        self.failure: ErrorCode | None = None

    def append(
        self,
        partition: Partition,
        records: bytes | memoryview,
        now_ms: int,
        required_acks: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendResult:
        if self.failure is not None:
            raise ApiError(self.failure)
        return partition.append_as_leader(records, now_ms, required_acks, origin)

    async def flush(self, partition: Partition, end_offset: int) -> bool:
        await trio.lowlevel.checkpoint()
        partition.log.flush()
        return partition.log.recovery_point >= end_offset

    async def verify(self, partition: Partition, check: Check) -> None:
        await trio.lowlevel.checkpoint()
        check.run()
        check.accept()

    def quarantine(self, partition: Partition, damage: CorruptLog) -> None:
        raise damage


class FakeController:
    """Creates topics at once, in the image that the node sees."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.created: list[CreateTopicsRequest] = []

    async def forward(self, context: RequestContext[object], request: CreateTopicsRequest) -> CreateTopicsResponse:
        return await self.submit(request)

    async def submit(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        await trio.lowlevel.checkpoint()
        self.created.append(request)
        for topic in request.topics:
            self._world.create_topic(topic.name, topic.num_partitions)
        return CreateTopicsResponse(topics=[CreatableTopicResult(name=topic.name) for topic in request.topics])


class FakeConditions:
    """The image has at once what the controller has done."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def until(self, holds: Callable[[MetadataImage], bool], timeout_s: float) -> bool:
        await trio.lowlevel.checkpoint()
        assert holds(self._world.image)
        return True

    async def listeners_told(self, timeout_s: float) -> bool:
        await trio.lowlevel.checkpoint()
        while self._world.not_told_of:
            self._world.elect(self._world.not_told_of.pop())
        return True


class FakeEnds:
    """The replicas of all topics but that of the groups: each has so many records."""

    def __init__(self, records: int) -> None:
        self._records = records

    def get_partition(self, topic: str, index: int) -> FakeEnds:
        return self

    def known_offset(self, timestamp: int, isolation: FetchIsolation) -> ListedOffset:
        return ListedOffset(offset=self._records)


class Parked:
    """An answer to come. Nobody needs to wait for it."""

    def __init__(self) -> None:
        self.answered = trio.Event()
        self.answer: Message | None = None

    def __await__(self) -> Generator[Any, Any, Message]:
        yield from self.answered.wait().__await__()
        assert self.answer is not None
        return self.answer


class World:
    def __init__(self, config: dict[str, str], *, seed: int = 0) -> None:
        self.config = BrokerConfig({"node.id": str(NODE_ID), **config})
        self.rng = Random(seed)
        self.clock = SimulatedClock()
        self.disk = ProcessDisk(SimulatedDisk(self.rng), lambda: None)
        self.image = MetadataImage()
        self.replicas = FakeReplicas()
        self.controller = FakeController(self)
        self.partitions: dict[int, Partition] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.threads = SimulatedThreads(self.rng)
        self.driver = GroupCoordinator(
            self.config,
            self.replicas,
            image=lambda: self.image,
            clock=self.clock,
            threads=self.threads,
            rng=self.rng,
        )
        self.driver.share_states.persister = MemoryPersister()
        self.not_told_of: list[int] = []
        """Partitions that this node leads in the image, and that the driver hears of when somebody waits for that."""
        self._nursery: trio.Nursery | None = None
        self._offset = 0
        endpoint = BrokerEndpoint(name=LISTENER, host="127.0.0.1", port=9092)
        self._replay(RegisterBrokerRecord(broker_id=NODE_ID, broker_epoch=1, end_points=[endpoint], fenced=False))
        self._replay(FeatureLevelRecord(name=GROUP_VERSION, feature_level=1))
        self._replay(FeatureLevelRecord(name=SHARE_VERSION, feature_level=1))
        self._replay(FeatureLevelRecord(name=STREAMS_VERSION, feature_level=1))
        channel = cast(ControllerChannel, self.controller)
        self.auto_topic_creation = AutoTopicCreation(self.config, channel, self.clock)

    def _replay(self, record: Message) -> ImageChanges:
        self._offset += 1
        return self.image.replay(record, self._offset)

    def replay(self, record: Message) -> None:
        """The controller has written it down."""
        self.driver.apply(self.image, self._replay(record))

    def create_topic(self, name: str, partitions: int) -> None:
        topic_id = self.rng.randbytes(16)
        self.topic_ids[name] = topic_id
        self._replay(TopicRecord(name=name, topic_id=topic_id))
        self._add_partitions(name, range(partitions))

    def _add_partitions(self, name: str, indexes: range) -> None:
        for index in indexes:
            changes = self._replay(
                PartitionRecord(
                    partition_id=index,
                    topic_id=self.topic_ids[name],
                    replicas=[NODE_ID],
                    isr=[NODE_ID],
                    leader=NODE_ID,
                )
            )
            self.driver.apply(self.image, changes)
            if name == CONSUMER_OFFSETS:
                self.elect(index)

    async def make_topic(self, name: str, partitions: int) -> None:
        self.create_topic(name, partitions)
        await trio.lowlevel.checkpoint()

    async def add_partitions(self, name: str, total: int) -> None:
        topic = self.image.topic(name)
        assert topic is not None
        self._add_partitions(name, range(len(topic.partitions), total))
        await trio.lowlevel.checkpoint()

    async def drop_topic(self, name: str) -> None:
        """Its id keeps its name, for those who tell what happened."""
        self.driver.apply(self.image, self._replay(RemoveTopicRecord(topic_id=self.topic_ids[name])))
        await trio.lowlevel.checkpoint()

    async def configure_group(self, group: str, configs: Mapping[str, str]) -> None:
        for name, value in configs.items():
            self.replay(ConfigRecord(resource_type=GROUP_RESOURCE, resource_name=group, name=name, value=value))
        await trio.lowlevel.checkpoint()

    def delete_topic(self, name: str) -> None:
        changes = self._replay(RemoveTopicRecord(topic_id=self.topic_ids.pop(name)))
        self.driver.apply(self.image, changes)

    def open_partition(self, index: int) -> Partition:
        directory = f"/{CONSUMER_OFFSETS}-{index}"
        log = Log.open(self.disk, directory, LogConfig(), now_ms=self.clock.now_ms())
        topic_id = self.topic_ids[CONSUMER_OFFSETS]
        return Partition(CONSUMER_OFFSETS, topic_id, index, log, NODE_ID, Proposals().rules())

    def elect(self, index: int, *, isr: tuple[int, ...] = (NODE_ID,)) -> Partition:
        """This node leads the partition from now on, in a new epoch."""
        partition = self.partitions.get(index)
        if partition is None:
            partition = self.partitions[index] = self.open_partition(index)
        epoch = partition.leader_epoch + 1
        partition.apply_state(State(NODE_ID, epoch, partition.partition_epoch + 1, replicas=isr, isr=isr), 0)
        self.driver.on_election(partition)
        return partition

    def resign(self, index: int) -> None:
        partition = self.partitions[index]
        partition.apply_state(State(2, partition.leader_epoch + 1, partition.partition_epoch + 1), 0)
        self.driver.on_resignation(index)

    # As a broker of scenarios

    def context(self, client: str, request_type: type[Message], version: int) -> RequestContext:
        api_key = request_type.__schema__.api_key
        assert api_key is not None
        broker = _Broker(self)
        header = RequestHeader(api_key, version, 1, client)
        return RequestContext(cast(Broker, broker), header, HANDLERS.broker, ConnectionState(LISTENER, "127.0.0.1"))

    async def call(self, client: str, request: Message, version: int) -> Message:
        """As on the wire: what a version leaves out does not arrive."""
        handler = _handler(type(request))
        arrived, _ = decode(type(request), version, encode(request, version))
        response = await handler.function(self.context(client, type(request), version), arrived)
        assert response is not None
        returned, _ = decode(type(response), version, encode(response, version))
        return returned

    def start(self, client: str, request: Message, version: int) -> Awaitable[Message]:
        assert self._nursery is not None
        parked = Parked()

        async def run() -> None:
            parked.answer = await self.call(client, request, version)
            parked.answered.set()

        self._nursery.start_soon(run)
        return parked

    async def sleep(self, ms: int) -> None:
        await trio.sleep(ms / 1000)

    def records(self) -> list[tuple[bytes | None, bytes | None]]:
        return [
            (record.key, record.value)
            for _, partition in sorted(self.partitions.items())
            if partition.log.log_end_offset > 0
            for batch in iter_batches(partition.log.read(0, 1 << 20, max_offset=partition.log.log_end_offset).read())
            for record in iter_records(batch)
        ]

    @asynccontextmanager
    async def running(self) -> Any:
        """The driver runs within, and what is still waiting at the end is cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            await nursery.start(self.driver.run)
            nursery.start_soon(self.auto_topic_creation.run)
            yield self
            nursery.cancel_scope.cancel()


@dataclass
class _Broker:
    """What handlers of group requests see of a node."""

    world: World

    node_id = NODE_ID
    authorizer = None

    @property
    def config(self) -> BrokerConfig:
        return self.world.config

    @property
    def image(self) -> MetadataImage:
        return self.world.image

    @property
    def image_conditions(self) -> FakeConditions:
        return FakeConditions(self.world)

    @property
    def leadership(self) -> Leadership:
        return unchallenged()

    @property
    def partitions(self) -> FakeEnds:
        return FakeEnds(RECORDS)

    @property
    def groups(self) -> GroupCoordinator:
        return self.world.driver

    @property
    def auto_topic_creation(self) -> AutoTopicCreation:
        return self.world.auto_topic_creation

    @property
    def controller_channel(self) -> FakeController:
        return self.world.controller


def _handler(request_type: type[Message]) -> Handler:
    return next(handler for handler in HANDLERS.broker if handler.request_type is request_type)


def run_simulated(main: Callable[[], Awaitable[None]]) -> None:
    """Where every task waits, time jumps."""
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
