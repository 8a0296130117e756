"""ShareFetch and ShareAcknowledge: sessions, what is handed out, acknowledgements, and every error at its place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from pykbroker.api.share_acknowledge import share_acknowledge
from pykbroker.api.share_fetch import share_fetch
from pykbroker.metadata.image import GROUP_RESOURCE
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.metadata_records import (
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
)
from pykbroker.protocol.messages.share_groups import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchResponsePartitionData,
)
from pykbroker.protocol.records.batch import iter_batches, iter_records
from pykbroker.protocol.records.control import ControlRecordType, EndTransactionMarker, encode_end_transaction_batch
from pykbroker.replication.reads import FetchIsolation
from pykbroker.server.network.handlers import ConnectionState
from pykbroker.server.network.request_meter import RequestMeter
from pykbroker.server.sharing.share_partitions import SessionsOfConnection
from pykbroker.sharing.persister import (
    NO_LEADER_EPOCH,
    UNINITIALIZED_START_OFFSET,
    Initialization,
    Reading,
    SharePartitionKey,
)
from pykbroker.storage.files.disk import OsDiskFile
from pykbroker.storage.log.log import AppendOrigin
from tests.api.api_node import ApiNode, batch, in_virtual_time
from tests.api.turns_taken import LONGEST_TURN_S, handle

GROUP = "group"
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
Word = tuple[int, int, list[int]]
"""First offset, last offset, types."""


@pytest.fixture
def node(tmp_path: Path) -> ApiNode:
    node = ApiNode(tmp_path)
    node.replay(FeatureLevelRecord(name="share.version", feature_level=1))
    configure(node, "share.auto.offset.reset", "earliest")
    return node


def configure(node: ApiNode, name: str, value: str, group: str = GROUP) -> None:
    node.replay(ConfigRecord(resource_type=GROUP_RESOURCE, resource_name=group, name=name, value=value))


def shared_topic(node: ApiNode, name: str, **options: Any) -> bytes:
    """Create a topic whose partition the group's coordinator has initialized."""
    topic = node.create_topic(name, **options)
    key = SharePartitionKey(GROUP, topic, 0)
    node.persister.state.initialize([Initialization(key, 1, UNINITIALIZED_START_OFFSET)])
    return topic


@dataclass(frozen=True)
class State:
    """What the controller decides of a partition that this node leads."""

    leader_epoch: int
    partition_epoch: int
    leader: int = 1
    replicas: tuple[int, ...] = (1, 2)
    isr: tuple[int, ...] = (1, 2)
    adding_replicas: tuple[int, ...] = ()


class Member:
    """A member of a share group with its connection and its session."""

    def __init__(self, node: ApiNode, name: str = "anna", group: str = GROUP) -> None:
        self.node = node
        self.name = name
        self.group = group
        self.epoch = 0
        self.connection = ConnectionState("PLAINTEXT", "127.0.0.1")

    def next_epoch(self, epoch: int | None) -> int:
        if epoch is not None:
            return epoch
        self.epoch += 1
        return self.epoch - 1

    async def fetch(
        self,
        *topics: bytes,
        words: dict[bytes, list[Word]] | None = None,
        forget: tuple[bytes, ...] = (),
        epoch: int | None = None,
        version: int = 2,
        **values: Any,
    ) -> ShareFetchResponse:
        words = words or {}
        named = [
            FetchTopic(
                topic_id=topic,
                partitions=[FetchPartition(partition_index=0, acknowledgement_batches=batches(words.get(topic, [])))],
            )
            for topic in dict.fromkeys((*topics, *words))
        ]
        settings = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}
        request = ShareFetchRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self.next_epoch(epoch),
            topics=named,
            forgotten_topics_data=[ForgottenTopic(topic_id=topic, partitions=[0]) for topic in forget],
            **{**settings, **values},
        )
        answer: ShareFetchResponse = await self.node.call(share_fetch, request, version, connection=self.connection)
        return answer

    async def acknowledge(
        self, topic: bytes, *words: Word, epoch: int | None = None, version: int = 2, renews: bool = False
    ) -> Any:
        request = ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self.next_epoch(epoch),
            is_renew_ack=renews,
            topics=[
                AcknowledgeTopic(
                    topic_id=topic,
                    partitions=[AcknowledgePartition(partition_index=0, acknowledgement_batches=batches(list(words)))],
                )
            ],
        )
        return await self.node.call(share_acknowledge, request, version, connection=self.connection)

    def leave(self) -> None:
        """Close the connection."""
        assert self.connection.share_sessions_end is not None
        self.connection.share_sessions_end()


