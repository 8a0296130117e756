"""Questions that a pipeline asks a cluster before Spark reads: ids of topics, partitions, offsets at their ends.

Spark's own consumer reads the records; this small client asks for the rest, since Spark tells neither topic ids nor
the ids of clusters.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import Resource, ResourceType, describe_configs
from pykbroker.client.errors import AuthenticationRefused, BadInput, ClientError, KafkaError, UnknownTopic
from pykbroker.client.from_properties import cluster_of
from pykbroker.client.leader_epochs import end_offsets_for_epochs
from pykbroker.client.metadata import TopicMetadata
from pykbroker.client.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    OffsetAndTimestamp,
    list_offsets,
)
from pykbroker.config.keys import ConfigurationError
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .errors import BadOptions, ClusterUnavailable, NotAllowed
from .librdkafka import librdkafka_properties

T = TypeVar("T")

_CONSUMER = {
    # Spark's consumer of a task polls 500 records at a time, and rests on the fetch of the next ones: half of the time
    # of a read of small records.
    "max.poll.records": "20000",
    "max.partition.fetch.bytes": str(8 << 20),
    "fetch.max.bytes": str(64 << 20),
}
_RIGHTS = frozenset(
    (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    )
)
ISOLATION_LEVELS = {"read_committed": READ_COMMITTED, "read_uncommitted": READ_UNCOMMITTED}


@dataclass(frozen=True, slots=True)
class Source:
    """A cluster. properties: of Kafka's consumer, such as `security.protocol`, without a prefix."""

    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def writer_properties(self, own: Mapping[str, str]) -> dict[str, str]:
        """Properties of librdkafka for a client that writes there. own: given for it, and win. Raises BadOptions."""
        try:
            return librdkafka_properties(self.properties) | dict(own)
        except ConfigurationError as error:
            raise BadOptions(str(error)) from None

    def reader_options(self) -> dict[str, str]:
        """The options of Spark's connector."""
        options = {f"kafka.{name}": value for name, value in (_CONSUMER | dict(self.properties)).items()}
        return options | {"kafka.bootstrap.servers": self.bootstrap_servers}


@dataclass(frozen=True, slots=True)
class PartitionEnds:
    """The ends of a partition. start: the first offset that is there. end: behind the last one that may be read.

    leader_epoch: no record in front of `end` is of a later one; -1 where the broker does not tell.
    """

    start: int
    end: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """A topic. topic_id: 32 hexadecimal digits, or none of a broker that has no ids."""

    name: str
    topic_id: str
    partitions: Mapping[int, PartitionEnds]


@dataclass(frozen=True, slots=True)
class ClusterEnds:
    cluster_id: str
    topics: Mapping[str, TopicEnds]


def ask(source: Source, question: Callable[[Cluster], Awaitable[T]]) -> T:
    """Ask the cluster, in a thread of its own: a notebook's thread has an event loop already.

    Raises ClusterUnavailable, NotAllowed, and what the question raises.
    """
    answer: list[T] = []
    failure: list[BaseException] = []

    async def work() -> None:
        async with cluster_of(source.bootstrap_servers, source.properties, client_id="pykbroker-spark") as cluster:
            answer.append(await question(cluster))

    def run() -> None:
        try:
            trio.run(work)
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, name="pykbroker-spark-client", daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise _explained(_only(failure[0])) from None
    return answer[0]


def ends_of(source: Source, topics: Sequence[str], isolation_level: str) -> ClusterEnds:
    """The topics, their partitions, and where these begin and end. Raises BadOptions, ClusterUnavailable."""

    async def question(cluster: Cluster) -> ClusterEnds:
        found = [await cluster.topic(name) for name in topics]
        places = [TopicPartition(topic.name, partition) for topic in found for partition in topic.partitions]
        starts = await list_offsets(cluster, dict.fromkeys(places, EARLIEST_TIMESTAMP))
        level = ISOLATION_LEVELS[isolation_level]
        ends = await list_offsets(cluster, dict.fromkeys(places, LATEST_TIMESTAMP), isolation_level=level)
        return ClusterEnds(
            cluster.metadata.cluster_id or "",
            {
                topic.name: TopicEnds(
                    topic.name,
                    topic.topic_id.hex(),
                    {each: _ends(TopicPartition(topic.name, each), starts, ends) for each in topic.partitions},
                )
                for topic in found
            },
        )

    return ask(source, question)


