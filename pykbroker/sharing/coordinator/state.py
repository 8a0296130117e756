"""The state of a share partition, as the records say it, and the table of all share partitions of a shard.

Kafka's counterparts are `ShareGroupOffset` and the maps of `ShareCoordinatorShard`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pykbroker.kept_entries import KeptEntries
from pykbroker.protocol.messages import share_state_records as messages
from pykbroker.protocol.messages.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)

from ..persister import (
    NO_LEADER_EPOCH,
    UNINITIALIZED_EPOCH,
    UNINITIALIZED_START_OFFSET,
    UNKNOWN_COUNT,
    SharePartitionKey,
    StateBatch,
)
from .batches import NO_START_OFFSET, Combined, combine_batches
from .records import ShareKey, ShareRecord

NO_TIMESTAMP = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareState:
    """The state of a share partition; never changed, but replaced.

    snapshot_epoch: the number of the newest snapshot. create_timestamp, write_timestamp: milliseconds of the wall
    clock; when the state was last written for somebody, and when it was last written at all, as a snapshot.
    updates: since when the next snapshot is counted. fencing_leader_epoch, fencing_state_epoch: the highest that were
    ever there; requests of lower ones are fenced.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Combined
    create_timestamp: int = NO_TIMESTAMP
    write_timestamp: int = NO_TIMESTAMP
    updates: int = 0
    fencing_leader_epoch: int = UNINITIALIZED_EPOCH
    fencing_state_epoch: int | None = None
    """None where no record has said one."""

    @property
    def is_cold(self) -> bool:
        """Tell whether the newest snapshot came because nobody had written for long."""
        return self.create_timestamp != self.write_timestamp

    def snapshot(self, key: SharePartitionKey) -> ShareRecord:
        value = ShareSnapshotValue(
            snapshot_epoch=self.snapshot_epoch,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.start_offset,
            delivery_complete_count=self.delivery_complete_count,
            create_timestamp=self.create_timestamp,
            write_timestamp=self.write_timestamp,
            state_batches=written_batches(self.batches),
        )
        return ShareRecord(_snapshot_key(key), value)

    def updated(self, value: ShareUpdateValue) -> ShareState:
        """Return the state behind the update."""
        start_offset = self.start_offset if value.start_offset == NO_START_OFFSET else value.start_offset
        leader_epoch = self.leader_epoch if value.leader_epoch == NO_LEADER_EPOCH else value.leader_epoch
        return replace(
            self,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=value.delivery_complete_count,
            batches=combine_batches(self.batches, _read_batches(value.state_batches), start_offset),
            updates=self.updates + 1,
            fencing_leader_epoch=max(self.fencing_leader_epoch, value.leader_epoch),
        )


def initial_state(state_epoch: int, start_offset: int, timestamp_ms: int, before: ShareState | None) -> ShareState:
    """Return the state that an initialization gives. before: the one that it replaces, whose snapshots are counted on.

    The lag is unknown as long as the leader has found no start offset (KIP-1226).
    """
    is_unknown = start_offset == UNINITIALIZED_START_OFFSET
    return ShareState(
        snapshot_epoch=0 if before is None else before.snapshot_epoch + 1,
        state_epoch=state_epoch,
        leader_epoch=UNINITIALIZED_EPOCH,
        start_offset=start_offset,
        delivery_complete_count=UNKNOWN_COUNT if is_unknown else 0,
        batches=(),
        create_timestamp=timestamp_ms,
        write_timestamp=timestamp_ms,
    )


def tombstone(key: SharePartitionKey) -> ShareRecord:
    return ShareRecord(_snapshot_key(key), None)


def written_batches(batches: Iterable[StateBatch]) -> list[messages.StateBatch]:
    """Return the batches as records have them."""
    return [
        messages.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count in batches
    ]


def update_key(key: SharePartitionKey) -> ShareUpdateKey:
    return ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)


def partition_key(key: ShareKey) -> SharePartitionKey:
    return SharePartitionKey(key.group_id, key.topic_id, key.partition)


def _snapshot_key(key: SharePartitionKey) -> ShareSnapshotKey:
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)


def _read_batches(batches: Iterable[messages.StateBatch]) -> Combined:
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in batches
    )


def _same(state: ShareState) -> ShareState:
    return state


class ShareStates:
    """The share partitions of a shard.

    by_key: every share partition that is initialized. by_topic: their keys.
    """

    def __init__(self, updates_per_snapshot: int) -> None:
        self.by_key: dict[SharePartitionKey, ShareState] = {}
        self.by_topic: dict[bytes, dict[SharePartitionKey, None]] = {}
        self.cold = 0
        """The share partitions whose newest snapshot came because nobody wrote."""
        self._updates_per_snapshot = updates_per_snapshot
        self._kept = KeptEntries(self.by_key.get, _same)

    def replay(self, record_key: ShareKey, value: object) -> None:
        """Apply a record that was written, or read back."""
        key = partition_key(record_key)
        before = self.by_key.get(key)
        match value:
            case ShareSnapshotValue():
                self._put(key, self._of_snapshot(value, before))
            case ShareUpdateValue() if before is not None:
                self._put(key, before.updated(value))
            case ShareUpdateValue():
                self._put(key, _of_update_alone(value))
            case _:
                self._remove(key)

    def _of_snapshot(self, value: ShareSnapshotValue, before: ShareState | None) -> ShareState:
        updates = 0 if before is None or before.updates >= self._updates_per_snapshot else before.updates
        batches = _read_batches(value.state_batches)
        fencing_leader, fencing_state = value.leader_epoch, value.state_epoch
        if before is not None:
            fencing_leader = max(fencing_leader, before.fencing_leader_epoch)
            if before.fencing_state_epoch is not None:
                fencing_state = max(fencing_state, before.fencing_state_epoch)
        return ShareState(
            snapshot_epoch=value.snapshot_epoch,
            state_epoch=value.state_epoch,
            leader_epoch=value.leader_epoch,
            start_offset=value.start_offset,
            delivery_complete_count=value.delivery_complete_count,
            batches=batches,
            create_timestamp=value.create_timestamp,
            write_timestamp=value.write_timestamp,
            updates=updates,
            fencing_leader_epoch=fencing_leader,
            fencing_state_epoch=fencing_state,
        )

    def _put(self, key: SharePartitionKey, state: ShareState) -> None:
        self._kept.keep(key)
        before = self.by_key.get(key)
        self.cold += state.is_cold - (before is not None and before.is_cold)
        self.by_key[key] = state
        if before is None:
            self.by_topic.setdefault(key.topic_id, {})[key] = None

    def _remove(self, key: SharePartitionKey) -> None:
        self._kept.keep(key)
        before = self.by_key.pop(key, None)
        if before is None:
            return
        self.cold -= before.is_cold
        of_topic = self.by_topic[key.topic_id]
        del of_topic[key]
        if not of_topic:
            del self.by_topic[key.topic_id]

    def begin_trial(self) -> None:
        """Begin a trial: `end_trial` may take back what changes from here on."""
        self._kept.begin()

    def end_trial(self, *, is_kept: bool) -> None:
        kept = self._kept.end()
        for key, state in kept.items() if not is_kept else ():
            if state is not None:
                self._put(key, state)
            else:
                self._remove(key)


def _of_update_alone(value: ShareUpdateValue) -> ShareState:
    """Return the state of an update whose snapshot is missing."""
    return ShareState(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=UNINITIALIZED_EPOCH,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=_read_batches(value.state_batches),
        updates=1,
        fencing_leader_epoch=value.leader_epoch,
    )
