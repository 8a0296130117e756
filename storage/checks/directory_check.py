"""Log directories as wholes: whose they are, their partitions, and the checkpoints against the logs.

The caller holds the directories' locks, and says what the metadata log knows of topics (`ClusterFacts`): the meaning of
its records is not storage's business (`pykbroker.cli.verify_cluster` reads them).
"""

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pykbroker.protocol.topic_partition import TopicPartition

from ..directories import meta_properties
from ..directories.directory_names import METADATA_LOG_DIRECTORY, NODES_DIRECTORY, parse_partition_directory
from ..directories.log_dirs import LOCK_FILE
from ..directories.shutdown_marks import BOOT_ID_FILE, CLEAN_SHUTDOWN_FILE
from ..files.checkpoints import CLEANED_OFFSET, HIGH_WATERMARK, LOG_START_OFFSET, RECOVERY_POINT
from ..files.disk import Disk
from ..files.errors import FileError
from ..segments.segment import LOG_SUFFIX
from .file_kinds import BOOTSTRAP_CHECKPOINT, QUORUM_STATE_FILE, FileKind, parse_file_name
from .findings import Finding, FindingKind
from .partition_check import PartitionCheck, PartitionFacts, PartitionReport, Progress, check_metadata_snapshot
from .text_files import OFFSET_CHECKPOINTS, read_clean_shutdown, read_meta_properties_file, read_offset_checkpoint

