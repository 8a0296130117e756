"""The loop of a replay: what the archive has, what the target has of it, and batch by batch the rest."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..archiving.manifest import TopicState
from ..archiving.reading import archived_ranges, check_archived
from ..archiving.store import ArchiveStore
from ..directories import HadoopDirectory
from ..errors import ArchiveMismatch, BadOptions, TaskLost
from ..failures import job_errors
from ..identities import Origin
from ..progress import Listener, Progress
from ..python_tasks import check_packages
from ..reading import first_of, offsets_in, within
from ..session import pipeline_session, shuffle_in_parts
from ..source import TopicEnds, ends_of, ids_of
from ..writing import Route, TopicWriter, Transactions, WriteJob
from ..writing.driver import PACKAGES, check_properties, fence, forget
from ..writing.job import TIMESTAMP_ZERO
from .options import ReplayOptions, ReplaySummary
from .positions import Position, positions
from .target import check_partitions, records_there, warnings_about

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_BYTES = 1 << 30
"""Of keys and values: Spark sorts a batch on its disks."""
PACED_BATCH_S = 30.0
_FASTEST = 1.25
"""How much faster than asked a batch may go, to make up for the time between batches."""
_TRIES = 4
_ROW = ("partition AS route", "offset", "unix_millis(timestamp) AS timestamp_ms", "key", "value", "headers")

Ranges = Mapping[int, tuple[int, int]]


def replay(
    options: ReplayOptions, *, spark: SparkSession | None = None, listener: Listener | None = None
) -> ReplaySummary:
    """Write to a topic the records of an archive that it does not have.

    spark: the session to use; one is started where none runs. Raises the errors of `pykbroker.spark.errors`; the next
    run goes on with what is missing then.
    """
    options.check()
    check_packages(*PACKAGES)
    listener = listener or Listener()
    with pipeline_session(options.session, spark=spark, say=listener.say) as session, job_errors():
        return _Run(options, session, listener).go()


class _Run:
    def __init__(self, options: ReplayOptions, spark: SparkSession, listener: Listener) -> None:
        self._options = options
        self._spark = spark
        self._listener = listener
        self._store = ArchiveStore(HadoopDirectory(spark, options.archive))
        self._state = self._store.load()
        check_archived(self._store, self._state, [options.topic])
        topic = self._state.topics[options.topic]
        self._ranges = options.selection.ranges(options.topic, topic)
        self._record_bytes = _record_bytes(topic)
        self._origin = Origin(self._state.cluster_id or "", options.topic, topic.topic_id)
        self._writer = TopicWriter(spark)
        self._begun = 0.0
        self._records = self._bytes = self._batches = 0

    def go(self) -> ReplaySummary:
        options = self._options
        shuffle_in_parts(self._spark, offsets_in({options.topic: self._ranges}))
        target = self._target()
        job = self._job(target)
        check_properties(job)
        if not options.dry_run and options.exactly_once:
            fence(job, anew=True)
        plan = self._plan()
        selected, missing = _records(plan)
        self._announce(plan)
        if not options.dry_run and missing:
            self._begun = time.monotonic()
            self._write_all(job, plan)
            self._check_same_topic(target)
        if not options.dry_run:
            forget(job, options.target)
        return ReplaySummary(selected, selected - missing, self._records, self._bytes, self._batches)

    # ---- what there is to do

    def _target(self) -> TopicEnds:
        """Raises BadOptions."""
        options = self._options
        cluster = ends_of(options.target, [options.target_topic], "read_uncommitted")
        target = cluster.topics[options.target_topic]
        if (cluster.cluster_id, target.topic_id) == (self._origin.cluster_id, self._origin.topic_id):
            raise BadOptions(f"{target.name} is the topic that was archived: name another one to write to")
        if options.same_partitions and self._ranges:
            check_partitions(target, max(self._ranges))
        return target

    def _job(self, target: TopicEnds) -> WriteJob:
        options = self._options
        prefix = f"pykbroker-replay-{target.name}-{self._origin.topic_id}"

        def route(partition: int) -> Route:
            # A group each: where keys say the partition, the target may have fewer of them than the source.
            name = f"{prefix}-{partition}"
            return Route(
                f"{options.topic}-{partition}",
                target.name,
                partition if options.same_partitions else None,
                f"{self._origin.prefix}{partition}:",
                transactions=Transactions(name, name, target.name, 0) if options.exactly_once else None,
            )

        return WriteJob(
            options.target.bootstrap_servers,
            {partition: route(partition) for partition in self._ranges},
            options.target.writer_properties(options.producer_properties),
            uuid.uuid4().hex if options.exactly_once else None,
        )

    def _plan(self) -> dict[int, Position]:
        options = self._options
        there = records_there(self._spark, options.target, options.target_topic, self._origin, self._listener.say)
        return positions(self._selected(self._ranges), there)

    def _selected(self, ranges: Ranges) -> DataFrame:
        options = self._options
        records = archived_ranges(self._spark, self._store, self._state, options.topic, ranges)
        return options.selection.of_times(records)

    def _announce(self, plan: Mapping[int, Position]) -> None:
        options, say = self._options, self._listener.say
        selected, missing = _records(plan)
        verb = "Would write" if options.dry_run else "Writing"
        say(
            f"{verb} {missing:,} records of {options.topic} in {self._store.directory.root} to {options.target_topic} "
            f"at {options.target.bootstrap_servers} (partitions: {len(plan)}), which has {selected - missing:,} already"
        )
        if not missing:
            return
        oldest_ms = min(at.oldest_ms for at in plan.values() if at.missing)
        for line in warnings_about(options.target, options.target_topic, oldest_ms, time.time_ns() // 1_000_000):
            say(f"WARN: {line}")
        zeros = self._selected(self._ranges).where("timestamp = timestamp_millis(0)").count() if oldest_ms <= 0 else 0
        if zeros:
            say(f"WARN: {zeros:,} records have {TIMESTAMP_ZERO}")
        behind = sorted(partition for partition, at in plan.items() if at.holes)
        if behind and options.same_partitions:
            first = plan[behind[0]].first
            say(
                f"WARN: {options.target_topic}-{behind[0]} has records behind offset {first} of the archive already, "
                f"and what is missing comes after them (so in {len(behind)} partitions)"
            )

    # ---- batches

    def _write_all(self, job: WriteJob, plan: dict[int, Position]) -> None:
        """A task that is lost in the middle, with its executor, leaves nobody who knows how far it came."""
        for tries in range(_TRIES):
            try:
                with job_errors():
                    self._write_missing(job, plan)
                return
            except TaskLost as error:
                if tries == _TRIES - 1:
                    raise
                self._listener.say(f"{error}; looking at what {self._options.target_topic} has")
                plan = self._plan()

    def _write_missing(self, job: WriteJob, plan: Mapping[int, Position]) -> None:
        from pyspark import StorageLevel

        _, missing = _records(plan)
        written_before = self._records
        holes = {each: (at.first, at.last + 1) for each, at in plan.items() if at.holes}
        there = None
        if holes:
            options = self._options
            there = records_there(self._spark, options.target, options.target_topic, self._origin, self._listener.say)
        if there is not None:
            there = there.selectExpr("source_partition AS partition", "source_offset AS offset")
            there = within(there, holes).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            left: Ranges = {each: (at.first, at.last + 1) for each, at in plan.items() if at.missing}
            while batch := first_of({self._options.topic: left}, self._batch_records()).get(self._options.topic):
                self._write(job, batch, there)
                left = {each: (batch.get(each, (0, start))[1], end) for each, (start, end) in left.items()}
                still = max(0, missing - (self._records - written_before))
                self._listener.progress(Progress(self._batches, self._records, self._bytes, still))
        finally:
            if there is not None:
                there.unpersist()

    def _write(self, job: WriteJob, batch: Ranges, there: DataFrame | None) -> None:
        options, records = self._options, self._selected(batch)
        if there is not None:
            records = records.join(there, ["partition", "offset"], "left_anti")
        loads = {partition: end - start for partition, (start, end) in batch.items()}
        tasks = self._writer.tasks_of(loads, at_once=bool(options.rate))
        job = replace(job, rates=self._rates(loads, tasks)) if options.rate else job
        for each in self._writer.write(job, records.selectExpr(*_ROW), tasks):
            self._records += each.records
            self._bytes += each.size_bytes
        self._batches += 1

    def _batch_records(self) -> int:
        """The offsets of a batch. With a rate it takes some seconds, so that progress is told."""
        most = min(self._options.max_batch_records, BATCH_BYTES // self._record_bytes)
        if self._options.rate:
            most = min(most, int(self._options.rate * PACED_BATCH_S))
        return max(1, most)

    def _rates(self, loads: Mapping[int, int], tasks: Mapping[int, int]) -> dict[int, float]:
        """The tasks run side by side, each at its part of the rate."""
        total, rate = sum(loads.values()), self._options.rate
        behind_s = time.monotonic() - self._begun - self._records / rate
        seconds = total / rate
        faster = min(_FASTEST, seconds / max(seconds - max(0.0, behind_s), seconds / _FASTEST))
        by_task: dict[int, int] = {}
        for partition, load in loads.items():
            by_task[tasks[partition]] = by_task.get(tasks[partition], 0) + load
        return {partition: rate * faster * by_task[tasks[partition]] / total for partition in loads}

    def _check_same_topic(self, target: TopicEnds) -> None:
        """Raises ArchiveMismatch."""
        if ids_of(self._options.target, [target.name])[target.name] != target.topic_id:
            raise ArchiveMismatch(
                f"The topic '{target.name}' was deleted and created again meanwhile: what was written before is gone; "
                "run it again"
            )


def _records(plan: Mapping[int, Position]) -> tuple[int, int]:
    """The number of records that are asked for, and of those that are missing."""
    return sum(at.selected for at in plan.values()), sum(at.missing for at in plan.values())


def _record_bytes(topic: TopicState) -> int:
    """The mean of keys and values."""
    shares = [row.share for row in topic.partitions.values() if row.share is not None]
    records = sum(share.records for share in shares)
    return max(1, sum(share.size_bytes for share in shares) // max(1, records))
