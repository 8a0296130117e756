"""Fetch: limits, the long poll, sessions, topic ids, and every error at its place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from pykbroker.api.fetch import fetch
from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import BROKER_RESOURCE
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from pykbroker.protocol.messages.metadata_records import BrokerEndpoint, ConfigRecord, RegisterBrokerRecord
from pykbroker.protocol.records.batch import iter_batches, iter_records
from pykbroker.replication.partition import Partition
from pykbroker.replication.replica_selector import RACK_AWARE_SELECTOR
from pykbroker.server.network.handlers import ConnectionState
from pykbroker.server.replicas.fetch_waits import FetchWaits
from pykbroker.server.replicas.replica_selector import replica_selector
from tests.api.api_node import ApiNode, batch, in_virtual_time
from tests.api.turns_taken import Turns, handle

BY_NAME = 12
MAX_BYTES = 1 << 20

Asked = tuple[str, int, int]
"""Topic, partition, offset."""


def request(
    *asked: Asked, max_bytes: int = MAX_BYTES, partition_max_bytes: int = MAX_BYTES, **values: Any
) -> FetchRequest:
    values = {"max_wait_ms": 0, "min_bytes": 1, **values}
    partition_values = {key: values.pop(key) for key in ("current_leader_epoch", "last_fetched_epoch") if key in values}
    return FetchRequest(
        max_bytes=max_bytes,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=index,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        **partition_values,
                    )
                ],
            )
            for topic, index, offset in asked
        ],
        **values,
    )


async def send(
    node: ApiNode, message: FetchRequest, version: int = BY_NAME, connection: ConnectionState | None = None
) -> FetchResponse:
    response: FetchResponse = await node.call(fetch, message, version, connection=connection)
    return response


def send_now(node: ApiNode, message: FetchRequest, version: int = BY_NAME) -> FetchResponse:
    async def run() -> FetchResponse:
        return await send(node, message, version)

    return in_virtual_time(run)


def partitions(response: FetchResponse) -> list[tuple[str, int, PartitionData]]:
    return [(topic.topic, each.partition_index, each) for topic in response.responses for each in topic.partitions]


def read(response: FetchResponse) -> dict[tuple[str, int], list[bytes | None]]:
    return {(topic, index): values(data) for topic, index, data in partitions(response)}


def values(data: PartitionData) -> list[bytes | None]:
    records = bytes(data.records)  # type: ignore[arg-type]
    return [record.value for batch in iter_batches(records, allow_partial=True) for record in iter_records(batch)]


def errors(response: FetchResponse) -> dict[tuple[str, int], ErrorCode]:
    return {(topic, index): ErrorCode(data.error_code) for topic, index, data in partitions(response)}


@pytest.fixture
def filled(node: ApiNode) -> ApiNode:
    """Three partitions of apples with two batches of one record each."""
    node.create_topic("apples", 3)
    for index in range(3):
        for value in (b"a", b"b"):
            node.append("apples", value, index=index)
    return node


# Reading


@pytest.mark.parametrize("version", range(4, 13))
def test_what_is_there_is_read_from_the_offset_on(filled: ApiNode, version: int) -> None:
    response = send_now(filled, request(("apples", 0, 1), ("apples", 1, 0)), version)
    assert read(response) == {("apples", 0): [b"b"], ("apples", 1): [b"a", b"b"]}
    assert (response.throttle_time_ms, response.error_code, response.session_id) == (0, 0, 0)
    for _, _, data in partitions(response):
        assert (data.error_code, data.high_watermark, data.last_stable_offset) == (0, 2, 2)
        assert data.log_start_offset == (0 if version >= 5 else -1)
        assert (data.aborted_transactions, data.preferred_read_replica) == (None, -1)


@pytest.mark.parametrize("version", range(13, 19))
def test_topics_are_named_by_id_since_version_13(node: ApiNode, version: int) -> None:
    topic_id = node.create_topic("apples")
    node.append("apples", b"a")
    message = request(("", 0, 0))
    message.topics[0].topic_id = topic_id
    (topic,) = send_now(node, message, version).responses
    assert topic.topic_id == topic_id
    assert values(topic.partitions[0]) == [b"a"]


def test_read_committed_lists_aborted_transactions_even_if_there_are_none(filled: ApiNode) -> None:
    response = send_now(filled, request(("apples", 0, 0), isolation_level=1))
    assert partitions(response)[0][2].aborted_transactions == []
    assert read(response) == {("apples", 0): [b"a", b"b"]}


def test_a_fetch_in_the_middle_of_a_batch_returns_the_whole_batch(node: ApiNode) -> None:
    node.create_topic("apples")
    node.append("apples", b"a", b"b", b"c")
    assert read(send_now(node, request(("apples", 0, 2)))) == {("apples", 0): [b"a", b"b", b"c"]}


# Limits


def batch_size(node: ApiNode) -> int:
    return node.partition("apples").log.size_bytes // 2


@pytest.mark.parametrize("limits", [{"partition_max_bytes": 0}, {"partition_max_bytes": 10}, {"max_bytes": 0}])
def test_the_first_partition_with_records_gives_a_batch_whatever_the_limit(
    filled: ApiNode, limits: dict[str, int]
) -> None:
    response = send_now(filled, request(("apples", 0, 2), ("apples", 1, 0), ("apples", 2, 0), **limits))
    assert read(response) == {("apples", 0): [], ("apples", 1): [b"a"], ("apples", 2): []}


def test_each_partition_keeps_its_own_limit(filled: ApiNode) -> None:
    one = batch_size(filled)
    response = send_now(filled, request(("apples", 0, 0), ("apples", 1, 0), partition_max_bytes=one))
    assert read(response) == {("apples", 0): [b"a"], ("apples", 1): [b"a"]}


def test_the_request_s_limit_goes_over_all_partitions(filled: ApiNode) -> None:
    three = 3 * batch_size(filled)
    response = send_now(filled, request(*(("apples", i, 0) for i in range(3)), max_bytes=three))
    assert read(response) == {("apples", 0): [b"a", b"b"], ("apples", 1): [b"a"], ("apples", 2): []}


def test_the_broker_s_limit_goes_over_all_partitions(tmp_path: Any) -> None:
    node = ApiNode(tmp_path, {"fetch.max.bytes": "1024"})
    node.create_topic("apples", 2)
    for index in range(2):
        node.append("apples", bytes(900), index=index)
    response = send_now(node, request(("apples", 0, 0), ("apples", 1, 0)))
    assert [len(each) for each in read(response).values()] == [1, 0]


def test_a_session_lets_no_partition_starve(filled: ApiNode) -> None:
    one = batch_size(filled)
    opened = send_now(filled, request(*(("apples", i, 0) for i in range(3)), max_bytes=one, session_epoch=0))
    seen = [index for (_, index), found in read(opened).items() if found]
    for epoch in range(1, 6):
        response = send_now(filled, request(max_bytes=one, session_id=opened.session_id, session_epoch=epoch))
        seen += [index for (_, index), found in read(response).items() if found]
    assert sorted(seen[1:4]) == [0, 1, 2]


# Errors


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (("nothing", 0, 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("apples", 77, 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("apples", 0, -5), ErrorCode.OFFSET_OUT_OF_RANGE),
        (("apples", 0, 3), ErrorCode.OFFSET_OUT_OF_RANGE),
        (("led elsewhere", 0, 0), ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_errors_of_a_partition_do_not_touch_the_others(filled: ApiNode, asked: Asked, error: ErrorCode) -> None:
    filled.create_topic("led elsewhere", leader=2, replicas=[2])
    response = send_now(filled, request(asked, ("apples", 1, 0)))
    assert errors(response) == {asked[:2]: error, ("apples", 1): ErrorCode.NONE}
    failed = {(topic, index): data for topic, index, data in partitions(response)}[asked[:2]]
    assert (failed.high_watermark, failed.last_stable_offset, failed.log_start_offset) == (-1, -1, -1)
    assert failed.records == b"", "never null: clients die of it"


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(-1, ErrorCode.NONE), (0, ErrorCode.NONE), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_leader_epochs_are_compared(filled: ApiNode, epoch: int, error: ErrorCode) -> None:
    assert errors(send_now(filled, request(("apples", 0, 0), current_leader_epoch=epoch))) == {("apples", 0): error}


def test_a_reader_with_an_old_leader_epoch_learns_the_leader_since_version_16(node: ApiNode) -> None:
    topic_id = node.create_topic("apples", replicas=[1, 2], leader=1)
    node.change_partition("apples", 0, leader=1)
    for version in (15, 16):
        message = request(("", 0, 0), current_leader_epoch=0)
        message.topics[0].topic_id = topic_id
        response = send_now(node, message, version)
        (data,) = response.responses[0].partitions
        assert ErrorCode(data.error_code) is ErrorCode.FENCED_LEADER_EPOCH
        told = (data.current_leader.leader_id, data.current_leader.leader_epoch)
        nodes = [(each.node_id, each.host, each.port) for each in response.node_endpoints]
        assert (told, nodes) == (((1, 1), [(1, "here", 9092)]) if version >= 16 else ((-1, -1), []))


def test_a_reader_whose_log_took_another_way_is_told(filled: ApiNode) -> None:
    response = send_now(filled, request(("apples", 0, 9), last_fetched_epoch=0))
    (data,) = (each for _, _, each in partitions(response))
    assert (data.error_code, data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 0, 2)


@pytest.mark.parametrize("wrong", [{"max_bytes": -1}, {"isolation_level": 9}, {"isolation_level": -1}])
@pytest.mark.parametrize("version", [4, 7, 12])
def test_values_that_no_client_sends_are_an_invalid_request(
    filled: ApiNode, wrong: dict[str, int], version: int
) -> None:
    response = send_now(filled, request(("apples", 0, 0), **wrong), version)
    assert errors(response) == {("apples", 0): ErrorCode.INVALID_REQUEST}
    assert response.error_code == (ErrorCode.INVALID_REQUEST if version >= 7 else 0)


def test_a_negative_limit_of_one_partition_is_an_invalid_request_there(filled: ApiNode) -> None:
    response = send_now(filled, request(("apples", 0, 0), partition_max_bytes=-1))
    assert errors(response) == {("apples", 0): ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("version", [12, 16])
@pytest.mark.parametrize(
    ("replica_id", "epoch", "error"),
    [(1, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (2, 0, ErrorCode.UNKNOWN_LEADER_EPOCH), (-2, 0, ErrorCode.NONE)],
)
def test_who_is_no_replica_cannot_fetch_as_one(
    node: ApiNode, version: int, replica_id: int, epoch: int, error: ErrorCode
) -> None:
    topic_id = node.create_topic("apples")
    node.append("apples", b"a")
    message = request(("apples", 0, 0), current_leader_epoch=epoch)
    message.topics[0].topic_id = topic_id
    if version < 15:
        message.replica_id = replica_id
    else:
        message.replica_state = ReplicaState(replica_id=replica_id)
    (data,) = send_now(node, message, version).responses[0].partitions
    assert ErrorCode(data.error_code) is error
    assert values(data) == ([] if error else [b"a"])


def test_an_unknown_topic_id_and_one_of_a_deleted_namesake(node: ApiNode) -> None:
    old_id = node.create_topic("apples")

    async def run() -> None:
        opened = await send(node, by_id(old_id, session_epoch=0), 13)
        node.delete_topic("apples")
        gone = await send(node, by_id(session_id=opened.session_id, session_epoch=1), 13)
        assert partition_errors(gone) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        node.create_topic("apples")
        namesake = await send(node, by_id(session_id=opened.session_id, session_epoch=2), 13)
        assert partition_errors(namesake) == [ErrorCode.INCONSISTENT_TOPIC_ID]
        unknown = await send(node, by_id(old_id), 13)
        assert partition_errors(unknown) == [ErrorCode.UNKNOWN_TOPIC_ID]
        no_id = await send(node, by_id(bytes(16)), 13)
        assert partition_errors(no_id) == [ErrorCode.UNKNOWN_TOPIC_ID]
        no_name = await send(node, by_id(bytes(16)), 12)
        assert partition_errors(no_name) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    in_virtual_time(run)


def by_id(*topic_ids: bytes, **values: Any) -> FetchRequest:
    message = request(*(("", 0, 0) for _ in topic_ids), **values)
    for topic, topic_id in zip(message.topics, topic_ids, strict=True):
        topic.topic_id = topic_id
    return message


def partition_errors(response: FetchResponse) -> list[ErrorCode]:
    return [ErrorCode(data.error_code) for _, _, data in partitions(response)]


# The long poll


def waits(
    node: ApiNode,
    message: FetchRequest,
    during: Callable[[], Awaitable[None]] | None = None,
    connection: ConnectionState | None = None,
) -> tuple[float, FetchResponse]:
    """Seconds until the answer, and the answer; `during` runs beside it."""

    async def run() -> tuple[float, FetchResponse]:
        started = trio.current_time()
        async with trio.open_nursery() as nursery:
            if during is not None:
                nursery.start_soon(during)
            response = await send(node, message, connection=connection)
            elapsed = trio.current_time() - started
            assert not any(each.watchers for each in node.replicas.partitions()), "nobody waits any more"
            return elapsed, response
        raise AssertionError

    elapsed, response = in_virtual_time(run)
    return round(elapsed, 3), response


@pytest.mark.parametrize(
    ("min_bytes", "max_wait_ms", "offset", "elapsed"),
    [
        (1, 500, 2, 0.5),  # nothing there: waits
        (1, 0, 2, 0),
        (1, -1, 2, 0),
        (0, 500, 2, 0),  # wants nothing
        (1, 500, 0, 0),  # something there
        (100_000, 500, 0, 0.5),  # not enough there
    ],
)
def test_how_long_an_answer_takes(
    filled: ApiNode, min_bytes: int, max_wait_ms: int, offset: int, elapsed: float
) -> None:
    message = request(("apples", 0, offset), min_bytes=min_bytes, max_wait_ms=max_wait_ms)
    assert waits(filled, message)[0] == elapsed


def test_min_bytes_above_max_bytes_waits_for_max_bytes_only(filled: ApiNode) -> None:
    both = 2 * batch_size(filled)
    message = request(("apples", 0, 0), min_bytes=1 << 30, max_bytes=both, max_wait_ms=500)
    assert waits(filled, message)[0] == 0


def test_an_append_ends_the_wait(filled: ApiNode) -> None:
    async def append() -> None:
        await trio.sleep(0.1)
        filled.append("apples", b"unrelated", index=2)
        await trio.sleep(0.1)
        filled.append("apples", b"new", index=1)

    elapsed, response = waits(filled, request(("apples", 0, 2), ("apples", 1, 2), max_wait_ms=900), append)
    assert elapsed == 0.2
    assert read(response) == {("apples", 0): [], ("apples", 1): [b"new"]}


@pytest.mark.parametrize(("replica_id", "elapsed"), [(-1, 0.15), (2, 0.9)])
def test_another_request_of_a_consumer_ends_the_wait(node: ApiNode, replica_id: int, elapsed: float) -> None:
    """With what is there by then. A follower asks for nothing else on its connection."""
    node.create_topic("apples", replicas=[1, 2], leader=1)
    connection = ConnectionState("PLAINTEXT", "127.0.0.1")

    async def asked_again() -> None:
        await trio.sleep(0.1)

    async def append() -> None:
        await trio.sleep(0.05)
        node.append("apples", b"a")
        node.partition("apples").read_as_replica(2, 1, MAX_BYTES, now_ms=0)

    connection.asked_again = asked_again
    message = request(("apples", 0, 0), min_bytes=10_000, max_wait_ms=900, replica_id=replica_id)
    took, response = waits(node, message, append, connection)
    assert took == elapsed
    assert read(response) == {("apples", 0): [b"a"]}


def test_appends_add_up_to_min_bytes_over_all_partitions(filled: ApiNode) -> None:
    async def append() -> None:
        for index in (0, 1, 0):
            await trio.sleep(0.1)
            filled.append("apples", b"c", index=index)

    message = request(("apples", 0, 2), ("apples", 1, 2), min_bytes=3 * batch_size(filled), max_wait_ms=900)
    elapsed, response = waits(filled, message, append)
    assert elapsed == 0.3
    assert read(response) == {("apples", 0): [b"c", b"c"], ("apples", 1): [b"c"]}


def test_too_little_is_sent_when_the_time_is_over(filled: ApiNode) -> None:
    async def append() -> None:
        await trio.sleep(0.1)
        filled.append("apples", b"c")

    elapsed, response = waits(filled, request(("apples", 0, 2), min_bytes=10_000, max_wait_ms=300), append)
    assert elapsed == 0.3
    assert read(response) == {("apples", 0): [b"c"]}


def test_records_below_the_log_end_only_do_not_end_a_consumer_s_wait(node: ApiNode) -> None:
    node.create_topic("apples", replicas=[1, 2], leader=1)

    async def append() -> None:
        await trio.sleep(0.1)
        node.append("apples", b"a")
        await trio.sleep(0.1)
        node.partition("apples").read_as_replica(2, 1, MAX_BYTES, now_ms=0)

    elapsed, response = waits(node, request(("apples", 0, 0), max_wait_ms=900), append)
    assert elapsed == 0.2
    assert read(response) == {("apples", 0): [b"a"]}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("delete", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("lead elsewhere", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("new epoch", ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_deletion_and_leadership_end_the_wait(node: ApiNode, change: str, error: ErrorCode) -> None:
    node.create_topic("apples", replicas=[1, 2], leader=1)

    async def apply() -> None:
        await trio.sleep(0.1)
        match change:
            case "delete":
                node.delete_topic("apples")
            case "lead elsewhere":
                node.change_partition("apples", 0, leader=2)
            case "new epoch":
                node.change_partition("apples", 0, leader=1)

    epoch = 0 if change == "new epoch" else -1
    message = request(("apples", 0, 0), max_wait_ms=900, current_leader_epoch=epoch)
    message.rack_id = ""
    # Only clients that cannot read from followers insist on the leader.
    version = BY_NAME if change != "lead elsewhere" else 10

    async def run() -> tuple[float, FetchResponse]:
        started = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(apply)
            response = await send(node, message, version)
            return trio.current_time() - started, response
        raise AssertionError

    elapsed, response = in_virtual_time(run)
    assert round(elapsed, 3) == 0.1
    assert errors(response) == {("apples", 0): error}


@pytest.mark.parametrize(
    ("asked", "elapsed"),
    [
        ([("apples", 0, -5), ("apples", 1, 2)], 0),  # wrong offset: told at once
        ([("apples", 77, 0), ("apples", 1, 2)], 0.5),  # unknown partition: as in Kafka, the others decide
        ([("apples", 77, 0)], 0),
        ([], 0),
    ],
)
def test_which_errors_end_the_wait(filled: ApiNode, asked: list[Asked], elapsed: float) -> None:
    assert waits(filled, request(*asked, max_wait_ms=500))[0] == elapsed


def test_a_cancelled_wait_leaves_nothing_behind(filled: ApiNode) -> None:
    async def run() -> None:
        with trio.move_on_after(0.1):
            await send(filled, request(("apples", 0, 2), max_wait_ms=10_000))
        assert not filled.partition("apples").watchers

    in_virtual_time(run)


# Sessions


def test_a_session_answers_what_changed_and_forgets_what_it_is_told_to(filled: ApiNode) -> None:
    opened = send_now(filled, request(("apples", 0, 2), ("apples", 1, 2), session_epoch=0))
    assert opened.session_id > 0
    assert set(read(opened)) == {("apples", 0), ("apples", 1)}

    def next_request(epoch: int, **more: Any) -> FetchRequest:
        return request(session_id=opened.session_id, session_epoch=epoch, **more)

    assert read(send_now(filled, next_request(1))) == {}
    filled.append("apples", b"c", index=1)
    assert read(send_now(filled, next_request(2))) == {("apples", 1): [b"c"]}
    forget = next_request(3, forgotten_topics_data=[ForgottenTopic(topic="apples", partitions=[1])])
    assert read(send_now(filled, forget)) == {}
    wrong = send_now(filled, next_request(9))
    assert (ErrorCode(wrong.error_code), wrong.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)


def test_a_session_waits_for_all_of_its_partitions(filled: ApiNode) -> None:
    opened = send_now(filled, request(("apples", 0, 2), ("apples", 1, 2), session_epoch=0))

    async def append() -> None:
        await trio.sleep(0.1)
        filled.append("apples", b"new", index=1)

    elapsed, response = waits(filled, request(session_id=opened.session_id, session_epoch=1, max_wait_ms=500), append)
    assert (elapsed, read(response)) == (0.1, {("apples", 1): [b"new"]})


# The closest replica (KIP-392)


def with_racks(node: ApiNode, isr: list[int] | None = None) -> None:
    """Brokers 2 and 3 are in rack far, which broker 1 is not in; broker 3 is fenced."""
    for broker_id, rack, fenced in ((1, "near", False), (2, "far", False), (3, "far", True)):
        endpoint = BrokerEndpoint(name="PLAINTEXT", host=f"host-{broker_id}", port=9092)
        node.replay(RegisterBrokerRecord(broker_id=broker_id, end_points=[endpoint], rack=rack, fenced=fenced))
    node.broker.replica_selector = replica_selector(
        BrokerConfig({"replica.selector.class": RACK_AWARE_SELECTOR}), lambda: node.image
    )
    node.create_topic("apples", replicas=[1, 2, 3])
    node.append("apples", b"a")
    node.append("apples", b"b")
    partition = node.partition("apples")
    for replica_id in (2, 3):
        partition.read_as_replica(replica_id, 1, MAX_BYTES, log_start_offset=0, now_ms=0)


@pytest.mark.parametrize(
    ("rack", "offset", "preferred"),
    [("far", 0, 2), ("far", 1, 2), ("near", 0, -1), ("elsewhere", 0, -1), ("", 0, -1), ("far", 2, -1)],
)
def test_a_consumer_is_referred_to_who_is_in_its_rack(node: ApiNode, rack: str, offset: int, preferred: int) -> None:
    with_racks(node)
    ((_, _, data),) = partitions(send_now(node, request(("apples", 0, offset), rack_id=rack)))
    assert data.preferred_read_replica == preferred
    assert data.error_code == ErrorCode.NONE
    assert data.high_watermark == 1
    assert bool(data.records) is (preferred < 0 and offset == 0)


def test_who_is_referred_to_another_replica_does_not_wait(node: ApiNode) -> None:
    with_racks(node)

    async def run() -> float:
        before = trio.current_time()
        await send(node, request(("apples", 0, 1), rack_id="far", max_wait_ms=5000))
        return trio.current_time() - before

    assert in_virtual_time(run) == 0


def test_nobody_is_referred_to_who_is_not_in_sync(node: ApiNode) -> None:
    with_racks(node)
    node.change_partition("apples", 0, isr=[1])
    ((_, _, data),) = partitions(send_now(node, request(("apples", 0, 0), rack_id="far")))
    assert data.preferred_read_replica == -1


def test_replicas_are_not_referred_to_others(node: ApiNode) -> None:
    with_racks(node)
    message = request(("apples", 0, 0), rack_id="far", replica_id=2)
    ((_, _, data),) = partitions(send_now(node, message))
    assert data.preferred_read_replica == -1
    assert values(data) == [b"a", b"b"]


def test_a_consumer_reads_from_a_follower_up_to_its_high_watermark(node: ApiNode) -> None:
    node.create_topic("apples", replicas=[1, 2], leader=2)
    partition = node.partition("apples")
    partition.append_as_follower(batch(b"a", b"b", partition_leader_epoch=0))
    partition.append_as_follower(batch(b"c", base_offset=2, partition_leader_epoch=0))
    partition.follow_watermarks(2, 0)
    assert read(send_now(node, request(("apples", 0, 0)))) == {("apples", 0): [b"a", b"b"]}
    assert read(send_now(node, request(("apples", 0, 2)))) == {("apples", 0): []}
    ((_, _, data),) = partitions(send_now(node, request(("apples", 0, 4))))
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    ((_, _, data),) = partitions(send_now(node, request(("apples", 0, 0)), version=10))
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# Replication quotas (KIP-73)


def test_a_follower_that_is_not_in_sync_gets_no_more_than_the_leaders_rate(node: ApiNode) -> None:
    node.create_topic("apples", replicas=[1, 2], leader_replication_throttled_replicas="0:1")
    node.replay(
        ConfigRecord(
            resource_type=BROKER_RESOURCE, resource_name="1", name="leader.replication.throttled.rate", value="10"
        )
    )
    node.change_partition("apples", 0, isr=[1])
    node.append("apples", *[b"x" * 10] * 10)

    async def run() -> list[int]:
        got = []
        for _ in range(2):
            answer = await send(node, request(("apples", 0, 0), replica_id=2))
            got += [len(values(data)) for _, _, data in partitions(answer)]
        node.change_partition("apples", 0, isr=[1, 2])
        answer = await send(node, request(("apples", 0, 0), replica_id=2))
        return got + [len(values(data)) for _, _, data in partitions(answer)]

    assert in_virtual_time(run) == [10, 0, 10], "who is in sync is not held back"


async def take_turns(node: ApiNode, count: int, **values: Any) -> tuple[FetchResponse, Turns]:
    """Of the topic `apples`, and of one that is not there."""
    asked = [("apples", index, 0) for index in range(count)] + [("nothing", index, 0) for index in range(count)]
    return await handle(node.broker, fetch, request(*asked, **values), BY_NAME)


def test_a_fetch_of_many_partitions_shares_the_loop(node: ApiNode) -> None:
    node.create_topic("apples", 300)

    async def run() -> None:
        response, turns = await take_turns(node, 10_000)
        assert len(partitions(response)) == 20_000
        assert turns.longest_s < 0.2
        assert len(turns.durations_s) > 10

    in_virtual_time(run)


def test_what_changes_while_the_other_partitions_are_read_ends_the_wait(
    node: ApiNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.create_topic("apples", 600)
    read = Partition.read

    def read_and_append(partition: Partition, *args: Any, **values: Any) -> Any:
        """When the last one is read, the first was so long ago."""
        if partition.index == 599:
            monkeypatch.undo()
            node.append("apples", b"a")
        return read(partition, *args, **values)

    async def run() -> None:
        before = trio.current_time()
        response, _ = await take_turns(node, 600, max_wait_ms=5000)
        marks = [each.high_watermark for topic, _, each in partitions(response) if topic == "apples"]
        assert marks == [1] + [0] * 599
        assert trio.current_time() - before < 1

    monkeypatch.setattr(Partition, "read", read_and_append)
    in_virtual_time(run)


def test_a_fetch_of_many_partitions_waits_for_those_that_are_there(node: ApiNode) -> None:
    node.create_topic("apples", 600)

    async def run() -> None:
        before = trio.current_time()
        response, _ = await take_turns(node, 600, max_wait_ms=5000)
        assert trio.current_time() - before == pytest.approx(5)
        refused = {error for (topic, _), error in errors(response).items() if topic == "nothing"}
        assert refused == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert node.broker.fetch_waits.partitions == 0

    in_virtual_time(run)


def test_the_greediest_fetch_does_not_wait_where_too_much_is_kept(node: ApiNode) -> None:
    node.create_topic("apples", 600)
    node.broker.fetch_waits = FetchWaits(1000)

    async def run() -> None:
        before = trio.current_time()
        await take_turns(node, 600, max_wait_ms=5000)
        assert trio.current_time() == before

    in_virtual_time(run)