def batches(words: list[Word]) -> list[AcknowledgementBatch]:
    return [
        AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
        for first, last, types in words
    ]


def only(response: ShareFetchResponse) -> ShareFetchResponsePartitionData:
    assert response.error_code == ErrorCode.NONE
    ((partition,),) = ([*topic.partitions] for topic in response.responses)
    return partition


def acquired(response: ShareFetchResponse) -> list[tuple[int, int, int]]:
    return [(each.first_offset, each.last_offset, each.delivery_count) for each in only(response).acquired_records]


def values(response: ShareFetchResponse) -> list[bytes | None]:
    records = only(response).records
    assert isinstance(records, (bytes, memoryview))
    return [record.value for each in iter_batches(bytes(records)) for record in iter_records(each)]


def at_work(node: ApiNode, test: Callable[[], Awaitable[None]]) -> None:
    """Run the test with the node's share partitions at work."""

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(node.broker.share_partitions.run)
            await test()
            nursery.cancel_scope.cancel()

    in_virtual_time(run)


def test_records_are_handed_out_once_and_acknowledged(node: ApiNode) -> None:
    topic = shared_topic(node, "foo")
    node.append("foo", b"a", b"b")
    node.append("foo", b"c")

    async def test() -> None:
        anna, bert = Member(node), Member(node, "bert")
        first = await anna.fetch(topic, max_wait_ms=100)
        assert acquired(first) == [(0, 2, 1)]
        assert values(first) == [b"a", b"b", b"c"]
        assert first.acquisition_lock_timeout_ms == 30_000
        second = await bert.fetch(topic, max_wait_ms=100)
        assert acquired(second) == []
        third = await anna.fetch(words={topic: [(0, 1, [ACCEPT]), (2, 2, [RELEASE])]})
        assert only(third).acknowledge_error_code == ErrorCode.NONE
        assert acquired(await bert.fetch(max_wait_ms=100)) == [(2, 2, 2)]
        answer = await bert.acknowledge(topic, (2, 2, [ACCEPT]))
        assert [each.error_code for each in answer.responses[0].partitions] == [ErrorCode.NONE]
        state = node.persister.state
        (read,) = state.read_summary([reading(topic)])
        assert (read.start_offset, read.delivery_complete_count) == (2, 1)

    at_work(node, test)


def reading(topic: bytes) -> Any:
    return Reading(SharePartitionKey(GROUP, topic, 0), NO_LEADER_EPOCH)


def test_only_the_record_batches_that_hold_what_was_acquired_are_sent(node: ApiNode) -> None:
    topic = shared_topic(node, "foo")
    for value in (b"a", b"b", b"c"):
        node.append("foo", value, value)

    async def test() -> None:
        anna, bert = Member(node), Member(node, "bert")
        first = await anna.fetch(topic, max_wait_ms=100, max_records=3)
        assert acquired(first) == [(0, 3, 1)], "to the end of the batch in which the third record is"
        assert values(first) == [b"a", b"a", b"b", b"b"]
        second = await bert.fetch(topic, max_wait_ms=100, max_records=1, share_acquire_mode=1)
        assert acquired(second) == [(4, 4, 1)]
        assert values(second) == [b"c", b"c"]

    at_work(node, test)


