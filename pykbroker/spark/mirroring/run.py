"""The loop of a mirror: topics, positions, batches in transactions, and the offsets of groups behind them.

The position of each partition is committed in the transaction of its records. A run that is killed anywhere has
committed both or none; the next one fences it, and goes on behind the last commit.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..errors import BadOptions, Cancelled, TopicChanged
from ..failures import job_errors
from ..following import follow
from ..plan import Plan, bounded, check_logs, epochs_of, losses, next_batch, offsets_left, plan_after, plan_of
from ..progress import Listener, Progress, names_of
from ..python_tasks import check_packages
from ..reading import Ranges, read_ranges
from ..session import pipeline_session
from ..small_tables import small_table
from ..source import ClusterEnds, ends_of_epochs, ids_of
from ..writing import Route, TopicWriter, Transactions, WriteJob
from ..writing.driver import PACKAGES, check_properties, fence
from ..writing.job import TIMESTAMP_ZERO
from ..writing.offset_syncs import CopyPosition, OffsetSync
from ..writing.transactional import journal_key
from .groups import Copy, translate_groups
from .options import MirroredPartition, MirrorOptions, MirrorSummary
from .pairs import TopicPairs, create_copies, missing_topics, pair, sources
from .positions import journaled, positions_of
from .topics import JOURNAL, differences

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COPY = "the mirror"
_ROW = ("route", "offset", "unix_millis(timestamp) AS timestamp_ms", "key", "value", "headers")

Place = tuple[str, int]
"""A topic of the source, and its partition."""


def mirror(
    options: MirrorOptions, *, spark: SparkSession | None = None, listener: Listener | None = None
) -> MirrorSummary:
    """Copy to another cluster what it does not have of these topics. Exactly once: see `docs/spark.md`.

    spark: the session to use; one is started where none runs. With `follow` it goes on until KeyboardInterrupt, which
    ends it as planned.

    Raises the errors of `pykbroker.spark.errors`; whatever is raised, what was committed is there, and the next run
    goes on behind it.
    """
    options.check()
    check_packages(*PACKAGES)
    listener = listener or Listener()
    cluster = sources(options)
    with pipeline_session(options.session, spark=spark, say=listener.say) as session, job_errors():
        run = _Run(options, session, listener)
        try:
            with job_errors():
                run.go(cluster)
        except (KeyboardInterrupt, Cancelled):
            if not options.follow:
                raise
        return run.summary()


@dataclass(frozen=True, slots=True)
class _Copied:
    """A partition's copy, as `plan.CopiedPartition`."""

    start_offset: int
    next_offset: int
    leader_epoch: int


