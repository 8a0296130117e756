"""Produce: what is appended, what is refused with which error, and when the answer comes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import trio

from pykbroker.api.produce import produce
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.protocol.records.compression import Compression
from pykbroker.replication.partition import Partition
from pykbroker.server.network.handlers import CloseConnection
from pykbroker.sim.clock import EPOCH_MS
from pykbroker.storage.log.log import Log
from tests.api.api_node import ApiNode, batch, in_virtual_time
from tests.replication.truncations import truncate

NEWEST = 12

Sent = tuple[str, int, bytes | None]


def request(*sent: Sent, acks: int = -1, timeout_ms: int = 1000, transactional_id: str | None = None) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        transactional_id=transactional_id,
        topic_data=[
            TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=records)])
            for topic, index, records in sent
        ],
    )


def answers(response: ProduceResponse) -> list[PartitionProduceResponse]:
    return [answer for topic in response.responses for answer in topic.partition_responses]


def send(node: ApiNode, *sent: Sent, version: int = NEWEST, **options: Any) -> list[PartitionProduceResponse]:
    async def run() -> ProduceResponse:
        response: ProduceResponse = await node.call(produce, request(*sent, **options), version)
        return response

    return answers(in_virtual_time(run))


def errors(found: Iterable[PartitionProduceResponse]) -> list[ErrorCode]:
    return [ErrorCode(each.error_code) for each in found]


def stored_values(node: ApiNode, topic: str, index: int = 0) -> list[bytes | None]:
    data = node.partition(topic, index).log.read(0, 1 << 20).read()
    return [record.value for each in iter_batches(data) for record in iter_records(each)]


@pytest.mark.parametrize("version", range(3, 14))
def test_records_are_appended_and_their_offset_is_told(node: ApiNode, version: int) -> None:
    topic_id = node.create_topic("apples")
    sent = request(("apples", 0, batch(b"a", b"b")))
    sent.topic_data[0].topic_id = topic_id
    for expected in (0, 2):

        async def run() -> ProduceResponse:
            response: ProduceResponse = await node.call(produce, sent, version)
            return response

        response = in_virtual_time(run)
        (topic,) = response.responses
        assert (topic.topic_id if version >= 13 else topic.name) == (topic_id if version >= 13 else "apples")
        (answer,) = topic.partition_responses
        assert (answer.index, answer.error_code, answer.base_offset) == (0, 0, expected)
        assert answer.log_append_time_ms == -1
        assert answer.log_start_offset == (0 if version >= 5 else -1)
        assert (answer.record_errors, answer.error_message) == ([], None)
        assert response.throttle_time_ms == 0
    assert stored_values(node, "apples") == [b"a", b"b", b"a", b"b"]


@pytest.mark.parametrize("acks", [-1, 1])
def test_the_answer_keeps_the_order_of_the_request(node: ApiNode, acks: int) -> None:
    node.create_topic("apples", 3)
    node.create_topic("beets", 1)
    found = send(
        node,
        ("apples", 2, batch(b"x")),
        ("beets", 0, batch(b"y")),
        ("apples", 0, batch(b"z")),
        acks=acks,
    )
    assert errors(found) == [ErrorCode.NONE] * 3
    assert [each.index for each in found] == [2, 0, 0]
    assert stored_values(node, "apples", 0) == [b"z"]


def test_without_acks_there_is_no_answer(node: ApiNode) -> None:
    node.create_topic("apples")

    async def run() -> None:
        assert await node.call(produce, request(("apples", 0, batch(b"a")), acks=0), NEWEST) is None

    in_virtual_time(run)
    assert stored_values(node, "apples") == [b"a"]


@pytest.mark.parametrize("sent", [("nothing", 0, batch(b"a")), ("apples", 0, b"junk"), ("apples", 0, None)])
def test_without_acks_any_error_closes_the_connection(node: ApiNode, sent: Sent) -> None:
    node.create_topic("apples")

    async def run() -> None:
        with pytest.raises(CloseConnection):
            await node.call(produce, request(sent, acks=0), NEWEST)

    in_virtual_time(run)


def transactional(values: bytes = b"a") -> bytes:
    return batch(values, producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (("nothing", 0, batch(b"a")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("apples", 99, batch(b"a")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("apples", -1, batch(b"a")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("led elsewhere", 0, batch(b"a")), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (("followed", 0, transactional()), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (("__consumer_offsets", 0, batch(b"a")), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (("apples", 0, None), ErrorCode.INVALID_RECORD),
        (("apples", 0, b""), ErrorCode.INVALID_RECORD),
        (("apples", 0, batch(b"a") + b"xyz"), ErrorCode.INVALID_RECORD),
        (("apples", 0, batch(b"a") + batch(b"b")), ErrorCode.INVALID_RECORD),
        (("apples", 0, batch(b"a")[:-1]), ErrorCode.INVALID_RECORD),
        (("apples", 0, batch(b"a")[:-1] + b"\x07"), ErrorCode.CORRUPT_MESSAGE),
        (("apples", 0, batch(b"a", base_offset=3)), ErrorCode.INVALID_RECORD),
        (("apples", 0, batch(b"a" * 3000)), ErrorCode.MESSAGE_TOO_LARGE),
        (("compacted", 0, batch(b"a", key=None)), ErrorCode.INVALID_RECORD),
        (("apples", 0, batch(b"a", timestamp=2**62)), ErrorCode.INVALID_TIMESTAMP),
        (("apples", 0, transactional()), ErrorCode.NOT_ENOUGH_REPLICAS),
        (("apples", 0, batch(b"a", is_transactional=True)), ErrorCode.INVALID_RECORD),
    ],
)
def test_refusals(node: ApiNode, sent: Sent, error: ErrorCode) -> None:
    node.create_topic("apples", max_message_bytes="2000")
    node.create_topic("compacted", cleanup_policy="compact")
    node.create_topic("led elsewhere", leader=2, replicas=[2])
    node.create_topic("followed", leader=2, replicas=[1, 2])
    node.create_topic("__consumer_offsets")
    (found,) = send(node, sent, transactional_id="mine")
    assert (ErrorCode(found.error_code), found.base_offset) == (error, -1)
    if not isinstance(node.replicas.get_partition(sent[0], sent[1]), ErrorCode):
        assert node.partition(sent[0]).log.log_end_offset == 0


@pytest.mark.parametrize("version", [9, 10, 12])
def test_a_producer_at_the_wrong_broker_learns_the_leader_since_version_10(node: ApiNode, version: int) -> None:
    node.create_topic("apples", leader=2, replicas=[1, 2])

    async def run() -> ProduceResponse:
        response: ProduceResponse = await node.call(produce, request(("apples", 0, batch(b"a"))), version)
        return response

    response = in_virtual_time(run)
    (answer,) = answers(response)
    assert ErrorCode(answer.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader = (answer.current_leader.leader_id, answer.current_leader.leader_epoch)
    endpoints = [(each.node_id, each.host, each.port) for each in response.node_endpoints]
    assert (leader, endpoints) == (((2, 0), [(2, "there", 9093)]) if version >= 10 else ((-1, -1), []))


def test_an_unknown_topic_id_is_told_as_such(node: ApiNode) -> None:
    node.create_topic("apples")
    sent = request(("apples", 0, batch(b"a")))
    sent.topic_data[0].topic_id = b"?" * 16

    async def run() -> ProduceResponse:
        response: ProduceResponse = await node.call(produce, sent, 13)
        return response

    assert errors(answers(in_virtual_time(run))) == [ErrorCode.UNKNOWN_TOPIC_ID]


@pytest.mark.parametrize("acks", [2, -2, 77])
def test_other_acks_are_invalid_for_all_partitions(node: ApiNode, acks: int) -> None:
    node.create_topic("apples", 2)
    found = send(node, ("apples", 0, batch(b"a")), ("apples", 1, batch(b"a")), acks=acks)
    assert errors(found) == [ErrorCode.INVALID_REQUIRED_ACKS] * 2
    assert stored_values(node, "apples") == []


def test_a_partition_named_twice_is_refused_both_times_and_the_others_are_not(node: ApiNode) -> None:
    node.create_topic("apples", 2)
    found = send(node, ("apples", 0, batch(b"a")), ("apples", 1, batch(b"b")), ("apples", 0, batch(b"c")))
    assert errors(found) == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert node.partition("apples", 0).log.log_end_offset == 0


@pytest.mark.parametrize(("version", "error"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)])
def test_zstd_needs_version_7(node: ApiNode, version: int, error: ErrorCode) -> None:
    node.create_topic("apples")
    assert errors(send(node, ("apples", 0, batch(b"a", compression=Compression.ZSTD)), version=version)) == [error]


def test_transactional_records_need_a_transactional_id(node: ApiNode) -> None:
    node.create_topic("apples", 2)
    found = send(node, ("apples", 0, transactional()), ("apples", 1, batch(b"b")), transactional_id=None)
    assert errors(found) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2


@pytest.mark.parametrize(("version", "told"), [(7, False), (8, True)])
def test_records_at_fault_are_named_since_version_8(node: ApiNode, version: int, told: bool) -> None:
    node.create_topic("apples", cleanup_policy="compact")
    records = [Record(key=b"k" if i % 2 else None, value=b"v", timestamp=1000) for i in range(4)]
    (found,) = send(node, ("apples", 0, encode_batch(records)), version=version)
    assert ErrorCode(found.error_code) is ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in found.record_errors] == ([0, 2] if told else [])
    assert bool(found.error_message) is told
    assert all(each.batch_index_error_message for each in found.record_errors)


def test_log_append_time_is_told(node: ApiNode) -> None:
    node.create_topic("apples", message_timestamp_type="LogAppendTime")
    (found,) = send(node, ("apples", 0, batch(b"a", timestamp=1000)))
    (stored,) = iter_batches(node.partition("apples").log.read(0, 1 << 20).read())
    assert found.log_append_time_ms == stored.header.max_timestamp > 1000


def idempotent(sequence: int, count: int = 1, epoch: int = 0) -> bytes:
    # Not long ago: what is known of a producer is forgotten a day after its last batch.
    return batch(*[b"v"] * count, timestamp=EPOCH_MS, producer_id=5, producer_epoch=epoch, base_sequence=sequence)


def test_a_producer_s_sequence_is_kept(node: ApiNode) -> None:
    node.create_topic("apples")
    table = [
        (idempotent(0, 2), ErrorCode.NONE, 0),
        (idempotent(2), ErrorCode.NONE, 2),
        (idempotent(0, 2), ErrorCode.NONE, 0),  # a duplicate, answered as the first time
        (idempotent(4), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1),
        (idempotent(3, epoch=1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1),
        (idempotent(0, epoch=1), ErrorCode.NONE, 3),
        (idempotent(3, epoch=0), ErrorCode.INVALID_PRODUCER_EPOCH, -1),
        (idempotent(-1), ErrorCode.INVALID_RECORD, -1),
    ]
    for step, (records, error, offset) in enumerate(table):
        (found,) = send(node, ("apples", 0, records))
        assert (ErrorCode(found.error_code), found.base_offset) == (error, offset), step
    assert node.partition("apples").log.log_end_offset == 4


def test_duplicates_are_known_after_a_restart(node: ApiNode) -> None:
    async def restart() -> None:
        node.restart()

    node.create_topic("apples")
    send(node, ("apples", 0, idempotent(0, 3)))
    in_virtual_time(restart)
    (found,) = send(node, ("apples", 0, idempotent(0, 3)))
    assert (found.error_code, found.base_offset) == (0, 0)
    assert node.partition("apples").log.log_end_offset == 3


# Waiting for replicas


def replicated_topic(node: ApiNode, **configs: str) -> None:
    node.create_topic("apples", replicas=[1, 2], leader=1, **configs)


def test_acks_all_waits_for_the_other_replicas(node: ApiNode) -> None:
    replicated_topic(node)

    async def run() -> None:
        async def replicate() -> None:
            await trio.sleep(0.2)
            node.partition("apples").read_as_replica(2, 1, 1000, now_ms=0)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(replicate)
            (found,) = answers(await node.call(produce, request(("apples", 0, batch(b"a"))), NEWEST))
            assert (found.error_code, found.base_offset) == (0, 0)
            assert trio.current_time() == pytest.approx(started + 0.2)
        assert not node.partition("apples").watchers

    async def timed() -> None:
        nonlocal started
        started = trio.current_time()
        await run()

    started = 0.0
    in_virtual_time(timed)


def test_acks_all_gives_up_at_the_request_s_timeout(node: ApiNode) -> None:
    replicated_topic(node)

    async def run() -> None:
        started = trio.current_time()
        (found,) = answers(await node.call(produce, request(("apples", 0, batch(b"a")), timeout_ms=300), NEWEST))
        assert ErrorCode(found.error_code) is ErrorCode.REQUEST_TIMED_OUT
        assert trio.current_time() == pytest.approx(started + 0.3)
        assert not node.partition("apples").watchers

    in_virtual_time(run)


def test_other_acks_do_not_wait(node: ApiNode) -> None:
    replicated_topic(node)
    assert errors(send(node, ("apples", 0, batch(b"a")), acks=1)) == [ErrorCode.NONE]


@pytest.mark.parametrize("deleted", [True, False])
def test_a_leader_that_loses_the_partition_tells_at_once(node: ApiNode, deleted: bool) -> None:
    replicated_topic(node)

    async def run() -> None:
        async def lose() -> None:
            await trio.sleep(0.1)
            if deleted:
                node.delete_topic("apples")
            else:
                node.change_partition("apples", 0, leader=2)

        started = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lose)
            (found,) = answers(await node.call(produce, request(("apples", 0, batch(b"a"))), NEWEST))
        assert ErrorCode(found.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert trio.current_time() == pytest.approx(started + 0.1)

    in_virtual_time(run)


def test_too_few_replicas_in_sync_refuse_acks_all(node: ApiNode) -> None:
    replicated_topic(node, min_insync_replicas="2")
    node.change_partition("apples", 0, isr=[1])
    assert errors(send(node, ("apples", 0, batch(b"a")))) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert errors(send(node, ("apples", 0, batch(b"a")), acks=1)) == [ErrorCode.NONE]


# The disk


@pytest.mark.parametrize(("flush_messages", "flushed"), [("1", 3), ("3", 3), ("4", 0)])
def test_flush_messages_comes_before_the_answer(node: ApiNode, flush_messages: str, flushed: int) -> None:
    node.create_topic("apples", flush_messages=flush_messages)
    send(node, ("apples", 0, batch(b"a", b"b", b"c")))
    assert node.partition("apples").log.recovery_point == flushed


@pytest.mark.parametrize("acks", [1, -1])
def test_what_the_disk_fails_to_flush_is_not_acknowledged(
    node: ApiNode, monkeypatch: pytest.MonkeyPatch, acks: int
) -> None:
    node.create_topic("apples", flush_messages="1")

    async def flush(partition: Partition, end_offset: int) -> bool:
        await trio.lowlevel.checkpoint()
        return False

    monkeypatch.setattr(node.replicas, "flush", flush)
    (found,) = send(node, ("apples", 0, batch(b"a")), acks=acks)
    assert ErrorCode(found.error_code) is ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def slow_disk(node: ApiNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes to a thread takes five seconds."""
    run = node.threads.run

    async def run_slowly(fn: Callable[..., Any], *arguments: Any) -> Any:
        await trio.sleep(5)
        return await run(fn, *arguments)

    monkeypatch.setattr(node.threads, "run", run_slowly)


