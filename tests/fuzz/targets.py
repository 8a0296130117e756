"""What reads bytes of others, one target for each kind of them: a function of an input, and the exceptions it declares.

A target returns, or raises one of its declared exceptions; whatever else comes out of it is a fault. Where a target
understood its input, it says it again, and that must be understood as the same.

An input of `messages`, `coordinator-records` and some others begins with bytes that choose what is read of the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

import trio
from starlette.requests import Request

from pykbroker.client.errors import BadInput
from pykbroker.console.checks import Refused
from pykbroker.console.given import ClientGone, arguments_of
from pykbroker.groups.common.records import decode_record as decode_group_record
from pykbroker.groups.common.subscription import is_loadable, subscribed_topics, topic_count
from pykbroker.groups.consumer.embedded_protocol import read_assignment, read_subscription
from pykbroker.metadata.records import decode_record as decode_metadata_record
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import ApiError, MalformedMessage
from pykbroker.protocol.framing import FrameSplitter, decode_request_header, decode_response_header
from pykbroker.protocol.records.batch import iter_batches, iter_records, record_keys
from pykbroker.protocol.records.compression import Compression, decompress
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.security.sasl.mechanism import AuthenticationFailed, Identity
from pykbroker.security.sasl.oauthbearer.compact_token import InvalidToken, read_token
from pykbroker.security.sasl.oauthbearer.key_set import KeySet, UnusableKeys
from pykbroker.security.sasl.oauthbearer.server import OAuthBearerServer
from pykbroker.security.sasl.oauthbearer.unsecured import UnsecuredValidator
from pykbroker.security.sasl.plain import PlainServer
from pykbroker.security.sasl.scram_credential import MECHANISMS, MIN_ITERATIONS
from pykbroker.security.sasl.scram_messages import ClientFinal, ServerFirst, read_server_final
from pykbroker.security.sasl.scram_server import ScramAccount, ScramServer
from pykbroker.security.sasl.server_handshake import OfferedMechanism, SaslHandshake
from pykbroker.sharing.coordinator.config import ShareCoordinatorConfig
from pykbroker.sharing.coordinator.records import decode_record as decode_share_record
from pykbroker.sharing.coordinator.requests import Read, ReadSummary, Write
from pykbroker.sharing.coordinator.shard import ShareShard
from pykbroker.sharing.coordinator.state import partition_key
from pykbroker.sharing.persister import Reading, SharePartitionKey, StateBatch, Writing
from pykbroker.state_machine import BadRecord, CoordinatorContext, Token
from pykbroker.storage.segments.log_config import CleanupPolicy, LogConfig
from pykbroker.storage.segments.validation import check_client_batch
from pykbroker.telemetry.otlp import read_push
from pykbroker.telemetry.wire_fields import MalformedPush
from pykbroker.transactions.records import decode_record as decode_transaction_record
from tests.protocol.declared import declared_messages

DECOMPRESSED_LIMIT_BYTES: Final = 256 << 10
"""What the targets let a batch decompress to, in place of the broker's 64 MiB."""
NOW_MS: Final = 1_700_000_000_000
LARGEST_FRAME_BYTES: Final = 1 << 20
MESSAGES: Final = tuple(declared_messages()[name] for name in sorted(declared_messages()))
NUMBERS: Final = {message.__name__: crc32(message.__name__.encode()) & 0xFFFF for message in MESSAGES}
"""What chooses a message, and stays the same when others are declared."""
_CHOSEN: Final = {NUMBERS[message.__name__]: message for message in MESSAGES}
CHOICE: Final = struct.Struct(">HB")
"""The number of a message, and its version."""
PIECE: Final = struct.Struct(">I")
"""The size of a first piece, where an input has two."""
SPLIT: Final = b"\n--\n"
"""What stands between the messages of an exchange."""
_MOST_RECORDS: Final = 64


@dataclass(frozen=True, slots=True)
class Target:
    """run: with an input. declared: what may come out of it. allowed_bytes: of memory, beside what all targets may."""

    run: Callable[[bytes], object]
    declared: tuple[type[Exception], ...]
    allowed_bytes: int = 0

    def accepts(self, data: bytes) -> bool:
        """Tell whether the input was understood. Raises what is not declared."""
        try:
            self.run(data)
        except self.declared:
            return False
        return True


