"""The rules of the share coordinator: fencing, updates and snapshots, and what a crash leaves."""

from __future__ import annotations

from dataclasses import replace

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.share_state_records import ShareSnapshotValue, ShareUpdateValue
from pykbroker.sharing.coordinator.config import ShareCoordinatorConfig
from pykbroker.sharing.coordinator.records import decode_record
from pykbroker.sharing.coordinator.shard import (
    BACKWARD_BATCH,
    MOST_RECORDS,
    NEGATIVE_PARTITION,
    READ_UNINITIALIZED,
    TOO_LARGE,
    WRITE_UNINITIALIZED,
)
from pykbroker.sharing.persister import (
    NO_LEADER_EPOCH,
    Initialization,
    Outcome,
    PartitionState,
    Reading,
    SharePartitionKey,
    StateBatch,
    Writing,
)
from tests.sharing.memory_persister import MemoryShareState

TOPIC = b"t" * 16
KEY = SharePartitionKey("group", TOPIC, 0)
SMALL = ShareCoordinatorConfig(updates_per_snapshot=2, cold_snapshot_interval_ms=1000)


def writing(
    *batches: StateBatch,
    key: SharePartitionKey = KEY,
    state_epoch: int = 1,
    leader_epoch: int = 0,
    start_offset: int = -1,
    complete: int = 0,
) -> Writing:
    return Writing(key, state_epoch, leader_epoch, start_offset, complete, batches)


def initialized(config: ShareCoordinatorConfig = SMALL, *, start_offset: int = 0) -> MemoryShareState:
    state = MemoryShareState(config)
    assert state.initialize([Initialization(KEY, 1, start_offset)]) == [Outcome(KEY)]
    return state


def values(state: MemoryShareState) -> list[object]:
    return [decode_record(*each).value for each in state.log]


def test_what_was_written_is_read() -> None:
    state = initialized()
    assert state.write([writing(StateBatch(0, 4, 2, 1), StateBatch(5, 9, 0, 1), complete=5)]) == [Outcome(KEY)]
    assert state.write([writing(StateBatch(5, 6, 2, 2), start_offset=5, complete=2)]) == [Outcome(KEY)]
    assert state.read([Reading(KEY, NO_LEADER_EPOCH)]) == [
        PartitionState(KEY, state_epoch=1, start_offset=5, batches=(StateBatch(5, 6, 2, 2), StateBatch(7, 9, 0, 1)))
    ]
    assert state.read_summary([Reading(KEY, NO_LEADER_EPOCH)]) == [PartitionState(KEY, 1, 0, 5, 2)]


def test_share_partition_that_is_not_initialized() -> None:
    state = MemoryShareState()
    assert state.read([Reading(KEY, 3)]) == [
        PartitionState(KEY, error_code=ErrorCode.INVALID_REQUEST, error_message=READ_UNINITIALIZED)
    ]
    assert state.write([writing()]) == [Outcome(KEY, ErrorCode.INVALID_REQUEST, WRITE_UNINITIALIZED)]
    assert state.read_summary([Reading(KEY, 3)]) == [PartitionState(KEY, leader_epoch=0)]
    assert state.delete([KEY]) == [Outcome(KEY)]
    assert state.log == []


def test_partition_that_no_topic_has() -> None:
    state = MemoryShareState(partition_count=lambda topic_id: 1 if topic_id == TOPIC else 0)
    second, other = KEY._replace(partition=1), KEY._replace(topic_id=b"o" * 16)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for key in (second, other):
        assert [each.error_code for each in state.initialize([Initialization(key, 1, 0)])] == [unknown]
        assert [each.error_code for each in state.delete([key])] == [unknown]
        assert [each.error_code for each in state.read_summary([Reading(key, -1)])] == [unknown]
    negative = KEY._replace(partition=-1)
    refused = [Outcome(negative, ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)]
    assert state.initialize([Initialization(negative, 1, 0)]) == state.delete([negative]) == refused
    assert state.write([writing(key=negative)]) == refused
    for read in (state.read, state.read_summary):
        assert read([Reading(negative, 0)])[0].error_message == NEGATIVE_PARTITION


