"""Produce requests whose records take long to check: what may change meanwhile, and what they leave to others."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.api.produce import produce
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from pykbroker.protocol.records.batch import Record, decode_batch_header, encode_batch
from pykbroker.protocol.records.compression import Compression
from pykbroker.server.logs.record_checks import RecordChecks
from pykbroker.server.network.handlers import CloseConnection
from pykbroker.server.runtime.threads import OnTheLoop
from tests.api.api_node import ApiNode, batch, in_virtual_time
from tests.api.held_threads import HeldThreads, do_meanwhile
from tests.api.test_produce import NEWEST, answers, errors, request, stored_values
from tests.api.turns_taken import context_of, handle

RECORDS = 40
VALUE = bytes(20_000)


def long_batch(key: bytes | None = b"k", **options: Any) -> bytes:
    """Half a megabyte in a few hundred bytes: its check waits for a thread."""
    records = [Record(key, VALUE, (), 1000)] * RECORDS
    return encode_batch(records, compression=Compression.ZSTD, **options)


def send(node: ApiNode, *sent: tuple[str, int, bytes], meanwhile: Callable[[], Any] = int, **options: Any) -> list[Any]:
    """The answers to a request; `meanwhile` is done while a thread has a batch of it."""

    async def run() -> list[PartitionProduceResponse]:
        threads = HeldThreads()
        node.replicas.record_checks = RecordChecks(threads)
        found: list[PartitionProduceResponse] = []

        async def produce_all() -> None:
            found.extend(answers(await node.call(produce, request(*sent, **options), NEWEST)))

        await do_meanwhile(threads, produce_all, meanwhile)
        return found

    return in_virtual_time(run)


@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize("codec", [codec for codec in Compression if codec is not Compression.NONE])
def test_a_large_batch_is_appended_when_it_is_checked(node: ApiNode, codec: Compression, acks: int) -> None:
    node.create_topic("apples", 2)
    rng = Random(1)
    values = [rng.randbytes(rng.randrange(60)) for _ in range(10_000)]
    sent = encode_batch([Record(None, value, (), 1000) for value in values], compression=codec)
    found = send(node, ("apples", 0, sent), ("apples", 1, batch(b"small")), acks=acks)
    assert errors(found) == [ErrorCode.NONE] * 2
    assert stored_values(node, "apples") == values
    assert stored_values(node, "apples", 1) == [b"small"]


def test_other_producers_append_while_a_check_takes_its_time(node: ApiNode) -> None:
    node.create_topic("apples")
    (found,) = send(node, ("apples", 0, long_batch()), meanwhile=lambda: node.append("apples", b"a", b"b"))
    assert (found.error_code, found.base_offset) == (0, 2)
    assert stored_values(node, "apples") == [b"a", b"b", *[VALUE] * RECORDS]


def test_a_leader_that_is_demoted_during_a_check_appends_nothing(node: ApiNode) -> None:
    node.create_topic("apples", replicas=[1, 2])
    demoted = lambda: node.change_partition("apples", 0, leader=2)  # noqa: E731
    assert errors(send(node, ("apples", 0, long_batch()), meanwhile=demoted)) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert node.partition("apples").log.log_end_offset == 0


def test_a_leader_that_is_elected_again_during_a_check_appends_in_its_new_epoch(node: ApiNode) -> None:
    node.create_topic("apples", replicas=[1, 2])

    def elected_again() -> None:
        node.change_partition("apples", 0, leader=2)
        node.change_partition("apples", 0, leader=1, isr=[1])

    assert errors(send(node, ("apples", 0, long_batch()), meanwhile=elected_again)) == [ErrorCode.NONE]
    partition = node.partition("apples")
    header = decode_batch_header(partition.log.read(0, 1 << 20).read())
    assert header.partition_leader_epoch == partition.leader_epoch > 0


def test_a_topic_that_is_deleted_during_a_check_is_unknown(node: ApiNode) -> None:
    node.create_topic("apples")
    deleted = lambda: node.delete_topic("apples")  # noqa: E731
    found = send(node, ("apples", 0, long_batch()), meanwhile=deleted)
    assert errors(found) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_topic_that_is_created_anew_during_a_check_has_the_batch_checked_for_it(node: ApiNode) -> None:
    node.create_topic("apples")

    def created_anew() -> None:
        node.delete_topic("apples")
        node.create_topic("apples", max_message_bytes="100")

    found = send(node, ("apples", 0, long_batch()), meanwhile=created_anew)
    assert errors(found) == [ErrorCode.MESSAGE_TOO_LARGE]


def test_settings_that_change_during_a_check_count(node: ApiNode) -> None:
    """A compacted topic would never get rid of a record without a key."""
    node.create_topic("apples")
    compacted = lambda: node.configure_topic("apples", cleanup_policy="compact")  # noqa: E731
    found = send(node, ("apples", 0, long_batch(key=None)), meanwhile=compacted)
    assert errors(found) == [ErrorCode.INVALID_RECORD]
    assert node.partition("apples").log.log_end_offset == 0


def test_sequences_are_compared_at_the_append(node: ApiNode) -> None:
    """The same batch came on another connection meanwhile."""
    node.create_topic("apples")
    sent = long_batch(producer_id=5, producer_epoch=0, base_sequence=0)
    first = lambda: node.replicas.append(node.partition("apples"), sent, 1000, 1)  # noqa: E731
    (found,) = send(node, ("apples", 0, sent), meanwhile=first)
    assert (found.error_code, found.base_offset) == (0, 0)
    assert node.partition("apples").log.log_end_offset == RECORDS


def test_a_producer_that_has_left_appends_nothing_more(node: ApiNode) -> None:
    node.create_topic("apples", 2)

    async def run() -> None:
        threads = HeldThreads()
        node.replicas.record_checks = RecordChecks(threads)
        sent = request(("apples", 0, batch(b"before")), ("apples", 1, long_batch()), ("apples", 0, batch(b"behind")))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.call, produce, sent, NEWEST)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    in_virtual_time(run)
    assert stored_values(node, "apples", 1) == []


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_who_has_left_and_wanted_an_answer_has_no_more_records_checked(node: ApiNode, acks: int) -> None:
    node.create_topic("apples", 2)
    sent = request(("apples", 0, long_batch()), ("apples", 1, long_batch()), acks=acks)

    async def run() -> None:
        threads = HeldThreads()
        node.replicas.record_checks = RecordChecks(threads)
        context = context_of(node.broker, sent, NEWEST)

        async def leave() -> None:
            await wait_all_tasks_blocked()
            context.connection.has_left = True
            threads.let_go()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(leave)
            if acks:
                with pytest.raises(CloseConnection):
                    await produce(context, sent)
            else:
                await produce(context, sent)
        assert threads.begun == (1 if acks else 2)

    in_virtual_time(run)


def many(count: int, records: bytes) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=records) for index in range(count)]
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="apples", partition_data=data)])


@pytest.mark.parametrize("acks", [1, 77])
def test_a_request_of_many_partitions_gives_others_their_turn(node: ApiNode, acks: int) -> None:
    """There are none of them, or the request is refused as a whole."""
    sent = many(50_000, batch(b"a"))
    sent.acks = acks

    async def run() -> None:
        response, turns = await handle(node.broker, produce, sent, 9)
        assert len(answers(response)) == 50_000
        assert len(turns.durations_s) > 10
        assert turns.longest_s < 0.2

    in_virtual_time(run)


def test_many_bombs_in_a_request_decompress_to_a_bounded_size(node: ApiNode) -> None:
    """Each of 60 MiB in two kilobytes, two hundred of them."""
    node.create_topic("apples", 200)
    bomb = encode_batch([Record(None, bytes(60 << 20), (), 1000)], compression=Compression.ZSTD, compression_level=19)

    async def run() -> list[ErrorCode]:
        counted = CountedThreads()
        node.replicas.record_checks = RecordChecks(counted)
        found = errors(answers(await node.call(produce, many(200, bomb), 9)))
        assert counted.runs < 12
        return found

    found = in_virtual_time(run)
    assert found.count(ErrorCode.NONE) <= 5
    assert set(found) == {ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE}


class CountedThreads(OnTheLoop):
    def __init__(self) -> None:
        self.runs = 0

    async def run(self, fn: Callable[..., Any], *args: Any) -> Any:
        self.runs += 1
        return await trio.to_thread.run_sync(fn, *args)


def test_an_answer_names_a_thousand_records_at_fault_at_most(node: ApiNode) -> None:
    node.create_topic("compacted", 30, cleanup_policy="compact")
    data = batch(*[b"v"] * 500, key=None)
    found = send_at_once(node, *(("compacted", index, data) for index in range(30)))
    assert errors(found) == [ErrorCode.INVALID_RECORD] * 30
    assert [len(each.record_errors) for each in found] == [500, 500, *[0] * 28]


def send_at_once(node: ApiNode, *sent: tuple[str, int, bytes]) -> list[PartitionProduceResponse]:
    async def run() -> list[PartitionProduceResponse]:
        return answers(await node.call(produce, request(*sent), NEWEST))

    return in_virtual_time(run)
