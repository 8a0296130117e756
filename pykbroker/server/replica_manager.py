"""The replicas that this node hosts: it follows the metadata image, and finds the partition of a request.

Kafka's counterparts are `ReplicaManager` and `BrokerMetadataPublisher`. What happens to logs by time (flush,
checkpoints, deletion) is the business of `log_upkeep`, compaction that of `log_cleaner`.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import trio

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, ImageChanges, MetadataImage, TopicState
from pykbroker.metadata.partition_state import PartitionState
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.schema import NO_UUID
from pykbroker.replication.partition import Partition
from pykbroker.storage.checkpoints import TopicPartition
from pykbroker.storage.errors import CorruptLog, DiskFailed
from pykbroker.storage.log import AppendOrigin, AppendResult, Log, LogConfig
from pykbroker.storage.log_dirs import LogDirectory

from .clock import Clock
from .formatting import partition_paths
from .hosted_logs import HostedLogs
from .log_cleaner import LogCleaner
from .log_upkeep import LogUpkeep
from .threads import Threads

logger = logging.getLogger(__name__)


class LeadershipListener(Protocol):
    """Who lives in the partitions of an internal topic: a coordinator."""

    def on_election(self, partition: Partition) -> None:
        """The partition is led here, from now on or in a new leader epoch."""
        ...

    def on_resignation(self, index: int) -> None:
        """It is led elsewhere, or it is gone. Also called where it was never led here."""
        ...


class ReplicaManager:
    """Partitions by topic and index. `apply` is to be subscribed to the controller's driver."""

    def __init__(
        self, config: BrokerConfig, directories: Sequence[LogDirectory], *, clock: Clock, threads: Threads
    ) -> None:
        self._config = config
        self._node_id = config.node_id
        self.logs = HostedLogs(
            directories, clock=clock, producer_id_expiration_ms=config.int("producer.id.expiration.ms")
        )
        self._upkeep = LogUpkeep(
            config,
            self.logs,
            clock=clock,
            threads=threads,
            high_watermarks=self._high_watermarks,
            on_failure=self._take_offline,
        )
        self._cleaner = LogCleaner(
            config,
            self.logs,
            clock=clock,
            threads=threads,
            last_stable_offset=self._last_stable_offset,
            on_failure=self._take_offline,
        )
        self._last_failure: DiskFailed | None = None
        self._no_directory_left = trio.Event()
        self._has_image = False
        self._log_configs: dict[str, LogConfig] = {}
        """By topic, for one `apply`: a topic's partitions share it."""
        self._image = MetadataImage()
        self._listeners: dict[str, LeadershipListener] = {}
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[bytes, dict[int, Partition]] = {}
        self._offline: set[tuple[bytes, int]] = set()

    # Finding

    def get_partition(self, topic: str, index: int) -> Partition | ErrorCode:
        hosted = self._by_name.get(topic)
        if hosted is not None:
            partition = hosted.get(index)
            if partition is not None:
                return partition
        return self._why_missing(self._image.topic(topic), index)

    def get_partition_by_id(self, topic_id: bytes, index: int) -> Partition | ErrorCode:
        hosted = self._by_id.get(topic_id)
        if hosted is not None:
            partition = hosted.get(index)
            if partition is not None:
                return partition
        topic = self._image.topic_by_id(topic_id)
        return ErrorCode.UNKNOWN_TOPIC_ID if topic is None else self._why_missing(topic, index)

    def get_fetched_partition(self, topic: str | None, topic_id: bytes, index: int) -> Partition | ErrorCode:
        """As a fetch session knows a partition: by name, and since version 13 also by the id that had the name."""
        if topic_id == NO_UUID:
            return self.get_partition(topic or "", index)
        hosted = self._by_id.get(topic_id)
        if hosted is not None:
            partition = hosted.get(index)
            if partition is not None:
                return partition
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        namesake = self.get_partition(topic, index)
        return namesake if isinstance(namesake, ErrorCode) else ErrorCode.INCONSISTENT_TOPIC_ID

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self._image.topic_by_id(topic_id)
        return None if topic is None else topic.name

    def log_directories(self) -> dict[str, LogDirectory | None]:
        """Those of the configuration, by absolute path; None where one is offline."""
        online = {directory.path: directory for directory in self.logs.directories}
        return {posixpath.abspath(path): online.get(path) for path in partition_paths(self._config)}

    def _has_offline_directory(self) -> bool:
        return None in self.log_directories().values()

    def cordoned_log_directories(self) -> frozenset[str]:
        """Absolute paths of directories that get no new partitions (KIP-1066)."""
        text = self._config.text("cordoned.log.dirs", self._image.broker_config(self._node_id)) or ""
        named = [name.strip() for name in text.split(",") if name.strip()]
        paths = partition_paths(self._config) if named == ["*"] else named
        return frozenset(map(posixpath.abspath, paths))

    def partitions(self) -> Iterator[Partition]:
        for hosted in self._by_id.values():
            yield from hosted.values()

    def _why_missing(self, topic: TopicState | None, index: int) -> ErrorCode:
        if topic is None or index not in topic.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if (topic.topic_id, index) in self._offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    # Appending

    def append(
        self,
        partition: Partition,
        records: bytes | memoryview,
        now_ms: int,
        required_acks: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendResult | ErrorCode:
        """Raises `RecordsRejected`."""
        try:
            return partition.append_as_leader(records, now_ms, required_acks, origin)
        except DiskFailed as failure:
            self._log_failed(partition.log, failure)
            return ErrorCode.KAFKA_STORAGE_ERROR

    # Following the metadata

    def subscribe(self, topic: str, listener: LeadershipListener) -> None:
        """`listener` learns of elections in this topic, those before included."""
        self._listeners[topic] = listener
        for partition in self._by_name.get(topic, {}).values():
            if partition.is_leader:
                listener.on_election(partition)

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        """Create, lead, follow, reconfigure and delete what the image says, before anybody can see an answer to it."""
        self._image = image
        self._log_configs.clear()
        for topic_id in changes.deleted_topics:
            for index in list(self._by_id.get(topic_id, ())):
                self._remove(topic_id, index)
        for topic_id, index in changes.partitions:
            topic = image.topic_by_id(topic_id)
            assert topic is not None, "changes name no partition of a deleted topic"
            self._apply_partition(topic, index, topic.partitions[index])
        if changes.configs:
            self._apply_configs(changes)
        if not self._has_image:
            self._has_image = True
            self.logs.put_strays_aside()

    def _apply_partition(self, topic: TopicState, index: int, state: PartitionState) -> None:
        partition = self._by_id.get(topic.topic_id, {}).get(index)
        if self._node_id not in state.replicas:
            self._offline.discard((topic.topic_id, index))
            if partition is not None:
                self._remove(topic.topic_id, index)
            return
        if partition is None:
            if (topic.topic_id, index) in self._offline:
                return  # another directory would get an empty log, and hand out its offsets once more
            partition = self._open(topic, index, state)
            if partition is None:
                return
        elected = state.leader == self._node_id and state.leader_epoch > partition.leader_epoch
        partition.apply_state(state)
        listener = self._listeners.get(topic.name)
        if listener is None:
            return
        if elected:
            listener.on_election(partition)
        elif not partition.is_leader:
            listener.on_resignation(index)

    def _open(self, topic: TopicState, index: int, state: PartitionState) -> Partition | None:
        at = TopicPartition(topic.name, index)
        assigned = [
            directory
            for replica, directory in zip(state.replicas, state.directories, strict=False)
            if replica == self._node_id
        ]
        if not self._has_image and self._has_offline_directory() and not self.logs.is_found(at, topic.topic_id):
            logger.error("the log of %s is offline: it may be in a log directory that is offline", at)
            self._offline.add((topic.topic_id, index))
            return None
        try:
            log, high_watermark = self.logs.open(
                at, topic.topic_id, self._log_config(topic.name), assigned, self.cordoned_log_directories
            )
        except (DiskFailed, CorruptLog) as failure:
            logger.error("the log of %s is offline: %s", at, failure)
            self._offline.add((topic.topic_id, index))
            return None
        partition = Partition(topic.name, topic.topic_id, index, log, self._node_id, high_watermark=high_watermark)
        self._by_id.setdefault(topic.topic_id, {})[index] = partition
        self._by_name.setdefault(topic.name, {})[index] = partition
        return partition

    def _remove(self, topic_id: bytes, index: int) -> None:
        """The topic is deleted, or the replica is elsewhere now: whoever waits here learns it at once."""
        partition = self._unhost(topic_id, index)
        listener = self._listeners.get(partition.topic)
        if listener is not None:
            listener.on_resignation(index)
        try:
            self.logs.delete(partition.log)
        except DiskFailed as failure:
            self._log_failed(partition.log, failure)

    def _unhost(self, topic_id: bytes, index: int) -> Partition:
        by_index = self._by_id[topic_id]
        partition = by_index.pop(index)
        if not by_index:
            del self._by_id[topic_id]
        by_index = self._by_name[partition.topic]
        del by_index[index]
        if not by_index:
            del self._by_name[partition.topic]
        partition.resign()
        return partition

    def _apply_configs(self, changes: ImageChanges) -> None:
        """Live logs take their topic's new configuration; the broker's defaults concern all of them."""
        changed = {name for kind, name in changes.configs if kind == TOPIC_RESOURCE}
        if any(kind == BROKER_RESOURCE and name in ("", str(self._node_id)) for kind, name in changes.configs):
            changed = set(self._by_name)
        for topic in sorted(changed):
            hosted = self._by_name.get(topic)
            if hosted:
                config = self._log_config(topic)
                for partition in hosted.values():
                    self.logs.reconfigure(partition.log, config)

    def _log_config(self, topic: str) -> LogConfig:
        config = self._log_configs.get(topic)
        if config is None:
            defaults = self._config.topic_defaults(self._image.broker_config(self._node_id))
            config = LogConfig.from_properties({**defaults, **self._image.topic_config(topic)})
            self._log_configs[topic] = config
        return config

    # By time, and the end

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until it is cancelled. Raises `DiskFailed` when no log directory is left to work with."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._upkeep.run)
            nursery.start_soon(self._cleaner.run)
            task_status.started()
            await self._no_directory_left.wait()
            assert self._last_failure is not None
            raise self._last_failure

    async def flush(self, log: Log) -> None:
        """Everything appended so far is durable when it returns, or the log's directory is offline."""
        await self._upkeep.flush(log)

    async def checkpoint_log_start_offsets(self, logs: Iterable[Log]) -> None:
        """Where these logs start is durable when it returns, or the directory of one that is not is offline."""
        wanted = set(logs)
        for directory in list(self.logs.directories):
            if not wanted.isdisjoint(directory.logs.values()):
                await self._upkeep.checkpoint_log_start_offsets(directory)

    async def checkpoint(self) -> None:
        """Write down all offsets and high watermarks, as before a clean shutdown."""
        await self._upkeep.checkpoint_offsets()
        await self._upkeep.checkpoint_high_watermarks()

    def _high_watermarks(self, directory: LogDirectory) -> dict[TopicPartition, int]:
        hosted = {id(log): at for at, log in directory.logs.items()}
        return {
            hosted[id(partition.log)]: partition.high_watermark
            for partition in self.partitions()
            if id(partition.log) in hosted
        }

    def _last_stable_offset(self, at: TopicPartition, log: Log) -> int | None:
        partition = self._by_name.get(at.topic, {}).get(at.partition)
        return partition.last_stable_offset if partition is not None and partition.log is log else None

    def _log_failed(self, log: Log, failure: DiskFailed) -> None:
        directory = self.logs.directory_of(log)
        if directory is not None:
            self._take_offline(directory, failure)

    def _take_offline(self, directory: LogDirectory, failure: DiskFailed) -> None:
        """A disk that failed once is not asked again: what it did with the last write is not known (KIP-112)."""
        if directory not in self.logs.directories:
            return
        logger.error("log directory %s is offline: %s", directory.path, failure)
        self.logs.take_offline(directory)
        gone = set(directory.logs.values())
        for partition in list(self.partitions()):
            if partition.log in gone:
                self._offline.add((partition.topic_id, partition.index))
                self._unhost(partition.topic_id, partition.index)
                listener = self._listeners.get(partition.topic)
                if listener is not None:
                    listener.on_resignation(partition.index)
        if not self.logs.directories:
            self._last_failure = failure
            self._no_directory_left.set()
