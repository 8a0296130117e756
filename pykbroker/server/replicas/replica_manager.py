"""The replicas that this node hosts: it follows the metadata image, and opens, leads and deletes what that says.

Kafka's counterparts are `ReplicaManager` and `BrokerMetadataPublisher`. Which partitions there are is kept in
`hosted_partitions`. What happens to logs by time (flush, checkpoints, deletion) is the business of `log_upkeep`,
compaction that of `log_cleaner`, and what happens when a disk fails that of `storage_failures`.
"""

from __future__ import annotations

import logging
import posixpath
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import trio

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, ImageChanges, MetadataImage, TopicState
from pykbroker.metadata.partition_state import PartitionState
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.protocol.uuids import RESERVED_DIRECTORIES, uuid_to_text
from pykbroker.replication.partition import IsrRules, Partition
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.storage.files.errors import CorruptLog, FileError, NoRoom
from pykbroker.storage.log.log import Log, LogConfig
from pykbroker.storage.segments.verification import Check

from ..logs.hosted_logs import HostedLogs
from ..logs.log_cleaner import LogCleaner
from ..logs.log_flushes import LogFlushes
from ..logs.log_loading import LogLoading, LogToOpen
from ..logs.log_truncations import LogTruncations
from ..logs.log_upkeep import LogUpkeep
from ..logs.logs_without_room import LogsWithoutRoom
from ..logs.record_checks import RecordChecks
from ..quorum.formatting import partition_paths
from ..runtime.clock import Clock
from ..runtime.histogram import Histogram
from ..runtime.threads import Threads
from ..runtime.turns import Turn
from .alter_partition import IsrChanges
from .hosted_partitions import HostedPartitions, LeadershipListener, ReplicationListener
from .image_brokers import ImageBrokers
from .record_appends import RecordAppends
from .replication_quotas import ReplicationQuotas
from .storage_failures import StorageFailures, log_damage

logger = logging.getLogger(__name__)

_RECOVERY_THREADS = "num.recovery.threads.per.data.dir"
_RETRY_READING_S = 0.1
_STEPS_PER_REMOVAL = 300
"""A directory is renamed."""
_STEPS_PER_FOUND_LOG = 4
_STEPS_PER_CONFIG = 40


OnPlacement = Callable[[bytes, int, bytes], None]
"""The callback gets the topic id, the partition and the directory id."""


class ReplicationCounts(NamedTuple):
    """Partitions of one broker: led here with too few in sync, and not usable here."""

    under_replicated: int = 0
    under_min_isr: int = 0
    offline: int = 0


