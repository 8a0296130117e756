"""Inputs that the search begins with: honest ones of every kind."""

from __future__ import annotations

import gzip
import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from random import Random
from typing import cast

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from pykbroker.groups.common.config import GroupConfig
from pykbroker.groups.common.records import CoordinatorRecord
from pykbroker.groups.shard import GroupRequest, GroupShard
from pykbroker.groups.streams.topology_descriptions import TopologyDescriptions
from pykbroker.metadata.records import encode_record as encode_metadata_record
from pykbroker.metadata.records import record_version
from pykbroker.protocol.compile import encode
from pykbroker.protocol.framing import RequestHeader, encode_request
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from pykbroker.protocol.messages.control_records import KRaftVersionRecord, VotersRecord, VotersRecordVoter
from pykbroker.protocol.messages.group_admin import DescribeGroupsRequest
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from pykbroker.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from pykbroker.protocol.messages.metadata import MetadataRequest
from pykbroker.protocol.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from pykbroker.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from pykbroker.protocol.messages.share_groups import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    FetchPartition,
    FetchTopic,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from pykbroker.protocol.messages.streams_topology_descriptions import StreamsGroupTopologyDescriptionUpdateRequest
from pykbroker.protocol.messages.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue
from pykbroker.protocol.messages.transactions import TxnOffsetCommitRequest
from pykbroker.protocol.records.batch import encode_batch, iter_batches, iter_records
from pykbroker.protocol.records.compression import Compression, compress
from pykbroker.protocol.records.record import Record
from pykbroker.protocol.schema import Message
from pykbroker.raft.control_records import encode_control_batch
from pykbroker.security.sasl.scram_client import ScramClient, ScramPassword
from pykbroker.security.sasl.scram_credential import MECHANISMS
from pykbroker.server.quorum.forwarding import enclose
from pykbroker.server.quorum.snapshot_format import QuorumRecords, encode_snapshot
from pykbroker.sharing.persister import Initialization, SharePartitionKey, StateBatch, Writing
from pykbroker.state_machine import CoordinatorContext, Token
from pykbroker.storage.producers.producer_entry import BatchMetadata, ProducerEntry
from pykbroker.storage.producers.producer_snapshots import encode_snapshot as encode_producers
from pykbroker.transactions.records import TransactionRecord
from tests.groups.streams_requests import WITH_STORE, streams_beat, streams_joining
from tests.legacy_messages import message as legacy_message
from tests.legacy_messages import wrapper
from tests.protocol.declared import declared_messages
from tests.protocol.maker import make_message
from tests.sharing.memory_persister import MemoryShareState

from .inputs import NOW_MS, SPLIT, pair
from .states import GROUP_REQUESTS, TOPICS
from .targets import CHOICE, NUMBERS, PASSWORD, USER, scram_server


