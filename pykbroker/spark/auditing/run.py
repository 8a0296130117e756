"""The steps of an audit: what is there, a pass over each topic, a few records that are listed, and comparisons."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..archiving.manifest import ArchiveState
from ..archiving.reading import archived_ranges, archived_records, check_archived
from ..archiving.store import ArchiveStore
from ..directories import HadoopDirectory
from ..errors import BadOptions
from ..failures import job_errors
from ..identities import Origin
from ..progress import Listener, Progress, names_of
from ..reading import offsets_in, within
from ..session import pipeline_session, shuffle_in_parts
from ..small_tables import small_table
from ..source import Source, TopicEnds, configs_of, ends_of, matching_topics
from .comparing import compared, compared_by_content, differences
from .keys import listed_records
from .options import AuditOptions
from .replays import Replay
from .report import AuditReport, Comparison, PartitionReport, TopicReport
from .scanning import scan
from .subjects import ArchiveSubject, Subject, TopicSubject, open_transactions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Offsets = Mapping[int, tuple[int, int]]


def run_audit(options: AuditOptions, spark: SparkSession | None, listener: Listener) -> AuditReport:
    """Read and report, with options that were checked. Raises the errors of `pykbroker.spark.errors`."""
    with pipeline_session(options.session, spark=spark, say=listener.say) as session, job_errors():
        return _Run(options, session, listener).go()


@dataclass(frozen=True)
class _Archive:
    store: ArchiveStore
    state: ArchiveState


class _Run:
    def __init__(self, options: AuditOptions, spark: SparkSession, listener: Listener) -> None:
        self._options = options
        self._spark = spark
        self._listener = listener
        self._done = self._records = self._bytes = 0
        self._left = 0

    def go(self) -> AuditReport:
        options, at_ms = self._options, time.time_ns() // 1_000_000
        archive = self._open_archive(options.archive) if options.archive is not None else None
        if options.source is None:
            assert archive is not None
            return self._of_archive(at_ms, archive)
        names = options.topics
        beside = archive if options.replayed_from is None else None
        if archive is not None and not names and options.topics_matching is None:
            names = sorted(archive.state.topics)
        cluster = ends_of(
            options.source, matching_topics(options.source, names, options.topics_matching), options.isolation_level
        )
        if beside is not None:
            check_archived(beside.store, beside.state, list(cluster.topics))
            beside.state.check_topics(cluster)
        ranges = {name: _offsets(topic, beside) for name, topic in cluster.topics.items()}
        replay = None
        if archive is not None and options.replayed_from is not None:
            (name,) = ranges
            replay = self._replay(archive, options.source, name, ranges[name], options.replayed_from)
        other = self._other() if options.compare_with is not None else None
        self._left = offsets_in(ranges)
        shuffle_in_parts(self._spark, self._left)
        self._announce(ranges, f"at {options.source.bootstrap_servers}")
        if options.dry_run:
            return AuditReport(at_ms, cluster.cluster_id, [])
        topics, comparisons, damage = [], [], []
        for name in sorted(ranges):
            subject = TopicSubject(self._spark, options.source, name, ranges[name], options.isolation_level)
            report = self._topic(subject, sorted(ranges[name]), options.source)
            topics.append(report)
            if beside is not None:
                found, comparison = self._beside_archive(subject, report, cluster.topics[name], beside)
                damage += found
                comparisons.append(comparison)
            if other is not None:
                comparisons.append(self._beside_topic(report, sorted(ranges[name]), other))
        replays = [] if replay is None else [replay.report(topics[0].records, options.listed)]
        return AuditReport(at_ms, cluster.cluster_id, topics, comparisons, damage, replays)

    def _open_archive(self, path: str) -> _Archive:
        store = ArchiveStore(HadoopDirectory(self._spark, path))
        state = store.load()
        check_archived(store, state, self._options.topics if self._options.source is None else ())
        return _Archive(store, state)

    def _announce(self, ranges: Mapping[str, Offsets], where: str) -> None:
        verb = "Would read" if self._options.dry_run else "Reading"
        partitions = sum(map(len, ranges.values()))
        self._listener.say(f"{verb} {names_of(ranges)} {where}: {self._left:,} offsets (partitions: {partitions})")

    # ---- one table of records

    def _topic(self, subject: Subject, partitions: Sequence[int], source: Source | None) -> TopicReport:
        found = scan(subject.records(), subject.offsets, self._options.listed)
        rows = found.partitions
        largest, keys = listed_records(subject, found)
        report = TopicReport(
            name=subject.name,
            origin=subject.origin,
            partitions=rows,
            gaps=found.gaps,
            period_hours=found.period_hours,
            periods=found.periods,
            largest=largest,
            keys=keys,
            open_transactions=[] if source is None else open_transactions(source, subject.name, partitions),
        )
        self._done += 1
        self._records += report.records
        self._bytes += report.size_bytes
        self._left = max(0, self._left - sum(row.last_offset - row.first_offset + 1 for row in rows))
        self._listener.progress(Progress(self._done, self._records, self._bytes, self._left))
        return report

    def _of_archive(self, at_ms: int, archive: _Archive) -> AuditReport:
        names = sorted(self._options.topics or archive.state.topics)
        ranges = {
            name: {
                each: (row.start_offset, row.next_offset) for each, row in archive.state.topics[name].partitions.items()
            }
            for name in names
        }
        self._left = offsets_in(ranges)
        shuffle_in_parts(self._spark, self._left)
        self._announce(ranges, f"in {archive.store.directory.root}")
        if self._options.dry_run:
            return AuditReport(at_ms, None, [])
        topics, damage = [], []
        for name in names:
            subject = self._archived(archive, name)
            report = self._topic(subject, sorted(ranges[name]), None)
            topics.append(report)
            damage += _damage(archive.state, subject, report.partitions)
        return AuditReport(at_ms, None, topics, [], damage)

    def _archived(self, archive: _Archive, name: str) -> ArchiveSubject:
        frame = archived_records(self._spark, archive.store, archive.state, [name])
        offsets = sum(row.records for row in archive.state.topics[name].partitions.values())
        return ArchiveSubject(frame, name, archive.store.directory.root, offsets)

    # ---- comparisons

    def _beside_archive(
        self, left: TopicSubject, report: TopicReport, topic: TopicEnds, archive: _Archive
    ) -> tuple[list[str], Comparison]:
        """The damage of the archive as a whole, and a comparison of the offsets that the topic still has."""
        subject = self._archived(archive, report.name)
        known = archive.state.topics[report.name].partitions
        cut = {
            each: topic.partitions[each].start
            for each, row in known.items()
            if topic.partitions[each].start > row.start_offset
        }
        records = subject.records()
        rows = scan(records, subject.offsets, 1, keys=False).partitions
        damage = _damage(archive.state, subject, rows)
        if cut:
            records = _from_offsets(self._spark, records, cut)
            rows = scan(records, subject.offsets, 1, keys=False).partitions
        return damage, self._compared(left, report, subject, rows, records, topic, archive)

    def _compared(
        self,
        left: TopicSubject,
        report: TopicReport,
        archived: ArchiveSubject,
        archived_rows: Sequence[PartitionReport],
        archived_records: DataFrame,
        topic: TopicEnds,
        archive: _Archive,
    ) -> Comparison:
        known = archive.state.topics[report.name].partitions
        newer = sum(
            max(0, ends.end - (known[each].next_offset if each in known else ends.start))
            for each, ends in topic.partitions.items()
        )
        rows = compared(sorted(known), report.partitions, archived_rows)
        unequal = any(not row.equal for row in rows)
        return Comparison(
            f"{report.name} at {report.origin}",
            f"its archive in {archived.origin}",
            rows,
            differences(left.records(), archived_records, self._options.listed) if unequal else [],
            newer,
        )

    def _replay(self, archive: _Archive, source: Source, name: str, ranges: Offsets, replayed_from: str) -> Replay:
        """Raises ArchiveMismatch, BadOptions."""
        options = self._options
        check_archived(archive.store, archive.state, [replayed_from])
        topic = archive.state.topics[replayed_from]
        selection = options.selection
        chosen = selection.ranges(replayed_from, topic)
        own_timestamps = configs_of(source, name).get("message.timestamp.type") == "LogAppendTime"
        if own_timestamps and selection.by_time:
            raise BadOptions(f"{name} has timestamps of its own, which do not tell what was to be replayed")
        archived = archived_ranges(self._spark, archive.store, archive.state, replayed_from, chosen)
        return Replay(
            TopicSubject(self._spark, source, name, ranges, options.isolation_level),
            selection.of_times(archived),
            archive.store.directory.root,
            Origin(archive.state.cluster_id or "", replayed_from, topic.topic_id),
            lambda records: selection.of_times(within(records, chosen)),
            not own_timestamps,
        )

    def _other(self) -> TopicSubject:
        options = self._options
        source = options.compare_source or options.source
        name = options.compare_with
        assert source is not None
        assert name is not None
        ends = ends_of(source, [name], options.isolation_level).topics[name]
        return TopicSubject(self._spark, source, name, _offsets(ends, None), options.isolation_level)

    def _beside_topic(self, report: TopicReport, partitions: Sequence[int], other: TopicSubject) -> Comparison:
        rows = scan(other.records(), other.offsets, 1, keys=False).partitions
        found = compared_by_content(partitions, sorted(other.ranges), report.partitions, rows)
        return Comparison(f"{report.name} at {report.origin}", f"{other.name} at {other.origin}", found, [])


def _offsets(topic: TopicEnds, archive: _Archive | None) -> dict[int, tuple[int, int]]:
    """The offsets that are looked at: beside an archive, those that it has read."""
    if archive is None:
        return {each: (ends.start, ends.end) for each, ends in topic.partitions.items()}
    known = archive.state.topics[topic.name].partitions
    found = {}
    for each, row in known.items():
        start = max(topic.partitions[each].start, row.start_offset)
        found[each] = (start, max(start, min(topic.partitions[each].end, row.next_offset)))
    return found


def _from_offsets(spark: SparkSession, records: DataFrame, starts: Mapping[int, int]) -> DataFrame:
    from pyspark.sql.functions import broadcast, expr

    limits = broadcast(small_table(spark, sorted(starts.items()), "partition INT, start BIGINT"))
    return records.join(limits, "partition", "left").where(expr("offset >= COALESCE(start, offset)")).drop("start")


def _damage(state: ArchiveState, archived: ArchiveSubject, rows: Sequence[PartitionReport]) -> list[str]:
    """Sentences about partitions of an archive whose files are not what the manifest says."""
    reports = {each.partition: each for each in rows}
    found = []
    for partition, row in sorted(state.topics[archived.name].partitions.items()):
        report = reports.get(partition)
        there = (
            (report.records, report.checksum) if report is not None else (0, row.checksum if not row.records else "")
        )
        if there != (row.records, row.checksum):
            found.append(
                f"the files of {archived.name}-{partition} in {archived.origin} hold {there[0]:,} records, checksum "
                f"{there[1] or 'none'}, and the manifest says {row.records:,}, {row.checksum}"
            )
    return found
