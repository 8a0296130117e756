"""KIP-227 as tables: what a request reads, what its answer names, and which session it leaves behind."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from pykbroker.replication import fetch_session
from pykbroker.replication.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    MAX_EPOCH,
    MIN_EVICTION_AGE_MS,
    FetchAnswer,
    FetchSessionCache,
    next_epoch,
)
from pykbroker.replication.reads import FetchPartitionData

NAMES = {b"a" * 16: "apples", b"b" * 16: "beets"}
APPLES, BEETS, UNKNOWN = b"a" * 16, b"b" * 16, b"u" * 16


def request(
    session_id: int = 0,
    epoch: int = INITIAL_EPOCH,
    partitions: dict[str, list[int]] | None = None,
    forget: dict[str, list[int]] | None = None,
    offset: int = 0,
) -> FetchRequest:
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(topic=name, partitions=[FetchPartition(partition=i, fetch_offset=offset) for i in indexes])
            for name, indexes in (partitions or {}).items()
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic=name, partitions=indexes) for name, indexes in (forget or {}).items()
        ],
    )


def request_by_id(session_id: int, epoch: int, partitions: dict[bytes, list[int]]) -> FetchRequest:
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition=i) for i in indexes])
            for topic_id, indexes in partitions.items()
        ],
    )


def data(
    high_watermark: int = 0, size: int = 0, error: ErrorCode = ErrorCode.NONE, start: int = 0
) -> FetchPartitionData:
    return FetchPartitionData(error, high_watermark, high_watermark, start, bytes(size), size)


class Client:
    """Sends requests to one cache and answers every partition that it is asked for."""

    def __init__(self, max_slots: int = 1000, version: int = 12) -> None:
        self.sessions = FetchSessionCache(random.Random(1), max_slots)
        self.version = version
        self.names = dict(NAMES)
        self.asked: list[tuple[str | None, int]] = []
        self.asked_offsets: list[int] = []

    def send(
        self,
        message: FetchRequest,
        answers: Mapping[Any, FetchPartitionData] | None = None,
        *,
        now_ms: int = 0,
        version: int | None = None,
        from_follower: bool = False,
    ) -> FetchAnswer:
        context = self.sessions.new_context(
            message, version or self.version, self.names.get, now_ms, from_follower=from_follower
        )
        partitions = list(context.partitions())
        self.asked = [(each.topic, each.partition) for each in partitions]
        self.asked_offsets = [each.request.fetch_offset for each in partitions]
        given: Mapping[Any, FetchPartitionData] = answers or {}
        return context.finish([(each, given.get((each.topic, each.partition), data())) for each in partitions], now_ms)


def named(answer: FetchAnswer) -> list[tuple[str | None, int]]:
    return [(partition.topic, partition.partition) for partition, _ in answer.partitions]


def test_epochs_go_round_without_the_initial_one() -> None:
    assert [next_epoch(each) for each in (0, 1, MAX_EPOCH, FINAL_EPOCH)] == [1, 2, 1, FINAL_EPOCH]


def test_a_full_request_reads_everything_and_opens_a_session() -> None:
    client = Client()
    answer = client.send(request(partitions={"apples": [0, 1], "beets": [0]}))
    assert client.asked == [("apples", 0), ("apples", 1), ("beets", 0)]
    assert named(answer) == client.asked
    assert answer.error_code is ErrorCode.NONE
    assert answer.session_id > 0
    session = client.sessions.get(answer.session_id)
    assert session is not None
    assert session.epoch == 1


def test_the_final_epoch_reads_everything_and_opens_none() -> None:
    client = Client()
    answer = client.send(request(0, FINAL_EPOCH, {"apples": [0]}))
    assert (answer.session_id, named(answer)) == (0, [("apples", 0)])
    assert len(client.sessions) == 0


@pytest.mark.parametrize(("epoch", "left"), [(FINAL_EPOCH, 0), (INITIAL_EPOCH, 1)])
def test_a_full_request_closes_the_session_that_it_names(epoch: int, left: int) -> None:
    client = Client()
    first = client.send(request(partitions={"apples": [0]}))
    second = client.send(request(first.session_id, epoch, {"apples": [0]}))
    assert client.sessions.get(first.session_id) is None
    assert len(client.sessions) == left
    assert second.session_id != first.session_id


def test_an_incremental_request_reads_all_and_names_only_what_changed() -> None:
    client = Client()
    opened = client.send(request(partitions={"apples": [0, 1], "beets": [0]}), {("apples", 0): data(5)})
    news = {
        ("apples", 0): data(5),  # known to the client already
        ("apples", 1): data(1, size=70),
        ("beets", 0): data(0),
    }
    answer = client.send(request(opened.session_id, 1), news)
    assert client.asked == [("apples", 0), ("apples", 1), ("beets", 0)]
    assert named(answer) == [("apples", 1)]
    assert answer.session_id == opened.session_id


@pytest.mark.parametrize(
    ("changed", "named_again"),
    [
        (data(3), False),
        (data(4), True),
        (data(3, start=1), True),
        (data(3, size=10), True),
        (data(3, error=ErrorCode.NOT_LEADER_OR_FOLLOWER), True),
    ],
)
def test_what_counts_as_a_change(changed: FetchPartitionData, named_again: bool) -> None:
    client = Client()
    opened = client.send(request(partitions={"apples": [0]}), {("apples", 0): data(3)})
    answer = client.send(request(opened.session_id, 1), {("apples", 0): changed})
    assert bool(answer.partitions) is named_again


def test_after_an_error_a_partition_is_named_again_although_nothing_moved() -> None:
    client = Client()
    opened = client.send(request(partitions={"apples": [0]}), {("apples", 0): data(3)})
    failed = FetchPartitionData(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    for epoch, answered, expected in ((1, failed, 1), (2, failed, 1), (3, data(3), 1), (4, data(3), 0)):
        answer = client.send(request(opened.session_id, epoch), {("apples", 0): answered})
        assert len(answer.partitions) == expected, epoch


def test_a_diverging_epoch_or_a_nearer_replica_is_always_told() -> None:
    client = Client()
    opened = client.send(request(partitions={"apples": [0]}))
    for epoch, news in ((1, {"diverging_epoch": (0, 4)}), (2, {"preferred_read_replica": 2})):
        told = FetchPartitionData(ErrorCode.NONE, 0, 0, 0, **news)  # type: ignore[arg-type]
        assert len(client.send(request(opened.session_id, epoch), {("apples", 0): told}).partitions) == 1


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("high_watermark", [0, 3])
def test_after_a_diverging_epoch_a_partition_is_named_again_although_nothing_moved(
    is_first: bool, high_watermark: int
) -> None:
    client = Client()
    unmoved = data(high_watermark)
    diverging = FetchPartitionData(ErrorCode.NONE, high_watermark, high_watermark, 0, diverging_epoch=(0, 4))
    opened = client.send(request(partitions={"apples": [0]}), {("apples", 0): diverging if is_first else unmoved})
    answers = [unmoved, unmoved] if is_first else [diverging, unmoved, unmoved]
    named_in = [
        len(client.send(request(opened.session_id, epoch), {("apples", 0): answered}).partitions)
        for epoch, answered in enumerate(answers, 1)
    ]
    assert named_in == ([1, 0] if is_first else [1, 1, 0])


def test_an_incremental_request_adds_updates_and_forgets() -> None:
    client = Client()
    opened = client.send(request(partitions={"apples": [0, 1]}))
    change = request(opened.session_id, 1, {"apples": [1], "beets": [3]}, {"apples": [0], "nothing": [9]}, offset=42)
    answer = client.send(change)
    assert client.asked == [("apples", 1), ("beets", 3)]
    assert client.asked_offsets == [42, 42]
    assert named(answer) == [("beets", 3)], "a new partition is answered, even without anything to read"


def test_a_session_without_partitions_is_closed() -> None:
    client = Client()
    opened = client.send(request(partitions={"apples": [0]}))
    answer = client.send(request(opened.session_id, 1, forget={"apples": [0]}))
    assert (answer.error_code, answer.session_id, list(answer.partitions)) == (ErrorCode.NONE, 0, [])
    assert len(client.sessions) == 0


def test_a_partition_that_gave_records_goes_behind_the_others() -> None:
    client = Client()
    opened = client.send(request(partitions={"apples": [0, 1, 2]}))
    client.send(request(opened.session_id, 1), {("apples", 0): data(1, size=9), ("apples", 1): data(1)})
    client.send(request(opened.session_id, 2))
    assert client.asked == [("apples", 1), ("apples", 2), ("apples", 0)]


@pytest.mark.parametrize(
    ("session_id", "epoch", "version", "error"),
    [
        (99, 1, 12, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (0, 1, 12, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (None, 2, 12, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (None, -2, 12, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (None, 1, 13, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_session_errors_read_nothing(session_id: int | None, epoch: int, version: int, error: ErrorCode) -> None:
    client = Client()
    opened = client.send(request(partitions={"apples": [0]}))
    wrong = request(opened.session_id if session_id is None else session_id, epoch, {"apples": [0]})
    answer = client.send(wrong, version=version)
    assert (answer.error_code, answer.session_id, list(answer.partitions)) == (error, 0, [])
    assert client.asked == []
    assert client.send(request(opened.session_id, 1)).error_code is ErrorCode.NONE, "the session itself is unharmed"


def test_of_two_requests_with_one_epoch_the_later_one_fails() -> None:
    client = Client()
    opened = client.send(request(partitions={"apples": [0]}))
    assert client.send(request(opened.session_id, 1)).error_code is ErrorCode.NONE
    assert client.send(request(opened.session_id, 1)).error_code is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_request_that_waited_while_its_session_went_on_is_not_answered_with_data() -> None:
    client = Client()
    opened = client.send(request(partitions={"apples": [0]}))
    waiting = client.sessions.new_context(request(opened.session_id, 1), 12, client.names.get, 0)
    partitions = list(waiting.partitions())
    assert client.send(request(opened.session_id, 2)).error_code is ErrorCode.NONE
    answer = waiting.finish([(each, data(1, size=5)) for each in partitions], 0)
    assert (answer.error_code, answer.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, opened.session_id)
    assert list(answer.partitions) == []


def test_topics_are_found_by_id_since_version_13_also_later() -> None:
    client = Client(version=13)
    opened = client.send(request_by_id(0, INITIAL_EPOCH, {APPLES: [0], UNKNOWN: [0, 1]}))
    assert client.asked == [("apples", 0), (None, 0), (None, 1)]
    client.names[UNKNOWN] = "unknown no more"
    client.send(request_by_id(opened.session_id, 1, {}))
    assert client.asked == [("apples", 0), ("unknown no more", 0), ("unknown no more", 1)]


def test_topic_ids_that_are_unknown_do_not_mix() -> None:
    client = Client(version=13)
    client.names = {}
    opened = client.send(request_by_id(0, INITIAL_EPOCH, {APPLES: [0], BEETS: [0]}))
    session = client.sessions.get(opened.session_id)
    assert session is not None
    assert len(session.cached) == 2


def test_a_partition_that_is_named_twice_counts_as_named_last() -> None:
    client = Client()
    twice = request(partitions={"apples": [0, 0]})
    twice.topics[0].partitions[1].fetch_offset = 7
    client.send(twice)
    assert client.asked_offsets == [7]


def fill(client: Client, sizes: list[int], now_ms: int = 0) -> list[int]:
    return [client.send(request(partitions={"apples": list(range(size))}), now_ms=now_ms).session_id for size in sizes]


def test_without_a_free_slot_a_young_session_stays_and_the_new_request_gets_none() -> None:
    client = Client(max_slots=2)
    first, second = fill(client, [1, 1])
    answer = client.send(request(partitions={"apples": list(range(50))}))
    assert (answer.session_id, len(answer.partitions)) == (0, 50)
    assert client.sessions.get(first)
    assert client.sessions.get(second)


def test_a_session_that_was_not_used_for_long_gives_way() -> None:
    client = Client(max_slots=2)
    first, second = fill(client, [5, 5])
    client.send(request(first, 1), now_ms=MIN_EVICTION_AGE_MS)
    (third,) = fill(client, [1], now_ms=MIN_EVICTION_AGE_MS + 1)
    assert third != 0
    assert client.sessions.get(second) is None
    assert client.sessions.get(first) is not None
    assert client.sessions.evictions == 1


@pytest.mark.parametrize(("size", "evicts"), [(2, False), (4, True)])
def test_an_old_session_in_use_gives_way_to_a_larger_one_only(size: int, evicts: bool) -> None:
    client = Client(max_slots=2)
    small, large = fill(client, [3, 9])
    later = MIN_EVICTION_AGE_MS + 1
    for session_id in (small, large):
        client.send(request(session_id, 1), now_ms=later)
    (new,) = fill(client, [size], now_ms=later)
    assert (new != 0) is evicts
    assert (client.sessions.get(small) is None) is evicts
    assert client.sessions.get(large) is not None


def test_a_follower_takes_the_slot_of_a_young_consumer() -> None:
    client = Client(max_slots=1)
    (consumer,) = fill(client, [9])
    follower = client.send(request(partitions={"apples": [0]}), from_follower=True)
    assert follower.session_id != 0
    assert client.sessions.get(consumer) is None
    assert client.send(request(partitions={"apples": [0]}), from_follower=True).session_id == 0


def test_without_slots_there_are_no_sessions() -> None:
    assert fill(Client(max_slots=0), [1]) == [0]


def large(count: int, session_id: int = 0, epoch: int = 0, start: int = 0) -> FetchRequest:
    return request(session_id, epoch, partitions={"apples": list(range(start, start + count))})


def bounded_client(max_partitions: int) -> Client:
    client = Client()
    client.sessions.max_partitions = max_partitions
    return client


def test_where_sessions_hold_too_much_the_largest_gives_way() -> None:
    client = bounded_client(100)
    small, middle, largest = (client.send(large(count)).session_id for count in (20, 30, 45))
    newest = client.send(large(10)).session_id
    assert [client.sessions.get(each) is not None for each in (small, middle, largest, newest)] == [
        True,
        True,
        False,
        True,
    ]
    assert client.sessions.partitions == 60


def test_who_wants_most_gets_no_session_but_all_answers() -> None:
    client = bounded_client(100)
    others = [client.send(large(30)).session_id for _ in range(3)]
    answer = client.send(large(31))
    assert (answer.session_id, len(answer.partitions)) == (0, 31)
    assert all(client.sessions.get(each) is not None for each in others)


def test_consumers_give_way_to_a_follower_and_not_the_other_way_round() -> None:
    client = bounded_client(100)
    consumer = client.send(large(50)).session_id
    follower = client.send(large(80), from_follower=True).session_id
    assert client.sessions.get(consumer) is None
    assert client.send(large(30)).session_id == 0
    assert client.sessions.get(follower) is not None


def test_a_session_that_grows_beyond_the_room_ends() -> None:
    """The client opens another one, or does without."""
    client = bounded_client(100)
    other = client.send(large(40)).session_id
    session = client.send(large(50)).session_id
    grown = client.send(large(30, session, 1, start=50))
    assert grown.error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert client.sessions.get(other) is not None
    assert client.sessions.partitions == 40


def test_a_session_that_grows_takes_the_room_of_a_larger_one() -> None:
    client = bounded_client(100)
    largest = client.send(large(60)).session_id
    session = client.send(large(20)).session_id
    grown = client.send(large(30, session, 1, start=20))
    assert grown.error_code is ErrorCode.NONE
    assert client.sessions.get(largest) is None
    assert client.sessions.partitions == 50


def test_no_session_holds_more_than_can_be_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_session, "MOST_PARTITIONS_OF_ONE", 50)
    client = Client()
    assert client.send(large(51)).session_id == 0
    session = client.send(large(50)).session_id
    assert client.send(large(1, session, 1, start=50)).error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("seed", range(5))
def test_the_partitions_of_all_sessions_are_counted(seed: int) -> None:
    chance = random.Random(seed)
    client = bounded_client(60)
    sessions: dict[int, int] = {}
    for _ in range(300):
        session, epoch = chance.choice(list(sessions.items()) or [(0, 0)])
        if chance.random() < 0.4:
            session, epoch = chance.choice([session, 0]), chance.choice([0, FINAL_EPOCH])
        start = chance.randrange(20)
        forget = {"apples": list(range(chance.randrange(30)))} if epoch > 0 else None
        named_now = {"apples": list(range(start, start + chance.randrange(25)))}
        message = request(session, epoch, partitions=named_now, forget=forget)
        answer = client.send(message, from_follower=chance.random() < 0.3)
        sessions.pop(session, None)
        if answer.session_id and answer.error_code is ErrorCode.NONE:
            sessions[answer.session_id] = epoch + 1
        kept = [found for each in sessions if (found := client.sessions.get(each)) is not None]
        assert client.sessions.partitions == sum(len(each.cached) for each in kept) <= 60
