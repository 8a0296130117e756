"""What must hold after every event, whatever has gone wrong. Each has a name; a violation says which, and who.

- SingleLeader: a leader epoch has one leader.
- LeaderCompleteness: who leads has all that was committed in earlier leader epochs.
- CommittedForEver: what one replica holds below its high watermark, no other holds differently, and it stays.
- HighWatermark: it is not behind the log's end, and never goes back while a process lives.
- LeaderEpochs: a log knows where its leader epochs begin, as its batches have it.
- OnDisk: where each message is flushed, a leader shows nothing first that is not on its own disk.
- Acknowledged: what a producer was told (acks=all) is committed, where it was told.
- Consumed: what a consumer was given is committed.
- ExactlyOnce: nothing of an idempotent producer is committed twice.
- InSync: in-sync replicas are replicas, the leader is one of them, and nobody is in sync and merely eligible.
- NobodyFallsBehind: where nothing fails any more all stay in sync, whatever they break off.
- Epochs: those of leader and partition never go back in the committed metadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pykbroker.metadata.partition_state import PartitionState
from pykbroker.replication.partition import Partition

from .logs import Entry, WatchedLog


class Violated(AssertionError):
    """An invariant does not hold."""


def ensure(holds: bool, name: str, *what: object) -> None:
    if not holds:
        raise Violated(f"{name}: {' '.join(map(str, what))}")


@dataclass(slots=True)
class Seen:
    """What was looked at of a partition already."""

    partition: Partition
    entries: list[Entry] = field(default_factory=list)
    high_watermark: int = 0
    leads_in: int = -1
    mark: tuple[object, ...] = ()


class Invariants:
    def __init__(self, *, flushes: bool = False) -> None:
        self._flushes = flushes
        self.committed: list[Entry] = []
        self.acknowledged: dict[int, int] = {}
        """Values, and at which offset they are."""
        self._committed_in: list[int] = []
        """The epochs of the leaders that committed them, which may be later than those they were written in."""
        self._leaders: dict[int, int] = {}
        self._values: set[int] = set()
        self._seen: dict[int, Seen] = {}
        self._state: PartitionState | None = None

    def check(self, partitions: Iterable[tuple[Partition, bool]]) -> None:
        """Of the brokers that run, and whether they serve: who does not yet may take itself for what it was."""
        for partition, serves in partitions:
            seen = self._seen.get(partition.local_id)
            if seen is None or seen.partition is not partition:
                self._seen[partition.local_id] = seen = Seen(partition)
            log = partition.log
            assert isinstance(log, WatchedLog)
            state = partition.leader_epoch, partition.leader, serves
            mark = (log.changes, log.log_end_offset, partition.high_watermark, *state)
            if mark != seen.mark:
                seen.mark = mark
                self._check(partition, log, seen, serves)

    def _check(self, partition: Partition, log: WatchedLog, seen: Seen, serves: bool) -> None:
        who, high_watermark = f"broker {partition.local_id}", partition.high_watermark
        ensure(high_watermark <= log.log_end_offset, "HighWatermark", who, high_watermark, log.log_end_offset)
        ensure(high_watermark >= seen.high_watermark, "HighWatermark", who, "from", seen.high_watermark, high_watermark)
        lowest = log.take_lowest_end()
        ensure(lowest >= seen.high_watermark, "CommittedForEver", who, "cut off to", lowest, "of", seen.high_watermark)
        del seen.entries[lowest:]
        seen.entries += log.entries_from(len(seen.entries))
        known = [entry for entry in log.epochs if entry.start_offset < log.log_end_offset]
        ensure(known == _epochs_of(seen.entries), "LeaderEpochs", who, known, "are not", _epochs_of(seen.entries))
        if serves and partition.is_leader and seen.leads_in != partition.leader_epoch:
            seen.leads_in = partition.leader_epoch
            self._check_leader(partition, seen)
        for offset in range(seen.high_watermark, high_watermark):
            self._check_committed(partition, seen, offset)
        seen.high_watermark = high_watermark

    def _check_leader(self, partition: Partition, seen: Seen) -> None:
        epoch, who = partition.leader_epoch, partition.local_id
        leader = self._leaders.setdefault(epoch, who)
        ensure(leader == who, "SingleLeader", f"epoch {epoch} has {leader} and {who}")
        for offset, entry in enumerate(self.committed):
            if self._committed_in[offset] >= epoch:
                break
            held = seen.entries[offset] if offset < len(seen.entries) else None
            ensure(held == entry, "LeaderCompleteness", f"{who} leads {epoch} with {held} at {offset}, not {entry}")

    def _check_committed(self, partition: Partition, seen: Seen, offset: int) -> None:
        entry, who = seen.entries[offset], f"broker {partition.local_id}"
        if offset < len(self.committed):
            ensure(entry == self.committed[offset], "CommittedForEver", who, entry, self.committed[offset], offset)
            return
        ensure(partition.is_leader, "CommittedForEver", who, "follows, and knows of more than any leader:", offset)
        on_disk = partition.log.recovery_point
        ensure(offset < on_disk or not self._flushes, "OnDisk", who, "shows", offset, "and has flushed up to", on_disk)
        ensure(entry.value not in self._values, "ExactlyOnce", entry, "is committed again at", offset)
        self._values.add(entry.value)
        self.committed.append(entry)
        self._committed_in.append(partition.leader_epoch)
        for other in self._seen.values():
            if other.leads_in > partition.leader_epoch and other.partition.is_leader:
                held = other.entries[offset] if offset < len(other.entries) else None
                ensure(
                    held == entry, "LeaderCompleteness", who, "commits", entry, "at", offset, "a later leader:", held
                )

    # Clients

    def note_acknowledged(self, offset: int, values: Iterable[int]) -> None:
        for index, value in enumerate(values, offset):
            held = self.committed[index].value if index < len(self.committed) else None
            ensure(held == value, "Acknowledged", value, "at", index, "where is committed", held)
            self.acknowledged[value] = index

    def check_consumed(self, entries: Iterable[tuple[int, Entry]]) -> None:
        for offset, entry in entries:
            held = self.committed[offset] if offset < len(self.committed) else None
            ensure(held == entry, "Consumed", entry, "at", offset, "where is committed", held)

    # The controller

    def check_metadata(self, state: PartitionState) -> None:
        """The partition as the committed records have it."""
        before, self._state = self._state, state
        isr, replicas = set(state.isr), set(state.replicas)
        ensure(len(isr) == len(state.isr) and isr <= replicas, "InSync", state)
        ensure(state.leader == -1 or state.leader in isr, "InSync", state)
        ensure(not isr & set(state.eligible_leader_replicas), "InSync", state)
        if before is not None:
            ensure(state.leader_epoch >= before.leader_epoch, "Epochs", before, state)
            ensure(state.partition_epoch > before.partition_epoch or state == before, "Epochs", before, state)
            if state.leader not in (before.leader, -1):
                ensure(state.leader_epoch > before.leader_epoch, "Epochs", before, state)


def _epochs_of(entries: Iterable[Entry]) -> list[tuple[int, int]]:
    """The epochs of records from offset 0 on, and where they begin."""
    found: list[tuple[int, int]] = []
    for offset, entry in enumerate(entries):
        if not found or found[-1][0] != entry.epoch:
            found.append((entry.epoch, offset))
    return found