class ReplicaManager:
    """Partitions by topic and index. `apply` is to be subscribed to the metadata publisher.

    hosted: the partitions. loading, upkeep, cleaner, flushes, truncations: the work on their logs. appends: how records
    come there. record_checks, timestamp_lookups: the work on the records of clients' requests. on_placement: is told of
    a replica whose directory is not the one that the metadata names.
    """

    def __init__(
        self,
        config: BrokerConfig,
        hosted: HostedPartitions,
        logs: HostedLogs,
        *,
        clock: Clock,
        threads: Threads,
        loading: LogLoading,
        upkeep: LogUpkeep,
        cleaner: LogCleaner,
        flushes: LogFlushes,
        truncations: LogTruncations,
        failures: StorageFailures,
        appends: RecordAppends,
        record_checks: RecordChecks,
        timestamp_lookups: RecordChecks,
        isr_changes: IsrChanges,
        brokers: ImageBrokers,
        isr_rules: IsrRules,
        quotas: ReplicationQuotas,
        on_placement: OnPlacement | None = None,
    ) -> None:
        self._config = config
        self._node_id = config.node_id
        self._threads = threads
        self._clock = clock
        self._hosted = hosted
        # No call in between: each partition of each request asks one of these.
        self.get_partition = hosted.get
        self.get_partition_by_id = hosted.get_by_id
        self.get_fetched_partition = hosted.get_fetched
        self.traffic = hosted.traffic
        self.logs = logs
        self.loading = loading
        self.upkeep = upkeep
        self.cleaner = cleaner
        self._flushes = flushes
        self.truncations = truncations
        self.failures = failures
        self.appends = appends
        self.append = appends.append
        self.record_checks = record_checks
        self.timestamp_lookups = timestamp_lookups
        self.isr_changes = isr_changes
        self._brokers = brokers
        self._isr_rules = isr_rules
        self.quotas = quotas
        self.leader_quota = quotas.leader
        self._on_placement = on_placement
        self._has_image = False
        self._unapplied = 0
        """Partitions of the first image that are still to be applied: it may come in portions."""
        self._log_configs: dict[str, LogConfig] = {}
        """A topic's partitions share a config, for one `prepare` and what is applied of it."""
        self._without_room = LogsWithoutRoom()

    # Finding

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self._hosted.image.topic_by_id(topic_id)
        return None if topic is None else topic.name

    def log_directories(self) -> dict[str, LogDirectory | None]:
        """Return the configured directories by absolute path; None where one is offline."""
        online = {directory.path: directory for directory in self.logs.directories}
        return {posixpath.abspath(path): online.get(path) for path in partition_paths(self._config)}

    def _has_offline_directory(self) -> bool:
        return None in self.log_directories().values()

    def cordoned_log_directories(self) -> frozenset[str]:
        """Absolute paths of directories that get no new partitions (KIP-1066)."""
        text = self._config.text("cordoned.log.dirs", self._hosted.image.broker_config(self._node_id)) or ""
        named = [name.strip() for name in text.split(",") if name.strip()]
        paths = partition_paths(self._config) if named == ["*"] else named
        return frozenset(map(posixpath.abspath, paths))

    def cordoned_directory_ids(self) -> list[bytes]:
        """The ids of those of them that are online."""
        cordoned = self.cordoned_log_directories()
        return [each.directory_id for path, each in self.log_directories().items() if each and path in cordoned]

    def partitions(self) -> list[Partition]:
        """Return the partitions as they are now: while a caller goes through them in turns, some go and others come."""
        return list(self._hosted)

    def replication_counts(self) -> ReplicationCounts:
        """Count the partitions that lack replicas, of those led here, and those whose logs cannot be used."""
        led = [partition for partition in self._hosted if partition.is_leader]
        return ReplicationCounts(
            under_replicated=sum(partition.is_under_replicated for partition in led),
            under_min_isr=sum(partition.is_under_min_isr for partition in led),
            offline=len(self._hosted.offline),
        )

    @property
    def offline_count(self) -> int:
        """Return how many replicas of this node cannot be used."""
        return len(self._hosted.offline)

    @property
    def flush_times(self) -> Histogram:
        return self._flushes.times

    # Reading what was not read since the start

    async def verify(self, partition: Partition, check: Check) -> None:
        """Return when what the check is about may be asked for again; a damaged partition is gone by then."""
        try:
            await self._threads.run(check.run)
        except CorruptLog as damage:
            if not check.is_overtaken:
                self.quarantine(partition, damage)
        except FileError as failure:
            if not check.is_overtaken:
                self.failures.in_log(partition.log, failure)
            if isinstance(failure, NoRoom):
                await trio.sleep(_RETRY_READING_S)
        else:
            check.accept()

    def quarantine(self, partition: Partition, damage: CorruptLog) -> None:
        """Take a damaged partition out of use until somebody mends it or deletes its topic.

        Its files stay as they are, its offsets stay in the checkpoints, and other partitions are not concerned.
        """
        self.failures.quarantine(partition, damage)

    # Following the metadata

    def subscribe(self, topic: str, listener: LeadershipListener) -> None:
        """`listener` learns of elections in this topic, those before included."""
        self._hosted.subscribe(topic, listener)

    def replicate_with(self, replication: ReplicationListener) -> None:
        """Tell `replication` from now on who leads what is hosted here."""
        self._hosted.replication = replication

    async def prepare(self, image: MetadataImage, changes: ImageChanges) -> None:
        """Open the logs that `apply` will ask for, in threads: found ones at the start, and new ones later.

        What cannot be opened so is left to `apply`, which knows what to do then. Partitions of deleted topics go here,
        as there may be many.
        """
        self._hosted.image = image
        for topic_id in changes.deleted_topics:
            await self._remove_all(topic_id)
        if not self._has_image:
            self._unapplied = len(changes.partitions)
            self.loading.threads_per_directory = self._recovery_threads(image)
            await self.loading.load(await self._found_logs(image, changes))
            return  # nobody follows yet, and truncates
        if to_create := list(self._new_logs(image, changes)):
            await self.loading.open_all(to_create)
        # Last, and `apply` follows without a pause: a leader's log must not be one that is being truncated.
        await self.truncations.settled(self._concerned(changes))

    def _recovery_threads(self, image: MetadataImage) -> int:
        """Return how many threads open the logs of each directory; the file's number where the image has none."""
        text = image.broker_config(self._node_id).get(_RECOVERY_THREADS, "")
        return int(text) if text.isdecimal() and int(text) else self._config.int(_RECOVERY_THREADS)

    def _concerned(self, changes: ImageChanges) -> Iterator[Partition]:
        for topic_id, index in changes.partitions:
            partition = self._hosted.of_topic_id(topic_id).get(index)
            if partition is not None:
                yield partition

    async def _found_logs(self, image: MetadataImage, changes: ImageChanges) -> list[LogToOpen]:
        """Find the logs in turns: at the start they are all of the node's."""
        turn, found = Turn(), []
        for at, topic_id, state in self._unopened(image, changes):
            directory = self.logs.find(at, topic_id, self._assigned_directories(state))
            if directory is not None:
                await turn.took(_STEPS_PER_CONFIG if at.topic not in self._log_configs else _STEPS_PER_FOUND_LOG)
                found.append(LogToOpen(directory, at, topic_id, self._log_config(at.topic)))
        return found

    def _new_logs(self, image: MetadataImage, changes: ImageChanges) -> Iterator[LogToOpen]:
        """Each in the directory where it would be after those before it."""
        planned: Counter[LogDirectory] = Counter()
        for at, topic_id, state in self._unopened(image, changes):
            directory = self.logs.place(at, self._assigned_directories(state), self.cordoned_log_directories, planned)
            if directory is not None:
                planned[directory] += 1
                yield LogToOpen(directory, at, topic_id, self._log_config(at.topic))

    def _unopened(
        self, image: MetadataImage, changes: ImageChanges
    ) -> Iterator[tuple[TopicPartition, bytes, PartitionState]]:
        for topic_id, index in changes.partitions:
            topic = image.topic_by_id(topic_id)
            assert topic is not None, "changes name no partition of a deleted topic"
            state = topic.partitions[index]
            is_known = index in self._hosted.of_topic_id(topic_id) or (topic_id, index) in self._hosted.offline
            if self._node_id in state.replicas and not is_known:
                yield TopicPartition(topic.name, index), topic_id, state

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        """Create, lead, follow, reconfigure and delete what the image says, before anybody can see an answer to it."""
        self._hosted.image = image
        for topic_id in changes.deleted_topics:
            for partition in list(self._hosted.of_topic_id(topic_id).values()):
                self._remove(partition)
            self._remove_offline(topic_id, changes.deleted_topics[topic_id])
        for topic_id, index in changes.partitions:
            topic = image.topic_by_id(topic_id)
            assert topic is not None, "changes name no partition of a deleted topic"
            self._apply_partition(topic, index, topic.partitions[index])
        if changes.configs:
            self._apply_configs(changes)
        if not self._has_image:
            self._unapplied -= len(changes.partitions)
            if self._unapplied > 0:
                return
            self._has_image = True
            try:
                self.logs.put_strays_aside()
            except FileError as failure:
                self.failures.at_path(failure)
        self._log_configs.clear()

    def note_applied(self) -> None:
        """All changes up to now are applied, those that came in portions, too. What is led here is led from the moment
        on in which the registration of this process is among them: coordinators begin, high watermarks move.

        A leader that lost a part of its log in a power cut would give offsets out again, in the epoch in which others
        have records there.
        """
        if self._brokers.find_this_process():
            for partition in self._hosted:
                partition.lead()
            self._hosted.tell_coordinators()

    def _apply_partition(self, topic: TopicState, index: int, state: PartitionState) -> None:
        partition = self._hosted.of_topic_id(topic.topic_id).get(index)
        if self._node_id not in state.replicas:
            self._hosted.offline.discard((topic.topic_id, index))
            if partition is not None:
                self._remove(partition)
            return
        if partition is None:
            if (topic.topic_id, index) in self._hosted.offline:
                return  # another directory would get an empty log, and hand out its offsets once more
            partition = self._open(topic, index, state)
            if partition is None:
                return
        elected = state.leader == self._node_id and state.leader_epoch > partition.leader_epoch
        partition.apply_state(state, self._clock.monotonic_ms())
        self.appends.flush_what_readers_lack(partition)
        self._hosted.tell(partition, is_elected=elected and self._brokers.knows_this_process())

    def _open(self, topic: TopicState, index: int, state: PartitionState) -> Partition | None:
        at = TopicPartition(topic.name, index)
        assigned = self._assigned_directories(state)
        if not self.logs.directories:
            self._hosted.offline.add((topic.topic_id, index))
            return None  # the node is about to end
        if not self._has_image and self._has_offline_directory() and not self.logs.is_found(at, topic.topic_id):
            logger.error("the log of %s is offline: it may be in a log directory that is offline", at)
            self._hosted.offline.add((topic.topic_id, index))
            return None
        try:
            if not self._has_image and not self.logs.is_found(at, topic.topic_id):
                self._ensure_not_lost(at, state)
            log, high_watermark = self.logs.open(
                at, topic.topic_id, self._log_config(topic.name), assigned, self.cordoned_log_directories
            )
            if log.latest_epoch is not None and log.latest_epoch > state.leader_epoch:
                self.logs.quarantine(log, high_watermark)
                raise CorruptLog(
                    f"{log.directory} has records of leader epoch {log.latest_epoch}, and no leader of the partition "
                    f"has had one above {state.leader_epoch}"
                )
        except FileError as failure:
            self._hosted.offline.add((topic.topic_id, index))
            if isinstance(failure, NoRoom):
                logger.debug("the log of %s is offline until there is room: %s", at, failure)
                self._without_room.add(topic.topic_id, index)
            else:
                logger.error("the log of %s is offline: %s", at, failure)
            self.failures.at_path(failure)
            return None
        except CorruptLog as damage:
            log_damage(at, damage)
            self._hosted.offline.add((topic.topic_id, index))
            return None
        partition = Partition(
            topic.name, topic.topic_id, index, log, self._node_id, self._isr_rules, high_watermark=high_watermark
        )
        self._hosted.add(partition)
        directory = self.logs.directory_of(log)
        if directory is not None and directory.directory_id not in assigned and self._on_placement is not None:
            self._on_placement(topic.topic_id, index, directory.directory_id)
        return partition

    def _ensure_not_lost(self, at: TopicPartition, state: PartitionState) -> None:
        """Raises `CorruptLog` where the only replica was in a directory that is not there any more."""
        here = {each.directory_id for each in self.logs.directories} | RESERVED_DIRECTORIES
        lost = [each for each in self._assigned_directories(state) if each not in here]
        if lost and tuple(state.isr) == (self._node_id,):
            raise CorruptLog(
                f"{at} was in a log directory with the id {uuid_to_text(lost[0])}, which is not in log.dirs"
            )

    def replace_log(self, partition: Partition, log: Log) -> None:
        """Use another log from now on, which has the same records in another directory."""
        partition.log = log
        self.logs.reconfigure(log, self._log_config(partition.topic))
        partition.maybe_increment_high_watermark()  # more of it than of the other, perhaps
        self.appends.flush_what_readers_lack(partition)

    def _assigned_directories(self, state: PartitionState) -> list[bytes]:
        """Return where the controller has this node's replica: one directory, or none in metadata of before KIP-858."""
        pairs = zip(state.replicas, state.directories, strict=False)
        return [directory for replica, directory in pairs if replica == self._node_id]

    def _remove(self, partition: Partition) -> None:
        """The topic is deleted, or the replica is elsewhere now: whoever waits here learns it at once."""
        self._hosted.remove(partition)
        directory = self.logs.directory_of(partition.log)
        try:
            self.logs.delete(partition.log)
        except FileError as failure:
            if directory is not None:
                self.failures.in_directory(directory, failure)

    async def _remove_all(self, topic_id: bytes) -> None:
        """One by one, and what a partition holds is let go of before the next one's turn."""
        turn = Turn()
        partitions = deque(self._hosted.of_topic_id(topic_id).values())
        while partitions:
            partition = partitions.popleft()
            if partition in self._hosted:
                self._remove(partition)
            await turn.took(_STEPS_PER_REMOVAL)

    def _remove_offline(self, topic_id: bytes, topic: TopicState) -> None:
        """Delete the quarantined logs of a topic together with the topic."""
        for index in sorted(index for offline_id, index in self._hosted.offline if offline_id == topic_id):
            self._hosted.offline.discard((topic_id, index))
            try:
                self.logs.delete_damaged(TopicPartition(topic.name, index))
            except FileError as failure:
                logger.error("the damaged log of %s-%d cannot be deleted: %s", topic.name, index, failure)

    def _apply_configs(self, changes: ImageChanges) -> None:
        """Live logs take their topic's new configuration; the broker's defaults concern all of them."""
        self.quotas.configure()
        if not self._has_image:
            return  # each log is opened with its topic's
        changed = {name for kind, name in changes.configs if kind == TOPIC_RESOURCE}
        if any(kind == BROKER_RESOURCE and name in ("", str(self._node_id)) for kind, name in changes.configs):
            changed = set(self._hosted.topics())
        for topic in sorted(changed):
            hosted = self._hosted.of_topic(topic)
            if hosted:
                config = self._log_config(topic)
                for partition in hosted.values():
                    self.logs.reconfigure(partition.log, config)
                    partition.maybe_increment_high_watermark()  # or not to be flushed any more
                    self.appends.flush_what_readers_lack(partition)

    def _log_config(self, topic: str) -> LogConfig:
        config = self._log_configs.get(topic)
        if config is None:
            defaults = self._config.topic_defaults(self._hosted.image.broker_config(self._node_id))
            config = LogConfig.from_properties({**defaults, **self._hosted.image.topic_config(topic)})
            self._log_configs[topic] = config
        return config

    # By time, and the end

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run upkeep and cleaner until the task is cancelled. Raises `FileError` when no log directory is left."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.upkeep.run)
            nursery.start_soon(self.cleaner.run)
            nursery.start_soon(self._without_room.run, self._open_again)
            task_status.started()
            await self.failures.raise_last()

    async def _open_again(self, retried: set[tuple[bytes, int]]) -> None:
        self._hosted.offline -= retried
        self._log_configs.clear()
        for topic_id, index in sorted(retried):
            topic = self._hosted.image.topic_by_id(topic_id)
            if topic is not None and index in topic.partitions:
                self._apply_partition(topic, index, topic.partitions[index])
            await trio.lowlevel.checkpoint()

    async def flush(self, partition: Partition, end_offset: int) -> bool:
        """Return whether everything below `end_offset` is durable; one flush serves all who wait for the log.

        Where the log moves to another directory meanwhile, what is there counts. Whether the records below `end_offset`
        are still those of the caller is not said here (`replication.appended`).
        """
        while True:
            log = partition.log
            await self._flushes.flush(log, end_offset)
            if partition.log is log:
                return log.recovery_point >= end_offset

    async def checkpoint_log_start_offsets(self, partitions: Iterable[Partition]) -> None:
        """Write down where the logs begin. What is not durable then is in a directory that is offline; a log that comes
        to another directory meanwhile is looked for there.
        """
        left = list(partitions)
        while left:
            wanted = {partition.log for partition in left}
            for directory in list(self.logs.directories):
                if not wanted.isdisjoint(directory.logs.copy().values()):
                    await self.upkeep.checkpoint_log_start_offsets(directory)
            left = [partition for partition in left if partition.log not in wanted]

    async def checkpoint(self) -> None:
        """Write down the high watermarks, as before a clean shutdown, which writes down the rest."""
        await self.upkeep.checkpoint_high_watermarks()
