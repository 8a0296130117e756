"""A follower's requests, and what it does with the answers: appending, truncating, beginning anew, waiting."""

from __future__ import annotations

import logging

import pytest

from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.replication.followed_partition import FollowingState
from pykbroker.replication.follower import Follower
from pykbroker.storage.files.errors import NoRoom
from pykbroker.storage.log.log import AppendOrigin
from pykbroker.storage.log.truncation import Truncation
from tests.replication.truncations import begin_anew, truncate

from .replicas import NOW_MS, TOPIC_ID, VERSION, Replicas


def follower_of(replicas: Replicas, follower: int = 2, leader: int = 1) -> Follower:
    return replicas[follower].follower_of(leader)


def asked(request: FetchRequest | None) -> list[tuple[int, int, int]]:
    """Offset, leader epoch and last fetched epoch of what a request names."""
    assert request is not None
    return [
        (each.fetch_offset, each.current_leader_epoch, each.last_fetched_epoch)
        for topic in request.topics
        for each in topic.partitions
    ]


def answer(error_code: int = 0, session_id: int = 7, **partition: object) -> FetchResponse:
    response = FetchResponse(error_code=error_code, session_id=session_id)
    if partition:
        data = PartitionData(partition_index=0, **partition)  # type: ignore[arg-type]
        response.responses = [FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])]
    return response


# Copying


def test_a_follower_ends_up_with_the_leaders_bytes() -> None:
    replicas = Replicas()
    for number in range(30):
        replicas.append(*(f"{number}-{each}" for each in range(number % 5 + 1)))
    replicas.settle(rounds=40)
    assert replicas[2].bytes() == replicas[3].bytes() == replicas[1].bytes()
    assert replicas[2].partition.high_watermark == replicas[1].partition.high_watermark == 90


def test_the_first_request_names_everything_and_the_next_only_what_changed() -> None:
    replicas = Replicas((1, 2))
    follower = follower_of(replicas)
    first = follower.next_request(0, 102)
    assert asked(first) == [(0, 0, -1)]
    assert first is not None
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert (first.replica_state.replica_id, first.replica_state.replica_epoch) == (2, 102)
    follower.answered(answer(high_watermark=0, log_start_offset=0), 0, NOW_MS)
    second = follower.next_request(0, 102)
    assert second is not None
    assert (second.session_id, second.session_epoch, second.topics) == (7, 1, [])
    records = encode_batch([Record(key=None, value=b"a", timestamp=1)], partition_leader_epoch=0)
    follower.answered(answer(high_watermark=0, log_start_offset=0, records=records), 0, NOW_MS)
    third = follower.next_request(0, 102)
    assert asked(third) == [(1, 0, 0)]
    assert third is not None
    assert third.session_epoch == 2


def test_an_answer_without_records_leaves_the_last_fetched_epoch_as_it_was() -> None:
    """KAFKA-15510: without it the leader could not tell a follower that its log went another way."""
    replicas = Replicas((1, 2))
    replicas.append("a")
    replicas.elect(2)
    replicas.elect(1)
    replicas.append("b")
    replicas.settle()
    for _ in range(2):
        replicas.fetch(2)
    follower = follower_of(replicas)
    follower.failed(0)
    assert asked(follower.next_request(10_000, 102)) == [(2, 2, 2)]


def test_a_partition_that_is_not_followed_any_more_is_forgotten() -> None:
    replicas = Replicas((1, 2))
    follower = follower_of(replicas)
    follower.next_request(0, 102)
    follower.answered(answer(high_watermark=0, log_start_offset=0), 0, NOW_MS)
    follower.unfollow(replicas[2].partition)
    request = follower.next_request(0, 102)
    assert request is not None
    assert [(each.topic_id, each.partitions) for each in request.forgotten_topics_data] == [(TOPIC_ID, [0])]
    follower.answered(answer(session_id=0), 0, NOW_MS)
    assert follower.next_request(0, 102) is None


