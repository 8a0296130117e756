"""What replicas of one partition have in common when all is quiet and replicated.

- LogEnds: their logs end at one offset, and that is the high watermark and, up to open transactions, the last stable
  offset of each.
- LogStarts: no follower begins in front of its leader; it begins later where its own retention has deleted segments, or
  where it heard of a DeleteRecords from an earlier leader of which this one did not.
- Batches: over the offsets that all have they hold the same bytes, batch by batch, whatever the segments. Compaction is
  each replica's own: where it may have been, what the records say in the end is the same for each key.
- LeaderEpochs: over those offsets they know the same leader epochs, which are those of the batches. Who copies a log
  that was compacted knows of no epoch that has no batch left: there each batch has the epoch that its log knows.
- Producers: what they know of a producer is the same, as far as its records are on all of them. Of its last five
  batches a snapshot keeps one, so one is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pykbroker.protocol.records.batch import RecordBatch, iter_batches, iter_records
from pykbroker.protocol.records.control import ControlRecordType
from pykbroker.replication.partition import Partition
from pykbroker.storage.producers.producer_entry import ProducerEntry
from pykbroker.storage.segments.leader_epochs import EpochEntry, epoch_at
from pykbroker.storage.segments.log_config import CleanupPolicy
from pykbroker.storage.segments.transaction_markers import find_marker
from tests.coordination.sizes import TRIMMED
from tests.replication.simulation.invariants import ensure

Producers = Mapping[int, tuple[object, ...]]
"""By producer id; the first of the values is the offset of the last batch, -1 where none is known."""


@dataclass(frozen=True, slots=True)
class Replica:
    """node: what it is called in a failure. starts_at: the offsets at which its own retention may let the log begin."""

    node: str
    log_start_offset: int
    log_end_offset: int
    batches: Sequence[RecordBatch]
    epochs: Sequence[EpochEntry]
    starts_at: frozenset[int] = frozenset()
    producers: Producers = field(default_factory=dict)

    @classmethod
    def of(cls, partition: Partition) -> Replica:
        log = partition.log
        segments = [segment.file.read_at(0, segment.size) for segment in log.segments]
        config = log.config
        has_retention = (
            CleanupPolicy.DELETE in config.cleanup_policy and max(config.retention_ms, config.retention_bytes) >= 0
        )
        return cls(
            f"node {partition.local_id}",
            log.log_start_offset,
            log.log_end_offset,
            list(iter_batches(b"".join(segments))),
            log.epochs,
            frozenset(segment.base_offset for segment in log.segments) if has_retention else frozenset(),
            {each.producer_id: _shown(each) for each in log.producers.producers.values()},
        )

    def batches_from(self, offset: int) -> dict[int, bytes]:
        """Those that reach beyond the offset, by their base offsets."""
        return {each.header.base_offset: bytes(each.data) for each in self.batches if each.header.last_offset >= offset}

    def epochs_from(self, offset: int) -> list[tuple[int, int]]:
        """The leader epochs of the offsets from this one to the log's end, and where among them each begins."""
        known = [entry for entry in self.epochs if entry.start_offset < self.log_end_offset]
        ends = [*(entry.start_offset for entry in known), self.log_end_offset][1:]
        ranges = zip(known, ends, strict=True)
        return [(entry.epoch, max(entry.start_offset, offset)) for entry, end in ranges if end > offset]


def _shown(entry: ProducerEntry) -> tuple[object, ...]:
    return (
        entry.batches[-1].last_offset if entry.batches else -1,
        entry.producer_epoch,
        entry.last_sequence,
        entry.coordinator_epoch,
        entry.current_transaction_first_offset,
        entry.last_timestamp,
    )


def is_settled(partitions: Sequence[Partition], *, leader: int) -> bool:
    """Whether the replicas have come to the same end, as far as they say: there may be more on its way.

    Followers hear of their leader's log start with the next answer to a fetch.
    """
    states = {(each.log.log_end_offset, each.high_watermark, each.last_stable_offset) for each in partitions}
    starts = {each.local_id: each.log.log_start_offset for each in partitions}
    return (
        len(states) == 1
        and all(end == high_watermark for end, high_watermark, _ in states)
        and starts.get(leader) == min(starts.values())
    )


def check_watermarks(at: str, partitions: Iterable[Partition]) -> None:
    ends = {
        each.local_id: (each.log.log_end_offset, each.high_watermark, each.last_stable_offset) for each in partitions
    }
    what = f"{at}: (log end, high watermark, last stable offset) by node: {ends}"
    ensure(len(set(ends.values())) == 1, "LogEnds", what)
    ensure(all(end == high_watermark for end, high_watermark, _ in ends.values()), "LogEnds", what)