_METADATA_TOPIC_ID = bytes(15) + b"\x01"
_MARKED_DIRECTORY = re.compile(r".*\.[0-9a-f]{32}-(delete|stray|future)")


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """The facts about a topic. partitions: those that this node has a replica of."""

    topic_id: bytes
    is_compacted: bool
    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The facts of the metadata log. topics: None where it cannot be read. read_quorum_state: raises `ValueError`."""

    topics: Mapping[str, TopicFacts] | None
    read_quorum_state: Callable[[bytes], object]


@dataclass(slots=True)
class DirectoryReport:
    path: str
    was_clean_shutdown: bool = False
    machine_stayed_up: bool = False
    """Since the logs were written: then also what was never flushed must be there."""
    partitions: dict[TopicPartition, PartitionReport] = field(default_factory=dict)
    metadata_log: PartitionReport | None = None
    offsets: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    """By the name of the checkpoint; what can be read of it."""
    missing: list[TopicPartition] = field(default_factory=list)
    """Partitions that were flushed here, that this node still has to have, and that are not here."""

    @property
    def logs(self) -> list[PartitionReport]:
        return [*self.partitions.values(), *([self.metadata_log] if self.metadata_log else [])]


def is_log_directory(name: str) -> bool:
    return name == METADATA_LOG_DIRECTORY or parse_partition_directory(name) is not None


def segment_bytes(disk: Disk, path: str) -> int:
    """Return the bytes that a check of the directory has to read, by the sizes of the segments. Raises `FileError`."""
    total = 0
    for name in disk.list_directory(path):
        directory = posixpath.join(path, name)
        if is_log_directory(name) and disk.is_directory(directory):
            for each in disk.list_directory(directory):
                if each.endswith(LOG_SUFFIX):
                    file = disk.open(posixpath.join(directory, each))
                    total += file.size()
                    file.close()
    return total


class DirectoryCheck:
    """One directory. `run` yields the findings as they come; `report` is complete behind them."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        cluster: ClusterFacts,
        *,
        deep: bool = False,
        progress: Progress = lambda size: None,
    ) -> None:
        self.report = DirectoryReport(path)
        self._disk = disk
        self._path = path
        self._cluster = cluster
        self._deep = deep
        self._progress = progress

    def run(self) -> Iterator[Finding]:
        try:
            names = self._disk.list_directory(self._path)
            yield from self._check_own_files(names)
            yield from self._check_names(names)
            for name in names:
                if is_log_directory(name) and self._disk.is_directory(self._join(name)):
                    yield from self.check_log(name)
            yield from self._check_offsets()
        except FileError as error:
            yield Finding(error.path, FindingKind.UNREADABLE, f"cannot {error.operation} it: {error.error.strerror}")

    def check_again(self, names: Collection[str]) -> Iterator[Finding]:
        """The directory's own files, and of the logs only these."""
        self.report.offsets.clear()
        self.report.missing.clear()
        yield from self._check_own_files(self._disk.list_directory(self._path))
        for name in names:
            yield from self.check_log(name)
        yield from self._check_offsets()

    def check_log(self, name: str) -> Iterator[Finding]:
        """One directory below this one, of a partition or of the metadata log."""
        yield from self._check_metadata_log() if name == METADATA_LOG_DIRECTORY else self._check_partition(name)

    def facts_of_log(self, name: str) -> PartitionFacts:
        """Return the facts about the log in a directory below this one."""
        at = parse_partition_directory(name)
        if at is not None:
            return self._facts_of(at)
        return PartitionFacts(
            topic_id=_METADATA_TOPIC_ID,
            is_compacted=False,
            was_clean_shutdown=self.report.was_clean_shutdown,
            log_start_offset=self._end_of_oldest_snapshot(self._join(name)),
            machine_stayed_up=self.report.machine_stayed_up,
        )

    def _end_of_oldest_snapshot(self, directory: str) -> int | None:
        """Return where the metadata log begins, whatever its first segment still holds."""
        known = filter(None, map(parse_file_name, self._disk.list_directory(directory)))
        snapshots = [each for each in known if each.kind is FileKind.METADATA_SNAPSHOT and each.is_in_use]
        return min((each.base_offset or 0 for each in snapshots), default=None)

    def _facts_of(self, at: TopicPartition) -> PartitionFacts:
        topics = self._cluster.topics
        topic = topics.get(at.topic) if topics is not None else None
        was_compacted = at in self.report.offsets.get(CLEANED_OFFSET, {})
        return PartitionFacts(
            topic_id=topic.topic_id if topic is not None else None,
            is_compacted=topic.is_compacted or was_compacted if topic is not None else None,
            was_clean_shutdown=self.report.was_clean_shutdown,
            recovery_point=self.report.offsets.get(RECOVERY_POINT, {}).get(at),
            high_watermark=self.report.offsets.get(HIGH_WATERMARK, {}).get(at),
            log_start_offset=self.report.offsets.get(LOG_START_OFFSET, {}).get(at),
            machine_stayed_up=self.report.machine_stayed_up,
        )

    def _join(self, *names: str) -> str:
        return posixpath.join(self._path, *names)

    # The directory's own files

    def _check_own_files(self, names: Sequence[str]) -> Iterator[Finding]:
        path = self._join(meta_properties.FILE_NAME)
        if meta_properties.FILE_NAME in names:
            yield from read_meta_properties_file(path, self._disk.read_file(path)).findings
        else:
            yield Finding(path, FindingKind.IDENTITY, "it is missing: the directory is not formatted")
        if CLEAN_SHUTDOWN_FILE in names:
            self.report.was_clean_shutdown = True
            path = self._join(CLEAN_SHUTDOWN_FILE)
            yield from read_clean_shutdown(path, self._disk.read_file(path)).findings
        if BOOT_ID_FILE in names:
            boot_id = self._disk.boot_id().encode()
            self.report.machine_stayed_up = boot_id != b"" and self._disk.read_file(self._join(BOOT_ID_FILE)) == boot_id
        if BOOTSTRAP_CHECKPOINT in names:
            yield from check_metadata_snapshot(self._disk, self._join(BOOTSTRAP_CHECKPOINT))
        for name in OFFSET_CHECKPOINTS:
            if name in names:
                yield from self._load_checkpoint(name)

    def _load_checkpoint(self, name: str) -> Iterator[Finding]:
        path = self._join(name)
        found = read_offset_checkpoint(path, self._disk.read_file(path))
        yield from found.findings
        offsets = self.report.offsets[name] = {}
        for row in found.rows:
            at = TopicPartition(str(row.fields["topic"]), int(str(row.fields["partition"])))
            offsets[at] = int(str(row.fields["offset"]))

    def _check_names(self, names: Sequence[str]) -> Iterator[Finding]:
        own = {
            meta_properties.FILE_NAME,
            CLEAN_SHUTDOWN_FILE,
            BOOTSTRAP_CHECKPOINT,
            LOCK_FILE,
            BOOT_ID_FILE,
            METADATA_LOG_DIRECTORY,
            NODES_DIRECTORY,
            *OFFSET_CHECKPOINTS,
        }
        for name in names:
            marked = _MARKED_DIRECTORY.fullmatch(name)
            if marked is not None:
                yield Finding(self._join(name), FindingKind.LEFTOVER, _MARKS[marked[1]])
            elif name not in own and parse_partition_directory(name) is None:
                yield Finding(self._join(name), FindingKind.LEFTOVER, "nothing is known of it")

    # Logs

    def _check_partition(self, name: str) -> Iterator[Finding]:
        at = parse_partition_directory(name)
        assert at is not None
        topics = self._cluster.topics
        topic = topics.get(at.topic) if topics is not None else None
        if topics is not None and (topic is None or at.partition not in topic.partitions):
            yield Finding(self._join(name), FindingKind.LEFTOVER, "no topic of the cluster has this replica")
        check = PartitionCheck(
            self._disk, self._join(name), self._facts_of(at), deep=self._deep, progress=self._progress
        )
        yield from check.run()
        self.report.partitions[at] = check.report

    def _check_metadata_log(self) -> Iterator[Finding]:
        """Check the metadata log, which has no checkpoints: its segments or a snapshot tell its start."""
        directory = self._join(METADATA_LOG_DIRECTORY)
        facts = self.facts_of_log(METADATA_LOG_DIRECTORY)
        check = PartitionCheck(self._disk, directory, facts, deep=self._deep, progress=self._progress)
        yield from check.run()
        self.report.metadata_log = check.report
        path = posixpath.join(directory, QUORUM_STATE_FILE)
        if self._disk.exists(path):
            try:
                self._cluster.read_quorum_state(self._disk.read_file(path))
            except (ValueError, RecursionError) as error:
                yield Finding(path, FindingKind.METADATA, str(error))

    # Checkpoints

    def _check_offsets(self) -> Iterator[Finding]:
        for name, offsets in self.report.offsets.items():
            path = self._join(name)
            for at, offset in offsets.items():
                log = self.report.partitions.get(at)
                if log is None:
                    yield from self._check_missing(path, name, at, offset)
                elif offset > log.log_end_offset:
                    yield self._contradiction(path, name, at, offset, log)

    def _contradiction(self, path: str, name: str, at: TopicPartition, offset: int, log: PartitionReport) -> Finding:
        kind = self._kind_of_contradiction(name)
        if kind is FindingKind.LOST:
            what = f"the log ends at {log.log_end_offset}, its {_MEANINGS[name]} is {offset} ({name})"
            return Finding(log.path, kind, what, offset=log.log_end_offset)
        what = f"{at}: the {_MEANINGS[name]} is {offset}, the log ends at {log.log_end_offset}"
        return Finding(path, kind, what, offset=offset)

    def _kind_of_contradiction(self, name: str) -> FindingKind:
        """A machine that went down takes with it what was acknowledged and never flushed."""
        report = self.report
        if name == HIGH_WATERMARK and not (report.was_clean_shutdown or report.machine_stayed_up):
            return FindingKind.NOTE
        return FindingKind.OFFSETS if name == CLEANED_OFFSET else FindingKind.LOST

    def _check_missing(self, path: str, name: str, at: TopicPartition, offset: int) -> Iterator[Finding]:
        topics = self._cluster.topics
        topic = topics.get(at.topic) if topics is not None else None
        is_hosted = topic is not None and at.partition in topic.partitions
        if is_hosted and name == RECOVERY_POINT and offset > 0:
            self.report.missing.append(at)
        elif not is_hosted:
            yield Finding(path, FindingKind.NOTE, f"{at}: there is no such partition in the directory")