def test_earlier_leaders_are_fenced_once_a_later_one_has_read() -> None:
    state = initialized()
    assert state.read([Reading(KEY, 5)])[0].error_code is ErrorCode.NONE
    for _ in range(2):
        assert state.read([Reading(KEY, 4)])[0].error_code is ErrorCode.FENCED_LEADER_EPOCH
        assert state.write([writing(leader_epoch=4)])[0].error_code is ErrorCode.FENCED_LEADER_EPOCH
        assert state.write([writing(leader_epoch=5)])[0].error_code is ErrorCode.NONE
        state.crash()


def test_reading_again_in_the_same_leader_epoch_writes_nothing() -> None:
    state = initialized()
    state.read([Reading(KEY, 5)])
    written = len(state.log)
    state.read([Reading(KEY, 5), Reading(KEY, NO_LEADER_EPOCH)])
    assert len(state.log) == written


def test_writing_alone_fences_no_leader() -> None:
    state = initialized()
    assert state.write([writing(leader_epoch=7)]) == [Outcome(KEY)]
    assert state.write([writing(leader_epoch=3)]) == [Outcome(KEY)]


def test_earlier_state_epochs_are_fenced() -> None:
    state = initialized()
    state.write([writing(StateBatch(0, 9, 2, 1))])
    assert state.initialize([Initialization(KEY, 4, 20)]) == [Outcome(KEY)]
    for _ in range(2):
        assert state.write([writing(state_epoch=3)])[0].error_code is ErrorCode.FENCED_STATE_EPOCH
        assert state.initialize([Initialization(KEY, 3, 0)])[0].error_code is ErrorCode.FENCED_STATE_EPOCH
        state.crash()
    assert state.read([Reading(KEY, -1)]) == [PartitionState(KEY, state_epoch=4, start_offset=20)]
    assert state.write([writing(state_epoch=-1)]) == [Outcome(KEY)]


def test_initialization_without_a_start_offset_leaves_the_count_unknown() -> None:
    state = initialized(start_offset=-1)
    assert state.read_summary([Reading(KEY, -1)]) == [PartitionState(KEY, 1, 0, -1, -1)]
    state.initialize([Initialization(KEY, 2, 0)])
    assert state.read_summary([Reading(KEY, -1)]) == [PartitionState(KEY, 2, 0, 0, 0)]


def test_snapshot_comes_after_so_many_updates() -> None:
    state = initialized()
    for offset in range(5):
        state.write([writing(StateBatch(offset, offset, 2, 1))])
    kinds = [type(value) for value in values(state)]
    assert kinds == [
        ShareSnapshotValue,
        ShareUpdateValue,
        ShareUpdateValue,
        ShareSnapshotValue,
        ShareUpdateValue,
        ShareUpdateValue,
    ]
    epochs = [value.snapshot_epoch for value in values(state)]  # type: ignore[attr-defined]
    assert epochs == [0, 0, 0, 1, 1, 1]


def test_log_is_pruned_up_to_the_oldest_newest_snapshot() -> None:
    state = initialized()
    other = KEY._replace(partition=1)
    state.initialize([Initialization(other, 1, 0)])
    for offset in range(6):
        state.write([writing(StateBatch(offset, offset, 2, 1))])
    state.prune()
    assert state.log_start_offset == 1, "the other share partition has its only snapshot there"
    state.delete([other])
    before = dict(state.shard.states)
    state.prune()
    assert state.log_start_offset == 7
    state.crash()
    assert dict(state.shard.states) == {key: replace(each, updates=0) for key, each in before.items()}


def test_share_partition_that_nobody_writes_gets_a_snapshot_while_others_are_written() -> None:
    state = initialized()
    other = KEY._replace(partition=1)
    state.initialize([Initialization(other, 1, 0)])
    for _ in range(4):
        state.pass_time(600)
        for offset in range(3):
            state.write([writing(StateBatch(offset, offset, 2, 1))])
    cold = state.shard.states[other]
    assert cold.is_cold
    assert cold.snapshot_epoch > 0
    assert not state.shard.states[KEY].is_cold
    state.prune()
    assert state.log_start_offset > 1
    state.crash()
    assert state.shard.states[other] == cold


