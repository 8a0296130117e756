"""Targets that load state machines from records as a broker does after a start, and ask them for what they hold.

A record that cannot be read, or makes no sense, is passed over, as a coordinator passes it over. Whatever was loaded
serves: it is described, listed, joined and left, and goes with time. Records that come out of that can be read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any, Final

from pykbroker.groups.common.config import GroupConfig
from pykbroker.groups.common.group import Group, GroupType
from pykbroker.groups.common.records import decode_record as decode_group_record
from pykbroker.groups.common.requests import (
    BeginShareStateDeletion,
    DeleteGroup,
    DescribeConsumerGroup,
    DescribeShareGroup,
    DescribeStreamsGroup,
    FetchAllOffsets,
    FindSharePartitions,
    ListSomeGroups,
    check_group_id,
)
from pykbroker.groups.common.topics import FixedTopics
from pykbroker.groups.shard import GroupRequest, GroupShard
from pykbroker.groups.streams.topology import too_large
from pykbroker.groups.streams.topology_descriptions import TopologyDescriptions
from pykbroker.metadata.image import InconsistentMetadata, MetadataImage
from pykbroker.metadata.records import decode_record as decode_metadata_record
from pykbroker.metadata.records import encode_record as encode_metadata_record
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ApiError, MalformedMessage
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.group_admin import DescribeGroupsRequest, ListGroupsRequest
from pykbroker.protocol.messages.group_offsets import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from pykbroker.protocol.messages.groups import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from pykbroker.protocol.messages.share_groups import (
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from pykbroker.protocol.messages.streams_groups import StreamsGroupHeartbeatRequest
from pykbroker.protocol.messages.streams_topology_descriptions import StreamsGroupTopologyDescriptionUpdateRequest
from pykbroker.protocol.messages.transaction_admin import DescribeTransactionsRequest, ListTransactionsRequest
from pykbroker.protocol.messages.transactions import EndTxnRequest, InitProducerIdRequest, TxnOffsetCommitRequest
from pykbroker.protocol.schema import Message
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.sharing.coordinator.config import ShareCoordinatorConfig
from pykbroker.sharing.coordinator.records import decode_record as decode_share_record
from pykbroker.sharing.coordinator.requests import Read, ReadSummary, Write
from pykbroker.sharing.coordinator.shard import ShareShard
from pykbroker.sharing.coordinator.state import partition_key
from pykbroker.sharing.partition.acknowledgements import are_well_formed
from pykbroker.sharing.partition.share_partition import SharePartition
from pykbroker.sharing.partition.values import Acknowledgement, AcquireMode, FetchedBatch, Limits, RecordState
from pykbroker.sharing.persister import Reading, SharePartitionKey, StateBatch, Writing
from pykbroker.state_machine import BadRecord, CoordinatorContext, Token
from pykbroker.transactions.administration import ListSomeTransactions, TransactionFilter
from pykbroker.transactions.config import TransactionConfig
from pykbroker.transactions.records import decode_record as decode_transaction_record
from pykbroker.transactions.requests import AddPartitions, MarkersWritten
from pykbroker.transactions.shard import TransactionShard

from .inputs import NOW_MS, SPLIT, two

TOPICS: Final = FixedTopics({"events": (b"e" * 16, 3), "orders": (b"o" * 16, 2)})
MEMBER: Final = "m"
MOST_RECORDS: Final = 64
_MOST_GROUPS: Final = 4
_HOUR_MS: Final = 3_600_000


def _pieces(data: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """Keys and values; an empty value is a tombstone."""
    for piece in data.split(SPLIT)[:MOST_RECORDS]:
        key, value = two(piece)
        yield key, value or None


def _check_written(records: Iterable[Any], read: Callable[[bytes, bytes | None], Any]) -> None:
    for record in records:
        written = record.encode()
        assert read(*written).encode() == written


# Groups


def group_records(data: bytes) -> None:
    """Records of `__consumer_offsets`, of all types of groups."""
    shard = _group_shard()
    if not _load(shard, decode_group_record, data):
        raise BadRecord("nothing of it is a record")
    _check_written(shard.start_timers(0, NOW_MS).records, decode_group_record)
    for group in list(shard.groups.values())[:_MOST_GROUPS]:
        for request in _questions(group):
            _ask_groups(shard, request, 0)
    for hours in (1, 400):
        _check_written(shard.expire(hours * _HOUR_MS, NOW_MS + hours * _HOUR_MS).records, decode_group_record)


def _group_shard() -> GroupShard:
    return GroupShard(GroupConfig(), Random(1), TOPICS, descriptions=TopologyDescriptions())


def _load(
    shard: GroupShard | TransactionShard, decode: Callable[[bytes | None, bytes | None], Any], data: bytes
) -> int:
    """Return how many records could be replayed."""
    replayed = 0
    for key, value in _pieces(data):
        try:
            record = decode(key, value)
            shard.replay(record.key, record.value)
            replayed += 1
        except BadRecord:
            pass
    return replayed


def _questions(group: Group) -> Iterator[GroupRequest]:
    """What others ask of a group, and what changes it."""
    name = group.group_id
    yield ListSomeGroups(request=ListGroupsRequest(), group_ids=[name])
    yield DescribeGroupsRequest(groups=[name])
    yield FetchAllOffsets(group_id=name)
    match group.type:
        case GroupType.CONSUMER:
            yield DescribeConsumerGroup(group_id=name)
        case GroupType.SHARE:
            yield DescribeShareGroup(group_id=name)
            yield FindSharePartitions(group_id=name)
        case GroupType.STREAMS:
            yield DescribeStreamsGroup(group_id=name, with_description=True)
        case _:
            pass
    joining = ConsumerGroupHeartbeatRequest(group_id=name, member_id=MEMBER, rebalance_timeout_ms=1000)
    joining.subscribed_topic_names, joining.topic_partitions = ["events"], []
    yield joining
    yield ShareGroupHeartbeatRequest(group_id=name, member_id=MEMBER, subscribed_topic_names=["events", "orders"])
    yield HeartbeatRequest(group_id=name, member_id=MEMBER, generation_id=1)
    yield BeginShareStateDeletion(group_id=name, topics=None)
    yield DeleteGroup(group_id=name)


def _ask_groups(shard: GroupShard, request: GroupRequest, now_ms: int, api_version: int = 1) -> None:
    context = CoordinatorContext(api_version=api_version, client_id="client", client_host="/127.0.0.1")
    try:
        result = shard.handle(request, Token(1), now_ms, context, NOW_MS + now_ms)
    except ApiError:
        return
    _check_written(result.records, decode_group_record)


GROUP_REQUESTS: Final[tuple[type[Message], ...]] = (
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetDeleteRequest,
    TxnOffsetCommitRequest,
    DescribeGroupsRequest,
    ConsumerGroupHeartbeatRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupTopologyDescriptionUpdateRequest,
)
"""Those that reach a coordinator as they come: an input's piece begins with a number, and a version."""


