"""A follower's fetch session reads what has changed, and its quiet partitions stay in sync all the same."""

from __future__ import annotations

from itertools import zip_longest
from random import Random

import pytest

from pykbroker.long_work import PORTION, LongWork, whole
from pykbroker.protocol.compile import encode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from pykbroker.replication.fetch_session import MIN_EVICTION_AGE_MS, FetchContext, FetchSessionCache
from pykbroker.replication.partition import Partition
from pykbroker.replication.reads import FetchPartitionData
from pykbroker.replication.session_watch import SessionWatch
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.log.log import Log, LogConfig

from .brokers import FixedBrokers, Proposals
from .replicas import LAG_TIME_MAX_MS, NOW_MS, TOPIC, TOPIC_ID, VERSION, Replicas, State

LARGE = 2 * PORTION + 500


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
    assert waiting.watched.watch.take_changes() == [(TOPIC_ID, 0)]
    assert not waiting.finish([], replicas.now_ms).partitions
    assert [each.partition for each in waiting.partitions()] == [0]


def test_the_next_answer_s_bytes_go_first_to_those_that_had_none() -> None:
    watch = SessionWatch()
    for index in range(3):
        watch.named((TOPIC_ID, index))
    watch.answered([(TOPIC_ID, 0)])
    assert watch.unsettled() == [(TOPIC_ID, index) for index in (1, 2, 0)]


def test_what_an_answer_that_does_not_count_said_is_said_again(replicas: Replicas) -> None:
    replicas.leader.partition.delete_records(1)
    overtaken = begin_request(replicas, 2)
    session = overtaken.watched
    assert session is not None
    (cached,) = overtaken.partitions()
    data = replicas.leader.partition.read_as_replica(2, 1, 100, 0, log_start_offset=0, now_ms=0, broker_epoch=102)
    session.was_read(cached, replicas.leader.partition, data, 2)
    session.session.epoch += 1  # a request on another connection
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


# Requests that were overtaken


def offset_of(replicas: Replicas, follower_id: int) -> int:
    return replicas.leader.partition.in_sync.followers[follower_id].log_end_offset


def ask_anew(replicas: Replicas, follower_id: int) -> None:
    """The follower breaks its long poll off, and begins another session."""
    replicas[follower_id].follower_of(1).interrupted()
    replicas.fetch(follower_id)


def test_what_is_read_again_for_a_request_tells_nothing_of_its_follower(replicas: Replicas) -> None:
    partition = replicas.leader.partition
    replicas.append("b")
    replicas.settle()
    data = partition.read_as_replica(2, 1, 100, 0, now_ms=0, broker_epoch=102, counts=False)
    assert data.records_size
    assert (offset_of(replicas, 2), partition.high_watermark) == (2, 2)


def test_a_request_of_a_session_that_was_replaced_watches_and_settles_nothing(replicas: Replicas) -> None:
    broken_off = begin_request(replicas, 2).watched
    assert broken_off is not None
    ask_anew(replicas, 2)
    assert broken_off.is_overtaken
    partition, watched = replicas.leader.partition, dict(replicas.leader.partition.watchers)
    (cached,) = broken_off.session.cached.values()
    data = partition.read_as_replica(2, 1, 100, 0, now_ms=0, broker_epoch=102, counts=False)
    broken_off.was_read(cached, partition, data, 2)
    assert partition.watchers == watched
    assert not broken_off.watch.unsettled() or broken_off.watch.is_closed


def test_a_request_that_waits_is_told_that_another_one_of_its_session_came(replicas: Replicas) -> None:
    waiting = begin_request(replicas, 2).watched
    assert waiting is not None
    woken: list[bool] = []
    waiting.watch.on_change = lambda: woken.append(waiting.is_overtaken)
    following = FetchRequest(
        session_id=waiting.session.id,
        session_epoch=waiting.session.epoch,
        replica_state=ReplicaState(replica_id=2, replica_epoch=102),
    )
    sessions = replicas.leader.sessions
    sessions.new_context(following, VERSION, lambda _: TOPIC, replicas.now_ms, from_follower=True)
    assert woken == [True]


