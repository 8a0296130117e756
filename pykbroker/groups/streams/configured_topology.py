"""A topology as the topics of the cluster allow it: how many partitions internal topics need, and which are missing.

A repartition topic that has no number of partitions of its own gets the largest one among the topics that are read by a
subtopology that writes to it; topics of one copartition group have to have the same number; a changelog has as many as
the topics that its subtopology reads. What stands in the way is told to the members as a status. The models are Kafka's
`InternalTopicManager`, `RepartitionTopics`, `CopartitionedTopicsEnforcer` and `ChangelogTopics`. Kafka goes through
subtopologies in the order of a table, and results depend on that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush
from itertools import islice
from typing import Final

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.streams_group_records import Subtopology, TopicInfo
from pykbroker.protocol.messages.topics import CreatableTopic, CreatableTopicConfig

from ..common.topics import TopicsView
from .java_collections import in_table_order
from .topology import StreamsTopology, names, source_topics

MOST_TASKS: Final = 25_000
"""How many tasks a topology may have in all, so that one member that has them all can report them in one request."""
MOST_INPUT_PARTITIONS: Final = 100_000
"""How many partitions all tasks may read together, so that an answer can say at which endpoint each of them is."""
_SHOWN: Final = 3


class StatusCode(IntEnum):
    """Kafka's `StreamsGroupHeartbeatResponse.Status`."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """An internal topic with the number of partitions that it needs. replication_factor: 0 for the broker's default."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]

    def creatable(self) -> CreatableTopic:
        return CreatableTopic(
            name=self.name,
            num_partitions=self.partitions,
            replication_factor=self.replication_factor or -1,
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in self.configs.items()],
        )


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    """A subtopology whose tasks are counted."""

    task_count: int
    source_topics: Sequence[str]
    repartition_source_topics: Mapping[str, InternalTopic]
    repartition_sink_topics: Sequence[str]
    changelog_topics: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelog_topics)


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """A topology that was compared with the topics that there are.

    subtopologies: by id in the order of the alphabet; None where it is not known how many tasks they have. missing:
    internal topics to create, by name. problem: what stands in the way, None where tasks can be assigned.
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    missing: Mapping[str, InternalTopic] = field(default_factory=dict)
    problem: tuple[StatusCode, str] | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None

    @property
    def task_count(self) -> int:
        return sum(each.task_count for each in (self.subtopologies or {}).values())


def configure(topology: StreamsTopology, topics: TopicsView) -> ConfiguredTopology:
    """Compare the topology with the topics. Raises ApiError for a topology that no topics could make right."""
    try:
        return _Configuration(topology, topics).configure()
    except _WrongTopics as wrong:
        return ConfiguredTopology(topology.epoch, None, problem=(wrong.status, wrong.words))


class _WrongTopics(Exception):
    """The topics that there are do not fit the topology."""

    def __init__(self, status: StatusCode, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class _Configuration:
    def __init__(self, topology: StreamsTopology, topics: TopicsView) -> None:
        if len(topology.subtopologies) < len(topology.value.subtopologies):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Two subtopologies have the same id.")
        self._topology = topology
        self._topics = topics
        ordered = in_table_order(topology.subtopologies)
        self._subtopologies = [topology.subtopologies[subtopology_id] for subtopology_id in ordered]
        self._existing: dict[str, int] = {}
        """The number of partitions by name, of those topics that there are."""
        for name in topology.required_topics:
            topic_id = topics.topic_id(name)
            if topic_id is not None:
                self._existing[name] = topics.partition_count(topic_id)
        self._decided: dict[str, int] = {}

    def configure(self) -> ConfiguredTopology:
        copartition_groups = [list(_copartition_groups(each)) for each in self._subtopologies]
        self._check_sources()
        self._decided.update(self._repartition_counts())
        self._enforce_copartitioning(group for groups in copartition_groups for group in groups)
        self._decided.update(self._changelog_counts())
        configured = {each.subtopology_id: self._configured(each) for each in self._subtopologies}
        _check_size(configured)
        missing = self._missing(configured)
        problem = None
        if missing:
            problem = StatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {_summary(missing)}"
        in_order = {subtopology_id: configured[subtopology_id] for subtopology_id in sorted(configured)}
        return ConfiguredTopology(self._topology.epoch, in_order, missing, problem)

    def _count(self, name: str) -> int | None:
        """The number of partitions that the topic has, or will have; None where that is not known."""
        existing = self._existing.get(name)
        return self._decided.get(name) if existing is None else existing

    def _known_count(self, name: str) -> int:
        count = self._count(name)
        if count is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Number of partitions is not set for topic: {name}")
        return count

    # Sources

    def _check_sources(self) -> None:
        missing = {name for each in self._subtopologies for name in each.source_topics if name not in self._existing}
        if missing:
            words = f"Source topics {_summary(sorted(missing))} are missing."
            raise _WrongTopics(StatusCode.MISSING_SOURCE_TOPICS, words)

    # Repartition topics

    def _repartition_counts(self) -> dict[str, int]:
        """The number of partitions of every repartition topic."""
        counts = {
            topic.name: topic.partitions
            for each in self._subtopologies
            for topic in each.repartition_source_topics
            if topic.partitions != 0
        }
        self._decide_in_passes(counts)
        if any(name not in counts for each in self._subtopologies for name in each.repartition_sink_topics):
            words = (
                "Failed to compute number of partitions for all repartition topics. There may be loops in the topology "
                "that cannot be resolved."
            )
            raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, words)
        if any(topic.name not in counts for each in self._subtopologies for topic in each.repartition_source_topics):
            words = (
                "Failed to compute number of partitions for all repartition topics, because a repartition source topic "
                "is never used as a sink topic."
            )
            raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, words)
        return counts

    def _decide_in_passes(self, counts: dict[str, int]) -> None:
        """Go through the subtopologies in their order, again and again, and decide what each of them writes to.

        A heap has those whose turn comes in this pass or the next one, since the number of one of the topics that they
        read is known; the others wait at no cost.
        """
        readers: dict[str, list[int]] = {}
        for number, each in enumerate(self._subtopologies):
            for topic in each.repartition_source_topics:
                readers.setdefault(topic.name, []).append(number)
        queued = {
            number
            for number, each in enumerate(self._subtopologies)
            if each.source_topics or any(topic.name in counts for topic in each.repartition_source_topics)
        }
        turns = [(0, number) for number in sorted(queued)]
        while turns:
            round_, number = heappop(turns)
            for name in self._decide_sinks(self._subtopologies[number], counts):
                for reader in readers.get(name, ()):
                    if reader not in queued:
                        queued.add(reader)
                        heappush(turns, (round_ if reader > number else round_ + 1, reader))

    def _decide_sinks(self, subtopology: Subtopology, counts: dict[str, int]) -> list[str]:
        """Give the repartition topics that the subtopology writes to, and that have no number yet, as many partitions
        as the largest topic has that it reads, as far as that is known. Returns those topics."""
        decided = [name for name in subtopology.repartition_sink_topics if name not in counts]
        if decided:
            read = [counts.get(topic.name) for topic in subtopology.repartition_source_topics]
            read += [self._existing[name] for name in subtopology.source_topics]
            counts.update(dict.fromkeys(decided, max(count for count in read if count is not None)))
        return decided

    # Copartitioning

    def _enforce_copartitioning(self, groups: Iterable[Sequence[str]]) -> None:
        repartition = [topic for each in self._subtopologies for topic in each.repartition_source_topics]
        fixed = {topic.name for topic in repartition if topic.partitions != 0}
        flexible = {topic.name for topic in repartition if topic.partitions == 0}
        fixed_counts = {self._known_count(name) for name in fixed}
        for group in groups:
            if group:
                self._enforce(group, fixed, flexible, fixed_counts)

    def _enforce(self, group: Sequence[str], fixed: set[str], flexible: set[str], fixed_counts: set[int]) -> None:
        """Give the repartition topics of a group the number of partitions of its other topics, which have to agree."""
        of_repartition = {name: self._known_count(name) for name in group if name in fixed or name in flexible}
        of_others = {name: self._known_count(name) for name in group if name not in of_repartition}
        if of_others:
            count = _same(of_others, set(of_others.values()))
        elif fixed:
            count = _same(of_repartition, fixed_counts)
        else:
            count = max(of_repartition.values())
            if count <= 0:
                words = f"All topics in the copartition group had undefined partition number: {sorted(of_repartition)}"
                raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, words)
        for name, own in of_repartition.items():
            if name in fixed and own != count:
                words = (
                    f"Number of partitions [{own}] of repartition topic [{name}] doesn't match number of partitions "
                    f"[{count}] of the source topic."
                )
                raise _WrongTopics(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, words)
            self._decided[name] = count

    # Changelogs

    def _changelog_counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for each in self._subtopologies:
            sources = source_topics(each)
            if not sources:
                words = f"No source topics found for subtopology {each.subtopology_id}"
                raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, words)
            most = max(self._known_count(name) for name in sources)
            counts.update(dict.fromkeys(names(each.state_changelog_topics), most))
        return counts

    # The outcome

    def _configured(self, subtopology: Subtopology) -> ConfiguredSubtopology:
        return ConfiguredSubtopology(
            max(self._known_count(name) for name in source_topics(subtopology)),
            subtopology.source_topics,
            self._internal(subtopology.repartition_source_topics),
            subtopology.repartition_sink_topics,
            self._internal(subtopology.state_changelog_topics),
        )

    def _internal(self, topics: Iterable[TopicInfo]) -> dict[str, InternalTopic]:
        found: dict[str, InternalTopic] = {}
        for topic in topics:
            partitions = topic.partitions or self._decided.get(topic.name, 0)
            if partitions < 1:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Number of partitions must be at least 1.")
            configs = {config.key: config.value for config in topic.topic_configs}
            if topic.name in found or len(configs) < len(topic.topic_configs):
                words = f"A subtopology names topic {topic.name}, or one of its configurations, twice."
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, words)
            found[topic.name] = InternalTopic(topic.name, partitions, topic.replication_factor, configs)
        return found

    def _missing(self, configured: Mapping[str, ConfiguredSubtopology]) -> dict[str, InternalTopic]:
        """The internal topics that there are not, in the order in which Kafka names them."""
        internal: dict[str, InternalTopic] = {}
        for subtopology_id in sorted(configured):
            each = configured[subtopology_id]
            internal.update(each.repartition_source_topics)
            internal.update(each.changelog_topics)
        required = (
            name for each in self._subtopologies for name in (*source_topics(each), *names(each.state_changelog_topics))
        )
        for name in in_table_order(required):
            topic, found = internal.get(name), self._existing.get(name)
            if topic is not None and found is not None and found != topic.partitions:
                words = (
                    f"Existing topic {name} has different number of partitions: expected {topic.partitions}, found "
                    f"{found}"
                )
                raise _WrongTopics(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, words)
        return {name: internal[name] for name in in_table_order(internal) if name not in self._existing}


def _copartition_groups(subtopology: Subtopology) -> Iterable[Sequence[str]]:
    """The names of topics that have to have the same number of partitions. Raises ApiError for a wrong index."""
    for group in subtopology.copartition_groups:
        found: dict[str, None] = {}
        sources = subtopology.source_topics
        repartition = subtopology.repartition_source_topics
        for index in group.source_topics:
            _check_index(index, len(sources))
            found[sources[index]] = None
        for index in group.repartition_source_topics:
            _check_index(index, len(repartition))
            found[repartition[index].name] = None
        yield list(found)


def _check_index(index: int, length: int) -> None:
    if not 0 <= index < length:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Index {index} out of bounds for length {length}")


def _same(counts: Mapping[str, int], different: set[int]) -> int:
    if len(different) > 1:
        told = ", ".join(f"{name}={counts[name]}" for name in sorted(counts))
        words = f"Following topics do not have the same number of partitions: [{{{told}}}]"
        raise _WrongTopics(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, words)
    return next(iter(different))


def _check_size(configured: Mapping[str, ConfiguredSubtopology]) -> None:
    tasks = sum(each.task_count for each in configured.values())
    if tasks > MOST_TASKS:
        words = f"The topology has {tasks} tasks, of {MOST_TASKS} at most."
        raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, words)
    read = sum(
        each.task_count * (len(each.source_topics) + len(each.repartition_source_topics))
        for each in configured.values()
    )
    if read > MOST_INPUT_PARTITIONS:
        words = f"The tasks of the topology read {read} partitions, of {MOST_INPUT_PARTITIONS} at most."
        raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, words)


def _summary(topics: Iterable[str]) -> str:
    """The first of the topics, and how many others there are."""
    told = list(topics)
    more = f" and {len(told) - _SHOWN} additional topics" if len(told) > _SHOWN else ""
    return ", ".join(islice(told, _SHOWN)) + more