def test_a_fetch_waits_for_records_and_for_locks_that_end(node: ApiNode) -> None:
    topic = shared_topic(node, "foo")

    async def test() -> None:
        anna, bert = Member(node), Member(node, "bert")
        answers: dict[str, ShareFetchResponse] = {}

        async def wait(member: Member) -> None:
            answers[member.name] = await member.fetch(topic, max_wait_ms=60_000)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, anna)
            await trio.sleep(1)
            assert not answers
            node.append("foo", b"a")
        assert acquired(answers["anna"]) == [(0, 0, 1)]
        began = trio.current_time()
        await wait(bert)
        assert acquired(answers["bert"]) == [(0, 0, 2)]
        assert 29 < trio.current_time() - began < 31, "the lock of the first has ended"
        refused = await anna.acknowledge(topic, (0, 0, [ACCEPT]))
        (partition,) = refused.responses[0].partitions
        assert partition.error_code == ErrorCode.INVALID_RECORD_STATE
        assert partition.error_message == "Member is not the owner of batch record"

    at_work(node, test)


def test_a_closed_connection_releases_what_it_has_and_the_group_is_forgotten(node: ApiNode) -> None:
    topic = shared_topic(node, "foo")
    node.append("foo", b"a")

    async def test() -> None:
        anna, bert = Member(node), Member(node, "bert")
        assert acquired(await anna.fetch(topic, max_wait_ms=100)) == [(0, 0, 1)]
        await bert.fetch(topic)
        anna.leave()
        assert acquired(await bert.fetch(max_wait_ms=100)) == [(0, 0, 2)]
        assert len(node.broker.share_partitions.sessions) == 1
        bert.leave()
        await trio.sleep(1)
        assert len(node.broker.share_partitions) == 0
        assert node.broker.share_partitions.sessions.partitions == 0
        assert acquired(await Member(node, "carl").fetch(topic, max_wait_ms=100)) == [(0, 0, 3)], (
            "the count is persisted"
        )

    at_work(node, test)


def test_a_connection_remembers_no_more_sessions_than_there_are(node: ApiNode) -> None:
    topic = shared_topic(node, "foo")

    async def test() -> None:
        await Member(node).fetch(topic, max_wait_ms=100)  # so that the group has something here
        connection = ConnectionState("PLAINTEXT", "127.0.0.1")
        for number in range(1_000):
            await trio.lowlevel.checkpoint()
            member = Member(node, f"member-{number}")
            member.connection = connection
            await member.fetch(topic)
            await member.fetch(epoch=-1)
        ends = connection.share_sessions_end
        assert isinstance(ends, SessionsOfConnection)
        assert len(ends) < 100
        ends()
        await trio.sleep(1)
        assert len(node.broker.share_partitions) == 1, "anna is there still"

    at_work(node, test)


def test_a_group_is_forgotten_with_the_connection_on_which_its_last_session_has_ended(node: ApiNode) -> None:
    topic = shared_topic(node, "foo")

    async def test() -> None:
        last = Member(node)
        await last.fetch(topic, max_wait_ms=100)
        await last.fetch(epoch=-1)
        for number in range(100):
            member = Member(node, f"member-{number}", "others")
            member.connection = last.connection
            await member.fetch()
            await member.fetch(epoch=-1)
        assert len(node.broker.share_partitions) == 1
        last.leave()
        await trio.sleep(1)
        assert len(node.broker.share_partitions) == 0

    at_work(node, test)


