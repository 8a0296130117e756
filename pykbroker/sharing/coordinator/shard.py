"""The share coordinator of one partition of `__share_group_state`; the door to this package.

The rules, Kafka's `ShareCoordinatorShard`:

- A share partition exists from its initialization on, until it is deleted. An initialization begins anew: it replaces
  what there is, unless its state epoch is below the highest that there was.
- Reads and writes of a leader epoch below the highest that has read are fenced, and writes of a state epoch below the
  share partition's. A read in a higher leader epoch writes that down.
- A write is an update record, which says only what changes; after so many of them it is a snapshot, the whole state.
  A share partition that nobody has written for long gets a snapshot too, as long as others are written: the log can be
  deleted only in front of the oldest of all newest snapshots (`redundant_offsets`).
- What topic or partition the metadata does not have is refused. What there is of deleted topics is deleted: at once
  where this coordinator is told of the deletion, and at its next look where nobody coordinated the partition then.

`handle` and `expire` change the state at once and give the records that make the change last; `replay` builds the same
state from records read back; `logged` says where a record stands. The driver holds answers back until the records are
committed.

Bounds: a state is refused that no snapshot could hold. A step of the coordinator's own writes few records, and the
driver makes it again as long as there are more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.share_state_records import ShareSnapshotKey, ShareUpdateValue
from pykbroker.state_machine import BadRecord, Completion, CoordinatorContext, Result, Token

from ..persister import (
    NO_LEADER_EPOCH,
    UNINITIALIZED_EPOCH,
    Initialization,
    Outcome,
    PartitionState,
    Reading,
    SharePartitionKey,
    Writing,
)
from .batches import NO_START_OFFSET, combine_batches
from .config import ShareCoordinatorConfig
from .records import ShareKey, ShareRecord, ShareValue, most_bytes
from .redundant_offsets import RedundantOffsets
from .requests import Delete, Initialize, Read, ReadSummary, ShareStateRequest, Write
from .state import (
    ShareState,
    ShareStates,
    initial_state,
    partition_key,
    tombstone,
    update_key,
    written_batches,
)

NO_STATE_EPOCH = -1
"""Whoever writes knows no state epoch, and is not fenced by it."""

NEGATIVE_PARTITION = "The partition id cannot be a negative number."
READ_UNINITIALIZED = "Read operation on uninitialized share partition not allowed."
WRITE_UNINITIALIZED = "Write operation on uninitialized share partition not allowed."
BACKWARD_BATCH = "The first offset of a state batch cannot be above its last offset."
TOO_LARGE = "Unable to write share group state: the state is larger than a record of the share coordinator's topic."

MOST_RECORDS = 200
"""Of one step that nobody asks for."""
MOST_BATCHES = 20_000
"""In all records of such a step, and in the state of one share partition: twice as many as a leader ever has, which has
at most 10,000 records in flight (`group.share.partition.max.record.locks`).
"""
MOST_LOOKED_AT = 2_000
"""Share partitions, in one step that looks for those that nobody has written for long."""


@dataclass(slots=True)
class _Step:
    now_ms: int
    timestamp_ms: int
    records: list[ShareRecord] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Looking:
    """The look at all share partitions for cold ones, as far as it has come."""

    keys: Sequence[SharePartitionKey]
    at: int = 0


class ShareShard:
    """The share partitions of one partition of `__share_group_state`.

    partition_count: how many partitions the metadata has of a topic; 0 where it has no such topic.
    """

    def __init__(self, config: ShareCoordinatorConfig, partition_count: Callable[[bytes], int]) -> None:
        self.config = config
        self._partition_count = partition_count
        self._states = ShareStates(config.updates_per_snapshot)
        self._redundant = RedundantOffsets()
        self._look_ms: int | None = None
        """When to look for cold share partitions next; None until the log is read."""
        self._looking: _Looking | None = None
        self._kept_look: tuple[int | None, _Looking | None] = (None, None)

    @property
    def states(self) -> Mapping[SharePartitionKey, ShareState]:
        """All share partitions, to look at."""
        return self._states.by_key

    # Requests

    def handle(
        self, request: ShareStateRequest, token: Token, now_ms: int, context: CoordinatorContext, timestamp_ms: int
    ) -> Result[ShareRecord]:
        """Handle a request. now_ms: monotonic, for deadlines. timestamp_ms: wall clock, for what is written."""
        step = _Step(now_ms, timestamp_ms)
        return self._finish(step, [Completion(token, self._answer(request, step))])

    def _answer(self, request: ShareStateRequest, step: _Step) -> list[Outcome] | list[PartitionState]:
        match request:
            case Initialize(asked):
                return [self._initialize(each, step) for each in asked]
            case Read(asked):
                return [self._read(each, step) for each in asked]
            case Write(asked):
                return [self._write(each, step) for each in asked]
            case Delete(asked):
                return [self._delete(each, step) for each in asked]
            case ReadSummary(asked):
                return [self._read_summary(each) for each in asked]

    def _initialize(self, asked: Initialization, step: _Step) -> Outcome:
        key = asked.key
        before = self._states.by_key.get(key)
        if key.partition < 0:
            return Outcome(key, ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if _is_fenced_state(before, asked.state_epoch):
            return _refused(key, ErrorCode.FENCED_STATE_EPOCH)
        if not self._exists(key):
            return _refused(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        state = initial_state(asked.state_epoch, asked.start_offset, step.timestamp_ms, before)
        self._put(state.snapshot(key), step)
        return Outcome(key)

    def _read(self, asked: Reading, step: _Step) -> PartitionState:
        key = asked.key
        state = self._states.by_key.get(key)
        if key.partition < 0:
            return _unread(key, ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if state is None:
            return _unread(key, ErrorCode.INVALID_REQUEST, READ_UNINITIALIZED)
        if _is_fenced_leader(state, asked.leader_epoch):
            return _unread(key, ErrorCode.FENCED_LEADER_EPOCH)
        if not self._exists(key):
            return _unread(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if asked.leader_epoch not in (NO_LEADER_EPOCH, state.fencing_leader_epoch):
            same = Writing(
                key, state.state_epoch, asked.leader_epoch, state.start_offset, state.delivery_complete_count, ()
            )
            if not self._change(same, state, step, leader_epoch=asked.leader_epoch):
                return _unread(key, ErrorCode.UNKNOWN_SERVER_ERROR, TOO_LARGE)
        return PartitionState(
            key, state_epoch=state.state_epoch, start_offset=state.start_offset, batches=state.batches
        )

    def _write(self, asked: Writing, step: _Step) -> Outcome:
        key = asked.key
        state = self._states.by_key.get(key)
        if key.partition < 0:
            return Outcome(key, ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if state is None:
            return Outcome(key, ErrorCode.INVALID_REQUEST, WRITE_UNINITIALIZED)
        if _is_fenced_leader(state, asked.leader_epoch):
            return _refused(key, ErrorCode.FENCED_LEADER_EPOCH)
        if _is_fenced_state(state, asked.state_epoch):
            return _refused(key, ErrorCode.FENCED_STATE_EPOCH)
        if not self._exists(key):
            return _refused(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if any(batch.first_offset > batch.last_offset for batch in asked.batches):
            return Outcome(key, ErrorCode.INVALID_REQUEST, BACKWARD_BATCH)
        if not self._change(asked, state, step, leader_epoch=state.leader_epoch):
            return Outcome(key, ErrorCode.UNKNOWN_SERVER_ERROR, TOO_LARGE)
        return Outcome(key)

    def _change(self, asked: Writing, state: ShareState, step: _Step, *, leader_epoch: int) -> bool:
        """Write an update or, where it is time, a snapshot. False where no snapshot would have room for the state."""
        start_offset = state.start_offset if asked.start_offset == NO_START_OFFSET else asked.start_offset
        batches = combine_batches(state.batches, asked.batches, start_offset)
        new = combine_batches((), asked.batches, asked.start_offset)
        is_snapshot = state.updates >= self.config.updates_per_snapshot
        if not self._has_room(asked.key, len(batches)) and (is_snapshot or len(batches) > len(state.batches)):
            return False
        if not is_snapshot and not self._has_room(asked.key, len(new)):
            return False
        if is_snapshot:
            changed = replace(
                state,
                snapshot_epoch=state.snapshot_epoch + 1,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=asked.delivery_complete_count,
                batches=batches,
                create_timestamp=step.timestamp_ms,
                write_timestamp=step.timestamp_ms,
            )
            self._put(changed.snapshot(asked.key), step)
            return True
        value = ShareUpdateValue(
            snapshot_epoch=state.snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=asked.start_offset,
            delivery_complete_count=asked.delivery_complete_count,
            state_batches=written_batches(new),
        )
        self._put(ShareRecord(update_key(asked.key), value), step)
        return True

    def _has_room(self, key: SharePartitionKey, batches: int) -> bool:
        return batches <= MOST_BATCHES and most_bytes(key.group_id, batches) <= self.config.max_record_bytes

    def _delete(self, key: SharePartitionKey, step: _Step) -> Outcome:
        if key.partition < 0:
            return Outcome(key, ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if not self._exists(key):
            return _refused(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if key in self._states.by_key:
            self._put(tombstone(key), step)
        return Outcome(key)

    def _read_summary(self, asked: Reading) -> PartitionState:
        key = asked.key
        if key.partition < 0:
            return _unread(key, ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if not self._exists(key):
            return _unread(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        state = self._states.by_key.get(key)
        if state is None:
            return PartitionState(key, leader_epoch=UNINITIALIZED_EPOCH)
        return PartitionState(
            key, state.state_epoch, state.leader_epoch, state.start_offset, state.delivery_complete_count
        )

    def _exists(self, key: SharePartitionKey) -> bool:
        return key.partition < self._partition_count(key.topic_id)

    def _put(self, record: ShareRecord, step: _Step) -> None:
        self._states.replay(record.key, record.value)
        step.records.append(record)

    def _finish(
        self, step: _Step, completed: Sequence[Completion] = (), cause: str = "", *, is_unfinished: bool = False
    ) -> Result[ShareRecord]:
        return Result(tuple(step.records), completed, cause, is_unfinished=is_unfinished)

    # Time

    def next_deadline_ms(self) -> int | None:
        return self._look_ms if self._states.by_key else None

    def look_now(self) -> None:
        """Have the next `expire` look for share partitions that nobody has written for long."""
        if self._look_ms is not None:
            self._look_ms = 0

    def expire(self, now_ms: int, timestamp_ms: int) -> Result[ShareRecord]:
        """Give snapshots to share partitions whose last one is old, unless nobody has written to any: the log would
        only become longer then. Delete those of topics that are gone.
        """
        step = _Step(now_ms, timestamp_ms)
        if self._look_ms is None or self._look_ms > now_ms:
            return self._finish(step)
        if self._looking is None:
            self._looking = _Looking(self._to_look_at())
        at = self._look(self._looking, step)
        is_unfinished = at < len(self._looking.keys)
        self._looking = replace(self._looking, at=at) if is_unfinished else None
        if not is_unfinished:
            self._look_ms = now_ms + self.config.cold_snapshot_interval_ms
        cause = f"{len(step.records)} share partitions were not written for long, or are gone" if step.records else ""
        return self._finish(step, (), cause, is_unfinished=is_unfinished)

    def _to_look_at(self) -> list[SharePartitionKey]:
        if self._states.cold < len(self._states.by_key):
            return list(self._states.by_key)
        gone = (keys for topic_id, keys in self._states.by_topic.items() if not self._partition_count(topic_id))
        return [key for keys in gone for key in keys]

    def _look(self, looking: _Looking, step: _Step) -> int:
        """Look at some share partitions, and return how far that has come.

        The metadata have caught up long since with whatever was known to those who wrote: the topics that they do not
        have are gone for good.
        """
        batches = 0
        end = min(looking.at + MOST_LOOKED_AT, len(looking.keys))
        for at in range(looking.at, end):
            if len(step.records) >= MOST_RECORDS or batches >= MOST_BATCHES:
                return at
            key = looking.keys[at]
            state = self._states.by_key.get(key)
            if state is None:
                continue
            if not self._partition_count(key.topic_id):
                self._put(tombstone(key), step)
            elif self._is_cold(key, state, step.timestamp_ms):
                changed = replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp=step.timestamp_ms)
                self._put(changed.snapshot(key), step)
                batches += len(state.batches)
        return end

    def _is_cold(self, key: SharePartitionKey, state: ShareState, timestamp_ms: int) -> bool:
        """Tell whether a snapshot is due, and has room in a record."""
        is_old = timestamp_ms - state.write_timestamp >= self.config.cold_snapshot_interval_ms
        return is_old and self._has_room(key, len(state.batches))

    # Deleted topics

    def has_topic(self, topic_id: bytes) -> bool:
        return topic_id in self._states.by_topic

    def forget_topics(self, topic_ids: Sequence[bytes], now_ms: int, timestamp_ms: int) -> Result[ShareRecord]:
        """Delete what there is of deleted topics; of much a part, and then the result is unfinished."""
        step = _Step(now_ms, timestamp_ms)
        is_unfinished = not all(self._forget(topic_id, step) for topic_id in topic_ids)
        cause = f"{len(step.records)} share partitions go with their topics" if step.records else ""
        return self._finish(step, (), cause, is_unfinished=is_unfinished)

    def _forget(self, topic_id: bytes, step: _Step) -> bool:
        """Tell whether nothing is left of the topic."""
        room = MOST_RECORDS - len(step.records)
        for key in list(islice(self._states.by_topic.get(topic_id, ()), room)):
            self._put(tombstone(key), step)
        return not self.has_topic(topic_id)

    # Trials

    def begin_trial(self) -> None:
        """The next step may be taken back."""
        self._states.begin_trial()
        self._kept_look = (self._look_ms, self._looking)

    def end_trial(self, *, is_kept: bool) -> None:
        """End the trial of a step. is_kept: whether the step did happen; else all is as it was before it."""
        self._states.end_trial(is_kept=is_kept)
        if not is_kept:
            self._look_ms, self._looking = self._kept_look

    # Loading

    def replay(self, key: ShareKey, value: ShareValue | None) -> None:
        """Apply one record that was read back."""
        self._states.replay(key, value)

    def logged(self, record: ShareRecord, offset: int) -> None:
        """Note where a record of this shard stands in the log. Records come in the order of the log."""
        if isinstance(record.key, ShareSnapshotKey):
            self._redundant.snapshot(partition_key(record.key), offset, is_tombstone=record.value is None)

    def redundant_end_offset(self) -> int | None:
        """Return up to where the log can be deleted, as soon as all that is in it is committed; None for nothing."""
        return self._redundant.end_offset()

    def replay_pending(self, producer_id: int, key: ShareKey, value: ShareValue | None) -> None:
        raise BadRecord("a record of share state is never part of a transaction")

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """A marker in this log ends nothing."""

    def tidy_up(self) -> bool:
        """Do what a step left to be done later: nothing, for share partitions."""
        return False

    def prepare_timers(self, now_ms: int) -> Iterator[None]:
        """There is nothing to prepare."""
        return iter(())

    def start_timers(self, now_ms: int, timestamp_ms: int) -> Result[ShareRecord]:
        """Begin to look at the time. The caller calls it when every record is replayed."""
        self._look_ms = now_ms + self.config.cold_snapshot_interval_ms
        return self._finish(_Step(now_ms, timestamp_ms))


def _is_fenced_leader(state: ShareState, leader_epoch: int) -> bool:
    return leader_epoch != NO_LEADER_EPOCH and leader_epoch < state.fencing_leader_epoch


def _is_fenced_state(state: ShareState | None, state_epoch: int) -> bool:
    if state is None or state.fencing_state_epoch is None:
        return False
    return state_epoch != NO_STATE_EPOCH and state_epoch < state.fencing_state_epoch


def _refused(key: SharePartitionKey, error_code: ErrorCode) -> Outcome:
    return Outcome(key, error_code, error_code.description)


def _unread(key: SharePartitionKey, error_code: ErrorCode, message: str | None = None) -> PartitionState:
    return PartitionState(key, error_code=error_code, error_message=message or error_code.description)