_MEANINGS = {
    RECOVERY_POINT: "recovery point",
    HIGH_WATERMARK: "high watermark",
    LOG_START_OFFSET: "log start offset",
    CLEANED_OFFSET: "offset up to which it is compacted",
}

_MARKS = {
    "delete": "a deleted partition; the next start removes it",
    "stray": "a partition that no topic of the cluster owned",
    "future": "a partition on its way to this directory",
}


def check_together(disk: Disk, reports: Sequence[DirectoryReport]) -> Iterator[Finding]:
    """Check what several directories of one node have to agree on. Raises `FileError`."""
    seen: dict[tuple[str, str], str] = {}
    owners: dict[TopicPartition, str] = {}
    first: Mapping[str, object] | None = None
    for report in reports:
        path = posixpath.join(report.path, meta_properties.FILE_NAME)
        if disk.exists(path):
            rows = read_meta_properties_file(path, disk.read_file(path)).rows
            properties = rows[0].fields if rows else {}
            first = first or properties
            for key in ("cluster.id", "node.id"):
                if properties.get(key) != first.get(key):
                    what = f"{key} is {properties.get(key)}, in {reports[0].path} it is {first.get(key)}"
                    yield Finding(path, FindingKind.IDENTITY, what)
            other = seen.setdefault(("directory.id", str(properties.get("directory.id"))), report.path)
            if other != report.path and properties.get("directory.id"):
                yield Finding(path, FindingKind.IDENTITY, f"{other} has the same directory.id: one of them is a copy")
        for at, log in report.partitions.items():
            other = owners.setdefault(at, report.path)
            if other != report.path:
                yield Finding(log.path, FindingKind.IDENTITY, f"{other} has a log of the same partition")
    for report in reports:
        for at in report.missing:
            if at not in owners:
                what = f"the directory is missing; {RECOVERY_POINT} and the metadata have the partition"
                yield Finding(posixpath.join(report.path, str(at)), FindingKind.MISSING, what)
