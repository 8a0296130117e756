"""A broker without connections: real logs, a metadata image that the test writes, and handlers called directly.

Requests and responses pass through the codecs, so that a version sees what it would see on the wire.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast
from weakref import WeakSet

import trio
from trio.testing import MockClock

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import TOPIC_RESOURCE, ImageChanges, MetadataImage
from pykbroker.protocol.api_keys import response_type
from pykbroker.protocol.compile import decode, encode, encode_parts
from pykbroker.protocol.framing import RequestHeader
from pykbroker.protocol.messages.brokers import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from pykbroker.protocol.messages.metadata_records import (
    BrokerEndpoint,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.schema import Message
from pykbroker.quotas.client_quotas import ClientQuotas
from pykbroker.quotas.rate import QuotaWindows
from pykbroker.replication.fetch_session import FetchSessionCache
from pykbroker.replication.partition import Partition
from pykbroker.server.coordinators.group_coordinator import GroupCoordinator
from pykbroker.server.network.handlers import ConnectionState, HandlerTable, RequestContext
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.client_quotas import QuotasOfImage
from pykbroker.server.node.composition.replicas import replica_manager
from pykbroker.server.node.composition.sharing import node_sharing
from pykbroker.server.node.composition.transactions import node_transactions
from pykbroker.server.quorum.image_conditions import ImageConditions
from pykbroker.server.sharing.share_partitions import SharePartitions
from pykbroker.sim.clock import EPOCH_MS
from pykbroker.sim.determinism import virtual_time_s
from pykbroker.sim.network import SimulatedNetwork
from pykbroker.sim.process_disk import ProcessDisk
from pykbroker.sim.threads import SimulatedThreads
from pykbroker.storage.directories.log_dirs import LogDirectory, format_directory
from pykbroker.storage.files.disk import Disk
from pykbroker.storage.files.unsynced_disk import UnsyncedDisk
from pykbroker.storage.log.log_reads import LogSlice
from tests.server.followers import unchallenged
from tests.sharing.memory_persister import MemoryPersister

T = TypeVar("T")
Handler = Callable[[RequestContext, Any], Awaitable[Message | None]]


def batch(*values: bytes, timestamp: int = 1000, key: bytes | None = b"k", **options: Any) -> bytes:
    records = [Record(key=key, value=value, timestamp=timestamp + i) for i, value in enumerate(values)]
    return encode_batch(records, **options)


def in_virtual_time(test: Callable[[], Awaitable[T]]) -> T:
    """Every wait costs nothing; deadlines come in their order."""
    return trio.run(test, clock=MockClock(autojump_threshold=0))


class VirtualClock:
    """Trio's clock within `in_virtual_time`, and its beginning outside of it."""

    def now_ms(self) -> int:
        return EPOCH_MS + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        try:
            return round(virtual_time_s() * 1000)
        except RuntimeError:
            return 0


class _Controller:
    """Gives out producer ids."""

    def __init__(self) -> None:
        self._next_producer_id = 0

    async def submit(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        await trio.lowlevel.checkpoint()
        start, length = self._next_producer_id, 1000
        self._next_producer_id += length
        return AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=length)


class _Quorum:
    """One of static voters, with nothing to ask it."""

    kraft_version = 0


class _Metadata:
    """The image that the test writes; everybody hears of it at once."""

    applied_offset = replayed_offset = 0

    def __init__(self, node: ApiNode) -> None:
        self._node = node

    def watch(self, watcher: Callable[[], None]) -> None:
        self._node.image_watchers.append(watcher)

    @property
    def image(self) -> MetadataImage:
        return self._node.image


_ON_REAL_DISKS: WeakSet[ApiNode] = WeakSet()


def release_directories() -> None:
    """Of all nodes so far: nobody waits for the garbage collector to have a few hundred descriptors again."""
    for node in list(_ON_REAL_DISKS):
        for directory in node.directories:
            directory.release()
    _ON_REAL_DISKS.clear()