@pytest.mark.usefixtures("slow_disk")
def test_a_batch_that_was_truncated_while_its_flush_took_long_is_not_acknowledged(node: ApiNode) -> None:
    """Its leader was demoted and leads again; another leader's batch is at its offset, on both replicas."""
    replicated_topic(node, flush_messages="1")
    partition = node.partition("apples")

    async def lose_and_win_back() -> None:
        await trio.sleep(1)
        node.change_partition("apples", 0, leader=2, isr=[2])
        truncate(partition, 0)
        partition.append_as_follower(batch(b"another", partition_leader_epoch=1))
        node.change_partition("apples", 0, leader=1, isr=[1])

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lose_and_win_back)
            (found,) = answers(await node.call(produce, request(("apples", 0, batch(b"a"))), NEWEST))
        assert stored_values(node, "apples") == [b"another"]
        assert ErrorCode(found.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER

    in_virtual_time(run)


@pytest.mark.usefixtures("slow_disk")
@pytest.mark.parametrize("is_flushed", [True, False])
def test_a_flush_goes_on_in_the_log_that_takes_the_others_place(
    node: ApiNode, tmp_path: Path, is_flushed: bool
) -> None:
    """The partition moves to another directory while its producer waits for the disk."""
    node.create_topic("apples", flush_messages="1")
    partition = node.partition("apples")
    (tmp_path / "other").mkdir()
    copy = Log.open(node.disk, str(tmp_path / "other/apples-0"), partition.log.config, now_ms=0)

    async def move() -> None:
        await trio.sleep(1)
        before = partition.log
        copy.append_as_follower(before.read(0, 1000).read())
        if is_flushed:
            copy.flush()
        node.replicas.replace_log(partition, copy)
        before.abandon()

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(move)
            (found,) = answers(await node.call(produce, request(("apples", 0, batch(b"a"))), NEWEST))
        assert (found.error_code, copy.recovery_point) == (0, 1)

    in_virtual_time(run)