def test_acknowledgements_are_refused_whose_share_partition_has_ended_between_two_of_their_turns(
    node: ApiNode,
) -> None:
    topic = shared_topic(node, "foo")
    for _ in range(8):
        node.append("foo", *[b"a"] * 500)
    configure(node, "share.partition.max.record.locks", "4000")

    async def test() -> None:
        anna = Member(node)
        await anna.fetch(topic, max_wait_ms=100, max_records=4000)
        answers: list[Any] = []

        async def acknowledge() -> None:
            answers.append(await anna.acknowledge(topic, (0, 3999, [ACCEPT, REJECT] * 2000)))

        shares = node.broker.share_partitions
        (led,) = shares.all()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(acknowledge)
            while led.share is not None and led.share.delivery_complete_count == 0:
                await trio.lowlevel.checkpoint()
            assert not answers
            led.end(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            bert = Member(node, "bert")
            assert acquired(await bert.fetch(topic, max_wait_ms=100, max_records=4000))[0][:2] == (0, 499)
        ((refused,),) = ([*each.partitions] for each in answers[0].responses)
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        (state,) = node.persister.state.read([reading(topic)])
        assert not state.batches, "what bert has in hand would be settled"

    at_work(node, test)


def test_a_lost_leadership_is_told_at_once(node: ApiNode) -> None:
    topic = shared_topic(node, "foo", replicas=[1, 2])

    async def test() -> None:
        anna = Member(node)
        answers: list[ShareFetchResponse] = []

        async def wait() -> None:
            answers.append(await anna.fetch(topic, max_wait_ms=60_000))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.sleep(1)
            node.change_partition("foo", 0, leader=2)
        partition = only(answers[0])
        assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert partition.current_leader.leader_id == 2
        assert [each.node_id for each in answers[0].node_endpoints] == [2]
        assert trio.current_time() < 2
        refused = await anna.acknowledge(topic, (0, 0, [ACCEPT]))
        assert refused.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    at_work(node, test)


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_leader_that_has_missed_an_epoch_reads_the_state_anew(node: ApiNode, epochs: int) -> None:
    """Who led in between may have handed out the same records, and written what became of them."""
    topic = shared_topic(node, "foo", replicas=[1, 2])
    node.append("foo", b"a")

    async def test() -> None:
        await Member(node).fetch(topic, max_wait_ms=100, max_records=1)
        shares = node.broker.share_partitions
        (led,) = shares.all()
        partition = led.partition
        state = State(partition.leader_epoch + epochs, partition.partition_epoch + epochs)
        partition.apply_state(state, node.clock.monotonic_ms())
        assert (led.error is None) is (epochs == 1)
        assert len(shares) == 2 - epochs

    at_work(node, test)


def test_share_partitions_are_loaded_also_where_the_request_that_began_with_them_is_cut_off(node: ApiNode) -> None:
    """The listener of its connection goes at run time."""
    topics = [shared_topic(node, f"topic-{number}") for number in range(500)]
    for number in range(500):
        node.append(f"topic-{number}", b"a")

    async def test() -> None:
        anna, bert = Member(node), Member(node, "bert")
        shares = node.broker.share_partitions
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(anna.fetch, *topics, max_wait_ms=1000))
            while not len(shares):
                await trio.lowlevel.checkpoint()
            assert len(shares) < len(topics)
            nursery.cancel_scope.cancel()
        begun = [led.key.topic_id for led in shares.all()]
        await trio.sleep(1)
        answer = await bert.fetch(*begun, max_wait_ms=1000, max_records=1000)
        assert len(answer.responses) == len(begun)
        assert all(topic.partitions[0].acquired_records for topic in answer.responses)

    at_work(node, test)


def test_records_are_released_also_where_the_end_of_the_session_is_cut_off(node: ApiNode) -> None:
    topic = shared_topic(node, "foo")
    for _ in range(8):
        node.append("foo", *[b"a"] * 500)
    configure(node, "share.partition.max.record.locks", "4000")

    async def test() -> None:
        anna, bert = Member(node), Member(node, "bert")
        await bert.fetch(topic)
        await anna.fetch(topic, max_wait_ms=100, max_records=4000)
        await anna.acknowledge(topic, (0, 3999, [RELEASE, RENEW] * 2000), renews=True)
        first = await anna.fetch(max_wait_ms=100, max_records=4000)
        assert acquired(first)
        (led,) = node.broker.share_partitions.all()
        assert led.share is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(anna.acknowledge, topic, epoch=-1))
            while all(run.change is None for run in led.share.runs()):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        await trio.sleep(1)
        assert all(run.change is None for run in led.share.runs())
        assert all(run.is_available for run in led.share.runs())

    at_work(node, test)


