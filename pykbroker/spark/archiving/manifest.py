"""The manifest of an archive, which says what it holds: a log of commits, each a JSON file that is whole or not there.

A commit adds files, and may remove others (compaction); beside the files it has the offsets at which each partition
goes on. The state of an archive is all of its commits, one after the other; a snapshot of it stands beside every
hundredth, so that nobody reads more than a hundred commits.

Offsets of a partition are `[start_offset, next_offset)`: what lies between was read, and each committed record of it is
in exactly one file. `lost` are ranges of them which the topic had deleted before they were read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from ..errors import ArchiveDamaged, ArchiveMismatch
from ..records import EMPTY_CHECKSUM, add_checksums
from ..source import ClusterEnds

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Offsets, each range without its end."""

VERSION = 1
SNAPSHOT_EVERY = 100


@dataclass(frozen=True, slots=True)
class Share:
    """The records of one partition in one file, or in all of them. Timestamps are milliseconds of Unix time."""

    records: int
    checksum: str
    size_bytes: int
    first_offset: int
    last_offset: int
    first_timestamp_ms: int
    last_timestamp_ms: int

    def plus(self, other: Share) -> Share:
        """The records of both, which have none in common."""
        return Share(
            self.records + other.records,
            add_checksums(self.checksum, other.checksum),
            self.size_bytes + other.size_bytes,
            min(self.first_offset, other.first_offset),
            max(self.last_offset, other.last_offset),
            min(self.first_timestamp_ms, other.first_timestamp_ms),
            max(self.last_timestamp_ms, other.last_timestamp_ms),
        )


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """A Parquet file. path: below the archive's directory. shares: by partition of the topic."""

    path: str
    topic: str
    file_bytes: int
    shares: Mapping[int, Share]

    @property
    def directory(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def records(self) -> int:
        return sum(share.records for share in self.shares.values())


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition. leader_epoch: no record in front of `next_offset` is of a later one.

    share: None while no record is there.
    """

    start_offset: int
    next_offset: int
    leader_epoch: int = -1
    share: Share | None = None
    lost: Ranges = ()

    @property
    def records(self) -> int:
        return self.share.records if self.share is not None else 0

    @property
    def checksum(self) -> str:
        return self.share.checksum if self.share is not None else EMPTY_CHECKSUM


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic. topic_id: as 32 hexadecimal digits."""

    topic_id: str
    partitions: Mapping[int, PartitionState]


class Read(NamedTuple):
    """The offsets up to which a commit has read a partition, which the archive has from `start_offset` on."""

    start_offset: int
    next_offset: int
    leader_epoch: int
    lost: Ranges = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit. number: 1 and up. staging: the directory in which its files were written, and lie until they are moved.

    reads: by topic and partition; compaction has none.
    """

    number: int
    at_ms: int
    cluster_id: str
    isolation_level: str
    staging: str
    topic_ids: Mapping[str, str]
    reads: Mapping[str, Mapping[int, Read]]
    added: tuple[ArchivedFile, ...]
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArchiveState:
    """All commits together. number: of the last one, 0 where there is none."""

    number: int = 0
    cluster_id: str | None = None
    isolation_level: str | None = None
    topics: Mapping[str, TopicState] = field(default_factory=dict)
    files: Mapping[str, ArchivedFile] = field(default_factory=dict)

    def check_topics(self, cluster: ClusterEnds) -> None:
        """Raises ArchiveMismatch where the archive is of something else."""
        if self.cluster_id is not None and self.cluster_id != cluster.cluster_id:
            raise ArchiveMismatch(
                f"The archive is of the cluster {self.cluster_id}, not of {cluster.cluster_id}: "
                "archive into another directory"
            )
        for topic in cluster.topics.values():
            known = self.topics.get(topic.name)
            if known is None:
                continue
            if known.topic_id != topic.topic_id:
                raise ArchiveMismatch(
                    f"The topic '{topic.name}' is not the one of the archive: it was deleted and created again "
                    f"(its id is {topic.topic_id}, archived is {known.topic_id}); archive into another directory"
                )
            if not set(known.partitions) <= set(topic.partitions):
                raise ArchiveMismatch(
                    f"The topic '{topic.name}' has {len(topic.partitions)} partitions, its archive "
                    f"{len(known.partitions)}"
                )

    @property
    def copied(self) -> Mapping[str, Mapping[int, PartitionState]]:
        return {name: topic.partitions for name, topic in self.topics.items()}

    def after(self, commit: Commit) -> ArchiveState:
        """Raises ArchiveDamaged where the commit is not the next one."""
        if commit.number != self.number + 1:
            raise ArchiveDamaged(f"Commit {commit.number} of the archive follows {self.number}: one is missing")
        files = dict(self.files)
        for path in commit.removed:
            if files.pop(path, None) is None:
                raise ArchiveDamaged(f"Commit {commit.number} of the archive removes {path}, which it does not have")
        for file in commit.added:
            files[file.path] = file
        topics = dict(self.topics)
        for name, reads in commit.reads.items():
            known = topics.get(name, TopicState(commit.topic_ids.get(name, ""), {}))
            partitions = dict(known.partitions)
            for partition, read in reads.items():
                before = partitions.get(partition, PartitionState(read.start_offset, read.start_offset))
                partitions[partition] = replace(
                    before,
                    next_offset=read.next_offset,
                    leader_epoch=read.leader_epoch,
                    lost=(*before.lost, *read.lost),
                )
            topics[name] = replace(known, partitions=partitions)
        if not commit.removed:
            topics = _with_shares(topics, commit.added)
        return ArchiveState(commit.number, commit.cluster_id, commit.isolation_level, topics, files)

    def topic_files(self, topic: str) -> list[ArchivedFile]:
        return [file for file in self.files.values() if file.topic == topic]


def _with_shares(topics: Mapping[str, TopicState], added: Iterable[ArchivedFile]) -> dict[str, TopicState]:
    grown = {name: dict(topic.partitions) for name, topic in topics.items()}
    for file in added:
        for partition, share in file.shares.items():
            state = grown.get(file.topic, {}).get(partition)
            if state is None:
                raise ArchiveDamaged(f"{file.path} has records of {file.topic}-{partition}, which was never read")
            total = share if state.share is None else state.share.plus(share)
            grown[file.topic][partition] = replace(state, share=total)
    return {name: replace(topic, partitions=grown[name]) for name, topic in topics.items()}


# ---- JSON


def commit_text(commit: Commit) -> str:
    return json.dumps(
        {
            "version": VERSION,
            "number": commit.number,
            "at_ms": commit.at_ms,
            "cluster_id": commit.cluster_id,
            "isolation_level": commit.isolation_level,
            "staging": commit.staging,
            "topic_ids": dict(commit.topic_ids),
            "reads": {
                name: {str(partition): list(read) for partition, read in rows.items()}
                for name, rows in commit.reads.items()
            },
            "added": [_file_json(file) for file in commit.added],
            "removed": list(commit.removed),
        },
        separators=(",", ":"),
    )


def parse_commit(text: str, name: str) -> Commit:
    """Parse what `commit_text` gives. name: of the file, for the error. Raises ArchiveDamaged."""
    given = _parsed(text, name)
    try:
        return Commit(
            number=given["number"],
            at_ms=given["at_ms"],
            cluster_id=given["cluster_id"],
            isolation_level=given["isolation_level"],
            staging=given["staging"],
            topic_ids=dict(given["topic_ids"]),
            reads={
                topic: {
                    int(each): Read(start, end, epoch, _ranges(lost))
                    for each, (start, end, epoch, lost) in rows.items()
                }
                for topic, rows in given["reads"].items()
            },
            added=tuple(_file(row) for row in given["added"]),
            removed=tuple(given["removed"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArchiveDamaged(f"{name} is no commit of an archive: {error!r}") from None


def state_text(state: ArchiveState) -> str:
    return json.dumps(
        {
            "version": VERSION,
            "number": state.number,
            "cluster_id": state.cluster_id,
            "isolation_level": state.isolation_level,
            "topics": {
                name: {
                    "topic_id": topic.topic_id,
                    "partitions": {
                        str(partition): {
                            "start_offset": row.start_offset,
                            "next_offset": row.next_offset,
                            "leader_epoch": row.leader_epoch,
                            "share": None if row.share is None else _share_json(row.share),
                            "lost": row.lost,
                        }
                        for partition, row in topic.partitions.items()
                    },
                }
                for name, topic in state.topics.items()
            },
            "files": [_file_json(file) for file in state.files.values()],
        },
        separators=(",", ":"),
    )


def parse_state(text: str, name: str) -> ArchiveState:
    """Raises ArchiveDamaged."""
    given = _parsed(text, name)
    try:
        files = [_file(row) for row in given["files"]]
        return ArchiveState(
            number=given["number"],
            cluster_id=given["cluster_id"],
            isolation_level=given["isolation_level"],
            topics={
                topic: TopicState(
                    row["topic_id"],
                    {
                        int(partition): PartitionState(
                            each["start_offset"],
                            each["next_offset"],
                            each["leader_epoch"],
                            None if each["share"] is None else Share(*each["share"]),
                            _ranges(each["lost"]),
                        )
                        for partition, each in row["partitions"].items()
                    },
                )
                for topic, row in given["topics"].items()
            },
            files={file.path: file for file in files},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArchiveDamaged(f"{name} is no snapshot of an archive: {error!r}") from None


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except ValueError as error:
        raise ArchiveDamaged(f"{name} is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise ArchiveDamaged(f"{name} is no JSON object")
    if given.get("version") != VERSION:
        raise ArchiveDamaged(f"{name} has the version {given.get('version')}; this pykbroker knows {VERSION}")
    return given


def _ranges(rows: Iterable[Iterable[int]]) -> Ranges:
    return tuple((first, end) for first, end in rows)


def _share_json(share: Share) -> list[int | str]:
    return [
        share.records,
        share.checksum,
        share.size_bytes,
        share.first_offset,
        share.last_offset,
        share.first_timestamp_ms,
        share.last_timestamp_ms,
    ]


def _file_json(file: ArchivedFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "topic": file.topic,
        "file_bytes": file.file_bytes,
        "shares": {str(partition): _share_json(share) for partition, share in file.shares.items()},
    }


def _file(row: Mapping[str, Any]) -> ArchivedFile:
    shares = {int(partition): Share(*share) for partition, share in row["shares"].items()}
    return ArchivedFile(row["path"], row["topic"], row["file_bytes"], shares)