def _messages() -> Iterator[bytes]:
    for name, cls in sorted(declared_messages().items()):
        versions = cls.__schema__.versions
        for version in {versions.low, (versions.low + versions.high) // 2, versions.high}:
            content = encode(make_message(cls, version, seed=1, most_elements=1), version)
            yield CHOICE.pack(NUMBERS[name], version - versions.low) + content


def _frames() -> Iterator[bytes]:
    yield b"\xff" + encode_request(ApiVersionsRequest(), 3, 1, "client")
    yield b"\x03" + encode_request(MetadataRequest(), 1, 2, None) + encode_request(MetadataRequest(), 12, 3, "ünï")


def _records() -> list[Record]:
    return [Record(b"k", b"v" * number, (("h", b"1"),), NOW_MS + number, number) for number in range(3)]


def _batches() -> Iterator[bytes]:
    for codec in Compression:
        yield encode_batch(_records(), compression=codec)
    plain = [each._replace(headers=()) for each in _records()]
    yield encode_batch([])
    for magic in (0, 1):
        yield legacy_message(plain[0], magic)
        yield wrapper(plain, magic, Compression.GZIP)


def _compressed() -> Iterator[bytes]:
    for codec in Compression:
        yield bytes([codec]) + compress(codec, b"a text that is compressed, " * 20)
    yield b"\x01" + gzip.compress(b"a", 9) + gzip.compress(b"b", 9)


def _pairs() -> Iterator[bytes]:
    """Keys and values of the coordinators' records."""
    declared = declared_messages()
    for name, cls in sorted(declared.items()):
        value = declared.get(name.removesuffix("Key") + "Value")
        if name.endswith("Key") and value is not None:
            number = cls.__schema__.api_key or 0
            for version in (0, value.__schema__.versions.high):
                key_data = number.to_bytes(2, "big") + encode(make_message(cls, 0, seed=1), 0)
                value_data = version.to_bytes(2, "big") + encode(make_message(value, version, seed=2), version)
                yield pair(key_data, value_data)


def _talk() -> list[Message]:
    """Requests by which groups of all types come to be, and have members, offsets and a description."""
    protocols = [
        JoinGroupRequestProtocol(name="range", metadata=next(_consumer_protocol(ConsumerProtocolSubscription)))
    ]
    topics = [OffsetCommitRequestTopic(name="events", partitions=[OffsetCommitRequestPartition(committed_offset=5)])]
    consumer = ConsumerGroupHeartbeatRequest(group_id="c", member_id="m", rebalance_timeout_ms=1000)
    consumer.subscribed_topic_names, consumer.topic_partitions = ["events"], []
    joining = JoinGroupRequest(group_id="g", protocol_type="consumer", protocols=protocols, session_timeout_ms=9_000)
    return [
        joining,
        consumer,
        ConsumerGroupHeartbeatRequest(group_id="c", member_id="m", member_epoch=1, subscribed_topic_regex="ev.*"),
        ShareGroupHeartbeatRequest(group_id="s", member_id="m", subscribed_topic_names=["events"]),
        streams_joining("t", "m", WITH_STORE),
        streams_beat("t", "m", 1, active={"0": [0, 1]}, standby={}),
        StreamsGroupTopologyDescriptionUpdateRequest(group_id="t", member_id="m"),
        OffsetCommitRequest(group_id="o", topics=topics),
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="o")]),
        TxnOffsetCommitRequest(group_id="o", transactional_id="x", producer_id=1, producer_epoch=0),
        HeartbeatRequest(group_id="g", member_id="m", generation_id=1),
        SyncGroupRequest(group_id="g", member_id="m", generation_id=1),
        LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")]),
        DescribeGroupsRequest(groups=["g", "c", "s", "t", "o"]),
    ]


def _group_requests() -> Iterator[bytes]:
    pieces = []
    for request in _talk():
        versions = type(request).__schema__.versions
        content = encode(request, versions.high)
        number = GROUP_REQUESTS.index(type(request))
        pieces.append(bytes((number, versions.high - versions.low)) + content)
    yield from pieces
    yield SPLIT.join(pieces)


def _group_states() -> Iterator[bytes]:
    """What a coordinator writes of groups of all types, in its order and backwards; and one record of each kind."""
    shard = GroupShard(GroupConfig(), Random(1), TOPICS, descriptions=TopologyDescriptions())
    shard.start_timers(0, NOW_MS)
    written: list[CoordinatorRecord] = []
    for number, request in enumerate(_talk()):
        context = CoordinatorContext(api_version=type(request).__schema__.versions.high)
        result = shard.handle(cast("GroupRequest", request), Token(number), number, context, NOW_MS)
        written += result.records
    pairs = [pair(key, value or b"") for key, value in map(CoordinatorRecord.encode, written)]
    yield SPLIT.join(pairs)
    yield SPLIT.join(reversed(pairs))
    yield SPLIT.join([*pairs, *(pair(key, b"") for key, _ in map(CoordinatorRecord.encode, written))])
    yield SPLIT.join(_pairs())