def group_requests(data: bytes) -> None:
    """Requests to a coordinator one after another, with time between them; the pieces that are none are passed over."""
    shard = _group_shard()
    shard.start_timers(0, NOW_MS)
    asked = now_ms = 0
    for piece in data.split(SPLIT)[:MOST_RECORDS]:
        try:
            request, version = _group_request(piece)
        except (MalformedMessage, ApiError):
            continue
        now_ms += 3_000
        _ask_groups(shard, request, now_ms, version)
        _check_written(shard.expire(now_ms, NOW_MS + now_ms).records, decode_group_record)
        asked += 1
    if not asked:
        raise MalformedMessage("nothing of it is a request")


def _group_request(piece: bytes) -> tuple[Any, int]:
    """Return a request and its version, as handlers let it through. Raises MalformedMessage, ApiError."""
    if len(piece) < 2:
        raise MalformedMessage("no request")
    cls = GROUP_REQUESTS[piece[0] % len(GROUP_REQUESTS)]
    versions = cls.__schema__.versions
    version = versions.low + piece[1] % (versions.high - versions.low + 1)
    request: Any = decode(cls, version, piece, 2)[0]
    check_group_id(getattr(request, "group_id", "group"), request)
    if isinstance(request, StreamsGroupHeartbeatRequest) and request.topology is not None:
        reason = too_large(request.topology)
        if reason is not None:
            raise MalformedMessage(reason)
    if isinstance(request, OffsetFetchRequest) and any(group.topics is None for group in request.groups):
        raise MalformedMessage("all offsets of a group are asked for by FetchAllOffsets")
    return request, version


# Transactions


def transaction_records(data: bytes) -> None:
    """Records of `__transaction_state`."""
    producer_ids = iter(range(1_000, 10_000))
    shard = TransactionShard(
        TransactionConfig(),
        coordinator_epoch=3,
        transaction_version=lambda: 2,
        take_producer_id=lambda: next(producer_ids),
    )
    if not _load(shard, decode_transaction_record, data):
        raise BadRecord("nothing of it is a record")
    result = shard.start_timers(0, NOW_MS)
    while result.is_unfinished:
        result = shard.start_timers(0, NOW_MS)
    for name, transaction in list(shard.transactions.items())[:_MOST_GROUPS]:
        at = {"producer_id": transaction.producer_id, "producer_epoch": transaction.producer_epoch}
        events = (TopicPartition("events", 0),)
        requests: list[Any] = [
            ListSomeTransactions(TransactionFilter(ListTransactionsRequest()), [name]),
            DescribeTransactionsRequest(transactional_ids=[name]),
            AddPartitions(transactional_id=name, partitions=events, **at),
            EndTxnRequest(transactional_id=name, committed=True, **at),
            MarkersWritten(transactional_id=name, partitions=events, **at),
            InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000, **at),
            InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000),
        ]
        for request in requests:
            made = shard.handle(request, Token(1), 0, CoordinatorContext(api_version=5), NOW_MS)
            _check_written(made.records, decode_transaction_record)
    for hours in (1, 400):
        made = shard.expire(hours * _HOUR_MS, NOW_MS + hours * _HOUR_MS)
        _check_written(made.records, decode_transaction_record)


