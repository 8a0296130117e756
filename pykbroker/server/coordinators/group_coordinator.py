"""The group coordinator of a node has `pykbroker.groups` in the partitions of `__consumer_offsets` that it leads.

Handlers reach it as `Broker.groups`. What has nothing to do with groups is in `coordinator_driver`. Kafka's counterpart
is `GroupCoordinatorService`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple, Unpack, cast

import trio

from pykbroker.config import BrokerConfig
from pykbroker.config.consumer_groups import ASSIGNOR_NAMES, ASSIGNORS
from pykbroker.config.group_keys import RACK_AWARE_TAGS, GroupValues, group_values
from pykbroker.config.streams_groups import TOPOLOGY_PLUGIN
from pykbroker.groups.common.config import ConsumerGroupConfig, GroupConfig, ShareGroupConfig, StreamsGroupConfig
from pykbroker.groups.common.records import CoordinatorRecord, decode_record
from pykbroker.groups.common.requests import check_group_id
from pykbroker.groups.common.topics import MetadataHash
from pykbroker.metadata.features import KAFKA_4_4_SINCE, feature_level
from pykbroker.metadata.image import METADATA_VERSION, ImageChanges, MetadataImage
from pykbroker.protocol.errors import ApiError
from pykbroker.protocol.messages.group_records import OffsetCommitKey
from pykbroker.protocol.messages.topics import CreatableTopic, CreatableTopicConfig
from pykbroker.replication.partition import Partition
from pykbroker.state_machine import CauseKind, CoordinatorContext, Result

from ..runtime.clock import Clock
from ..runtime.threads import OneAtATime, Threads
from ..runtime.time_scopes import BY_THE_CLOCK, TimeScopes
from . import assignment_threads
from .assignment_threads import AssignmentThreads, ShardAssignments
from .cause_history import Asked
from .coordinator_driver import CoordinatorDriver, Replicas
from .coordinator_log import encode_batches, record_room_bytes
from .group_topics import ImageTopics
from .led_shard import CoordinatorState, LedShard, MakeStep
from .share_states import ShareStates
from .topic_regex_resolver import TopicRegexResolver
from .waiting_members import WaitingMembers

if TYPE_CHECKING:
    from pykbroker.groups.modern.assignment_tasks import ComputedAssignment, InBatches
    from pykbroker.groups.offsets.forgotten_topics import DeletedTopics
    from pykbroker.groups.shard import GroupRequest, GroupShard
    from pykbroker.groups.share.state_changes import ShareInitialization
    from pykbroker.groups.streams.topology_descriptions import TopologyDescriptions

WorkT = TypeVar("WorkT")
WorkTs = TypeVarTuple("WorkTs")

CONSUMER_OFFSETS = "__consumer_offsets"

_MOST_PREPARATIONS: Final = 3


class GroupCoordinator(CoordinatorDriver["GroupShard", "GroupRequest", CoordinatorContext]):
    """The group coordinator is to be subscribed to `__consumer_offsets` at the replica manager, and with `apply` at the
    controller's driver.
    """

    topic = CONSUMER_OFFSETS

    def __init__(
        self,
        config: BrokerConfig,
        replicas: Replicas,
        *,
        image: Callable[[], MetadataImage],
        clock: Clock,
        threads: Threads,
        rng: Random,
        time: TimeScopes = BY_THE_CLOCK,
    ) -> None:
        timeout_ms = config.int("offsets.commit.timeout.ms")
        super().__init__(
            replicas,
            image=image,
            clock=clock,
            threads=threads,
            commit_timeout_ms=timeout_ms,
            append_linger_ms=config.int("group.coordinator.append.linger.ms"),
            ahead_ms=time.sessions_ahead_ms,
        )
        self._broker_config = config
        self._config = replace(group_config(config), reckon_offsets=time.offsets)
        self._rng = rng
        self.topic_regexes = TopicRegexResolver(image, threads)
        self._assignments = AssignmentThreads(threads)
        self._preparing = OneAtATime(threads)
        self.waiting_members = WaitingMembers()
        self.share_states = ShareStates(self)
        self._topics = ImageTopics(image)
        self.metadata_hash = MetadataHash(self._topics)
        self._descriptions: TopologyDescriptions | None = None
        self.rebalances = dict.fromkeys(("consumer", "share", "streams"), 0)
        """By type of group, how many epochs have begun since this node started."""

    async def submit(self, key: str, request: GroupRequest, context: CoordinatorContext) -> Any:
        try:
            return await super().submit(key, request, context)
        except ApiError:
            check_group_id(key, request)
            raise

    async def in_thread(self, work: Callable[[Unpack[WorkTs]], WorkT], *args: *WorkTs) -> WorkT:
        """Compute something large beside the event loop, when the turn of it has come. It may change nothing."""
        return await self._preparing.run(work, *args)

    async def prepare(self, group_id: str, request: GroupRequest, api_version: int) -> object:
        """Compute in a thread what the heartbeat of a large member comes to; None where there is nothing to compute.

        Where the group changes meanwhile it is computed again, some times at most.
        """
        prepared: object = None
        for _ in range(_MOST_PREPARATIONS):
            shard = self._shard_of(group_id)
            preparation = None if shard is None else shard.preparation(request, api_version)
            if preparation is None:
                return None
            prepared = await self._preparing.run(preparation.run)
            if preparation.is_current():
                break
        return prepared

    def begin(
        self,
        key: str,
        request: GroupRequest,
        context: CoordinatorContext,
        then: Callable[[Any, Exception | None], None],
    ) -> None:
        """Submit a request whose answer no task waits for; what is refused is refused by `then` alone."""
        if not key:  # perhaps the request needs a name
            then = _checking_group_id(key, request, then)
        try:
            super().begin(key, request, context, then)
        except ApiError as error:
            then(None, error)

    def new_shard(self, partition: Partition) -> GroupShard:
        from pykbroker.groups.shard import GroupShard  # a broker without groups does not need the memory

        room = record_room_bytes(partition.log.config.max_message_bytes)
        config = replace(self._config, max_record_bytes=room)
        return GroupShard(
            config,
            self._rng,
            self._topics,
            self._consumer_config,
            self.topic_regexes,
            ShardAssignments(
                self._assignments, partial(self._encoding, partition), partial(self._put_assignment, partition)
            ),
            self.metadata_hash,
            self._share_config,
            self.streams_config,
            self._topology_descriptions(),
        )

    def _topology_descriptions(self) -> TopologyDescriptions | None:
        """The memory for descriptions of the topologies of streams groups; None where nothing keeps them."""
        if self._descriptions is None and self._broker_config.text(TOPOLOGY_PLUGIN):
            from pykbroker.groups.streams.topology_descriptions import TopologyDescriptions

            self._descriptions = TopologyDescriptions()
        return self._descriptions

    def _encoding(self, partition: Partition) -> InBatches:
        """Return what puts records into batches that the partition takes."""
        timestamp_ms, max_bytes = self._clock.now_ms(), partition.log.config.max_message_bytes
        return lambda records: encode_batches([records], timestamp_ms, max_bytes) if records else ()

    def _put_assignment(self, partition: Partition, computed: ComputedAssignment[Any, Any]) -> None:
        """Give the assignment to whichever shard the partition has now: only the one that wanted it takes it."""
        led = self._shards.get(partition.index)
        if led is None or led.partition is not partition:
            return
        make = _putting(computed)
        if self.attempt(led, make) is None:
            self.postpone(led, make)

    def decode_record(self, key: bytes | None, value: bytes | None) -> CoordinatorRecord:
        return decode_record(key, value)

    def describe(self, shard: GroupShard) -> str:
        return f"{len(shard.groups)} groups" if shard.groups else ""

    async def run_beside(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.topic_regexes.run)
            nursery.start_soon(self._assignments.run)
            nursery.start_soon(self.share_states.run)

    def on_resignation(self, index: int) -> None:
        led = self._shards.get(index)
        super().on_resignation(index)
        if led is None:
            return
        known = led.shard.groups

        def is_gone(group_id: str) -> bool:  # a shard that loads does not know all of its groups yet
            return group_id in known or self.partition_for(group_id) in (None, index)

        self.share_states.give_up(is_gone)
        if self._descriptions is not None:
            self._descriptions.delete_all_of(is_gone)

    # Share groups

    def _keep_causes(
        self, led: LedShard[GroupShard], result: Result[CoordinatorRecord], asked: Asked | None, timestamp_ms: int
    ) -> None:
        for cause in result.causes:
            if cause.kind is CauseKind.REBALANCE:
                group = led.shard.groups.get(cause.key)
                if group is not None and group.type.value in self.rebalances:
                    self.rebalances[group.type.value] += 1
        super()._keep_causes(led, result, asked, timestamp_ms)

    def carry_out(self, led: LedShard[GroupShard], effect: object) -> None:
        """Have the state of share partitions created: groups have no other effects."""
        initialization: ShareInitialization = cast("ShareInitialization", effect)
        self.share_states.begin(initialization)

    def is_share_group(self, group_id: str) -> bool:
        """Tell whether this node coordinates a share group of that id."""
        shard = self._shard_of(group_id)
        return shard is not None and shard.is_share(group_id)

    def share_partitions_to_initialize(self, group_id: str) -> Mapping[bytes, frozenset[int]]:
        """Return the partitions, by topic id, that a share group waits for to be initialized."""
        shard = self._shard_of(group_id)
        return {} if shard is None or not shard.is_share(group_id) else shard.share.initializing(group_id)

    def tell_group(self, group_id: str, request: GroupRequest, context: CoordinatorContext) -> None:
        """Submit a request whose answer nobody waits to hear; a group that is coordinated elsewhere hears nothing."""
        index = self.partition_for(group_id)
        led = None if index is None else self._shards.get(index)
        if led is not None:
            self.tell(led, request, context)

    def _shard_of(self, group_id: str) -> GroupShard | None:
        index = self.partition_for(group_id)
        return None if index is None else self.shard(index)

    def level_of(self, result: Result[CoordinatorRecord], *, is_history: bool) -> int:
        """Return the level at which the log tells of a step: commits are daily business."""
        return logging.INFO if is_history else logging.DEBUG

    def is_history(self, result: Result[CoordinatorRecord]) -> bool:
        """Tell whether the step is about more than offsets."""
        for record in result.records:
            if type(record.key) is not OffsetCommitKey:
                return True
        return not result.records

    def new_topic(self, most_replicas: int) -> CreatableTopic:
        config = self._broker_config
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.int("offsets.topic.segment.bytes")),
        }
        return CreatableTopic(
            name=CONSUMER_OFFSETS,
            num_partitions=config.int("offsets.topic.num.partitions"),
            replication_factor=min(config.int("offsets.topic.replication.factor"), most_replicas),
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
        )

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        """Groups look at their topics again; topics that were deleted take their offsets along."""
        names = _changed_topics(image, changes)
        for name in names:
            self.metadata_hash.forget(name)
        for led in self._shards.values():
            led.shard.on_topics_changed(names)
        if changes.deleted_topics and self._shards:
            from pykbroker.groups.offsets.forgotten_topics import DeletedTopics

            self._forget(DeletedTopics({topic_id: topic.name for topic_id, topic in changes.deleted_topics.items()}))

    def _forget(self, deleted: DeletedTopics) -> None:
        """Few offsets at once, the rest as soon as others have had their turn."""
        from pykbroker.groups.offsets.forgotten_topics import MOST_FORGOTTEN

        make = _forgetting(deleted)
        forgotten = 0
        for led in list(self._shards.values()):
            if led.state is CoordinatorState.ACTIVE and not led.shard.begin_to_forget(deleted):
                continue
            result = self.attempt(led, make) if forgotten < MOST_FORGOTTEN else None
            if result is None or result.is_unfinished:
                self.postpone(led, make)
            if result is not None:
                forgotten += len(result.records)

    def session_timeout_ms(self, group_id: str) -> int:
        """Return for how long a member of a consumer group may be silent."""
        return self._consumer_config(group_id).session_timeout_ms

    def share_session_timeout_ms(self, group_id: str) -> int:
        """Return for how long a member of a share group may be silent."""
        return self._share_config(group_id).session_timeout_ms

    def _consumer_config(self, group_id: str) -> ConsumerGroupConfig:
        values = self._values(group_id)
        return ConsumerGroupConfig(
            session_timeout_ms=values.int("consumer.session.timeout.ms"),
            heartbeat_interval_ms=values.int("consumer.heartbeat.interval.ms"),
            assignment_interval_ms=values.int("consumer.assignment.interval.ms"),
            is_of_4_4=self._is_of_4_4,
        )

    def _share_config(self, group_id: str) -> ShareGroupConfig:
        values = self._values(group_id)
        return ShareGroupConfig(
            session_timeout_ms=values.int("share.session.timeout.ms"),
            heartbeat_interval_ms=values.int("share.heartbeat.interval.ms"),
            assignment_interval_ms=values.int("share.assignment.interval.ms"),
        )

    def streams_config(self, group_id: str) -> StreamsGroupConfig:
        """The settings of a streams group."""
        values = self._values(group_id)
        return StreamsGroupConfig(
            session_timeout_ms=values.int("streams.session.timeout.ms"),
            heartbeat_interval_ms=values.int("streams.heartbeat.interval.ms"),
            assignment_interval_ms=values.int("streams.assignment.interval.ms"),
            initial_rebalance_delay_ms=values.int("streams.initial.rebalance.delay.ms"),
            num_standby_replicas=values.int("streams.num.standby.replicas"),
            rack_aware_tags=tuple(values.list(RACK_AWARE_TAGS)),
            task_offset_interval_ms=values.int("streams.task.offset.interval.ms"),
            acceptable_recovery_lag=values.int("streams.acceptable.recovery.lag"),
            is_of_4_4=self._is_of_4_4,
        )

    @property
    def _is_of_4_4(self) -> bool:
        return feature_level(self._image(), METADATA_VERSION) >= KAFKA_4_4_SINCE

    def _values(self, group_id: str) -> GroupValues:
        """Return the values that are the group's own, and those of the broker, which may change while it runs."""
        image = self._image()
        dynamic = image.broker_config(self._broker_config.node_id)
        return group_values(image.group_config(group_id), self._broker_config, dynamic)