@pytest.mark.parametrize("error", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH])
def test_a_session_that_the_leader_has_lost_begins_anew_at_once(error: ErrorCode) -> None:
    replicas = Replicas((1, 2))
    follower = follower_of(replicas)
    follower.next_request(0, 102)
    follower.answered(answer(high_watermark=0, log_start_offset=0), 0, NOW_MS)
    follower.next_request(0, 102)
    follower.answered(answer(error, session_id=0), 0, NOW_MS)
    request = follower.next_request(0, 102)
    assert asked(request) == [(0, 0, -1)]
    assert request is not None
    assert request.session_id == (0 if error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND else 7)
    assert request.session_epoch == 0


def test_where_the_leader_has_no_room_for_a_session_each_request_names_everything() -> None:
    replicas = Replicas((1, 2))
    follower = follower_of(replicas)
    for _ in range(3):
        assert asked(follower.next_request(0, 102)) == [(0, 0, -1)]
        follower.answered(answer(session_id=0, high_watermark=0, log_start_offset=0), 0, NOW_MS)


def test_after_a_broken_connection_a_follower_waits_and_begins_anew() -> None:
    replicas = Replicas((1, 2))
    follower = follower_of(replicas)
    follower.next_request(0, 102)
    follower.failed(0)
    assert follower.next_request(999, 102) is None
    assert follower.next_deadline_ms() == 1000
    assert asked(follower.next_request(1000, 102)) == [(0, 0, -1)]


def test_an_answer_to_what_is_not_asked_any_more_is_passed_over() -> None:
    replicas = Replicas((1, 2))
    replicas.append("a")
    follower = follower_of(replicas)
    request = follower.next_request(0, 102)
    assert request is not None
    data = replicas[1].answer_fetch(encode(request, VERSION), 0)
    replicas.elect(1)
    response, _ = decode(FetchResponse, VERSION, data)
    follower.answered(response, 0, NOW_MS)
    assert replicas[2].partition.log.log_end_offset == 0
    replicas.settle()
    assert replicas[2].bytes() == replicas[1].bytes()


def test_records_of_an_epoch_that_was_not_asked_for_are_not_taken() -> None:
    replicas = Replicas((1, 2))
    follower = follower_of(replicas)
    follower.next_request(0, 102)
    known, later = (
        encode_batch([Record(key=None, value=b"a", timestamp=1)], base_offset=at, partition_leader_epoch=at)
        for at in (0, 1)
    )
    follower.answered(answer(high_watermark=0, log_start_offset=0, records=known + later), 0, NOW_MS)
    assert replicas[2].partition.log.log_end_offset == 1


def test_a_damaged_batch_is_not_appended_and_asked_for_again_later(caplog: pytest.LogCaptureFixture) -> None:
    replicas = Replicas((1, 2))
    follower = follower_of(replicas)
    follower.next_request(0, 102)
    records = bytearray(encode_batch([Record(key=None, value=b"a", timestamp=1)], partition_leader_epoch=0))
    records[-1] ^= 1
    follower.answered(answer(high_watermark=1, log_start_offset=0, records=bytes(records)), 0, NOW_MS)
    assert replicas[2].partition.log.log_end_offset == 0
    assert "wrong checksum" in caplog.text
    replicas.append("a")
    replicas.wait(1000)
    replicas.settle()
    assert replicas[2].bytes() == replicas[1].bytes()


# Truncating


def diverged(min_isr: int = 1) -> Replicas:
    """Broker 1 has two records that nobody else has, and was the leader of epoch 0; now 2 leads and has another one."""
    replicas = Replicas(min_isr=min_isr)
    replicas.append("a")
    replicas.settle()
    replicas.append("lost", "lost too")
    replicas.elect(2, (2, 3))
    replicas.append("kept")
    return replicas


def test_what_the_new_leader_never_had_is_cut_off() -> None:
    replicas = diverged()
    replicas.settle()
    assert replicas[1].records() == replicas[2].records() == [(0, b"a"), (1, b"kept")]
    assert replicas[1].bytes() == replicas[2].bytes()
    assert replicas[1].partition.log.epochs == replicas[2].partition.log.epochs


