"""A producer: batches per partition, one request in flight per leader, idempotent unless told otherwise.

One batch per partition is under way at a time, so order holds without further care, and what comes in meanwhile makes
the next batch: a busy producer needs no linger. Not here: transactions, splitting of batches that are too large.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from pykbroker.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from pykbroker.protocol.records.batch import Header, Record
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.topic_partition import TopicPartition

from .background import background
from .batch import Delivery, ProducerBatch, ProducerIdentity, estimated_size
from .cluster import RETRY_BACKOFF_MS, Cluster
from .errors import BadInput, ClientError, ConnectionLost, KafkaError, TimedOut, UnknownTopic, check, code_of
from .metadata import Node
from .partitioner import StickyPartitions, partition_for_key

BATCH_SIZE_BYTES = 16_384
BUFFER_MEMORY_BYTES = 32 * 1024 * 1024
DELIVERY_TIMEOUT_MS = 120_000
PRODUCE_TIMEOUT_MS = 30_000
TOPIC_IDS_SINCE = 13

_RECORDS_REFUSED = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
)
"""The log did not take the batch and the next one may follow; after any other error the sequence is in doubt."""


@asynccontextmanager
async def open_producer(
    cluster: Cluster,
    *,
    acks: int = -1,
    idempotent: bool = True,
    compression: Compression = Compression.NONE,
    linger_ms: int = 0,
    batch_size_bytes: int = BATCH_SIZE_BYTES,
    delivery_timeout_ms: int = DELIVERY_TIMEOUT_MS,
    rng: Random | None = None,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> AsyncIterator[Producer]:
    """Send in the background while the block runs, and what is left at its end, unless the block fails."""
    if idempotent and acks != -1:
        raise BadInput("An idempotent producer needs acks=all")
    identity = await _init_producer_id(cluster) if idempotent else ProducerIdentity()
    producer = Producer(
        cluster,
        identity,
        acks,
        compression,
        linger_ms,
        batch_size_bytes,
        delivery_timeout_ms,
        rng or Random(),  # noqa: S311 - nothing secret is drawn
        now_ms,
    )
    async with background(producer.run):
        yield producer
        await producer.flush()


async def _init_producer_id(cluster: Cluster) -> ProducerIdentity:
    response = await cluster.request(
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000),
        InitProducerIdResponse,
        verify=lambda answer: check(answer.error_code),
    )
    return ProducerIdentity(response.producer_id, response.producer_epoch)


class Producer:
    """Made by `open_producer`. acknowledged: how many records are, or with acks=0 are handed to the network."""

    def __init__(
        self,
        cluster: Cluster,
        identity: ProducerIdentity,
        acks: int,
        compression: Compression,
        linger_ms: int,
        batch_size_bytes: int,
        delivery_timeout_ms: int,
        rng: Random,
        now_ms: Callable[[], int],
    ) -> None:
        self.acknowledged = 0
        self._cluster = cluster
        self._identity = identity
        self._acks = acks
        self._compression = compression
        self._linger_ms = linger_ms
        self._batch_size_bytes = batch_size_bytes
        self._delivery_timeout_ms = delivery_timeout_ms
        self._sticky = StickyPartitions(rng)
        self._now_ms = now_ms
        self._queues: dict[TopicPartition, deque[ProducerBatch]] = {}
        self._sequences: dict[TopicPartition, int] = {}
        self._buffered_bytes = 0
        self._failure: ClientError | None = None
        self._work = trio.lowlevel.ParkingLot()
        self._full = trio.lowlevel.ParkingLot()
        self._progress = trio.lowlevel.ParkingLot()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Put a record into its partition's batch; waits only while the buffer is full.

        Raises what a former record failed with, and UnknownTopic.
        """
        record = Record(key, value, tuple(headers), self._now_ms() if timestamp_ms is None else timestamp_ms)
        target = await self._partition(topic, key, partition)
        while self._buffered_bytes >= BUFFER_MEMORY_BYTES and self._failure is None:
            await self._progress.park()
        self._raise_failure()
        size_bytes = estimated_size(record)
        batch = self._open_batch(target, record.key, size_bytes)
        batch.append(record, size_bytes)
        self._buffered_bytes += size_bytes
        self._work.unpark_all()
        if len(batch.records) == 1:
            # A caller that never waits must not keep the sender from running.
            await trio.lowlevel.checkpoint()
        return Delivery(batch, len(batch.records) - 1)

    async def flush(self) -> None:
        """Return when everything sent so far is acknowledged. Raises the first failure."""
        pending = [batch for queue in self._queues.values() for batch in queue]
        for batch in pending:
            batch.closed = True
        self._full.unpark_all()
        for batch in pending:
            await batch.done.wait()
        self._raise_failure()

    async def run(self) -> None:
        """The sender."""
        while True:
            if not self._queues:
                await self._work.park()
            if self._linger_ms and not any(queue[0].closed for queue in self._queues.values()):
                with trio.move_on_after(self._linger_ms / 1000):
                    await self._full.park()
            if not await self._send_heads():
                await trio.sleep(RETRY_BACKOFF_MS / 1000)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _partition(self, topic: str, key: bytes | None, partition: int | None) -> TopicPartition:
        partitions = (await self._cluster.topic(topic, allow_auto_topic_creation=True)).partitions
        if partition is not None:
            if partition not in partitions:
                raise UnknownTopic(f"Topic '{topic}' has no partition {partition}")
            return TopicPartition(topic, partition)
        count = len(partitions)
        chosen = self._sticky.partition(topic, count) if key is None else partition_for_key(key, count)
        return TopicPartition(topic, chosen)

    def _open_batch(self, target: TopicPartition, key: bytes | None, size_bytes: int) -> ProducerBatch:
        queue = self._queues.setdefault(target, deque())
        if queue and not queue[-1].closed:
            if queue[-1].size_bytes + size_bytes <= self._batch_size_bytes:
                return queue[-1]
            queue[-1].closed = True
            self._full.unpark_all()
            topic = self._cluster.metadata.topics.get(target.topic)
            if key is None and topic is not None:
                self._sticky.batch_is_full(target.topic, len(topic.partitions))
        queue.append(ProducerBatch(target, trio.current_time() + self._delivery_timeout_ms / 1000))
        return queue[-1]

    # ---- the sender's round: the first batch of every partition, grouped by leader

    async def _send_heads(self) -> bool:
        """Tell whether anything moved; otherwise it is time for a pause."""
        by_leader: dict[Node, list[ProducerBatch]] = {}
        moved = False
        for target, queue in list(self._queues.items()):
            try:
                by_leader.setdefault(await self._cluster.leader(target), []).append(queue[0])
            except ClientError as error:
                moved |= self._failed(queue[0], error)
        results: list[bool] = []
        async with trio.open_nursery() as nursery:
            for node, batches in by_leader.items():
                nursery.start_soon(self._send_to, node, batches, results)
        self._progress.unpark_all()
        return moved or any(results)

    async def _send_to(self, node: Node, batches: list[ProducerBatch], results: list[bool]) -> None:
        for batch in batches:
            batch.encode(self._compression, self._identity, self._base_sequence(batch))
        try:
            answers = await self._produce(node, {batch.partition: batch for batch in batches})
        except ClientError as error:
            results.extend([self._failed(batch, error) for batch in batches])
            await self._refresh_quietly()
            return
        stale = False
        for batch in batches:
            error_of = self._acknowledge(batch, answers.get(batch.partition))
            if error_of is None:
                results.append(True)
            else:
                stale = True
                results.append(self._failed(batch, error_of))
        if stale:
            await self._refresh_quietly()

    async def _produce(
        self, node: Node, batches: dict[TopicPartition, ProducerBatch]
    ) -> dict[TopicPartition, PartitionProduceResponse]:
        connection = await self._cluster.node_connection(node)
        version = connection.version_of(ProduceRequest)
        topics: dict[str, TopicProduceData] = {}
        for target, batch in batches.items():
            if version >= TOPIC_IDS_SINCE:
                row = TopicProduceData(topic_id=(await self._cluster.topic(target.topic)).topic_id)
            else:
                row = TopicProduceData(name=target.topic)
            data = PartitionProduceData(index=target.partition, records=batch.encoded)
            topics.setdefault(target.topic, row).partition_data.append(data)
        request = ProduceRequest(
            transactional_id=None, acks=self._acks, timeout_ms=PRODUCE_TIMEOUT_MS, topic_data=list(topics.values())
        )
        if self._acks == 0:
            await connection.send(request, version=version)
            return {target: PartitionProduceResponse(base_offset=-1) for target in batches}
        response = await connection.request(request, ProduceResponse, version=version)
        names = {row.topic_id: name for name, row in topics.items()}
        return {
            TopicPartition(names[topic.topic_id] if version >= TOPIC_IDS_SINCE else topic.name, row.index): row
            for topic in response.responses
            for row in topic.partition_responses
            if version < TOPIC_IDS_SINCE or topic.topic_id in names
        }

    def _base_sequence(self, batch: ProducerBatch) -> int:
        return self._sequences.get(batch.partition, 0) if self._identity.producer_id >= 0 else -1

    def _acknowledge(self, batch: ProducerBatch, answer: PartitionProduceResponse | None) -> ClientError | None:
        if answer is None:
            return ConnectionLost(f"The answer to a produce request leaves out {batch.partition}")
        error_code = code_of(answer.error_code)
        if error_code not in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            return KafkaError(error_code, answer.error_message)
        batch.base_offset = answer.base_offset
        batch.log_append_time_ms = answer.log_append_time_ms
        following = self._sequences.get(batch.partition, 0) + len(batch.records)
        self._sequences[batch.partition] = following & 0x7FFFFFFF
        self.acknowledged += len(batch.records)
        self._finish(batch)
        return None

    def _failed(self, batch: ProducerBatch, error: ClientError) -> bool:
        """End the batch unless it may be sent once more; whether it ended."""
        if error.retriable and trio.current_time() < batch.deadline:
            return False
        if error.retriable:
            error = TimedOut(f"{batch.partition}: not delivered within {self._delivery_timeout_ms} ms: {error}")
        batch.error = error
        self._failure = self._failure or error
        self._finish(batch)
        if not (isinstance(error, KafkaError) and error.error_code in _RECORDS_REFUSED):
            self._abandon(batch.partition, error)
        return True

    def _abandon(self, partition: TopicPartition, error: ClientError) -> None:
        """Fail the batches behind one whose fate is unknown: they cannot be sent in order any more."""
        for batch in list(self._queues.get(partition, ())):
            batch.error = error
            self._finish(batch)

    def _finish(self, batch: ProducerBatch) -> None:
        queue = self._queues[batch.partition]
        queue.remove(batch)
        if not queue:
            del self._queues[batch.partition]
        self._buffered_bytes -= batch.size_bytes
        batch.done.set()

    async def _refresh_quietly(self) -> None:
        try:
            await self._cluster.refresh({target.topic for target in self._queues})
        except ClientError as error:
            if not error.retriable:
                raise