def _checking_group_id(
    group_id: str, request: GroupRequest, then: Callable[[Any, Exception | None], None]
) -> Callable[[Any, Exception | None], None]:
    """Return what has a refused request's group id checked first."""

    def check_and_call(response: Any, error: Exception | None) -> None:
        if isinstance(error, ApiError):
            try:
                check_group_id(group_id, request)
            except ApiError as invalid:
                error = invalid
        then(response, error)

    return check_and_call


def _forgetting(deleted: DeletedTopics) -> MakeStep[GroupShard]:
    return lambda shard, now_ms, timestamp_ms: shard.forget_topics(deleted, now_ms, timestamp_ms)


def _putting(computed: ComputedAssignment[Any, Any]) -> MakeStep[GroupShard]:
    return lambda shard, now_ms, timestamp_ms: shard.put_assignment(computed, now_ms, timestamp_ms)


def _changed_topics(image: MetadataImage, changes: ImageChanges) -> set[str]:
    """Return the changed topics by name; where a broker came with another rack, any topic may be another."""
    names = {topic.name for topic in changes.deleted_topics.values()}
    if changes.brokers:
        return names | image.topics.keys()
    for topic_id in {topic_id for topic_id, _ in changes.partitions}:
        topic = image.topic_by_id(topic_id)
        if topic is not None:
            names.add(topic.name)
    return names


def group_config(config: BrokerConfig) -> GroupConfig:
    return GroupConfig(
        initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
        min_session_timeout_ms=config.int("group.min.session.timeout.ms"),
        max_session_timeout_ms=config.int("group.max.session.timeout.ms"),
        max_size=config.int("group.max.size"),
        offsets_retention_ms=config.int("offsets.retention.minutes") * 60_000,
        offsets_retention_check_interval_ms=config.int("offsets.retention.check.interval.ms"),
        offset_metadata_max_chars=config.int("offset.metadata.max.bytes"),
        consumer_max_size=config.int("group.consumer.max.size"),
        consumer_assignors=tuple(ASSIGNOR_NAMES[name] for name in config.list(ASSIGNORS)),
        consumer_assigned_at_once=assignment_threads.SMALL,
        consumer_migration_policy=config.str("group.consumer.migration.policy").lower(),
        consumer_regex_refresh_interval_ms=config.int("group.consumer.regex.refresh.interval.ms"),
        streams_max_size=config.int("group.streams.max.size"),
        share_max_size=config.int("group.share.max.size"),
        share_initialize_retry_interval_ms=config.int("group.share.initialize.retry.interval.ms"),
    )