def test_an_epoch_that_only_the_old_leader_knows_and_that_is_empty_goes_too() -> None:
    replicas = Replicas()
    replicas.append("a")
    replicas.settle()
    replicas.elect(2, tell=(2,))
    replicas.elect(3)
    replicas.append("b")
    replicas.settle()
    assert replicas[2].bytes() == replicas[3].bytes()
    assert [each.epoch for each in replicas[2].partition.log.epochs] == [0, 2]


def test_logs_that_went_apart_in_several_epochs_find_together() -> None:
    replicas = Replicas()
    replicas.append("common")
    replicas.settle()
    for leader in (2, 1, 2, 1):
        replicas.elect(leader, tell=(leader,))
        replicas.append(f"only on {leader}", f"only on {leader} too")
    replicas.elect(3)
    replicas.append("c")
    replicas.settle()
    assert replicas[1].bytes() == replicas[2].bytes() == replicas[3].bytes()


def test_what_was_replicated_is_not_cut_off_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    replicas = Replicas((1, 2))
    replicas.append("a")
    replicas.fetch(2)
    replicas.decide(isr=(1,))
    replicas.wait(100_000)
    replicas.leader.partition.maybe_shrink_isr(replicas.now_ms)
    assert replicas[1].partition.high_watermark == 1
    with caplog.at_level(logging.ERROR):
        replicas.elect(2, (2,))  # unclean: it has the record, but let it have lost it
        truncate(replicas[2].partition, 0)
        replicas.append("b")
        replicas.settle()
    assert replicas[1].records() == [(0, b"b")]
    assert "below the high watermark of 1" in caplog.text


# Out of range


def test_a_follower_in_front_of_the_leaders_log_begins_where_that_does() -> None:
    replicas = Replicas()
    replicas.append("a", "b")
    replicas.fetch(2)
    replicas.fetch(2)
    replicas.decide(isr=(1, 2))
    replicas.wait(100_000)
    replicas.fetch(2)
    replicas.leader.partition.maybe_shrink_isr(replicas.now_ms)
    assert replicas.leader.partition.delete_records(2).offset == 2
    replicas.append("c")
    replicas.settle()
    log = replicas[3].partition.log
    assert (log.log_start_offset, log.log_end_offset) == (2, 3)
    assert replicas[3].records() == [(2, b"c")]


def test_a_leader_that_begins_in_the_middle_of_a_batch_is_followed() -> None:
    replicas = Replicas()
    replicas.append("a", "b", "c")
    replicas.fetch(2)
    replicas.fetch(2)
    replicas.decide(isr=(1, 2))
    replicas.wait(100_000)
    replicas.fetch(2)
    replicas.leader.partition.maybe_shrink_isr(replicas.now_ms)
    replicas.leader.partition.delete_records(2)
    replicas.settle()
    log = replicas[3].partition.log
    assert (log.log_start_offset, log.log_end_offset) == (2, 3)
    assert replicas[3].records() == [(2, b"c")]


def test_a_follower_that_disagrees_with_a_leader_that_begins_in_the_middle_of_a_batch_finds_it() -> None:
    """The leader tells that the older epoch ends where its log begins: within a batch of either."""
    replicas = Replicas()
    replicas.append("a")
    replicas.settle()
    replicas.append("b", "c", "d")
    replicas.elect(2, (2, 3))
    replicas.append("x", "y", "z")
    for _ in range(3):
        replicas.fetch(3)
    assert replicas.leader.partition.delete_records(2).offset == 2
    replicas.settle()
    log = replicas[1].partition.log
    assert (log.log_start_offset, log.log_end_offset) == (2, 4)
    assert replicas[1].partition.high_watermark == 4
    assert replicas[1].records() == [(2, b"y"), (3, b"z")]


def test_a_follower_behind_an_empty_leader_is_cut_off_where_that_ends() -> None:
    replicas = Replicas((1, 2))
    replicas.append("a", "b")
    replicas.fetch(2)
    begin_anew(replicas[1].partition, 0)
    replicas.settle()
    assert replicas[2].partition.log.log_end_offset == 0
    replicas.append("c")
    replicas.settle()
    assert replicas[2].bytes() == replicas[1].bytes()


