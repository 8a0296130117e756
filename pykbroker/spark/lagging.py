"""The lag of Spark's queries: what they have read, by their checkpoints, beside the ends of their topics.

Spark's Kafka source commits to no group: the offsets of a query stand in its checkpoint, `offsets/N` for what batch N
reads, and `commits/N` when it is done (`org.apache.spark.sql.execution.streaming.OffsetSeqLog`, `CommitLog`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import BadInput, KafkaError
from pykbroker.client.group_offsets import MEMBERS_DECIDE, commit_offsets
from pykbroker.client.groups import describe_group
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .errors import BadOptions, CheckpointDamaged
from .session import SessionOptions, pipeline_session
from .source import ISOLATION_LEVELS, PartitionEnds, Source, ask, ends_of, partition_counts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VERSION = "v1"
_MOST_DIGITS = 19


@dataclass(frozen=True, slots=True)
class LagOptions:
    """The options of a report. source: the cluster that the queries read.

    checkpoints: their checkpointLocation, a directory each. isolation_level: `read_committed` for queries that have set
    it: their ends are in front of open transactions. commit_to: a group that gets the offsets, with one checkpoint.
    dry_run: it would get them, and does not.
    """

    source: Source
    checkpoints: Sequence[str]
    isolation_level: str = "read_uncommitted"
    commit_to: str | None = None
    session: SessionOptions = field(default_factory=SessionOptions)
    dry_run: bool = False

    def check(self) -> None:
        """Raises BadOptions."""
        if not self.checkpoints:
            raise BadOptions("No checkpoint is named")
        if self.isolation_level not in ISOLATION_LEVELS:
            raise BadOptions(f"isolation_level is {' or '.join(ISOLATION_LEVELS)}, not '{self.isolation_level}'")
        if self.commit_to is not None and len(self.checkpoints) > 1:
            raise BadOptions("The offsets of one checkpoint go to a group: name one of them")


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """A partition that a query reads. read_offset: the first that is not read. end: None where the topic has no such
    partition. problem: a sentence, or None.
    """

    topic: str
    partition: int
    read_offset: int
    end: int | None
    problem: str | None = None

    @property
    def lag(self) -> int | None:
        """Offsets, as of groups: markers of transactions count."""
        return None if self.end is None else max(0, self.end - self.read_offset)


@dataclass(frozen=True, slots=True)
class QueryLag:
    """A query. query_id: as Spark has it. batch: the last that is done, None before the first; at_ms: when it was
    planned. planned: a later one, which has begun.
    """

    checkpoint: str
    query_id: str
    batch: int | None
    at_ms: int | None
    planned: int | None
    partitions: Sequence[PartitionLag]

    @property
    def lag(self) -> int:
        return sum(row.lag or 0 for row in self.partitions)


@dataclass(frozen=True, slots=True)
class LagReport:
    """The queries, in the order of their checkpoints. to_commit: offsets for the group that was named; committed: those
    that it got, none in a dry run.
    """

    queries: Sequence[QueryLag]
    committed: int = 0
    to_commit: int = 0

    @property
    def problems(self) -> list[str]:
        return [row.problem for query in self.queries for row in query.partitions if row.problem is not None]


def lag(options: LagOptions, *, spark: SparkSession | None = None) -> LagReport:
    """Read the checkpoints, and ask the cluster for the ends of their topics.

    spark: needed for checkpoints that are not in the local file system; one is started where none runs.

    Raises BadOptions, CheckpointDamaged, ClusterUnavailable, and what the start of Spark raises.
    """
    options.check()
    with _directories(options, spark) as directory_of:
        states = [read_checkpoint(each, directory_of(each)) for each in options.checkpoints]
    ends = _ends(options, {topic for state in states for topic, _ in state.offsets})
    queries = [
        QueryLag(
            each,
            state.query_id,
            state.batch,
            state.at_ms,
            state.planned,
            [_partition(topic, at, offset, ends) for (topic, at), offset in sorted(state.offsets.items())],
        )
        for each, state in zip(options.checkpoints, states, strict=True)
    ]
    if options.commit_to is None:
        return LagReport(queries)
    there = (row for row in queries[0].partitions if row.end is not None)
    offsets = {TopicPartition(row.topic, row.partition): row.read_offset for row in there}
    if offsets:
        _commit(options.source, options.commit_to, offsets, dry_run=options.dry_run)
    return LagReport(queries, 0 if options.dry_run else len(offsets), len(offsets))


# ---- checkpoints


class Directory(Protocol):
    """A directory. names: those in it, or in one below it; none where it does not exist."""

    def names(self, path: str = "") -> list[str]: ...

    def read_text(self, path: str) -> str: ...


class LocalDirectory:
    """A directory of this machine. Raises CheckpointDamaged."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)

    def names(self, path: str = "") -> list[str]:
        try:
            return sorted(each.name for each in (self._root / path).iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CheckpointDamaged(f"{self._root / path}: {error.strerror}") from None

    def read_text(self, path: str) -> str:
        try:
            return (self._root / path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise CheckpointDamaged(f"{self._root / path} cannot be read: {error}") from None


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """A checkpoint. offsets: by topic and partition; where several sources read one, the smallest."""

    query_id: str
    batch: int | None
    at_ms: int | None
    planned: int | None
    offsets: Mapping[tuple[str, int], int]


def read_checkpoint(name: str, directory: Directory) -> CheckpointState:
    """Raises BadOptions where there is no checkpoint, CheckpointDamaged where its files are not Spark's."""
    names = directory.names()
    if "offsets" not in names or "metadata" not in names:
        raise BadOptions(f"{name} is no checkpoint of a query: it has no offsets and metadata")
    query_id = str(_json_of(name, "metadata", directory.read_text("metadata")).get("id", ""))
    done, planned = _batches(directory, "commits"), _batches(directory, "offsets")
    batch = max(done, default=None)
    later = max((each for each in planned if batch is None or each > batch), default=None)
    if batch is None:
        return CheckpointState(query_id, None, None, later, {})
    path = f"offsets/{batch}"
    at_ms, offsets = _parsed(name, path, directory.read_text(path))
    return CheckpointState(query_id, batch, at_ms, later, offsets)


def _batches(directory: Directory, path: str) -> list[int]:
    """The numbers of batches; Spark writes files beside them whose names are none."""
    return [int(each) for each in directory.names(path) if _is_number(each)]


def _is_number(text: str) -> bool:
    """Digits of ASCII as Spark writes them, of 64 bits at most."""
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def _parsed(name: str, path: str, text: str) -> tuple[int | None, dict[tuple[str, int], int]]:
    version, _, rest = text.partition("\n")
    if version != _VERSION:
        raise CheckpointDamaged(f"{name}/{path} is of version {version!r}, not {_VERSION}")
    metadata, *sources = rest.splitlines() or [""]
    at_ms = _json_of(name, path, metadata).get("batchTimestampMs")
    offsets: dict[tuple[str, int], int] = {}
    kafka = 0
    for line in sources:
        found = _kafka_offsets(line)
        kafka += found is not None
        for place, offset in (found or {}).items():
            offsets[place] = min(offset, offsets.get(place, offset))
    if not kafka:
        raise BadOptions(f"{name} is of a query that reads no topic")
    return at_ms if isinstance(at_ms, int) else None, offsets


def _kafka_offsets(line: str) -> dict[tuple[str, int], int] | None:
    """Those of a line, `{"topic": {"0": 5}}`; None of another source's."""
    try:
        topics = json.loads(line)
    except ValueError:
        return None
    if not isinstance(topics, dict) or not all(isinstance(rows, dict) for rows in topics.values()):
        return None
    found = {}
    for topic, rows in topics.items():
        for partition, offset in rows.items():
            if not _is_number(partition) or not isinstance(offset, int):
                return None
            found[topic, int(partition)] = offset
    return found


def _json_of(name: str, path: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise CheckpointDamaged(f"{name}/{path} is not what Spark writes")
    return found


@contextmanager
def _directories(options: LagOptions, spark: SparkSession | None) -> Iterator[Callable[[str], Directory]]:
    """Spark is only started for checkpoints that are elsewhere."""
    if all(_local_path(each) is not None for each in options.checkpoints):
        yield lambda name: LocalDirectory(_local_path(name) or name)
        return
    from .directories import HadoopDirectory

    with pipeline_session(options.session, spark=spark) as session:
        yield lambda name: HadoopDirectory(session, name)


def _local_path(name: str) -> str | None:
    parts = urlsplit(name)
    if not parts.scheme:
        return name
    return unquote(parts.path) if parts.scheme == "file" else None


# ---- the cluster


def _ends(options: LagOptions, topics: set[str]) -> Mapping[str, Mapping[int, PartitionEnds]]:
    there = partition_counts(options.source, topics)
    if not there:
        return {}
    cluster = ends_of(options.source, sorted(there), options.isolation_level)
    return {name: topic.partitions for name, topic in cluster.topics.items()}


def _partition(
    topic: str, partition: int, offset: int, ends: Mapping[str, Mapping[int, PartitionEnds]]
) -> PartitionLag:
    at = ends.get(topic, {}).get(partition)
    place = f"{topic}-{partition}"
    if at is None:
        return PartitionLag(topic, partition, offset, None, f"{place} is not there any more")
    problem = None
    if offset > at.end:
        problem = (
            f"{place} ends at offset {at.end}, and the query has read up to {offset}: the topic was created again, or "
            "its log was cut off"
        )
    elif offset < at.start:
        problem = f"{place} begins at offset {at.start}: {at.start - offset} offsets were deleted before they were read"
    return PartitionLag(topic, partition, offset, at.end, problem)


def _commit(source: Source, group_id: str, offsets: Mapping[TopicPartition, int], *, dry_run: bool) -> None:
    """Raises BadOptions where the group has members, in a dry run as well; ClusterUnavailable."""

    async def question(cluster: Cluster) -> None:
        try:
            if not dry_run:
                await commit_offsets(cluster, group_id, offsets)
                return
            has_members = bool((await describe_group(cluster, group_id)).members)
        except KafkaError as error:
            if dry_run and error.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                return  # a commit makes the group
            if error.error_code not in MEMBERS_DECIDE:
                raise
            has_members = True
        if has_members:
            raise BadInput(f"The group {group_id} has members, which commit its offsets: name another one")

    ask(source, question)
