"""A producer against scripted answers: batches, sequences, retries, and what ends it."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
import trio

from pykbroker.client.batch import ProducerBatch
from pykbroker.client.errors import BadInput, KafkaError, TimedOut, UnknownTopic
from pykbroker.client.producer import Producer, open_producer
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata import MetadataRequest
from pykbroker.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from pykbroker.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from pykbroker.protocol.records.batch import RecordBatch, iter_batches, iter_records
from pykbroker.protocol.records.compression import Compression
from tests.client.fake_broker import HOST, PORT, TOPIC_ID, FakeBroker, with_broker

PRODUCER_ID = 77
BASE_OFFSET = 100


class Log:
    """Answers produce requests with one code after the other, then with success, and keeps what came."""

    def __init__(
        self, broker: FakeBroker, codes: Sequence[ErrorCode] = (), versions: tuple[int, int] = (3, 13)
    ) -> None:
        self.batches: list[tuple[int, RecordBatch]] = []
        self.raw: list[bytes] = []
        self._codes = list(codes)
        broker.serve_topics(t=3)
        broker.serve(ProduceRequest, self._produce, versions)
        broker.serve(
            InitProducerIdRequest,
            lambda request, version: InitProducerIdResponse(producer_id=PRODUCER_ID, producer_epoch=2),
        )

    def _produce(self, request: ProduceRequest, version: int) -> ProduceResponse | None:
        [topic] = request.topic_data
        assert (topic.topic_id == TOPIC_ID) if version >= 13 else (topic.name == "t")
        rows = []
        for data in topic.partition_data:
            assert data.records is not None
            [batch] = iter_batches(bytes(data.records))
            batch.ensure_valid()
            self.batches.append((data.index, batch))
            self.raw.append(bytes(data.records))
            code = self._codes.pop(0) if self._codes else ErrorCode.NONE
            rows.append(PartitionProduceResponse(index=data.index, error_code=code, base_offset=BASE_OFFSET))
        if request.acks == 0:
            return None
        answer = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=rows)
        return ProduceResponse(responses=[answer])

    @property
    def sequences(self) -> list[int]:
        return [batch.header.base_sequence for _, batch in self.batches]

    def values(self, partition: int) -> list[bytes | None]:
        return [record.value for index, batch in self.batches if index == partition for record in iter_records(batch)]


def producing(broker: FakeBroker, **settings: Any) -> Any:
    return open_producer(broker.cluster(), rng=Random(1), now_ms=lambda: 1_234, **settings)


async def send_values(producer: Producer, *values: bytes, partition: int = 0) -> None:
    for value in values:
        await producer.send("t", value, partition=partition)


@pytest.mark.parametrize("versions", [(3, 13), (3, 12), (3, 8)])
def test_records_go_out_in_order_with_a_sequence_and_come_back_with_offsets(versions: tuple[int, int]) -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker, versions=versions)
        async with producing(broker, linger_ms=10) as producer:
            deliveries = [await producer.send("t", b"%d" % n, partition=1) for n in range(5)]
            await producer.flush()
            await send_values(producer, b"5", b"6", partition=1)
        assert log.values(1) == [b"%d" % n for n in range(7)]
        assert [batch.header.records_count for _, batch in log.batches] == [5, 2]
        assert log.sequences == [0, 5]
        headers = [batch.header for _, batch in log.batches]
        assert {(header.producer_id, header.producer_epoch) for header in headers} == {(PRODUCER_ID, 2)}
        assert [await delivery.wait() for delivery in deliveries] == [100, 101, 102, 103, 104]

    with_broker(scenario)


def test_keys_headers_timestamps_and_nulls_are_sent_as_given() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker)
        async with producing(broker, compression=Compression.GZIP) as producer:
            await producer.send("t", None, key=b"k", headers=[("h", b"1"), ("n", None)], timestamp_ms=5)
            await producer.send("t", b"v", key=b"k")
        [(_, batch)] = log.batches
        assert batch.header.compression is Compression.GZIP
        first, second = iter_records(batch)
        assert (first.key, first.value, tuple(first.headers), first.timestamp) == (
            b"k",
            None,
            (("h", b"1"), ("n", None)),
            5,
        )
        assert second.timestamp == 1_234

    with_broker(scenario)


def test_a_batch_is_closed_when_it_is_full() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker)
        async with producing(broker, batch_size_bytes=1_000, linger_ms=1_000) as producer:
            await send_values(producer, *[bytes(400)] * 5)
        assert [batch.header.records_count for _, batch in log.batches] == [2, 2, 1]

    with_broker(scenario)


def test_a_retry_sends_the_same_bytes_again() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker, [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT])
        async with producing(broker) as producer:
            await send_values(producer, b"a")
            await producer.flush()
            await send_values(producer, b"b")
        assert log.raw[0] == log.raw[1] == log.raw[2]
        assert log.sequences == [0, 0, 0, 1]

    with_broker(scenario)


def test_a_duplicate_is_a_success() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker, [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_SEQUENCE_NUMBER])
        async with producing(broker) as producer:
            await send_values(producer, b"a")
        assert log.sequences == [0, 0]

    with_broker(scenario)


def test_a_refused_record_fails_the_producer_but_uses_up_no_sequence() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker, [ErrorCode.MESSAGE_TOO_LARGE])

        async def produce() -> None:
            async with producing(broker) as producer:
                refused = await producer.send("t", b"big", partition=0)
                refused.batch.closed = True
                following = await producer.send("t", b"small", partition=0)
                assert await following.wait() == BASE_OFFSET
                with pytest.raises(KafkaError):
                    await refused.wait()

        with pytest.raises(KafkaError) as caught:
            await produce()
        assert caught.value.error_code is ErrorCode.MESSAGE_TOO_LARGE
        assert log.values(0) == [b"big", b"small"]
        assert log.sequences == [0, 0]

    with_broker(scenario)


def test_what_waits_behind_a_batch_of_unknown_fate_is_not_sent() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker, [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER])

        async def produce() -> None:
            async with producing(broker) as producer:
                first = await producer.send("t", b"a", partition=0)
                first.batch.closed = True
                await send_values(producer, b"b")
                await producer.flush()

        with pytest.raises(KafkaError):
            await produce()
        assert log.values(0) == [b"a"]

    with_broker(scenario)


def test_a_record_that_cannot_be_delivered_in_time_is_given_up() -> None:
    async def scenario(broker: FakeBroker) -> None:
        Log(broker, [ErrorCode.NOT_ENOUGH_REPLICAS] * 1_000)
        start = trio.current_time()
        with pytest.raises(TimedOut, match="t-0: not delivered within 5000 ms"):
            async with producing(broker, delivery_timeout_ms=5_000) as producer:
                await send_values(producer, b"a")
        assert 5 <= trio.current_time() - start < 7

    with_broker(scenario)


def test_a_batch_of_a_cluster_that_is_gone_is_given_up_in_time() -> None:
    async def scenario(broker: FakeBroker) -> None:
        Log(broker)
        done: list[ProducerBatch] = []
        cluster = broker.cluster()

        async def send_before_and_behind_the_loss() -> None:
            async with open_producer(cluster, delivery_timeout_ms=5_000, on_done=done.append) as producer:
                await send_values(producer, b"a")
                await producer.flush()
                broker.refuses.add((HOST, PORT))
                await (await cluster.any_connection()).aclose()
                await send_values(producer, b"b")

        start = trio.current_time()
        with pytest.raises(TimedOut, match="t-0: not delivered within 5000 ms"):
            await send_before_and_behind_the_loss()
        assert 5 <= trio.current_time() - start < 7
        assert [batch.error is None for batch in done] == [True, False]

    with_broker(scenario)


def test_a_producer_that_must_not_create_topics_does_not_ask_for_it() -> None:
    async def scenario(broker: FakeBroker) -> None:
        Log(broker)
        async with producing(broker, allow_auto_topic_creation=False) as producer:
            with pytest.raises(UnknownTopic):
                await producer.send("nope", b"x")
        assert not any(request.allow_auto_topic_creation for request in broker.of_type(MetadataRequest))

    with_broker(scenario)


def test_a_full_buffer_has_the_size_that_was_given() -> None:
    async def scenario(broker: FakeBroker) -> None:
        Log(broker)
        async with producing(broker, buffer_memory_bytes=100, linger_ms=1_000_000) as producer:
            await producer.send("t", b"x" * 200, partition=0)
            with trio.move_on_after(10) as scope:
                await producer.send("t", b"y", partition=0)
        assert scope.cancelled_caught

    with_broker(scenario)


def test_with_acks_0_nothing_is_waited_for() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker)
        async with producing(broker, acks=0, idempotent=False) as producer:
            delivery = await producer.send("t", b"a", partition=0)
            assert await delivery.wait() == -1
            await trio.sleep(0.1)
        assert log.values(0) == [b"a"]
        assert log.sequences == [-1]
        assert broker.of_type(InitProducerIdRequest) == []

    with_broker(scenario)


def test_an_idempotent_producer_needs_all_acks() -> None:
    async def scenario(broker: FakeBroker) -> None:
        with pytest.raises(BadInput):
            async with producing(broker, acks=1):
                pass

    with_broker(scenario)


def test_unknown_topics_and_partitions_are_refused_when_they_are_named() -> None:
    async def scenario(broker: FakeBroker) -> None:
        Log(broker)
        async with producing(broker) as producer:
            with pytest.raises(UnknownTopic):
                await producer.send("nope", b"x")
            with pytest.raises(UnknownTopic):
                await producer.send("t", b"x", partition=9)

    with_broker(scenario)
