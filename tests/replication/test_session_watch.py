"""A follower's fetch session reads what has changed, and its quiet partitions stay in sync all the same."""

from __future__ import annotations

import pytest

from pykbroker.protocol.compile import encode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchRequest, ForgottenTopic, ReplicaState
from pykbroker.replication.fetch_session import FetchContext
from pykbroker.replication.partition import Partition

from .replicas import LAG_TIME_MAX_MS, TOPIC, TOPIC_ID, VERSION, Replicas


@pytest.fixture
def replicas() -> Replicas:
    """Everybody is in sync, and nothing is new."""
    replicas = Replicas()
    replicas.append("a")
    replicas.settle()
    return replicas


def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by a replica's id whenever a partition is read for it."""
    read = Partition.read_as_replica
    seen: list[int] = []

    def count(self: Partition, replica_id: int, *rest: object, **how: object) -> object:
        seen.append(replica_id)
        return read(self, replica_id, *rest, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(Partition, "read_as_replica", count)
    return seen


def begin_request(replicas: Replicas, follower_id: int) -> FetchContext:
    """What the leader makes of the follower's next request; the answer is still to come."""
    request = replicas[follower_id].follower_of(1).next_request(replicas.now_ms, replicas.brokers.epochs[follower_id])
    assert request is not None
    sessions = replicas.leader.sessions
    return sessions.new_context(request, VERSION, lambda _: TOPIC, replicas.now_ms, from_follower=True)


def test_a_quiet_partition_is_not_read_and_its_followers_stay_in_sync(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = reads(monkeypatch)
    for _ in range(10):
        replicas.wait(LAG_TIME_MAX_MS // 2)
        replicas.fetch(2)
        replicas.fetch(3)
    assert not seen
    replicas.append("b")
    replicas.wait(LAG_TIME_MAX_MS)
    replicas.leader.partition.maybe_shrink_isr(replicas.now_ms)
    assert not replicas.leader.proposals.proposed
    replicas.settle()
    assert set(seen) == {2, 3}
    assert [replicas[each].partition.high_watermark for each in (1, 2, 3)] == [2, 2, 2]


def test_who_asks_no_more_falls_out_though_nothing_was_new_for_long(replicas: Replicas) -> None:
    for _ in range(10):
        replicas.wait(LAG_TIME_MAX_MS // 2)
        replicas.fetch(2)
    replicas.append("b")
    replicas.leader.partition.maybe_shrink_isr(replicas.now_ms)
    (proposed,) = replicas.answer_proposals(1)
    assert proposed.isr == (1, 2)


def test_who_is_not_in_sync_is_looked_at_each_time_until_it_may_join(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = reads(monkeypatch)
    joining = replicas.brokers.epochs.pop(3)  # the leader does not know yet that it is unfenced
    replicas.decide(isr=(1, 2))
    for _ in range(3):
        replicas.fetch(3)
    assert seen == [3, 3, 3]
    assert not replicas.leader.proposals.proposed
    replicas.brokers.epochs[3] = joining
    replicas.settle()
    assert replicas.leader.partition.isr == (1, 2, 3)


def test_what_changes_while_an_answer_is_made_is_told_by_the_next(replicas: Replicas) -> None:
    waiting = begin_request(replicas, 2)
    assert list(waiting.partitions()) == []
    replicas.append("b")
    assert waiting.watched is not None
    assert waiting.watched.watch is not None
    assert waiting.watched.watch.take_changes() == [(TOPIC_ID, 0)]
    assert not waiting.finish([], replicas.now_ms).partitions
    assert [each.partition for each in waiting.partitions()] == [0]


def test_what_an_answer_that_does_not_count_said_is_said_again(replicas: Replicas) -> None:
    replicas.leader.partition.delete_records(1)
    overtaken = begin_request(replicas, 2)
    session = overtaken.watched
    assert session is not None
    (cached,) = overtaken.partitions()
    data = replicas.leader.partition.read_as_replica(2, 1, 100, 0, log_start_offset=0, now_ms=0, broker_epoch=102)
    session.was_read(cached, replicas.leader.partition, data, 2)
    session.epoch += 1  # a request on another connection
    assert overtaken.finish([(cached, data)], 0).error_code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert list(overtaken.partitions()) == [cached]


def test_a_partition_that_is_forgotten_is_in_sync_no_longer_than_it_was_asked_for(replicas: Replicas) -> None:
    follower = replicas[2].follower_of(1)
    following = follower.next_request(0, 102)
    assert following is not None
    kept = FetchRequest(
        session_id=following.session_id,
        session_epoch=following.session_epoch,
        replica_state=ReplicaState(replica_id=2, replica_epoch=102),
        forgotten_topics_data=[ForgottenTopic(topic_id=TOPIC_ID, partitions=[0])],
    )
    replicas.wait(LAG_TIME_MAX_MS + 1)
    replicas.fetch(3)
    replicas.leader.answer_fetch(encode(kept, VERSION), replicas.now_ms)
    assert len(replicas.leader.partition.watchers) == 1
    replicas.append("b")
    replicas.leader.partition.maybe_shrink_isr(replicas.now_ms)
    (proposed,) = replicas.answer_proposals(1)
    assert proposed.isr == (1, 3)


class AppendsWhenTold:
    """As a coordinator that has waited for the high watermark to write its next batch."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    def partition_changed(self, partition: Partition) -> None:
        partition.watchers.pop(self)
        self._replicas.append("c")


def test_who_appends_as_it_is_told_of_a_change_disturbs_nobody(replicas: Replicas) -> None:
    partition = replicas.leader.partition
    partition.watchers = {AppendsWhenTold(replicas): None, **partition.watchers}
    replicas.append("b")
    replicas.settle()
    assert [replicas[each].partition.high_watermark for each in (1, 2, 3)] == [3, 3, 3]