def test_deleted_records_are_deleted_on_followers() -> None:
    replicas = Replicas()
    replicas.append("a", "b", "c")
    replicas.settle()
    replicas.leader.partition.delete_records(2)
    assert replicas.leader.partition.low_watermark(lambda _: True) == 0
    replicas.settle()
    assert [each.partition.log.log_start_offset for each in replicas.replicas.values()] == [2, 2, 2]
    assert replicas.leader.partition.low_watermark(lambda _: True) == 2


# Epochs that do not agree


def test_a_fenced_follower_waits_for_the_metadata() -> None:
    replicas = Replicas((1, 2))
    replicas.elect(1, tell=(1,))
    replicas.append("a")
    replicas.fetch(2)
    (followed,) = follower_of(replicas).partitions
    assert followed.state is FollowingState.STOPPED
    assert replicas.fetch(2)
    replicas.wait(100_000)
    assert not replicas.fetch(2)
    replicas.publish()
    replicas.settle()
    assert replicas[2].bytes() == replicas[1].bytes()


def test_a_follower_that_knows_more_than_its_leader_tries_again_soon_then_ever_later() -> None:
    replicas = Replicas((1, 2))
    replicas.elect(1, tell=(2,))
    (followed,) = follower_of(replicas).partitions
    waits_ms = []
    for _ in range(10):
        replicas.fetch(2)
        assert followed.delayed_until_ms is not None
        waits_ms.append(followed.delayed_until_ms - replicas.now_ms)
        replicas.wait(waits_ms[-1])
    assert waits_ms == [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]
    replicas.publish()
    replicas.append("a")
    replicas.settle()
    assert replicas[2].bytes() == replicas[1].bytes()
    assert followed.refusals == 0


# Disks


def test_a_full_disk_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas((1, 2))
    replicas.append("a")
    full = NoRoom("write", "/apples-0", OSError(28, "No space left on device"))
    with monkeypatch.context() as patch:
        patch.setattr(replicas[2].partition, "append_as_follower", lambda _: (_ for _ in ()).throw(full))
        replicas.fetch(2)
    assert replicas[2].failures == [full]
    replicas.wait(1000)
    replicas.settle()
    assert replicas[2].bytes() == replicas[1].bytes()


