"""A transactional producer in raw requests, in the version that a test wants, against a simulated node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from pykbroker.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.protocol.schema import Message
from pykbroker.sim.determinism import run_deterministic
from tests.server.serving import Client
from tests.sim.whole_node import World

TOPIC = "orders"
LATEST = -1
COMMITTED = 1
_SMALL_TOPICS = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}

Main = Callable[["Transactions"], Awaitable[None]]


class Transactions:
    """A node with one topic, and a client that knows no other version than it is told."""

    def __init__(self, world: World, client: Client) -> None:
        self.world = world
        self.client = client

    async def ask(self, request: Message, version: int) -> Any:
        return await self.client.ask(request, version)

    async def start_again(self) -> None:
        """After the node's death."""
        await self.world.node.wait_until_ended()
        self.client.transport.close()
        await self.world.start()
        self.client = await self.world.connect()

    async def find_coordinator(self, key: str, *, key_type: int = 1) -> ErrorCode:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        return ErrorCode((await self.ask(request, 6)).coordinators[0].error_code)

    async def producer(self, transactional_id: str = "t", *, second_protocol: bool = True) -> TransactionalProducer:
        assert await self.find_coordinator(transactional_id) is ErrorCode.NONE
        producer = TransactionalProducer(self, transactional_id, second_protocol=second_protocol)
        assert await producer.init() is ErrorCode.NONE
        return producer

    async def read(self, index: int = 0, *, committed: bool = True, max_wait_ms: int = 0) -> list[bytes]:
        """The values that a consumer sees: what its broker says of aborted transactions is left out."""
        partition = FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=COMMITTED if committed else 0,
            topics=[FetchTopic(topic=TOPIC, partitions=[partition])],
        )
        data = (await self.ask(request, 11)).responses[0].partitions[0]
        assert data.error_code == ErrorCode.NONE, ErrorCode(data.error_code)
        return _visible(bytes(data.records or b""), data.aborted_transactions or ())

    async def committed(self, group_id: str, *, require_stable: bool = False) -> int | ErrorCode:
        """The group's offset in partition 0."""
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
        group = OffsetFetchRequestGroup(group_id=group_id, topics=[topic])
        request = OffsetFetchRequest(groups=[group], require_stable=require_stable)
        (answer,) = (await self.ask(request, 8)).groups
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
        found = answer.topics[0].partitions[0]
        return ErrorCode(found.error_code) if found.error_code else int(found.committed_offset)

    async def end_offset(self, index: int = 0, *, committed: bool = True) -> int:
        partition = ListOffsetsPartition(partition_index=index, timestamp=LATEST)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=COMMITTED if committed else 0,
            topics=[ListOffsetsTopic(name=TOPIC, partitions=[partition])],
        )
        return cast(int, (await self.ask(request, 7)).topics[0].partitions[0].offset)


def _visible(records: bytes, aborted: Any) -> list[bytes]:
    """As consumers do: aborted is in order of the first offsets, and a marker ends what it is about."""
    waiting = sorted(((each.first_offset, each.producer_id) for each in aborted), reverse=True)
    hidden: set[int] = set()
    values: list[bytes] = []
    for batch in iter_batches(records):
        header = batch.header
        while waiting and waiting[-1][0] <= header.last_offset:
            hidden.add(waiting.pop()[1])
        if header.is_control:
            hidden.discard(header.producer_id)
        elif not header.is_transactional or header.producer_id not in hidden:
            values += [bytes(record.value or b"") for record in iter_records(batch)]
    return values


class TransactionalProducer:
    """Counts sequences as clients do: from 0 in every epoch."""

    def __init__(self, node: Transactions, transactional_id: str, *, second_protocol: bool) -> None:
        self._node = node
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[int, int] = {}
        self.second_protocol = second_protocol

    async def init(self, *, timeout_ms: int = 60_000) -> ErrorCode:
        """Waits for a transaction of its predecessor to end."""
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms)
        with trio.fail_after(30):
            while True:
                response = await self._node.ask(request, 5)
                if response.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                    break
                await trio.sleep(0.02)
        if response.error_code == ErrorCode.NONE:
            self._begin_epoch(response.producer_id, response.producer_epoch)
        return ErrorCode(response.error_code)

    def _begin_epoch(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch

    async def add(self, *indexes: int, topic: str = TOPIC) -> dict[int, ErrorCode]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(indexes))],
        )
        (answer,) = (await self._node.ask(request, 3)).results_by_topic_v3_and_below
        return {each.partition_index: ErrorCode(each.partition_error_code) for each in answer.results_by_partition}

    async def send(self, *values: bytes, index: int = 0, version: int | None = None) -> ErrorCode:
        sequence = self.sequences.get(index, 0)
        error_code = await self.send_at(sequence, *values, index=index, version=version)
        if error_code is ErrorCode.NONE:
            self.sequences[index] = sequence + len(values)
        return error_code

    async def send_at(self, sequence: int, *values: bytes, index: int = 0, version: int | None = None) -> ErrorCode:
        records = encode_batch(
            [Record(key=None, value=value, timestamp=self._node.world.node.clock.now_ms()) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=index, records=records)])
            ],
        )
        response = await self._node.ask(request, version or (12 if self.second_protocol else 10))
        return ErrorCode(response.responses[0].partition_responses[0].error_code)

    async def add_offsets(self, group_id: str) -> ErrorCode:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group_id,
        )
        return ErrorCode((await self._node.ask(request, 3)).error_code)

    async def commit_offset(self, group_id: str, offset: int, *, version: int | None = None) -> ErrorCode:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
        )
        response = await self._node.ask(request, version or (5 if self.second_protocol else 3))
        return ErrorCode(response.topics[0].partitions[0].error_code)

    async def end(self, *, commit: bool) -> ErrorCode:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        response = await self._node.ask(request, 5 if self.second_protocol else 4)
        if self.second_protocol and response.error_code == ErrorCode.NONE:
            self._begin_epoch(response.producer_id, response.producer_epoch)
        return ErrorCode(response.error_code)


def transacting(main: Main, *, overrides: Mapping[str, str] | None = None, partitions: int = 2, seed: int = 1) -> None:
    """Runs `main` on a node of its own."""

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            world = World(seed, nursery, {**_SMALL_TOPICS, **(overrides or {})})
            await world.start()
            client = await world.connect()
            topic = CreatableTopic(name=TOPIC, num_partitions=partitions, replication_factor=1)
            created: Any = await client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
            assert created.topics[0].error_code == ErrorCode.NONE
            await main(Transactions(world, client))
            nursery.cancel_scope.cancel()

    run_deterministic(run, seed=seed)