def frames(data: bytes) -> None:
    """A stream in pieces of a size that its first byte says; a frame has a request's header, and a response's."""
    if not data:
        return
    splitter, size = FrameSplitter(LARGEST_FRAME_BYTES), data[0] + 1
    for start in range(1, len(data), size):
        for frame in splitter.feed(data[start : start + size]):
            header, body = decode_request_header(frame)
            assert 0 < body <= len(frame)
            decode_response_header(frame, header.api_key, header.api_version)


def messages(data: bytes) -> None:
    """A message of a version, and what follows it."""
    if len(data) < CHOICE.size:
        return
    number, version = CHOICE.unpack_from(data)
    cls = _CHOSEN.get(number) or MESSAGES[number % len(MESSAGES)]
    versions = cls.__schema__.versions
    version = versions.low + version % (versions.high - versions.low + 1)
    found, end = decode(cls, version, data, CHOICE.size)
    assert end <= len(data)
    again = encode(found, version)
    # Equal bytes, since a NaN is not equal to itself.
    assert encode(decode(cls, version, again)[0], version) == again


def record_batches(data: bytes) -> None:
    """Batches of all formats, as consumers and loaders read them."""
    for batch in iter_batches(data, allow_partial=True):
        assert batch.is_crc_valid in (True, False)
        for record in iter_records(batch, limit_bytes=DECOMPRESSED_LIMIT_BYTES):
            assert record.value is None or len(record.value) <= DECOMPRESSED_LIMIT_BYTES
        record_keys(batch, limit_bytes=DECOMPRESSED_LIMIT_BYTES)


_CONFIGS: Final = (
    LogConfig(),
    LogConfig(cleanup_policy=frozenset((CleanupPolicy.COMPACT,))),
    LogConfig(compression_type=Compression.LZ4),
)


def produced_batches(data: bytes) -> None:
    """A producer's batch. The search does not guess checksums: right ones are put in."""
    if len(data) < 22:
        return
    from crc32c import crc32c

    batch = bytearray(data[1:])
    if len(batch) > 21:
        batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    checked = check_client_batch(bytes(batch), _CONFIGS[data[0] % len(_CONFIGS)], NOW_MS)
    assert checked.header.records_count > 0


def compressed(data: bytes) -> None:
    """The first byte is the codec."""
    if data:
        codec = Compression.from_attributes(data[0])
        assert len(decompress(codec, data[1:], DECOMPRESSED_LIMIT_BYTES)) <= DECOMPRESSED_LIMIT_BYTES


def _two(data: bytes) -> tuple[bytes, bytes]:
    size = PIECE.unpack_from(data)[0] if len(data) >= PIECE.size else 0
    return data[PIECE.size : PIECE.size + size], data[PIECE.size + size :]


def coordinator_records(data: bytes) -> None:
    """A key and a value, as groups and transactions load them."""
    key, value = _two(data)
    try:
        decode_group_record(key, value or None)
    except BadRecord:
        decode_transaction_record(key, value or None)


def share_records(data: bytes) -> None:
    """Keys and values of share partitions' states, loaded one after another as the share coordinator does.

    Those that say nothing are passed over, and whatever was loaded can be read, and written to.
    """
    shard = ShareShard(ShareCoordinatorConfig(), lambda topic_id: 1 << 31)
    loaded: dict[SharePartitionKey, None] = {}
    offset = 0
    for piece in data.split(SPLIT)[:_MOST_RECORDS]:
        key, value = _two(piece)
        try:
            record = decode_share_record(key, value or None)
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


def metadata_records(data: bytes) -> None:
    decode_metadata_record(data)


class OneTopic:
    """A view of topics of which one exists."""

    version = 1
    names = ("topic",)

    def topic_id(self, name: str) -> bytes | None:
        return b"0123456789abcdef" if name == "topic" else None

    def topic_name(self, topic_id: bytes) -> str | None:
        return "topic"

    def partition_count(self, topic_id: bytes) -> int:
        return 3


def subscriptions(data: bytes) -> None:
    is_loadable(data)
    subscribed_topics(data)
    topic_count(data)
    read_subscription(data, OneTopic())


def assignments(data: bytes) -> None:
    read_assignment(data, OneTopic())