@pytest.mark.parametrize("step", ["begin", "prepare", "finish"])
def test_a_truncation_that_finds_no_room_is_tried_again(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = diverged()
    full = NoRoom("write", "/apples-0", OSError(28, "No space left on device"))
    with monkeypatch.context() as patch:
        patch.setattr(Truncation, step, lambda *_: (_ for _ in ()).throw(full))
        replicas.fetch(1)
        replicas.fetch(1)
    assert replicas[1].failures[0] is full
    (followed,) = follower_of(replicas, follower=1, leader=2).partitions
    assert followed.state is not FollowingState.STOPPED
    replicas.wait(1000)
    replicas.settle()
    assert replicas[1].bytes() == replicas[2].bytes()


def test_segments_are_not_larger_than_their_topic_says() -> None:
    replicas = Replicas((1, 2), segment_bytes="150")
    for number in range(10):
        replicas.append(f"{number}")
    replicas.settle(rounds=30)
    log = replicas[2].partition.log
    assert replicas[2].bytes() == replicas[1].bytes()
    assert all(segment.size <= 150 for segment in log.segments)


def test_a_follower_that_was_restarted_goes_on_where_it_was() -> None:
    replicas = Replicas()
    replicas.append("a", "b")
    replicas.settle()
    replicas[2].restart()
    replicas.publish(2)
    replicas.append("c")
    replicas.settle()
    assert replicas[2].bytes() == replicas[1].bytes()


# What a new leader knows of producers


def produced(sequence: int, *values: str, **options: object) -> bytes:
    records = [Record(key=None, value=each.encode(), timestamp=NOW_MS) for each in values]
    return encode_batch(records, producer_id=7, producer_epoch=0, base_sequence=sequence, **options)  # type: ignore[arg-type]


def test_a_new_leader_knows_what_a_producer_has_sent_to_the_old_one() -> None:
    replicas = Replicas()
    partition = replicas.leader.partition
    for sequence in (0, 2, 4):
        partition.append_as_leader(produced(sequence, "a", "b"), NOW_MS, 1)
    replicas.settle()
    replicas.elect(2)
    again = replicas.leader.partition.append_as_leader(produced(2, "a", "b"), NOW_MS, 1)
    assert (again.is_duplicate, again.first_offset) == (True, 2)
    with pytest.raises(ApiError, match="sequence"):
        replicas.leader.partition.append_as_leader(produced(9, "gap"), NOW_MS, 1)
    replicas.leader.partition.append_as_leader(produced(6, "next"), NOW_MS, 1)


def test_what_was_cut_off_of_a_producer_is_sent_again() -> None:
    replicas = Replicas()
    replicas.leader.partition.append_as_leader(produced(0, "a"), NOW_MS, 1)
    replicas.settle()
    replicas.leader.partition.append_as_leader(produced(1, "lost"), NOW_MS, 1)
    replicas.elect(2, (2, 3))
    again = replicas.leader.partition.append_as_leader(produced(1, "lost"), NOW_MS, 1)
    assert not again.is_duplicate
    replicas.settle()
    assert replicas[1].bytes() == replicas[2].bytes()
    replicas.elect(1)
    once_more = replicas.leader.partition.append_as_leader(produced(1, "lost"), NOW_MS, 1)
    assert once_more.is_duplicate


def test_a_transaction_that_is_open_is_open_at_the_next_leader() -> None:
    replicas = Replicas((1, 2))
    replicas.append("a")
    records = produced(0, "in a transaction", is_transactional=True)
    replicas.leader.partition.append_as_leader(records, NOW_MS, 1, AppendOrigin.COORDINATOR)
    replicas.settle()
    replicas.elect(2)
    assert replicas.leader.partition.high_watermark == 2
    assert replicas.leader.partition.last_stable_offset == 1


def small_batches(count: int, size: int = 1) -> bytes:
    records = [Record(key=None, value=bytes(size), timestamp=1)]
    return b"".join(encode_batch(records, base_offset=index, partition_leader_epoch=0) for index in range(count))


def test_many_small_batches_are_appended_in_turns() -> None:
    replicas = Replicas((1, 2))
    follower = follower_of(replicas)
    follower.next_request(0, 102)
    given = answer(high_watermark=0, log_start_offset=0, records=small_batches(3_500))
    ends = [replicas[2].partition.log.log_end_offset for _ in follower.take_answer(given, 0, NOW_MS)]
    assert ends[:3] == [1000, 2000, 3000]
    assert asked(follower.next_request(0, 102)) == [(3500, 0, 0)]


@pytest.mark.parametrize("is_followed_again", [True, False])
def test_what_is_left_of_an_answer_is_not_for_a_partition_that_is_followed_anew(is_followed_again: bool) -> None:
    replicas = Replicas((1, 2))
    follower = follower_of(replicas)
    follower.next_request(0, 102)
    partition = replicas[2].partition
    taking = follower.take_answer(answer(high_watermark=0, log_start_offset=0, records=small_batches(3_500)), 0, NOW_MS)
    next(taking)
    follower.unfollow(partition)
    if is_followed_again:
        truncate(partition, 10)
        follower.follow(partition)
    for _ in taking:
        pass
    assert partition.log.log_end_offset == (10 if is_followed_again else 1000)
    assert asked(follower.next_request(0, 102)) == ([(10, 0, 0)] if is_followed_again else [])


def test_damage_behind_the_first_thousand_batches_leaves_those_in_the_log() -> None:
    replicas = Replicas((1, 2))
    follower = follower_of(replicas)
    follower.next_request(0, 102)
    records = bytearray(small_batches(1_500))
    records[-1] ^= 1
    follower.answered(answer(high_watermark=0, log_start_offset=0, records=bytes(records)), 0, NOW_MS)
    assert replicas[2].partition.log.log_end_offset == 1000
    assert asked(follower.next_request(100_000, 102)) == [(1000, 0, 0)]