def test_who_was_taken_back_by_a_late_request_says_where_it_is_once_more(replicas: Replicas) -> None:
    """Two connections have no order: a request that was broken off may be read behind the one that replaced it."""
    follower = replicas[2].follower_of(1)
    follower.interrupted()
    late = follower.next_request(replicas.now_ms, 102)
    assert late is not None
    replicas.append("b")
    replicas.fetch(3)
    replicas.fetch(3)
    follower.interrupted()
    for _ in range(3):
        replicas.fetch(2)
    assert (offset_of(replicas, 2), replicas.leader.partition.high_watermark) == (2, 2)
    replicas.leader.answer_fetch(encode(late, VERSION), replicas.now_ms)
    assert offset_of(replicas, 2) == 1
    replicas.fetch(2)
    assert offset_of(replicas, 2) == 2


def test_a_session_settles_only_what_it_said_itself(replicas: Replicas) -> None:
    """Another request said that the follower has everything: of this session that is not known."""
    replicas.append("b")
    replicas.settle()
    partition, session = replicas.leader.partition, SessionWatch()
    data = partition.read_as_replica(2, 1, 100, 0, now_ms=0, broker_epoch=102, counts=False)
    session.was_read((TOPIC_ID, 0), partition, data, 2, 1)
    session.answered([])
    assert session.unsettled() == [(TOPIC_ID, 0)]


# What a session leaves behind


def test_a_follower_that_begins_anew_again_and_again_leaves_nothing_behind(replicas: Replicas) -> None:
    leader, follower = replicas.leader, replicas[2].follower_of(1)
    before = len(leader.partition.watchers)
    for _ in range(20):
        replicas.fetch(2)
        replicas.fetch(2)
        follower.failed(replicas.now_ms)
        replicas.wait(1001)
    assert len(leader.partition.watchers) <= before
    assert len(leader.sessions) == 2


def test_an_evicted_session_watches_nothing_and_counts_for_nobody(replicas: Replicas) -> None:
    leader = replicas.leader
    leader.sessions.max_slots = 2
    replicas.wait(MIN_EVICTION_AGE_MS + 1)
    replicas.fetch(3)
    request = FetchRequest(session_epoch=0, topics=[FetchTopic(topic_id=TOPIC_ID, partitions=[FetchPartition()])])
    opening = leader.sessions.new_context(request, VERSION, lambda _: TOPIC, replicas.now_ms, from_follower=True)
    (cached,) = opening.partitions()
    opening.finish([(cached, FetchPartitionData())], replicas.now_ms)
    assert leader.sessions.evictions == 1
    assert len(leader.partition.watchers) == 1
    assert leader.partition.in_sync.followers[2].quiet_in is None


def test_a_session_without_its_connection_watches_nothing_and_goes_on_elsewhere(replicas: Replicas) -> None:
    watched = begin_request(replicas, 2).watched
    assert watched is not None
    watched.watch.release()
    whole(watched.watch.let_go())
    assert len(replicas.leader.partition.watchers) == 1
    assert watched.watch.unsettled() == [(TOPIC_ID, 0)]


# A large session