def test_quiet_share_partitions_make_the_log_no_longer() -> None:
    state = initialized()
    for _ in range(4):
        state.pass_time(1000)
    assert len(state.log) == 2


def test_many_share_partitions_get_their_snapshots_in_parts() -> None:
    state = MemoryShareState(SMALL)
    count = 3 * MOST_RECORDS + 1
    state.initialize([Initialization(KEY._replace(partition=index), 1, 0) for index in range(count)])
    state.now_ms += 1000
    steps = 0
    while state.is_due:
        before = len(state.log)
        state.expire()
        assert len(state.log) - before <= MOST_RECORDS
        steps += 1
    assert steps == 4
    assert len(state.log) == 2 * count


def test_state_of_deleted_topics_is_deleted_in_parts() -> None:
    topics = {TOPIC: 1 << 20}
    state = MemoryShareState(SMALL, partition_count=lambda topic_id: topics.get(topic_id, 0))
    count = 2 * MOST_RECORDS + 1
    state.initialize([Initialization(KEY._replace(partition=index), 1, 0) for index in range(count)])
    del topics[TOPIC]
    parts = 0
    while state.shard.has_topic(TOPIC):
        result = state.shard.forget_topics([TOPIC], 0, 0)
        state.take(result)
        parts += 1
        assert result.is_unfinished is state.shard.has_topic(TOPIC)
    assert parts == 3
    assert not state.shard.states
    state.crash()
    assert not state.shard.states


def test_state_of_topics_that_were_deleted_while_nobody_coordinated_it_is_deleted_at_the_next_look() -> None:
    topics = {TOPIC: 1 << 20, b"o" * 16: 1}
    state = MemoryShareState(SMALL, partition_count=lambda topic_id: topics.get(topic_id, 0))
    other = KEY._replace(topic_id=b"o" * 16)
    keys = [KEY._replace(partition=index) for index in range(MOST_RECORDS + 5)]
    state.initialize([Initialization(key, 1, 0) for key in [*keys, other]])
    del topics[TOPIC]
    state.crash()
    assert set(state.shard.states) == {*keys, other}, "the metadata may be behind for a moment"
    state.pass_time(1000)
    assert list(state.shard.states) == [other]
    state.crash()
    assert list(state.shard.states) == [other]


def test_state_of_gone_topics_is_deleted_also_where_nobody_writes() -> None:
    topics = {TOPIC: 1, b"o" * 16: 1}
    state = MemoryShareState(SMALL, partition_count=lambda topic_id: topics.get(topic_id, 0))
    other = KEY._replace(topic_id=b"o" * 16)
    state.initialize([Initialization(key, 1, 0) for key in (KEY, other)])
    state.pass_time(1000)
    assert all(each.is_cold for each in state.shard.states.values())
    written = len(state.log)
    del topics[TOPIC]
    state.pass_time(1000)
    assert list(state.shard.states) == [other]
    assert len(state.log) == written + 1


def test_state_that_no_record_could_hold_is_refused() -> None:
    state = initialized(replace(SMALL, max_record_bytes=1000))
    batches = [StateBatch(2 * at, 2 * at, 2, 1) for at in range(100)]
    refused = 0
    for batch in batches:
        (outcome,) = state.write([writing(batch)])
        refused += outcome == Outcome(KEY, ErrorCode.UNKNOWN_SERVER_ERROR, TOO_LARGE)
    assert 50 < refused < 80
    assert all(len(key) + len(value or b"") <= 1000 for key, value in state.log)
    assert state.write([writing(start_offset=198)]) == [Outcome(KEY)]
    assert state.write([writing(batches[-1])]) == [Outcome(KEY)]


def test_batch_that_ends_before_it_begins_is_refused() -> None:
    state = initialized()
    assert state.write([writing(StateBatch(5, 4, 2, 1))]) == [Outcome(KEY, ErrorCode.INVALID_REQUEST, BACKWARD_BATCH)]


def test_one_write_of_several_is_refused_by_itself() -> None:
    state = initialized()
    other = KEY._replace(partition=1)
    outcomes = state.write([writing(key=other), writing(StateBatch(0, 0, 2, 1))])
    assert [each.error_code for each in outcomes] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