def _never() -> None:
    raise AssertionError("nobody lets this process die")


class ApiNode:
    """Node 1, or another one. To be used within `in_virtual_time`, where it has to wait or tell the time."""

    def __init__(
        self,
        path: Path,
        properties: dict[str, str] | None = None,
        *,
        node_id: int = 1,
        network: SimulatedNetwork | None = None,
        disk: Disk | None = None,
    ) -> None:
        self.path = path
        self.node_id = node_id
        self.incarnation_id: bytes | None = None
        """With which the broker is to register after its next start; without one, it counts as registered."""
        self.config = BrokerConfig({"node.id": str(node_id), "log.dirs": str(path / "data"), **(properties or {})})
        self.disk = ProcessDisk(disk or UnsyncedDisk(), _never)
        if disk is None:
            _ON_REAL_DISKS.add(self)
        self.rng = random.Random(node_id)
        self.network = network or SimulatedNetwork(self.rng)
        self.clock = VirtualClock()
        self.client_quotas = ClientQuotas(QuotaWindows(), QuotaWindows())
        self.image = MetadataImage()
        self.persister = MemoryPersister()
        """Of share partitions: it stays when the node starts again, as other brokers' coordinators do."""
        for log_dir in self.config.log_dirs:
            format_directory(self.disk, log_dir, cluster_id="test", node_id=node_id, rng=self.rng)
        self.start()
        self.replay(
            RegisterBrokerRecord(
                broker_id=1, end_points=[BrokerEndpoint(name="PLAINTEXT", host="here", port=9092)], fenced=False
            ),
            RegisterBrokerRecord(
                broker_id=2, end_points=[BrokerEndpoint(name="PLAINTEXT", host="there", port=9093)], fenced=False
            ),
        )

    def start(self, unusable: Collection[str] = ()) -> None:
        self.image_watchers: list[Callable[[], None]] = []
        self.directories = [
            LogDirectory.open(self.disk, log_dir, rng=self.rng, node_id=self.node_id)
            for log_dir in self.config.log_dirs
            if log_dir not in unusable
        ]
        self.threads = SimulatedThreads(self.rng)
        self.replicas = replica_manager(
            self.config,
            self.directories,
            incarnation_id=self.incarnation_id,
            clock=self.clock,
            threads=self.threads,
        )
        controller, metadata = cast(Any, _Controller()), cast(Any, _Metadata(self))
        self.groups = GroupCoordinator(
            self.config,
            self.replicas,
            image=lambda: self.image,
            clock=self.clock,
            threads=self.threads,
            rng=self.rng,
        )
        self.transactions = node_transactions(
            self.config,
            controller,
            self.replicas,
            self.groups,
            image=lambda: self.image,
            network=self.network,
            credentials=None,
            clock=self.clock,
            threads=self.threads,
        )
        self.replicas.subscribe(self.groups.topic, self.groups)
        self.replicas.subscribe(self.transactions.coordinator.topic, self.transactions.coordinator)
        self.sharing = node_sharing(
            self.config,
            controller,
            cast(Any, None),
            self.replicas,
            self.transactions.inter_broker,
            image=lambda: self.image,
            clock=self.clock,
            threads=self.threads,
        )
        self.replicas.subscribe(self.sharing.coordinator.topic, self.sharing.coordinator)
        self.broker = Broker(
            config=self.config,
            node_id=self.node_id,
            cluster_id="test",
            clock=self.clock,
            threads=self.threads,
            raft=cast(Any, _Quorum()),
            metadata=metadata,
            controller=controller,
            controller_channel=controller,
            broker_watch=None,
            image_conditions=ImageConditions(metadata),
            tls=None,
            client_quotas=self.client_quotas,
            partitions=self.replicas,
            groups=self.groups,
            transactions=self.transactions,
            sharing=self.sharing,
            leadership=unchallenged(),
            auto_topic_creation=cast(Any, None),
            log_moves=cast(Any, None),
            fetch_sessions=FetchSessionCache(self.rng, self.config.int("max.incremental.fetch.session.cache.slots")),
            share_partitions=SharePartitions(
                self.config,
                self.replicas,
                self.persister,
                self.transactions.inter_broker,
                cast(Any, None),
                image=lambda: self.image,
                clock=self.clock,
                threads=self.threads,
            ),
        )

    def restart(self, *, clean: bool = True, unusable: Collection[str] = ()) -> None:
        """The same image again, as the metadata log would give it. unusable: log directories that fail this time."""
        for directory in self.directories:
            directory.close() if clean else directory.release()
        records = list(self.image.records())
        self.image = MetadataImage()
        self.start(unusable)
        self.replay(*records)

    def close(self) -> None:
        for directory in self.directories:
            directory.close()

    # Metadata

    def replay(self, *records: Message) -> None:
        changes = ImageChanges()
        for record in records:
            changes.merge(self.image.replay(record, self.image.offset + 1))
        self.replicas.apply(self.image, changes)
        self.sharing.coordinator.apply(self.image, changes)
        QuotasOfImage(self.client_quotas).apply(self.image, changes)
        self.replicas.note_applied()
        for watcher in self.image_watchers:
            watcher()

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replicas: list[int] | None = None,
        leader: int = 1,
        directory: bytes | None = None,
        **configs: str,
    ) -> bytes:
        topic_id = self.rng.randbytes(16)
        more = self._config_records(name, configs)
        self.add_topic(name, topic_id, partitions, replicas or [leader], leader, directory, more)
        return topic_id

    def add_topic(
        self,
        name: str,
        topic_id: bytes,
        partitions: int,
        assigned: list[int],
        leader: int,
        directory: bytes | None = None,
        more: Sequence[Message] = (),
    ) -> None:
        self.replay(
            TopicRecord(name=name, topic_id=topic_id),
            *(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=assigned,
                    isr=assigned,
                    leader=leader,
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=[directory] * len(assigned) if directory else [],
                )
                for index in range(partitions)
            ),
            *more,
        )

    def _config_records(self, name: str, configs: dict[str, str]) -> list[ConfigRecord]:
        return [
            ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=name, name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]

    def configure_topic(self, name: str, **configs: str) -> None:
        self.replay(*self._config_records(name, configs))

    def change_partition(self, topic: str, index: int, **changes: Any) -> None:
        state = self.image.topics[topic]
        self.replay(PartitionChangeRecord(topic_id=state.topic_id, partition_id=index, **changes))

    def delete_topic(self, name: str) -> None:
        self.replay(RemoveTopicRecord(topic_id=self.image.topics[name].topic_id))

    def partition(self, topic: str, index: int = 0) -> Partition:
        partition = self.replicas.get_partition(topic, index)
        assert isinstance(partition, Partition)
        return partition

    def append(self, topic: str, *values: bytes, index: int = 0, timestamp: int = 1000) -> None:
        self.replicas.append(self.partition(topic, index), batch(*values, timestamp=timestamp), self.clock.now_ms(), 1)

    # Requests

    async def call(
        self,
        handler: Handler,
        request: Message,
        version: int,
        *,
        connection: ConnectionState | None = None,
        number: int = 0,
    ) -> Any:
        """The response as a client decodes it; None where there is none."""
        schema = type(request).__schema__
        assert schema.api_key is not None
        context = RequestContext(
            self.broker,
            RequestHeader(schema.api_key, version, 1, "test"),
            HandlerTable("broker"),
            connection or ConnectionState("PLAINTEXT", "127.0.0.1"),
            number=number,
        )
        received, _ = decode(type(request), version, memoryview(encode(request, version)))
        response = await handler(context, received)
        if response is None:
            return None
        parts = [part.read() if isinstance(part, LogSlice) else bytes(part) for part in encode_parts(response, version)]
        return decode(response_type(schema.api_key), version, b"".join(parts))[0]
