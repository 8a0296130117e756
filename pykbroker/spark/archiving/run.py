"""The loop of an archive: plan, read a batch, check it, commit it, merge small files, until nothing is left to read.

The manifest is the checkpoint. A run that is killed anywhere has either committed a batch or not; the next one goes on
behind the last commit.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..directories import HadoopDirectory
from ..errors import ArchiveDamaged, ArchiveMismatch, Cancelled, JobFailed
from ..failures import job_errors
from ..following import follow
from ..plan import Plan, bounded, check_logs, epochs_of, losses, next_batch, offsets_left, plan_after, plan_of
from ..progress import Listener, Progress, names_of
from ..python_tasks import check_packages
from ..reading import Ranges, read_ranges
from ..session import pipeline_session
from ..source import ClusterEnds, ends_of, ends_of_epochs, ids_of, matching_topics
from .batches import check_ranges, gathered, write_files
from .compaction import compact
from .manifest import ArchivedFile, Commit, Read
from .options import ArchivedPartition, ArchiveOptions, ArchiveSummary
from .store import ArchiveStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COPY = "the archive"


def archive(
    options: ArchiveOptions, *, spark: SparkSession | None = None, listener: Listener | None = None
) -> ArchiveSummary:
    """Add to an archive what it does not have of its topics. Exactly once: see `docs/spark.md`.

    spark: the session to use; one is started where none runs. With `follow` it goes on until KeyboardInterrupt, which
    ends it as planned.

    Raises the errors of `pykbroker.spark.errors`; whatever is raised, what was committed is there, and the next run
    goes on behind it.
    """
    options.check()
    check_packages("pyspark")
    listener = listener or Listener()
    cluster = _cluster(options)
    with pipeline_session(options.session, spark=spark, say=listener.say) as session, job_errors():
        run = _Run(options, session, listener)
        try:
            with job_errors():
                run.go(cluster)
        except (KeyboardInterrupt, Cancelled):
            if not options.follow:
                raise
        return run.summary()


def _cluster(options: ArchiveOptions) -> ClusterEnds:
    topics = matching_topics(options.source, options.topics, options.topics_matching)
    return ends_of(options.source, topics, options.isolation_level)


@dataclass(slots=True)
class _Added:
    commits: int = 0
    records: int = 0
    size_bytes: int = 0
    files: int = 0
    file_bytes: int = 0

    def add(self, files: tuple[ArchivedFile, ...]) -> None:
        shares = [share for file in files for share in file.shares.values()]
        self.commits += 1
        self.records += sum(share.records for share in shares)
        self.size_bytes += sum(share.size_bytes for share in shares)
        self.files += len(files)
        self.file_bytes += sum(file.file_bytes for file in files)


class _Run:
    def __init__(self, options: ArchiveOptions, spark: SparkSession, listener: Listener) -> None:
        self._options = options
        self._spark = spark
        self._listener = listener
        self._id = uuid.uuid4().hex[:8]
        self._store = ArchiveStore(HadoopDirectory(spark, options.path))
        self._state = self._store.load()
        self._added = _Added()
        self._left = 0

    def go(self, cluster: ClusterEnds) -> None:
        plan = self._plan(cluster)
        self._left = offsets_left(plan)
        self._announce(plan)
        if self._options.dry_run:
            return
        self._store.settle()
        options = self._options
        if not options.follow:
            self._read_to_the_end(cluster, plan)
            return
        follow(
            lambda: self._read_to_the_end(cluster, plan),
            self._follow,
            self._resume,
            options.poll_interval_s,
            self._listener.say,
        )

    def _follow(self) -> None:
        cluster = _cluster(self._options)
        self._read_to_the_end(cluster, self._plan(cluster))

    def _resume(self) -> None:
        """Go on behind an error: nobody knows whether the last commit is there."""
        self._state = self._store.load()
        self._store.settle()
        self._follow()

    # ---- the plan

    def _plan(self, cluster: ClusterEnds) -> Plan:
        state, options = self._state, self._options
        state.check_topics(cluster)
        if state.isolation_level not in (None, options.isolation_level):
            raise ArchiveMismatch(f"The archive was begun with isolation level {state.isolation_level}")
        copied = state.copied
        check_logs(copied, cluster, ends_of_epochs(options.source, epochs_of(copied, cluster)), _COPY)
        plan = plan_of(copied, cluster, _COPY, accept_loss=options.accept_loss)
        return plan if isinstance(options.until, str) else bounded(plan, options.source, options.until)

    def _announce(self, plan: Plan) -> None:
        options, say = self._options, self._listener.say
        partitions = sum(map(len, plan.values()))
        verb = "Would archive" if options.dry_run else "Archiving"
        say(
            f"{verb} {names_of(plan)}: {offsets_left(plan):,} offsets (partitions: {partitions}), into "
            f"{self._store.directory.root}, which has {self._state.number} commits"
        )
        for line in losses(plan):
            say(f"WARN: {line}")

    # ---- batches

    def _read_to_the_end(self, cluster: ClusterEnds, plan: Plan) -> None:
        while ranges := next_batch(plan, self._options.max_batch_records):
            with self._alone():
                self._commit_batch(cluster, plan, ranges)
            plan = plan_after(plan, ranges)
            added, self._left = self._added, offsets_left(plan)
            self._listener.progress(Progress(added.commits, added.records, added.size_bytes, self._left))
            with self._alone():
                self._compact()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Raise ArchiveBusy for what goes wrong behind somebody else's commit: no other explanation is needed."""
        try:
            with job_errors():
                yield
        except (JobFailed, ArchiveDamaged):
            self._store.check_alone(self._state.number)
            raise

    def _commit_batch(self, cluster: ClusterEnds, plan: Plan, ranges: Ranges) -> None:
        options, state = self._options, self._state
        staging = self._store.staging(state, self._id)
        frame = read_ranges(self._spark, options.source, ranges, options.isolation_level)
        files = write_files(gathered(frame, ranges), self._store.directory, staging, options.codec)
        check_ranges(files, ranges)
        _check_same_topics(cluster, ids_of(options.source, list(ranges)))
        commit = Commit(
            number=state.number + 1,
            at_ms=time.time_ns() // 1_000_000,
            cluster_id=cluster.cluster_id,
            isolation_level=options.isolation_level,
            staging=staging,
            topic_ids={topic: cluster.topics[topic].topic_id for topic in ranges},
            reads=_reads(plan, ranges),
            added=files,
        )
        self._state = self._store.commit(state, commit)
        self._added.add(files)

    def _compact(self) -> None:
        options = self._options
        if options.target_file_bytes:
            self._state = compact(self._spark, self._store, self._state, options, self._id, self._listener)

    def summary(self) -> ArchiveSummary:
        added = self._added
        return ArchiveSummary(
            added.commits,
            added.records,
            added.size_bytes,
            added.files,
            added.file_bytes,
            self._left,
            {
                name: {
                    partition: ArchivedPartition(row.start_offset, row.next_offset, row.records, row.checksum)
                    for partition, row in topic.partitions.items()
                }
                for name, topic in self._state.topics.items()
            },
        )


def _reads(plan: Plan, ranges: Ranges) -> dict[str, dict[int, Read]]:
    return {
        topic: {
            partition: Read(
                plan[topic][partition].first_offset,
                end,
                plan[topic][partition].leader_epoch,
                plan[topic][partition].lost,
            )
            for partition, (_, end) in rows.items()
        }
        for topic, rows in ranges.items()
    }


def _check_same_topics(before: ClusterEnds, after: Mapping[str, str]) -> None:
    """Raises ArchiveMismatch: ids are never used again, so a topic that has the same one was there all the time."""
    for name, topic_id in after.items():
        if topic_id != before.topics[name].topic_id:
            raise ArchiveMismatch(f"The topic '{name}' was deleted and created again while it was read")