class Large:
    """A session of a follower that has everything of many partitions, which have one log together."""

    def __init__(self) -> None:
        self.rules = Proposals(FixedBrokers({1: 101, 2: 102})).rules()
        self.log = Log.open(SimulatedDisk(Random(1)), "/apples-0", LogConfig(), now_ms=NOW_MS)
        self.partitions = {(TOPIC_ID, index): self.partition(index) for index in range(LARGE)}
        self.sessions = FetchSessionCache(Random(1))
        asked = [FetchPartition(partition=index) for index in range(LARGE)]
        self.session_id = self.ask(
            FetchRequest(session_epoch=0, topics=[FetchTopic(topic_id=TOPIC_ID, partitions=asked)])
        )
        for epoch in (1, 2):
            self.ask(self.following(epoch))
        assert self.quiet == self.watched == LARGE

    def partition(self, index: int) -> Partition:
        partition = Partition(TOPIC, TOPIC_ID, index, self.log, 1, self.rules)
        partition.apply_state(State(1, 0, 0, (1, 2), (1, 2)), 0)
        return partition

    def following(self, epoch: int, broker_epoch: int = 102) -> FetchRequest:
        replica = ReplicaState(replica_id=2, replica_epoch=broker_epoch)
        return FetchRequest(session_id=self.session_id, session_epoch=epoch, replica_state=replica)

    def begin(self, request: FetchRequest, now_ms: int = 0) -> LongWork[FetchContext]:
        return self.sessions.new_context_in_portions(request, VERSION, lambda _: TOPIC, now_ms, from_follower=True)

    def ask(self, request: FetchRequest) -> int:
        return self.answer(whole(self.begin(request)))

    def answer(self, context: FetchContext) -> int:
        answers = []
        for cached in context.partitions():
            partition = self.partitions[TOPIC_ID, cached.partition]
            data = partition.read_as_replica(2, 0, 100, log_start_offset=0, now_ms=0, broker_epoch=102)
            if context.watched is not None:
                context.watched.was_read(cached, partition, data, 2)
            answers.append((cached, data))
        return context.finish(answers, 0).session_id

    @property
    def watch(self) -> SessionWatch:
        session = self.sessions.get(self.session_id)
        assert session is not None
        assert session.watch is not None
        return session.watch

    @property
    def watched(self) -> int:
        return sum(len(each.watchers) for each in self.partitions.values())

    @property
    def quiet(self) -> int:
        followers = [each.in_sync.followers[2] for each in self.partitions.values()]
        return sum(each.quiet_in is not None for each in followers)


def in_portions(large: Large, work: LongWork[FetchContext]) -> FetchContext:
    """None of which lets go of more than some."""
    while True:
        before = large.watched
        try:
            next(work)
        except StopIteration as done:
            context: FetchContext = done.value
            return context
        finally:
            assert before - large.watched <= PORTION


@pytest.mark.parametrize("how", ["it asks with a new broker epoch", "it begins another session", "its room is taken"])
def test_a_large_session_lets_go_in_portions_of_what_it_watched(how: str) -> None:
    large = Large()
    if how == "it asks with a new broker epoch":
        context = in_portions(large, large.begin(large.following(3, broker_epoch=103)))
        assert len(list(context.partitions())) == LARGE
    elif how == "it begins another session":
        asked = FetchTopic(topic_id=TOPIC_ID, partitions=[FetchPartition()])
        in_portions(large, large.begin(FetchRequest(session_id=large.session_id, session_epoch=0, topics=[asked])))
        assert large.sessions.get(large.session_id) is None
    else:
        large.sessions.max_slots = 1
        asked = FetchTopic(topic_id=TOPIC_ID, partitions=[FetchPartition()])
        late_ms = MIN_EVICTION_AGE_MS + 1
        context = in_portions(large, large.begin(FetchRequest(session_epoch=0, topics=[asked]), late_ms))
        for _ in context.finish_in_portions([(each, FetchPartitionData()) for each in context.partitions()], late_ms):
            pass
        assert large.sessions.evictions == 1
    assert large.watched == large.quiet == 0


def test_what_is_not_let_go_of_yet_says_nothing_new_of_a_follower() -> None:
    large = Large()
    large.watch.release()
    assert large.watched == LARGE
    beginning = large.begin(large.following(3), LAG_TIME_MAX_MS + 1)
    next(beginning)
    assert 0 < large.watched < LARGE
    for partition in large.partitions.values():
        assert partition.in_sync.followers[2].caught_up_ms == 0
    partition = large.partitions[TOPIC_ID, 0]
    assert partition.watchers
    partition.notify()
    assert not partition.watchers
    assert large.watch.take_changes() == []
    large.answer(whole(beginning))
    assert large.watched == large.quiet == LARGE


def test_two_requests_let_go_of_the_same_without_harm() -> None:
    large = Large()
    watch = large.watch
    watch.close()
    one, other = watch.let_go(), watch.let_go()
    for first, second in zip_longest(one, other):
        assert first or second
    assert large.watched == large.quiet == 0
