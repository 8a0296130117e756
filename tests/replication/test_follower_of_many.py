"""A follower of thousands of partitions: each of its requests names some of them, and the leader's session all."""

from __future__ import annotations

from random import Random

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from pykbroker.replication.fetch_settings import FetchSettings
from pykbroker.replication.follower import NAMED_AT_ONCE, Follower
from pykbroker.replication.partition import Partition
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.log.log import Log, LogConfig

from .brokers import Proposals
from .replicas import NOW_MS, TOPIC, TOPIC_ID, State

MANY = 2 * NAMED_AT_ONCE + 500
WAIT_MS = 500


def follower_of_many() -> Follower:
    """Of empty partitions, which have one log together."""
    log = Log.open(SimulatedDisk(Random(1)), "/apples-0", LogConfig(), now_ms=NOW_MS)
    follower = Follower(2, FetchSettings(wait_max_ms=WAIT_MS), lambda _, failure: None)
    for index in range(MANY):
        partition = Partition(TOPIC, TOPIC_ID, index, log, 2, Proposals().rules())
        partition.apply_state(State(1, 0, 0, (1, 2), (1, 2)), 0)
        follower.follow(partition)
    return follower


def named(request: FetchRequest | None) -> list[int]:
    assert request is not None
    return [each.partition for topic in request.topics for each in topic.partitions]


def ask(follower: Follower, session_id: int) -> FetchRequest:
    request = follower.next_request(0, 1)
    assert request is not None
    follower.answered(FetchResponse(session_id=session_id), 0, NOW_MS)
    return request


def test_requests_name_some_each_without_a_wait_until_all_are_named() -> None:
    follower = follower_of_many()
    requests = [ask(follower, session_id=7) for _ in range(4)]
    sizes = [len(named(each)) for each in requests]
    assert sizes == [NAMED_AT_ONCE, NAMED_AT_ONCE, 500, 0]
    assert sorted(index for each in requests for index in named(each)) == list(range(MANY))
    assert [each.session_epoch for each in requests] == [0, 1, 2, 3]
    assert [each.max_wait_ms for each in requests] == [0, 0, WAIT_MS, WAIT_MS]


def test_a_session_that_begins_anew_names_all_again() -> None:
    follower = follower_of_many()
    ask(follower, session_id=7)
    follower.interrupted()
    requests = [ask(follower, session_id=8) for _ in range(3)]
    assert sorted(index for each in requests for index in named(each)) == list(range(MANY))
    assert [each.session_epoch for each in requests] == [0, 1, 2]


def test_without_a_session_all_have_their_turn_in_the_time_of_one_request() -> None:
    follower = follower_of_many()
    ask(follower, session_id=0)
    requests = [ask(follower, session_id=0) for _ in range(5)]
    assert {index for each in requests[:3] for index in named(each)} == set(range(MANY))
    assert [len(named(each)) for each in requests] == [NAMED_AT_ONCE] * 5
    assert all(each.session_epoch == 0 for each in requests)
    waits = [each.max_wait_ms for each in requests]
    assert min(waits) > 0
    assert sum(waits[:3]) <= 2 * WAIT_MS


def test_after_a_failure_there_is_nothing_to_ask_before_the_delay_is_over() -> None:
    follower = follower_of_many()
    for _ in range(3):
        ask(follower, session_id=7)
    follower.failed(0)
    for _ in range(MANY // NAMED_AT_ONCE + 1):
        assert follower.next_request(0, 1) is None
    assert not follower.has_more_to_tell
    deadline_ms = follower.next_deadline_ms()
    assert deadline_ms is not None
    request = follower.next_request(deadline_ms, 1)
    assert request is not None
    assert (len(named(request)), request.session_epoch) == (NAMED_AT_ONCE, 0)


def test_partitions_that_are_let_go_of_are_forgotten_some_at_a_time() -> None:
    follower = follower_of_many()
    for _ in range(3):
        ask(follower, session_id=7)
    for followed in list(follower.partitions):
        follower.unfollow(followed.partition)
    requests = [ask(follower, session_id=7) for _ in range(3)]
    assert [sum(len(each.partitions) for each in request.forgotten_topics_data) for request in requests] == [
        NAMED_AT_ONCE,
        NAMED_AT_ONCE,
        500,
    ]
    assert follower.next_request(0, 1) is None


def test_where_the_leader_has_nothing_at_the_end_of_many_logs_it_is_asked_about_some_at_a_time() -> None:
    follower = follower_of_many()
    for _ in range(2):
        refused = [
            PartitionData(partition_index=index, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
            for index in named(follower.next_request(0, 1))
        ]
        responses = [FetchableTopicResponse(topic_id=TOPIC_ID, partitions=refused)]
        follower.answered(FetchResponse(session_id=7, responses=responses), 0, NOW_MS)
    request = follower.next_offsets_request()
    assert request is not None
    assert [len(topic.partitions) for topic in request.topics] == [NAMED_AT_ONCE]