class _Run:
    def __init__(self, options: MirrorOptions, spark: SparkSession, listener: Listener) -> None:
        self._options = options
        self._spark = spark
        self._listener = listener
        self._id = uuid.uuid4().hex
        self._writer = TopicWriter(spark)
        self._topics = TopicPairs()
        self._positions: dict[Place, CopyPosition] = {}
        """Of all partitions that this run has taken over."""
        self._routes: dict[Place, Route] = {}
        self._created: list[str] = []
        self._batches = self._records = self._bytes = self._left = self._group_offsets = 0
        self._groups_at = 0.0

    def go(self, cluster: ClusterEnds) -> None:
        options = self._options
        check_properties(self._job({}))
        if options.dry_run:
            self._announce(self._dry_plan(cluster))
            return
        plan = self._prepare(cluster)
        self._announce(plan)
        if not options.follow:
            self._write_all(plan)
            self._translate()
            return
        follow(lambda: self._pass(plan), self._follow, self._resume, options.poll_interval_s, self._listener.say)

    def _pass(self, plan: Plan) -> None:
        self._write_all(plan)
        if time.monotonic() - self._groups_at >= self._options.groups_interval_s or not self._groups_at:
            self._translate()
            self._groups_at = time.monotonic()

    def _follow(self) -> None:
        self._pass(self._prepare(sources(self._options)))

    def _resume(self) -> None:
        """Go on behind an error: nobody knows which transactions have been committed."""
        self._positions.clear()
        self._follow()

    # ---- topics and positions

    def _prepare(self, cluster: ClusterEnds) -> Plan:
        """Create what is missing, and take over what this run does not have yet."""
        self._created.extend(create_copies(self._options, cluster, self._listener.say))
        before = self._topics.groups
        self._topics = pair(self._options, cluster, set(before.values()))
        again = {name for name, group in self._topics.groups.items() if before.get(name, group) != group}
        for place in [place for place in self._positions if place[0] in again]:
            del self._positions[place]  # of a topic that was deleted and created again
        self._take_over()
        return self._plan(cluster, self._positions)

    def _take_over(self) -> None:
        """Let nobody else write, and learn where the copies end. Raises BadOptions, WriteFailed."""
        topics, options = self._topics, self._options
        routes = {place: route for place, route in self._all_routes().items() if place not in self._positions}
        if not routes:
            return
        committed = self._committed()
        known = {(name, partition) for name, rows in committed.items() for partition in rows}
        unknown = {place: route for place, route in routes.items() if place not in known}
        keys = {place: journal_key(_transactions(route)) for place, route in unknown.items()}
        noted = journaled(self._spark, options.target, list(keys.values()), self._listener.say)
        for place, route in unknown.items():
            name, partition = place
            source, target = topics.cluster.topics[name].partitions[partition], topics.targets[name]
            end = target.partitions[partition].end
            offset = noted.get(keys[place])
            if offset is None and end > 0 and not options.append:
                raise BadOptions(
                    f"{target.name}-{partition} has records up to offset {end} that no mirror of {name} has written "
                    "(or the topic was created again since): --append writes behind them"
                )
            if offset is None:  # of a partition that came later, nothing may be gone
                offset = 0 if name in committed else source.start
            begin = OffsetSync(offset, end, 0)
            routes[place] = replace(route, transactions=replace(_transactions(route), begin=begin))
        numbered = dict(enumerate(routes.items()))
        taken = fence(self._job({number: route for number, (_, route) in numbered.items()}))
        for number, (place, route) in numbered.items():
            self._positions[place], self._routes[place] = taken[number], route

    def _all_routes(self) -> dict[Place, Route]:
        topics = self._topics
        return {
            (name, partition): Route(
                f"{name}-{partition}",
                topics.targets[name].name,
                partition,
                transactions=Transactions(
                    f"{topics.groups[name]}-{partition}", topics.groups[name], topics.targets[name].name, partition
                ),
            )
            for name, topic in topics.cluster.topics.items()
            for partition in topic.partitions
        }

    def _committed(self) -> dict[str, dict[int, CopyPosition]]:
        """The positions as the target has them, by topic of the source."""
        found = positions_of(self._options.target, list(self._topics.groups.values()))
        return {name: found[group] for name, group in self._topics.groups.items() if group in found}

    # ---- the plan

    def _dry_plan(self, cluster: ClusterEnds) -> Plan:
        options = self._options
        missing = missing_topics(options, cluster)
        if missing:
            self._listener.say(f"Would create {names_of(missing)}")
        there = {name: topic for name, topic in cluster.topics.items() if options.prefix + name not in missing}
        self._topics = pair(options, ClusterEnds(cluster.cluster_id, there), ())
        positions = {
            (name, partition): position
            for name, rows in self._committed().items()
            for partition, position in rows.items()
        }
        return self._plan(cluster, positions)

    def _plan(self, cluster: ClusterEnds, positions: Mapping[Place, CopyPosition]) -> Plan:
        options = self._options
        copied: dict[str, dict[int, _Copied]] = {}
        for (name, partition), position in positions.items():
            if name in cluster.topics:
                start = min(position.next_offset, position.syncs[0].source if position.syncs else position.next_offset)
                copied.setdefault(name, {})[partition] = _Copied(start, position.next_offset, position.leader_epoch)
        ends = ends_of_epochs(options.source, epochs_of(copied, cluster))
        check_logs(copied, cluster, ends, _COPY)
        plan = plan_of(copied, cluster, _COPY, accept_loss=options.accept_loss)
        plan = plan if isinstance(options.until, str) else bounded(plan, options.source, options.until)
        for line in losses(plan):
            self._listener.say(f"WARN: {line}")
        self._left = offsets_left(plan)
        return plan

    def _announce(self, plan: Plan) -> None:
        options, say = self._options, self._listener.say
        verb = "Would copy" if options.dry_run else "Copying"
        say(
            f"{verb} {names_of(plan)}: {offsets_left(plan):,} offsets (partitions: {sum(map(len, plan.values()))}), "
            f"from {options.source.bootstrap_servers} to {options.target.bootstrap_servers}"
        )
        if self._created:
            say(f"Created {names_of(self._created)}")
        there = {name: target.name for name, target in self._topics.targets.items()}
        for line in differences(options.source, options.target, there):
            say(f"WARN: {line}")

    # ---- batches

    def _write_all(self, plan: Plan) -> None:
        while ranges := next_batch(plan, self._options.max_batch_records):
            self._write(plan, ranges)
            plan = plan_after(plan, ranges)
            self._left = offsets_left(plan)
            self._listener.progress(Progress(self._batches, self._records, self._bytes, self._left))

    def _write(self, plan: Plan, ranges: Ranges) -> None:
        from pyspark.sql.functions import broadcast

        options = self._options
        places = [(name, partition) for name, rows in ranges.items() for partition in rows]
        routes = {
            number: replace(
                self._routes[name, partition],
                end=ranges[name][partition][1],
                leader_epoch=plan[name][partition].leader_epoch,
            )
            for number, (name, partition) in enumerate(places)
        }
        numbers = small_table(
            self._spark,
            ((name, partition, number) for number, (name, partition) in enumerate(places)),
            "topic STRING, partition INT, route INT",
        )
        records = read_ranges(self._spark, options.source, ranges, options.isolation_level, split=False)
        rows = records.join(broadcast(numbers), ["topic", "partition"]).selectExpr(*_ROW)
        written = self._writer.write_in_order(self._job(routes), rows)
        self._records += sum(each.records for each in written)
        self._bytes += sum(each.size_bytes for each in written)
        zeros = sum(each.zeros for each in written)
        if zeros:
            self._listener.say(f"WARN: {zeros:,} records had {TIMESTAMP_ZERO}")
        self._batches += 1
        for place in places:  # a range without records has moved nothing in the target
            name, partition = place
            self._positions[place] = replace(
                self._positions[place],
                next_offset=ranges[name][partition][1],
                leader_epoch=plan[name][partition].leader_epoch,
            )
        self._check_same_topics(list(ranges))

    def _check_same_topics(self, names: list[str]) -> None:
        """Raises TopicChanged."""
        topics, options = self._topics, self._options
        sources = ids_of(options.source, names)
        targets = ids_of(options.target, [topics.targets[name].name for name in names])
        for name in names:
            target = topics.targets[name]
            if sources[name] != topics.cluster.topics[name].topic_id or targets[target.name] != target.topic_id:
                raise TopicChanged(
                    f"The topic '{name}' or its copy was deleted and created again while it was read; run it again"
                )

    def _job(self, routes: Mapping[int, Route]) -> WriteJob:
        options = self._options
        return WriteJob(
            options.target.bootstrap_servers,
            routes,
            options.target.writer_properties(options.producer_properties),
            self._id,
            journal=JOURNAL,
        )

    # ---- groups

    def _translate(self) -> None:
        options = self._options
        committed = self._committed()
        for name, rows in committed.items():
            for partition, position in rows.items():
                now = self._positions.get((name, partition))
                if now is not None:  # which is ahead, where a range had no records
                    self._positions[name, partition] = replace(now, syncs=position.syncs)
        if options.groups_matching is None:
            return
        copies = {name: Copy(self._topics.targets[name].name, rows) for name, rows in committed.items()}
        self._group_offsets += translate_groups(options.source, options.target, options.groups_matching, copies)

    def summary(self) -> MirrorSummary:
        partitions: dict[str, dict[int, MirroredPartition]] = {}
        for (name, partition), position in sorted(self._positions.items()):
            last = position.syncs[-1] if position.syncs else OffsetSync(0, 0, 0)
            partitions.setdefault(name, {})[partition] = MirroredPartition(
                position.next_offset, last.target + last.records
            )
        return MirrorSummary(
            self._batches, self._records, self._bytes, self._left, self._created, self._group_offsets, partitions
        )


def _transactions(route: Route) -> Transactions:
    assert route.transactions is not None
    return route.transactions
