"""Inputs that the search begins with: honest ones of every kind."""

from __future__ import annotations

import gzip
import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from pykbroker.metadata.records import encode_record as encode_metadata_record
from pykbroker.protocol.compile import encode
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest
from pykbroker.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from pykbroker.protocol.messages.metadata import MetadataRequest
from pykbroker.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from pykbroker.protocol.records.batch import encode_batch
from pykbroker.protocol.records.compression import Compression, compress
from pykbroker.protocol.records.record import Record
from pykbroker.protocol.schema import Message
from pykbroker.security.sasl.scram_client import ScramClient, ScramPassword
from pykbroker.security.sasl.scram_credential import MECHANISMS
from pykbroker.sharing.persister import Initialization, SharePartitionKey, StateBatch, Writing
from tests.legacy_messages import message as legacy_message
from tests.legacy_messages import wrapper
from tests.protocol.declared import declared_messages
from tests.protocol.maker import make_message
from tests.sharing.memory_persister import MemoryShareState

from .targets import CHOICE, NOW_MS, NUMBERS, PASSWORD, PIECE, SPLIT, USER, scram_server


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
                yield PIECE.pack(len(key_data)) + key_data + value_data


def _share_states() -> Iterator[bytes]:
    """A snapshot and updates of one share partition."""
    key = SharePartitionKey("group", bytes(16), 0)
    state = MemoryShareState()
    state.initialize([Initialization(key, 1, 0)])
    for offset in (0, 10, 5):
        state.write([Writing(key, 1, 0, -1, 3, (StateBatch(offset, offset + 4, 2, 1), StateBatch(20, 29, 0, 2)))])
    pairs = [PIECE.pack(len(name)) + name + (value or b"") for name, value in state.log]
    yield SPLIT.join(pairs)
    yield SPLIT.join(reversed(pairs))


def _metadata() -> Iterator[bytes]:
    for cls in declared_messages().values():
        if cls.__module__.endswith("metadata_records"):
            yield encode_metadata_record(cls())


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
    "share-records": _share_states,
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
    "console-requests": lambda: [b'a=1&b=%20\n{"c": [1, "x"]}', b"a=1&a=2\n", b"\n[]"],
}