def _transaction_states() -> Iterator[bytes]:
    """A transactional id on its way from one transaction to the next; and states that do not follow from each other."""
    pairs: list[bytes] = []
    for status in range(8):
        partitions = [PartitionsSchema(topic="events", partition_ids=[0, 1])]
        value = TransactionLogValue(
            producer_id=7,
            producer_epoch=status,
            transaction_timeout_ms=60_000,
            transaction_status=status,
            transaction_partitions=partitions,
            transaction_start_timestamp_ms=NOW_MS,
            transaction_last_update_timestamp_ms=NOW_MS,
        )
        for version in (0, 1):
            record = TransactionRecord(TransactionLogKey(transactional_id="x"), value, version)
            key_data, value_data = record.encode()
            pairs.append(pair(key_data, value_data or b""))
    yield from pairs
    yield SPLIT.join(pairs)


def _share_states() -> Iterator[bytes]:
    """A snapshot and updates of one share partition."""
    key = SharePartitionKey("group", bytes(16), 0)
    state = MemoryShareState()
    state.initialize([Initialization(key, 1, 0)])
    for offset in (0, 10, 5):
        state.write([Writing(key, 1, 0, -1, 3, (StateBatch(offset, offset + 4, 2, 1), StateBatch(20, 29, 0, 2)))])
    pairs = [pair(name, value or b"") for name, value in state.log]
    yield SPLIT.join(pairs)
    yield SPLIT.join(reversed(pairs))


def _metadata() -> Iterator[bytes]:
    for cls in declared_messages().values():
        if cls.__module__.endswith("metadata_records"):
            yield encode_metadata_record(cls())


def _images() -> Iterator[bytes]:
    """A log of a cluster with a bit of everything; and one with made-up records of each kind."""
    log = [
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        RegisterBrokerRecord(broker_id=1, incarnation_id=b"i" * 16, broker_epoch=1),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=-1),
        TopicRecord(name="events", topic_id=b"e" * 16),
        PartitionRecord(topic_id=b"e" * 16, partition_id=0, replicas=[1], isr=[1], leader=1, directories=[b"d" * 16]),
        PartitionChangeRecord(topic_id=b"e" * 16, partition_id=0, leader=-1, isr=[]),
        ConfigRecord(resource_type=2, resource_name="events", name="retention.ms", value="5"),
        RemoveTopicRecord(topic_id=b"e" * 16),
        UnregisterBrokerRecord(broker_id=1, broker_epoch=1),
    ]
    yield SPLIT.join(map(encode_metadata_record, log))
    made = [make_message(type(each), record_version(each), seed=5, most_elements=1) for each in log]
    yield SPLIT.join(map(encode_metadata_record, made))
    yield SPLIT.join(_metadata())


def _consumer_protocol(cls: type[ConsumerProtocolSubscription | ConsumerProtocolAssignment]) -> Iterator[bytes]:
    for version in range(4):
        yield version.to_bytes(2, "big") + encode(make_message(cls, version, seed=3), version)


def _exchanges() -> Iterator[bytes]:
    client, server = ScramClient(MECHANISMS["SCRAM-SHA-256"], ScramPassword(USER, PASSWORD), "abc"), scram_server()
    first = client.step(b"")
    yield first + SPLIT + client.step(server.step(first, NOW_MS))
    yield b"n,a=x,n=u=2C,r=a,tokenauth=true"


def _handshakes() -> Iterator[bytes]:
    def frames(mechanism: str, *tokens: bytes) -> bytes:
        requests: list[tuple[Message, int]] = [(SaslHandshakeRequest(mechanism=mechanism), 1)]
        requests += [(SaslAuthenticateRequest(auth_bytes=token), 2) for token in tokens]
        return b"".join(encode_request(request, version, 7, "client") for request, version in requests)

    yield frames("PLAIN", f"\0{USER}\0{PASSWORD}".encode())
    yield encode_request(ApiVersionsRequest(), 3, 1, None) + frames("SCRAM-SHA-256", *next(_exchanges()).split(SPLIT))
    yield frames("OAUTHBEARER", next(_tokens()), b"\x01")
    old = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 0, 7, "client")
    token = f"\0{USER}\0{PASSWORD}".encode()
    yield old + len(token).to_bytes(4, "big") + token