USER, PASSWORD = "user", "secret"
_SCRAM: Final = MECHANISMS["SCRAM-SHA-256"]
_SALTED: Final = _SCRAM.salted_password(PASSWORD, b"salt", MIN_ITERATIONS)
_CREDENTIAL: Final = _SCRAM.credential(_SALTED, b"salt", MIN_ITERATIONS)


def scram_server() -> ScramServer:
    """A server that knows one user, and says the same in every run."""
    account = ScramAccount(_CREDENTIAL, Identity(USER))
    return ScramServer(_SCRAM, lambda name, by_token: account if name == USER else None, "nonce")


def scram(data: bytes) -> None:
    """An exchange with a server, and what a client reads of one."""
    server = scram_server()
    for message in data.split(SPLIT):
        for read in (ClientFinal.read, ServerFirst.read, read_server_final):
            try:
                read(message)
            except AuthenticationFailed:
                pass
        server.step(message, NOW_MS)


def handshakes(data: bytes) -> None:
    """Frames with their sizes, of a client that is not yet known."""
    offered = {
        "PLAIN": OfferedMechanism(lambda: PlainServer({USER: PASSWORD})),
        "SCRAM-SHA-256": OfferedMechanism(scram_server),
        "OAUTHBEARER": OfferedMechanism(lambda: OAuthBearerServer(UnsecuredValidator())),
    }
    handshake = SaslHandshake(lambda: offered)
    for frame in FrameSplitter(LARGEST_FRAME_BYTES).feed(data):
        step = handshake.receive(frame, now_ms=NOW_MS, wall_ms=NOW_MS)
        if step.failure is not None:
            return
        if step.is_for_handler:
            handshake.api_versions_answered(0)


def plain(data: bytes) -> None:
    PlainServer({USER: PASSWORD}).step(data, NOW_MS)


def oauthbearer(data: bytes) -> None:
    server = OAuthBearerServer(UnsecuredValidator(required_scope=("read",)))
    for message in data.split(SPLIT):
        server.step(message, NOW_MS)


def token_claims(data: bytes) -> None:
    """JSON of an unsigned token; the search does not guess Base64."""
    from base64 import urlsafe_b64encode

    text = urlsafe_b64encode(data).rstrip(b"=").decode()
    token = f"eyJhbGciOiJub25lIn0.{text}."
    read_token(token)
    UnsecuredValidator().validate(token, NOW_MS)


def key_sets(data: bytes) -> None:
    KeySet.read(data)


def telemetry(data: bytes) -> None:
    read_push(data, lambda name: True, 100)


def console_requests(data: bytes) -> None:
    """A query, and behind the first newline a body."""
    query, _, body = data.partition(b"\n")
    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/", "query_string": query, "headers": []}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    trio.run(arguments_of, Request({**scope, "path_params": {}}, receive), 64 << 10)


TARGETS: Final = {
    "frames": Target(frames, (MalformedMessage,)),
    "messages": Target(messages, (MalformedMessage,)),
    "record-batches": Target(record_batches, (InvalidRecords,), 8 * DECOMPRESSED_LIMIT_BYTES),
    "produced-batches": Target(produced_batches, (ApiError,), 2 << 20),
    "compressed": Target(compressed, (InvalidRecords,), 2 * DECOMPRESSED_LIMIT_BYTES),
    "coordinator-records": Target(coordinator_records, (BadRecord,)),
    "share-records": Target(share_records, (BadRecord, MalformedMessage)),
    "metadata-records": Target(metadata_records, (MalformedMessage,)),
    "subscriptions": Target(subscriptions, (MalformedMessage,)),
    "assignments": Target(assignments, (MalformedMessage,)),
    "scram": Target(scram, (AuthenticationFailed,)),
    "handshakes": Target(handshakes, (MalformedMessage,)),
    "plain": Target(plain, (AuthenticationFailed,)),
    "oauthbearer": Target(oauthbearer, (AuthenticationFailed,)),
    "token-claims": Target(token_claims, (InvalidToken,)),
    "key-sets": Target(key_sets, (UnusableKeys,)),
    "telemetry": Target(telemetry, (MalformedPush,)),
    "console-requests": Target(console_requests, (BadInput, Refused, ClientGone)),
}
