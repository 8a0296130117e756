"""One connection whose requests are single steps of a machine; answers come as names of errors and plain values."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from compat_tests.waiting import until
from compat_tests.wire import Closed, Wire
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from pykbroker.protocol.messages.group_admin import DescribeGroupsRequest
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pykbroker.protocol.messages.transaction_admin import DescribeTransactionsRequest
from pykbroker.protocol.messages.transactions import InitProducerIdRequest
from pykbroker.protocol.records.batch import iter_batches, iter_records
from pykbroker.protocol.schema import NO_UUID

from .partition_model import Offset, StoredBatch, StoredRecord

PRODUCE_BY_NAME, PRODUCE_BY_ID = 12, 13
FETCH_BY_NAME, FETCH_BY_ID = 12, 17
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
TOPIC, BROKER, GROUP_CONFIG = 2, 4, 32
GROUP, TRANSACTION = 0, 1
SET, DELETE, APPEND, SUBTRACT = range(4)
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
NOT_READY = ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR")


class TopicName(NamedTuple):
    name: str
    topic_id: bytes = NO_UUID


class Appended(NamedTuple):
    """The answer to one batch."""

    error: str
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1


@dataclass(frozen=True)
class Fetched:
    """The answer for one partition."""

    error: str
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    batches: list[StoredBatch]
    aborted: list[tuple[int, int]]
    """Producer ids and first offsets."""


@dataclass(frozen=True)
class FetchAnswer:
    error: str
    session_id: int
    partitions: dict[int, Fetched]


def error_name(code: int) -> str:
    return ErrorCode(code).name


class Client:
    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self._wire = Wire(address)
        self._barriers = itertools.count(1)

    def close(self) -> None:
        self._wire.__exit__(None, None, None)

    def reconnect(self) -> None:
        self.close()
        self._wire = Wire(self.address)

    def call(self, request: Any, version: int) -> Any:
        return self._wire.call(request, version, client_id="state machine")

    # Topics

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> tuple[str, TopicName]:
        """The error's name. Returns when all partitions lead."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        (answer,) = self.call(CreateTopicsRequest(topics=[topic]), 7).topics
        if not answer.error_code:
            self.wait_for_leaders(name, partitions)
        return error_name(answer.error_code), TopicName(name, bytes(answer.topic_id))

    def delete_topic(self, topic: TopicName, *, by_id: bool) -> str:
        state = DeleteTopicState(topic_id=topic.topic_id) if by_id else DeleteTopicState(name=topic.name)
        (answer,) = self.call(DeleteTopicsRequest(topics=[state], timeout_ms=60_000), 6).responses
        if not answer.error_code:
            until(lambda: self._is_gone(topic), f"{topic.name} is gone")
        return error_name(answer.error_code)

    def _is_gone(self, topic: TopicName) -> bool:
        fetched = self.fetch([(topic, 0, 0)], by_id=True)
        return fetched.partitions[0].error == "UNKNOWN_TOPIC_ID"

    def delete_topics_of(self, prefix: str) -> None:
        metadata = self.call(MetadataRequest(topics=None), 12)
        states = [DeleteTopicState(name=each.name) for each in metadata.topics if each.name.startswith(prefix)]
        self.call(DeleteTopicsRequest(topics=states, timeout_ms=60_000), 6)

    def create_partitions(self, name: str, count: int) -> str:
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        (answer,) = self.call(CreatePartitionsRequest(topics=[topic], timeout_ms=60_000), 3).results
        if not answer.error_code:
            self.wait_for_leaders(name, count)
        return error_name(answer.error_code)

    def wait_for_leaders(self, name: str, partitions: int) -> None:
        wanted = [(index, LATEST) for index in range(partitions)]
        until(
            lambda: all(found.error == "NONE" for found in self.list_offsets(name, wanted).values()),
            f"the partitions of {name} lead",
        )

    def alter_config(self, resource_type: int, name: str, key: str, value: str | None, prefix: str) -> str:
        """value: None deletes. Returns when the broker has it: what came later leads already."""
        config = IncrementalAlterConfigsRequestAlterableConfig(
            name=key, config_operation=SET if value is not None else DELETE, value=value
        )
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=resource_type, resource_name=name, configs=[config]
        )
        (answer,) = self.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        if not answer.error_code:
            self.create_topic(f"{prefix}.barrier-{next(self._barriers)}", 1, {})
        return error_name(answer.error_code)

    def leads(self, name: str, partition: int) -> bool:
        return self.list_offsets(name, [(partition, LATEST)])[partition].error == "NONE"

    def leader_epoch(self, name: str, partition: int) -> int:
        (topic,) = self.call(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12).topics
        return next(each.leader_epoch for each in topic.partitions if each.partition_index == partition)

    # Records

    def produce(
        self,
        topic: TopicName,
        batches: Mapping[int, bytes],
        *,
        acks: int = -1,
        by_id: bool = False,
        version: int | None = None,
        transactional_id: str | None = None,
    ) -> dict[int, Appended] | str:
        """The answers by partition. With acks=0 instead "sent", or "closed" where the broker closed the connection."""
        data = [PartitionProduceData(index=index, records=batch) for index, batch in batches.items()]
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=acks,
            timeout_ms=60_000,
            topic_data=[TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=data)],
        )
        version = version or (PRODUCE_BY_ID if by_id else PRODUCE_BY_NAME)
        if acks == 0:
            return self._produce_without_answer(request, version)
        (answer,) = self.call(request, version).responses
        assert len(answer.partition_responses) == len(batches)
        return {
            each.index: Appended(
                error_name(each.error_code), each.base_offset, each.log_append_time_ms, each.log_start_offset
            )
            for each in answer.partition_responses
        }

    def _produce_without_answer(self, request: ProduceRequest, version: int) -> str:
        """The request and one that is answered, on a connection of their own: the answer shows what became of both."""
        with Wire(self.address) as wire:
            wire.send(request, version)
            try:
                wire.call(ApiVersionsRequest(client_software_name="machine", client_software_version="1"), 3)
            except Closed:
                return "closed"
        return "sent"

    def fetch(
        self,
        partitions: Sequence[tuple[TopicName, int, int]],
        *,
        by_id: bool = True,
        isolation: int = READ_UNCOMMITTED,
        session: tuple[int, int] = (0, -1),
        forgotten: Sequence[tuple[TopicName, int]] = (),
        leader_epoch: int = -1,
        max_bytes: int = 2**27,
    ) -> FetchAnswer:
        """partitions: topic, partition and offset, all of one topic. session: its id and epoch."""
        asked = [
            FetchPartition(
                partition=index, fetch_offset=offset, partition_max_bytes=max_bytes, current_leader_epoch=leader_epoch
            )
            for _, index, offset in partitions
        ]
        topics = [FetchTopic(topic=each.name, topic_id=each.topic_id, partitions=asked) for each, *_ in partitions[:1]]
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=max_bytes,
            isolation_level=isolation,
            session_id=session[0],
            session_epoch=session[1],
            topics=topics,
            forgotten_topics_data=[
                ForgottenTopic(topic=topic.name, topic_id=topic.topic_id, partitions=[index])
                for topic, index in forgotten
            ],
        )
        answer = self.call(request, FETCH_BY_ID if by_id else FETCH_BY_NAME)
        found = {each.partition_index: _fetched(each) for topic in answer.responses for each in topic.partitions}
        return FetchAnswer(error_name(answer.error_code), answer.session_id, found)

    def read(self, topic: TopicName, partition: int, offset: int, isolation: int) -> Fetched:
        """All that is to be read from an offset on: as many fetches as there are segments."""
        first = self.fetch([(topic, partition, offset)], isolation=isolation).partitions[partition]
        batches, aborted, last = list(first.batches), list(first.aborted), first
        while last.batches:
            next_offset = last.batches[-1].last_offset + 1
            last = self.fetch([(topic, partition, next_offset)], isolation=isolation).partitions[partition]
            batches += last.batches
            aborted += [each for each in last.aborted if each not in aborted]
        return Fetched(
            first.error, first.high_watermark, first.last_stable_offset, first.log_start_offset, batches, aborted
        )

    def list_offsets(
        self, name: str, wanted: Iterable[tuple[int, int]], isolation: int = READ_UNCOMMITTED, leader_epoch: int = -1
    ) -> dict[int, Offset]:
        """wanted: partitions and timestamps."""
        partitions = [
            ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=leader_epoch)
            for index, timestamp in wanted
        ]
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[ListOffsetsTopic(name=name, partitions=partitions)],
            timeout_ms=60_000,
        )
        (topic,) = self.call(request, 10).topics
        return {
            each.partition_index: Offset(error_name(each.error_code), each.offset, each.timestamp, each.leader_epoch)
            for each in topic.partitions
        }

    def delete_records(self, name: str, partition: int, offset: int) -> tuple[str, int]:
        """The error's name, and the low watermark."""
        partitions = [DeleteRecordsPartition(partition_index=partition, offset=offset)]
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=partitions)], timeout_ms=60_000)
        (topic,) = self.call(request, 2).topics
        (answer,) = topic.partitions
        return error_name(answer.error_code), answer.low_watermark

    def end_of_epoch(self, name: str, partition: int, epoch: int, current: int = -1) -> tuple[str, int, int]:
        """The error's name, the epoch that was found, and its end offset."""
        partitions = [OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)]
        request = OffsetForLeaderEpochRequest(
            replica_id=-1, topics=[OffsetForLeaderTopic(topic=name, partitions=partitions)]
        )
        (topic,) = self.call(request, 4).topics
        (answer,) = topic.partitions
        return error_name(answer.error_code), answer.leader_epoch, answer.end_offset

    # Producers

    def new_producer_id(self) -> tuple[int, int]:
        """A producer id without a transactional id, and its epoch."""
        found: list[tuple[int, int]] = []

        def is_answered() -> bool:
            answer = self.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 5)
            if error_name(answer.error_code) not in NOT_READY:
                assert answer.error_code == 0, error_name(answer.error_code)
                found.append((answer.producer_id, answer.producer_epoch))
            return bool(found)

        until(is_answered, "a producer id")
        return found[0]

    def wait_for_coordinator(self, key: str, key_type: int) -> None:
        """Returns when the coordinator has loaded what it knows. key_type: GROUP or TRANSACTION."""
        find = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        until(lambda: not self.call(find, 6).coordinators[0].error_code, f"a coordinator of {key}")
        until(lambda: self._coordinator_error(key, key_type) not in NOT_READY, f"the coordinator of {key} is ready")

    def _coordinator_error(self, key: str, key_type: int) -> str:
        if key_type == TRANSACTION:
            described = self.call(DescribeTransactionsRequest(transactional_ids=[key]), 0).transaction_states[0]
        else:
            described = self.call(DescribeGroupsRequest(groups=[key]), 6).groups[0]
        return error_name(described.error_code)


def _fetched(answer: Any) -> Fetched:
    return Fetched(
        error_name(answer.error_code),
        answer.high_watermark,
        answer.last_stable_offset,
        answer.log_start_offset,
        [_stored(batch) for batch in iter_batches(bytes(answer.records or b""), allow_partial=True)],
        sorted((each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()),
    )


def _stored(batch: Any) -> StoredBatch:
    header = batch.header
    batch.ensure_valid()
    records = list(iter_records(batch))
    assert [each.offset for each in records] == list(range(header.base_offset, header.next_offset))
    return StoredBatch(
        base_offset=header.base_offset,
        records=tuple(
            StoredRecord(each.key, b"", -1) if header.is_control else StoredRecord(each.key, each.value, each.timestamp)
            for each in records
        ),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        leader_epoch=header.partition_leader_epoch,
        compression=int(header.compression),
        is_transactional=header.is_transactional,
        is_control=header.is_control,
    )