def _claims() -> Iterator[bytes]:
    for claims in ({"sub": "a", "exp": NOW_MS}, {"sub": "a", "exp": 1e300, "iat": 0.5, "scope": ["read"]}):
        yield json.dumps(claims).encode()


def _tokens() -> Iterator[bytes]:
    for claims in _claims():
        text = urlsafe_b64encode(claims).rstrip(b"=")
        message = b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0." + text + b".\x01\x01"
        yield message
        yield message + SPLIT + b"\x01"


def _key_sets() -> Iterator[bytes]:
    number = urlsafe_b64encode(bytes(range(1, 33))).decode().rstrip("=")
    yield json.dumps({"keys": [{"kty": "RSA", "n": number * 8, "e": "AQAB", "kid": "1", "use": "sig"}]}).encode()
    yield json.dumps({"keys": [{"kty": "EC", "crv": "P-256", "x": number, "y": number}, {"kty": "oct"}, 1]}).encode()


def _pushes() -> Iterator[bytes]:
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="org.apache.kafka.a")
    metric.sum.data_points.add(as_int=3).attributes.add(key="a").value.string_value = "b"
    yield data.SerializeToString()
    metric.histogram.data_points.add(count=2, sum=1.0, bucket_counts=[1, 1], explicit_bounds=[0.5])
    yield data.SerializeToString()


def _signed_tokens() -> Iterator[bytes]:
    claims = {"sub": "a", "exp": NOW_MS // 1000 + 60, "iat": NOW_MS // 1000, "aud": ["here"], "iss": "issuer"}
    for head, more in (({"alg": "RS256", "kid": "1"}, {"scope": ["a"]}), ({"alg": "ES256"}, {"aud": "here", "nbf": 5})):
        yield pair(json.dumps(head).encode(), json.dumps(claims | more).encode())


def _expressions() -> Iterator[bytes]:
    for text in (
        "topic.*",
        "[\\pL\\pN.-]{0,20}",
        "(a|b)+?\\b(?i)x{2,5}",
        "(?P<n>[^a-z[:alpha:]]*)$",
        "(a{0,100}){0,100}",
        "(",
    ):
        yield text.encode()
    yield from (b"\\pL" * 1_000, b"a?" * 2_000, b"(?i)[\\PN]" * 100, b"a{0,1000}" * 10)


def _names() -> Iterator[bytes]:
    def der(tag: int, content: bytes) -> bytes:
        return bytes((tag, len(content))) + content

    def attribute(oid: bytes, tag: int, text: bytes) -> bytes:
        return der(0x30, der(0x06, oid) + der(tag, text))

    common, unit, mail = (bytes((0x55, 4, 3)), bytes((0x55, 4, 11)), bytes.fromhex("2a864886f70d010901"))
    parts = [attribute(unit, 0x13, b"a=b, c"), attribute(common, 0x0C, " ü#".encode()), attribute(mail, 0x16, b"a@b")]
    for number in range(4):
        yield bytes((number,)) + der(0x30, b"".join(der(0x31, each) for each in parts))
    yield b"\0" + der(0x30, der(0x31, parts[0] + parts[1]))


def _envelopes() -> Iterator[bytes]:
    for name in ("CreateTopicsRequest", "DescribeQuorumRequest", "AlterConfigsRequest"):
        cls = declared_messages()[name]
        version = cls.__schema__.versions.high
        header = RequestHeader(cls.__schema__.api_key or 0, version, 7, "client")
        made = enclose(make_message(cls, version, seed=3, most_elements=1), header, "User:a", "127.0.0.1")
        yield pair(made.client_host_address + made.request_principal, bytes(made.request_data))


def _snapshots() -> Iterator[bytes]:
    quorum = QuorumRecords()
    control = [
        KRaftVersionRecord(kraft_version=1),
        VotersRecord(voters=[VotersRecordVoter(voter_id=1, voter_directory_id=bytes(16))]),
    ]
    batch = encode_control_batch(control, base_offset=0, leader_epoch=1, timestamp=NOW_MS)
    for record in iter_records(next(iter(iter_batches(batch)))):
        quorum.note(record)
    log = [
        TopicRecord(name="events", topic_id=b"e" * 16),
        FeatureLevelRecord(name="metadata.version", feature_level=30),
    ]
    for found in (quorum, None):
        yield b"".join(encode_snapshot(log, epoch=1, timestamp_ms=NOW_MS, now_ms=NOW_MS, quorum=found))


def _producers() -> Iterator[bytes]:
    entries = [ProducerEntry(number) for number in range(3)]
    for entry in entries[1:]:
        entry.set_epoch(3)
        entry.batches.append(BatchMetadata(7, 99, 3, NOW_MS))
        entry.current_transaction_first_offset = entry.producer_id
    data = encode_producers({each.producer_id: each for each in entries})
    yield data[:2] + data[6:]


def _acknowledgements() -> Iterator[bytes]:
    ranges = ((0, 2, [1]), (0, 0, [2]), (1, 6, [1, 2, 3, 1, 0, 1]), (3, 30, [1]), (0, 6, [4]))
    pieces = []
    for first, last, types in ranges:
        batches = [AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)]
        partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        request = ShareAcknowledgeRequest(
            group_id="g", member_id="m", is_renew_ack=True, topics=[AcknowledgeTopic(partitions=[partition])]
        )
        pieces.append(b"\x02" + encode(request, 2))
    partition_fetched = FetchPartition(acknowledgement_batches=batches)
    fetch = ShareFetchRequest(group_id="g", member_id="m", topics=[FetchTopic(partitions=[partition_fetched])])
    pieces.append(b"\x03" + encode(fetch, 2))
    yield from pieces
    yield SPLIT.join(pieces)