# Share partitions' state


def share_records(data: bytes) -> None:
    """Keys and values of share partitions' states, loaded one after another as the share coordinator does.

    Those that say nothing are passed over, and whatever was loaded can be read, and written to.
    """
    shard = ShareShard(ShareCoordinatorConfig(), lambda topic_id: 1 << 31)
    loaded: dict[SharePartitionKey, None] = {}
    offset = 0
    for key, value in _pieces(data):
        try:
            record = decode_share_record(key, value)
        except BadRecord:
            continue
        shard.replay(record.key, record.value)
        shard.logged(record, offset)
        loaded[partition_key(record.key)] = None
        offset += 1
    if not loaded:
        raise BadRecord("nothing of it is a record")
    shard.start_timers(0, NOW_MS)
    for partition in loaded:
        for request in (
            Read((Reading(partition, 5),)),
            ReadSummary((Reading(partition, 5),)),
            Write((Writing(partition, 1, 5, 3, 1, (StateBatch(3, 9, 2, 1),)),)),
            Read((Reading(partition, 5),)),
        ):
            result = shard.handle(request, Token(1), 0, CoordinatorContext(api_version=0), NOW_MS)
            for record in result.records:
                record.encode()


# Share partitions


def share_acknowledgements(data: bytes) -> None:
    """ShareAcknowledges and ShareFetches of a member, which gets more records before each of them."""
    partition, limits, asked = SharePartition(0), Limits(), 0
    for now_ms, piece in enumerate(data.split(SPLIT)[:MOST_RECORDS]):
        try:
            request, version = _acknowledging(piece)
        except MalformedMessage:
            continue
        asked += 1
        fetched = [FetchedBatch(partition.end_offset + 1, partition.end_offset + 10, is_aborted=asked % 4 == 0)]
        mode = AcquireMode(asked % 2)
        partition.acquire(MEMBER, mode, 3, 7, partition.next_fetch_offset(), fetched, limits, now_ms)
        for named in (each for topic in request.topics for each in topic.partitions):
            _acknowledge(partition, named, version > 1, limits, now_ms, is_persisted=asked % 3 > 0)
        assert partition.in_flight <= limits.max_record_locks
        assert all(run.first <= run.last for run in partition.runs())
    if not asked:
        raise MalformedMessage("nothing of it is a request")


def _acknowledging(piece: bytes) -> tuple[Any, int]:
    """Return a request, and its version: the first byte says which. Raises MalformedMessage."""
    if not piece:
        raise MalformedMessage("no request")
    cls = (ShareAcknowledgeRequest, ShareFetchRequest)[piece[0] & 1]
    version = 1 + (piece[0] >> 1 & 1)
    return decode(cls, version, piece, 1)[0], version


def _acknowledge(
    partition: SharePartition, named: Any, knows_renewal: bool, limits: Limits, now_ms: int, *, is_persisted: bool
) -> None:
    batches = [
        Acknowledgement(each.first_offset, each.last_offset, each.acknowledge_types)
        for each in named.acknowledgement_batches
    ]
    if not are_well_formed(batches, knows_renewal=knows_renewal, is_renewal=knows_renewal):
        return
    before = _states_by_offset(partition)
    try:
        change = partition.acknowledge(MEMBER, batches, limits, now_ms)
    except ApiError:
        assert _states_by_offset(partition) == before, "what is refused changes nothing"
        return
    partition.complete(change, is_persisted=is_persisted, now_ms=now_ms)


def _states_by_offset(partition: SharePartition) -> dict[int, RecordState]:
    return {offset: run.state for run in partition.runs() for offset in range(run.first, run.last + 1)}


# Metadata


def metadata_image(data: bytes) -> None:
    """Records of the metadata log, which make an image; its own records make the same one."""
    image, replayed = MetadataImage(), 0
    for piece in data.split(SPLIT)[:MOST_RECORDS]:
        try:
            record = decode_metadata_record(piece)
        except MalformedMessage:
            continue
        image.replay(record, replayed)
        replayed += 1
    if not replayed:
        raise MalformedMessage("nothing of it is a record")
    if image.in_transaction:
        raise InconsistentMetadata("the records end within a transaction")
    again = MetadataImage()
    for offset, record in enumerate(image.records()):
        again.replay(decode_metadata_record(encode_metadata_record(record)), offset)
    assert [encode_metadata_record(each) for each in again.records()] == [
        encode_metadata_record(each) for each in image.records()
    ]