def test_sessions_have_epochs(node: ApiNode) -> None:
    topic, other = shared_topic(node, "foo"), shared_topic(node, "bar")

    async def test() -> None:
        anna = Member(node)
        assert (await anna.fetch(topic, epoch=1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        assert (await anna.fetch(topic, epoch=-1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        with_words = await anna.fetch(words={topic: [(0, 0, [ACCEPT])]}, epoch=0)
        assert with_words.error_code == ErrorCode.INVALID_REQUEST
        assert (await anna.acknowledge(topic, epoch=0)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert (await anna.acknowledge(topic, epoch=1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        await anna.fetch(topic, other, max_wait_ms=10)
        assert (await anna.fetch(epoch=2)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert [each.topic_id for each in (await anna.fetch(forget=(other,), max_wait_ms=10)).responses] == []
        added = await anna.fetch(other, max_wait_ms=10)
        assert [each.topic_id for each in added.responses] == [other]
        ended = await anna.fetch(epoch=-1)
        assert (ended.error_code, ended.responses) == (ErrorCode.NONE, [])
        assert (await anna.fetch(epoch=4)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND

    at_work(node, test)


def test_who_comes_when_there_are_enough_sessions_waits_and_is_refused(tmp_path: Path) -> None:
    node = ApiNode(tmp_path, {"group.share.max.share.sessions": "1", "group.share.max.size": "1"})
    node.replay(FeatureLevelRecord(name="share.version", feature_level=1))
    topic = shared_topic(node, "foo")

    async def test() -> None:
        anna = Member(node)
        await anna.fetch(topic, max_wait_ms=10)
        began = trio.current_time()
        refused = await Member(node, "bert").fetch(topic, max_wait_ms=700)
        assert refused.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        assert trio.current_time() - began == pytest.approx(0.7)
        anna.leave()
        assert (await Member(node, "bert").fetch(topic)).error_code == ErrorCode.NONE, "at once"

    at_work(node, test)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([(1, 0, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 0, [])], ErrorCode.INVALID_REQUEST),
        ([(0, 2, [ACCEPT, ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 0, [5])], ErrorCode.INVALID_REQUEST),
        ([(0, 0, [RENEW])], ErrorCode.INVALID_REQUEST),
        ([(0, 1, [ACCEPT]), (0, 0, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 3, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(7, 7, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 0, [ACCEPT]), (0, 0, [ACCEPT])], ErrorCode.INVALID_RECORD_STATE),
    ],
)
def test_acknowledgements_that_make_no_sense_change_nothing(node: ApiNode, words: list[Word], error: ErrorCode) -> None:
    topic = shared_topic(node, "foo")
    node.append("foo", b"a", b"b")

    async def test() -> None:
        anna = Member(node)
        await anna.fetch(topic, max_wait_ms=100)
        refused = await anna.acknowledge(topic, *words)
        assert refused.responses[0].partitions[0].error_code == error
        accepted = await anna.acknowledge(topic, (0, 1, [ACCEPT]))
        assert accepted.responses[0].partitions[0].error_code == ErrorCode.NONE

    at_work(node, test)


def test_what_was_not_persisted_is_acquired_still(node: ApiNode) -> None:
    topic = shared_topic(node, "foo")
    node.append("foo", b"a", b"b")

    async def test() -> None:
        anna = Member(node)
        await anna.fetch(topic, max_wait_ms=100)
        node.persister.errors.append(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        refused = await anna.acknowledge(topic, (0, 1, [ACCEPT]))
        assert refused.responses[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (await anna.acknowledge(topic, (0, 1, [ACCEPT]))).responses[0].partitions[0].error_code == 0

    at_work(node, test)


def test_a_state_of_another_epoch_is_loaded_again(node: ApiNode) -> None:
    topic = shared_topic(node, "foo")
    node.append("foo", b"a", b"b")

    async def test() -> None:
        anna = Member(node)
        await anna.fetch(topic, max_wait_ms=100)
        node.persister.errors.append(ErrorCode.FENCED_STATE_EPOCH)
        refused = await anna.acknowledge(topic, (0, 0, [ACCEPT]))
        assert refused.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert len(node.broker.share_partitions) == 0
        assert acquired(await anna.fetch(max_wait_ms=100)) == [(0, 1, 1)]

    at_work(node, test)


def test_locks_are_renewed_without_a_fetch(node: ApiNode) -> None:
    topic = shared_topic(node, "foo")
    node.append("foo", b"a", b"b")

    async def test() -> None:
        anna, bert = Member(node), Member(node, "bert")
        await anna.fetch(topic, max_wait_ms=100)
        nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
        for _ in range(3):
            await trio.sleep(20)
            renewed = await anna.fetch(words={topic: [(0, 1, [RENEW])]}, is_renew_ack=True, **nothing)
            assert only(renewed).acknowledge_error_code == ErrorCode.NONE
        assert acquired(await bert.fetch(topic, max_wait_ms=10)) == []
        wrong = await anna.fetch(words={topic: [(0, 1, [RENEW])]}, is_renew_ack=True, epoch=anna.epoch)
        assert wrong.error_code == ErrorCode.INVALID_REQUEST
        configure(node, "share.renew.acknowledge.enable", "false")
        refused = await anna.acknowledge(topic, (0, 1, [RENEW]), renews=True)
        assert refused.responses[0].partitions[0].error_code == ErrorCode.INVALID_RECORD_STATE
        assert acquired(await bert.fetch(max_wait_ms=60_000)) == [(0, 1, 2)]

    at_work(node, test)


def test_min_bytes_are_waited_for(node: ApiNode) -> None:
    topic, other = shared_topic(node, "foo"), shared_topic(node, "bar")
    node.append("foo", b"a")
    size = node.partition("foo").read(0, 1 << 20, FetchIsolation.LOG_END).records_size

    async def test() -> None:
        anna = Member(node)
        answers: list[ShareFetchResponse] = []

        async def wait() -> None:
            answers.append(await anna.fetch(topic, other, max_wait_ms=5000, min_bytes=size + 1))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.sleep(1)
            assert not answers
            node.append("bar", b"b")
        assert trio.current_time() < 2
        assert sum(len(each.partitions[0].acquired_records) for each in answers[0].responses) == 2

    at_work(node, test)


def test_deleted_records_are_passed_over(node: ApiNode) -> None:
    topic = shared_topic(node, "foo")
    for value in (b"a", b"b", b"c"):
        node.append("foo", value)

    async def test() -> None:
        anna = Member(node)
        await anna.fetch(topic, max_wait_ms=100, max_records=1)
        await anna.acknowledge(topic, (0, 0, [RELEASE]))
        node.partition("foo").delete_records(2)
        assert acquired(await anna.fetch(max_wait_ms=100)) == [(2, 2, 1)]

    at_work(node, test)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"group_id": None}, ErrorCode.INVALID_REQUEST),
        ({"member_id": None}, ErrorCode.INVALID_REQUEST),
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "m" * 37}, ErrorCode.INVALID_REQUEST),
        ({"share_acquire_mode": 2}, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_requests_of_nobody_are_refused(node: ApiNode, change: dict[str, Any], error: ErrorCode) -> None:
    async def test() -> None:
        request = ShareFetchRequest(**{"group_id": GROUP, "member_id": "anna", **change})
        assert (await node.call(share_fetch, request, 2)).error_code == error

    at_work(node, test)


def test_an_unknown_acquire_mode_is_refused_behind_the_epoch(node: ApiNode) -> None:
    topic = shared_topic(node, "foo")

    async def test() -> None:
        anna = Member(node)
        await anna.fetch(topic, max_wait_ms=0)
        for epoch, error in ((7, ErrorCode.INVALID_SHARE_SESSION_EPOCH), (1, ErrorCode.UNKNOWN_SERVER_ERROR)):
            assert (await anna.fetch(epoch=epoch, share_acquire_mode=2)).error_code == error

    at_work(node, test)


def test_without_the_feature_there_are_no_share_groups(tmp_path: Path) -> None:
    node = ApiNode(tmp_path)

    async def test() -> None:
        assert (await Member(node).fetch()).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert (await Member(node).acknowledge(bytes(16))).error_code == ErrorCode.UNSUPPORTED_VERSION

    at_work(node, test)


def append_transactional(node: ApiNode, topic: str, producer_id: int, sequence: int, *values: bytes) -> None:
    data = batch(*values, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True)
    node.replicas.append(node.partition(topic), data, node.clock.now_ms(), 1)


def end_transaction(node: ApiNode, topic: str, producer_id: int, kind: ControlRecordType) -> None:
    marker = encode_end_transaction_batch(
        EndTransactionMarker(kind, 0), producer_id=producer_id, producer_epoch=0, timestamp=1000
    )
    node.partition(topic).append_as_leader(marker, node.clock.now_ms(), 1, origin=AppendOrigin.COORDINATOR)


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_records_of_aborted_transactions_are_for_those_who_read_uncommitted(node: ApiNode, level: str) -> None:
    topic = shared_topic(node, "foo")
    configure(node, "share.isolation.level", level)
    append_transactional(node, "foo", 7, 0, b"a", b"b")
    append_transactional(node, "foo", 8, 0, b"c")
    end_transaction(node, "foo", 7, ControlRecordType.ABORT)
    end_transaction(node, "foo", 8, ControlRecordType.COMMIT)
    append_transactional(node, "foo", 7, 2, b"open")

    async def test() -> None:
        found = acquired(await Member(node).fetch(topic, max_wait_ms=100))
        if level == "read_committed":
            assert found == [(2, 4, 1)], "markers are for the client to pass over"
        else:
            assert found == [(0, 5, 1)]

    at_work(node, test)


def test_what_a_quota_withholds_is_handed_out_to_others(node: ApiNode) -> None:
    topic = shared_topic(node, "foo")
    node.append("foo", b"x" * 5000)
    entity = [EntityData(entity_type="user", entity_name="ANONYMOUS")]
    node.replay(ClientQuotaRecord(entity=entity, key="consumer_byte_rate", value=700.0))

    async def test() -> None:
        anna, bert = Member(node), Member(node, "bert")
        meter = anna.connection.meter = RequestMeter(node.client_quotas, node.clock, lambda: 0, anna.connection)
        meter.begin(100)
        assert acquired(await anna.fetch(topic, max_wait_ms=100)) == [(0, 0, 1)]
        await anna.acknowledge(topic, (0, 0, [RELEASE]))
        meter.begin(100)
        withheld = await anna.fetch(max_wait_ms=100)
        assert (withheld.error_code, withheld.responses) == (ErrorCode.NONE, [])
        assert acquired(await bert.fetch(topic, max_wait_ms=100)) == [(0, 0, 2)], "the second time that it is delivered"

    at_work(node, test)


def test_headers_that_are_on_the_disk_only_are_read_in_a_thread(node: ApiNode, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = shared_topic(node, "foo")
    node.append("foo", b"a", b"b")
    asked: list[int] = []

    def nothing(self: Any, position: int, size: int) -> None:
        asked.append(position)

    async def test() -> None:
        anna = Member(node)
        await anna.fetch(topic, max_wait_ms=0)
        monkeypatch.setattr(OsDiskFile, "read_cached", nothing)
        assert acquired(await anna.fetch(max_wait_ms=100)) == [(0, 1, 1)]
        assert asked

    at_work(node, test)


def test_acknowledging_many_records_one_by_one_shares_the_loop(node: ApiNode) -> None:
    topic = shared_topic(node, "foo")
    for _ in range(20):
        node.append("foo", *[b"a"] * 500)
    configure(node, "share.partition.max.record.locks", "4000")

    async def test() -> None:
        anna = Member(node)
        count = sum(
            last - first + 1 for first, last, _ in acquired(await anna.fetch(topic, max_wait_ms=100, max_records=4000))
        )
        assert count >= 4000
        request = ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id="anna",
            share_session_epoch=1,
            topics=[
                AcknowledgeTopic(
                    topic_id=topic,
                    partitions=[
                        AcknowledgePartition(
                            partition_index=0,
                            acknowledgement_batches=batches([(0, count - 1, [ACCEPT, REJECT] * (count // 2))]),
                        )
                    ],
                )
            ],
        )
        response, turns = await handle(node.broker, share_acknowledge, request, 2)
        assert response.responses[0].partitions[0].error_code == ErrorCode.NONE
        assert len(turns.durations_s) > 10
        assert turns.longest_s < LONGEST_TURN_S

    at_work(node, test)