def check_replicas(at: str, replicas: Sequence[Replica], *, leader: str | None, is_compacted: bool) -> None:
    """leader: the name of the one that leads, None where nobody does. is_compacted: there may be holes."""
    first = replicas[0]
    start = max(each.log_start_offset for each in replicas)
    for each in replicas:
        ensure(each.log_end_offset == first.log_end_offset, "LogEnds", at, _both("log_end_offset", first, each))
        _check_batches(at, first, each, start, is_compacted=is_compacted)
        _check_epochs(at, first, each, start, is_compacted=is_compacted)
        _check_producers(at, first, each, start)
        if leader is not None:
            _check_start(at, next(one for one in replicas if one.node == leader), each)


def _both(name: str, one: Replica, other: Replica) -> str:
    return f"{name} of {one.node}: {getattr(one, name)}, of {other.node}: {getattr(other, name)}"


def _check_start(at: str, leader: Replica, follower: Replica) -> None:
    start = follower.log_start_offset
    is_later = start in follower.starts_at or at.startswith(f"{TRIMMED}-")
    is_right = start == leader.log_start_offset or (start > leader.log_start_offset and is_later)
    ensure(is_right, "LogStarts", at, _both("log_start_offset", leader, follower))


def _check_batches(at: str, one: Replica, other: Replica, start: int, *, is_compacted: bool) -> None:
    here, there = one.batches_from(start), other.batches_from(start)
    if is_compacted and here != there:
        last_here, last_there = last_of_keys(one.batches), last_of_keys(other.batches)
        what = {key: (last_here.get(key), last_there.get(key)) for key in {*last_here, *last_there}}
        differing = {key: pair for key, pair in what.items() if pair[0] != pair[1]}
        ensure(not differing, "Batches", at, "by key, of", one.node, "and", other.node, differing)
        return
    differing_at = sorted(offset for offset in {*here, *there} if here.get(offset) != there.get(offset))
    ensure(not differing_at, "Batches", at, one.node, "and", other.node, "differ in those at", differing_at[:5])


def _check_epochs(at: str, one: Replica, other: Replica, start: int, *, is_compacted: bool) -> None:
    if is_compacted:
        for header, _ in other.batches:
            if header.base_offset >= start:
                known = epoch_at(other.epochs, header.base_offset)
                what = f"{known} at {header.base_offset}, where a batch of {header.partition_leader_epoch} is"
                ensure(known == header.partition_leader_epoch, "LeaderEpochs", at, other.node, what)
        return
    here, there = one.epochs_from(start), other.epochs_from(start)
    ensure(here == there, "LeaderEpochs", at, "of", one.node, here, "of", other.node, there)
    held = epochs_of(other.batches, start)
    ensure(there == held, "LeaderEpochs", at, other.node, there, "and of its batches", held)


def _check_producers(at: str, one: Replica, other: Replica, start: int) -> None:
    for producer_id in {*one.producers, *other.producers}:
        here, there = one.producers.get(producer_id), other.producers.get(producer_id)
        is_old = start > 0 and all(known is None or int(str(known[0])) < start for known in (here, there))
        ensure(
            here == there or is_old, "Producers", at, f"{producer_id}: {one.node} {here}, {other.node} {there}, {start}"
        )


def epochs_of(batches: Iterable[RecordBatch], start: int) -> list[tuple[int, int]]:
    """The leader epochs in the batches, and where from `start` on each begins."""
    found: list[tuple[int, int]] = []
    for header, _ in batches:
        if header.last_offset >= start and (not found or found[-1][0] != header.partition_leader_epoch):
            found.append((header.partition_leader_epoch, max(header.base_offset, start)))
    return found


def last_of_keys(batches: Sequence[RecordBatch]) -> dict[bytes, tuple[int, bytes]]:
    """What the committed records of a compacted log say of each key: the last one's offset and value.

    Tombstones say the same as no record, and may be there or not; so may what a compaction has not taken yet.
    """
    last: dict[bytes, tuple[int, bytes]] = {}
    for offset, key, value in _committed(batches):
        if value is not None:
            last[key] = offset, value
        else:
            last.pop(key, None)
    return last


def _committed(batches: Sequence[RecordBatch]) -> Iterator[tuple[int, bytes, bytes | None]]:
    """In the order of their offsets. A transaction without a marker is open, or its marker went with a compaction."""
    aborted: list[tuple[int, int]] = []
    markers = {}
    for header, data in reversed(batches):
        if header.is_control:
            marker = find_marker(data)
            markers[header.producer_id] = None if marker is None else marker.control_type
        elif header.is_transactional and markers.get(header.producer_id) is ControlRecordType.ABORT:
            aborted.append((header.base_offset, header.producer_id))
    gone = set(aborted)
    for header, data in batches:
        if not header.is_control and (header.base_offset, header.producer_id) not in gone:
            for record in iter_records(data):
                assert record.key is not None, "a compacted topic takes no record without a key"
                yield record.offset, bytes(record.key), None if record.value is None else bytes(record.value)