def ids_of(source: Source, topics: Sequence[str]) -> dict[str, str]:
    """The topics' ids as they are now, as TopicEnds has them. Raises BadOptions, ClusterUnavailable."""

    async def question(cluster: Cluster) -> dict[str, str]:
        return {name: (await cluster.topic(name)).topic_id.hex() for name in topics}

    return ask(source, question)


def partition_counts(source: Source, names: Collection[str]) -> dict[str, int]:
    """The numbers of partitions of those topics that exist. Raises ClusterUnavailable."""

    async def question(cluster: Cluster) -> dict[str, int]:
        found = (await cluster.refresh()).topics
        return {name: len(found[name].partitions) for name in names if name in found}

    return ask(source, question)


def configs_of(source: Source, topic: str) -> dict[str, str | None]:
    """The configs of a topic by name, defaults among them. Raises BadOptions, ClusterUnavailable."""

    async def question(cluster: Cluster) -> dict[str, str | None]:
        return {row.name: row.value for row in await describe_configs(cluster, Resource(ResourceType.TOPIC, topic))}

    return ask(source, question)


def _ends(
    place: TopicPartition,
    starts: Mapping[TopicPartition, OffsetAndTimestamp],
    ends: Mapping[TopicPartition, OffsetAndTimestamp],
) -> PartitionEnds:
    start, end = starts[place].offset, ends[place]
    return PartitionEnds(start, max(start, end.offset), end.leader_epoch)


def ends_of_epochs(source: Source, epochs: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], int]:
    """The ends of leader epochs now, by topic and partition: what was read behind them is not there any more.

    Partitions that do not know an epoch that old are left out. Raises BadOptions, ClusterUnavailable.
    """
    if not epochs:
        return {}

    async def question(cluster: Cluster) -> dict[tuple[str, int], int]:
        asked = {TopicPartition(*place): epoch for place, epoch in epochs.items()}
        found = await end_offsets_for_epochs(cluster, asked)
        return {(at.topic, at.partition): end.end_offset for at, end in found.items() if end.end_offset >= 0}

    return ask(source, question)


def offsets_at(
    source: Source, topics: Mapping[str, Sequence[int]], timestamp_ms: int
) -> dict[tuple[str, int], int | None]:
    """The first offset whose record is that young, by topic and partition; None where no record is."""

    async def question(cluster: Cluster) -> dict[tuple[str, int], int | None]:
        places = [TopicPartition(topic, each) for topic, partitions in topics.items() for each in partitions]
        found = await list_offsets(cluster, dict.fromkeys(places, timestamp_ms))
        return {(place.topic, place.partition): None if at.offset < 0 else at.offset for place, at in found.items()}

    return ask(source, question)


def matching_topics(source: Source, names: Sequence[str], pattern: str | None) -> list[str]:
    """The names, and those that match the pattern as a whole; internal topics only by their name.

    Raises BadOptions where a pattern is none, or nothing is left.
    """
    if pattern is None:
        chosen = sorted(set(names))
        if not chosen:
            raise BadOptions("No topic is named")
        return chosen
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise BadOptions(f"The pattern '{pattern}' is no regular expression: {error}") from None

    async def question(cluster: Cluster) -> list[TopicMetadata]:
        return list((await cluster.refresh()).topics.values())

    found = {topic.name for topic in ask(source, question) if not topic.is_internal and compiled.fullmatch(topic.name)}
    if not found and not names:
        raise BadOptions(f"No topic matches '{pattern}'")
    return sorted({*names, *found})


def _only(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _explained(error: BaseException) -> BaseException:
    match error:
        case UnknownTopic() | BadInput() | ConfigurationError():
            return BadOptions(str(error))
        case AuthenticationRefused():
            return NotAllowed(str(error))
        case KafkaError() if error.error_code in _RIGHTS:
            return NotAllowed(str(error))
        case ClientError():
            return ClusterUnavailable(str(error))
        case _:
            return error