def _heads() -> Iterator[bytes]:
    claims = next(_claims())
    token = b"eyJhbGciOiJub25lIn0." + urlsafe_b64encode(claims).rstrip(b"=") + b"."
    own = b"host: a:1\norigin: http://a:1\nx-console-request: 1\ncontent-type: application/json; charset=utf-8"
    yield own + b"\ncookie: pykbroker-console-1=" + token
    yield own + b'\ncookie: a=b; pykbroker-console-1="' + token + b'"\nsec-fetch-site: same-origin'
    yield b"origin: null\nhost: [::1]:5\nsec-fetch-site: cross-site"


def seeds(name: str) -> list[bytes]:
    """Return honest inputs of a target."""
    return list(_SEEDS[name]())


_SEEDS = {
    "frames": _frames,
    "messages": _messages,
    "record-batches": _batches,
    "produced-batches": lambda: (bytes([number]) + batch for number in range(3) for batch in _batches()),
    "compressed": _compressed,
    "coordinator-records": _pairs,
    "group-records": _group_states,
    "group-requests": _group_requests,
    "transaction-records": _transaction_states,
    "share-records": _share_states,
    "metadata-image": _images,
    "metadata-records": _metadata,
    "subscriptions": lambda: _consumer_protocol(ConsumerProtocolSubscription),
    "assignments": lambda: _consumer_protocol(ConsumerProtocolAssignment),
    "scram": _exchanges,
    "handshakes": _handshakes,
    "plain": lambda: [b"\0user\0secret", b"user\0user\0secret", b"\0other\0x"],
    "oauthbearer": _tokens,
    "token-claims": _claims,
    "key-sets": _key_sets,
    "telemetry": _pushes,
    "tokens": _signed_tokens,
    "regular-expressions": _expressions,
    "acl-hosts": lambda: (
        each.encode() for each in ("10.1.2.3/8", "2001:db8::1/32", "[::1]/0", "::ffff:1.2.3.4/96", "fe80::1%eth0/+64")
    ),
    "producer-snapshots": _producers,
    "distinguished-names": _names,
    "envelopes": _envelopes,
    "snapshots": _snapshots,
    "dead-letters": _batches,
    "share-acknowledgements": _acknowledgements,
    "console-heads": _heads,
    "console-requests": lambda: [b'a=1&b=%20\n{"c": [1, "x"]}', b"a=1&a=2\n", b"\n[]"],
}
