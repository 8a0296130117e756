"""What reads bytes of others, one target for each kind of them: a function of an input, and the exceptions it declares.

A target returns, or raises one of its declared exceptions; whatever else comes out of it is a fault. Where a target
understood its input, it says it again, and that must be understood as the same.

An input of `messages`, `coordinator-records` and some others begins with bytes that choose what is read of the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

import trio
from starlette.requests import Request

from pykbroker.client.errors import BadInput
from pykbroker.console.bearer import BearerToken
from pykbroker.console.checks import Refused, check_changer
from pykbroker.console.cookie import token_of
from pykbroker.console.given import ClientGone, arguments_of
from pykbroker.groups.common.records import decode_record as decode_group_record
from pykbroker.groups.common.subscription import is_loadable, subscribed_topics, topic_count
from pykbroker.groups.consumer.embedded_protocol import read_assignment, read_subscription
from pykbroker.groups.consumer.regular_expressions import invalid_reason, matching_topics
from pykbroker.metadata.image import InconsistentMetadata
from pykbroker.metadata.records import decode_record as decode_metadata_record
from pykbroker.protocol.api_keys import request_type
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import ApiError, MalformedMessage, UnsupportedVersion
from pykbroker.protocol.framing import FrameSplitter, decode_request_header, decode_response_header
from pykbroker.protocol.messages.brokers import EnvelopeRequest
from pykbroker.protocol.records.batch import iter_batches, iter_records, record_keys
from pykbroker.protocol.records.compression import Compression, decompress
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.security.acls.address_ranges import InvalidRange, address_of, parse_range
from pykbroker.security.acls.hosts import host_of
from pykbroker.security.sasl.mechanism import AuthenticationFailed, Identity
from pykbroker.security.sasl.oauthbearer.compact_token import InvalidToken, read_token
from pykbroker.security.sasl.oauthbearer.key_set import KeySet, UnusableKeys
from pykbroker.security.sasl.oauthbearer.secured import Expectations, SecuredValidator
from pykbroker.security.sasl.oauthbearer.server import OAuthBearerServer
from pykbroker.security.sasl.oauthbearer.unsecured import UnsecuredValidator
from pykbroker.security.sasl.plain import PlainServer
from pykbroker.security.sasl.scram_credential import MECHANISMS, MIN_ITERATIONS
from pykbroker.security.sasl.scram_messages import ClientFinal, ServerFirst, read_server_final
from pykbroker.security.sasl.scram_server import ScramAccount, ScramServer
from pykbroker.security.sasl.server_handshake import OfferedMechanism, SaslHandshake
from pykbroker.security.tls.der import INTEGER, SEQUENCE
from pykbroker.security.tls.distinguished_names import UnusableName, distinguished_name
from pykbroker.security.tls.principals import PrincipalMapper
from pykbroker.server.quorum.forwarding import disclose
from pykbroker.server.quorum.snapshot_format import InvalidSnapshot, decode_snapshot
from pykbroker.sharing.dead_letters import Source, encode_letters, find_copies
from pykbroker.sharing.partition.values import DeadLetterCause, DeadLetters
from pykbroker.state_machine import BadRecord
from pykbroker.storage.files.errors import CorruptLog
from pykbroker.storage.producers.producer_snapshots import decode_snapshot as decode_producers
from pykbroker.storage.producers.producer_snapshots import encode_snapshot as encode_producers
from pykbroker.storage.segments.log_config import CleanupPolicy, LogConfig
from pykbroker.storage.segments.validation import check_client_batch
from pykbroker.telemetry.otlp import read_push
from pykbroker.telemetry.wire_fields import MalformedPush
from pykbroker.transactions.records import decode_record as decode_transaction_record
from tests.protocol.declared import declared_messages

from . import states
from .inputs import NOW_MS, SPLIT, two

DECOMPRESSED_LIMIT_BYTES: Final = 256 << 10
"""What the targets let a batch decompress to, in place of the broker's 64 MiB."""
LARGEST_FRAME_BYTES: Final = 1 << 20
MESSAGES: Final = tuple(declared_messages()[name] for name in sorted(declared_messages()))
NUMBERS: Final = {message.__name__: crc32(message.__name__.encode()) & 0xFFFF for message in MESSAGES}
"""What chooses a message, and stays the same when others are declared."""
_CHOSEN: Final = {NUMBERS[message.__name__]: message for message in MESSAGES}
CHOICE: Final = struct.Struct(">HB")
"""The number of a message, and its version."""


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


def coordinator_records(data: bytes) -> None:
    """A key and a value, as groups and transactions load them."""
    key, value = two(data)
    try:
        decode_group_record(key, value or None)
    except BadRecord:
        decode_transaction_record(key, value or None)


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


def tokens(data: bytes) -> None:
    """JSON of a signed token's header, then of its claims; the search does not guess Base64, nor a signature."""
    from base64 import urlsafe_b64encode

    header, claims = (urlsafe_b64encode(each).rstrip(b"=").decode() for each in two(data))
    SecuredValidator(GivenKeys(), _EXPECTED).validate(f"{header}.{claims}.c2lnbmF0dXJl", NOW_MS)


_EXPECTED: Final = Expectations(("here",), "issuer")


class GivenKeys:
    """A key for everything, whose signatures are all right."""

    def find(self, header: Mapping[str, Any], now_ms: int) -> Any:
        return self

    def verifies(self, algorithm: str, signed: bytes, signature: bytes) -> bool:
        return True


def regular_expressions(data: bytes) -> None:
    """An expression by which a consumer subscribes, and topics that it may match."""
    expression = data.decode(errors="replace")
    reason = invalid_reason(expression)
    found = matching_topics(expression, ("topic", "__consumer_offsets", "a" * 249))
    if reason is not None:
        assert not found
        assert "\n" not in reason or "\n" in expression
        raise BadInput(reason)


def acl_hosts(data: bytes) -> None:
    """The host of an ACL, which may be a range of addresses; and the same text as the address of a client."""
    text = data.decode(errors="replace")
    host_of(text)
    address_of(text)
    found = parse_range(text)
    assert 0 <= found.length <= found.bits
    assert found.network >> found.bits == 0


_MAPPERS: Final = tuple(
    PrincipalMapper(rules)
    for rules in ("DEFAULT", "RULE:^CN=(.*?),OU=(.*)$/$1@$2/L,DEFAULT", "RULE:([^=]*)=(.*)/$2-$1/U", "RULE:.*/a$0/")
)


def distinguished_names(data: bytes) -> None:
    """The subject of a client's certificate, and rules that map it; the first byte chooses the rules."""
    if not data:
        return
    name = distinguished_name(certificate_of(data[1:]))
    name.encode()
    _MAPPERS[data[0] % len(_MAPPERS)].name(name)


def certificate_of(name: bytes) -> bytes:
    """Return as much of a certificate as names are looked for in. name: DER."""
    empty = _der(SEQUENCE, b"")
    return _der(SEQUENCE, _der(SEQUENCE, b"".join((_der(INTEGER, b"1"), empty, empty, empty, name))))


def _der(tag: int, content: bytes) -> bytes:
    return bytes((tag, 0x82)) + len(content).to_bytes(2, "big") + content


def envelopes(data: bytes) -> None:
    """A principal and an address of four bytes, then a request that a broker passes on."""
    head, request = two(data)
    told = disclose(EnvelopeRequest(request_data=request, request_principal=head[4:], client_host_address=head[:4]))
    decode(request_type(told.header.api_key), told.header.api_version, told.data, told.body)
    assert told.principal.encode()


def snapshots(data: bytes) -> None:
    """A snapshot of the metadata; what voters it has is read, too. Right checksums are put in."""
    found = decode_snapshot(with_checksums(data))
    found.quorum.messages()
    found.quorum.voter_ids()


def producer_snapshots(data: bytes) -> None:
    """What another broker left of a log's producers, with the right checksum."""
    from crc32c import crc32c

    body = data[2:]
    found = list(decode_producers(data[:2] + crc32c(body).to_bytes(4, "big") + body, "a file"))
    encode_producers({each.producer_id: each for each in found})


def with_checksums(data: bytes) -> bytes:
    """Return batches with the checksums that they should have, as far as they follow each other."""
    from crc32c import crc32c

    fixed, at = bytearray(data), 0
    while at + 21 <= len(fixed):
        end = at + 12 + int.from_bytes(fixed[at + 8 : at + 12], "big", signed=True)
        if end < at + 21 or end > len(fixed):
            break
        fixed[at + 17 : at + 21] = crc32c(bytes(fixed[at + 21 : end])).to_bytes(4, "big")
        at = end
    return bytes(fixed)


def dead_letters(data: bytes) -> None:
    """Records that were rejected, in batches of a log; the copies go into a batch of letters."""
    letters = [DeadLetters(0, 3, 1, DeadLetterCause.CLIENT_REJECT), DeadLetters(9, 9, 5, DeadLetterCause.CLIENT_REJECT)]
    copies = find_copies(data, letters, DECOMPRESSED_LIMIT_BYTES)
    made = encode_letters(Source("topic", 0, "group"), letters, copies, NOW_MS, 1 << 20)
    (batch,) = iter_batches(made.records)
    assert len(list(iter_records(batch))) == sum(each.last_offset - each.first_offset + 1 for each in made.covered)


def console_heads(data: bytes) -> None:
    """Headers of a request to the console, a line each: who asks, and with which cookie or token."""
    headers = [tuple(line.split(b":", 1)) for line in data.split(b"\n") if b":" in line]
    scope = {"type": "http", "scheme": "http", "method": "POST", "path": "/", "query_string": b"", "server": ("h", 1)}
    request = Request({**scope, "headers": [(name.strip().lower(), value.strip()) for name, value in headers]})
    token = token_of(request)
    check_changer(request)
    BearerToken(token)


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
    "group-records": Target(states.group_records, (BadRecord,)),
    "group-requests": Target(states.group_requests, (MalformedMessage,)),
    "transaction-records": Target(states.transaction_records, (BadRecord,)),
    "share-records": Target(states.share_records, (BadRecord, MalformedMessage)),
    "metadata-image": Target(states.metadata_image, (MalformedMessage, InconsistentMetadata)),
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
    "tokens": Target(tokens, (InvalidToken,)),
    "regular-expressions": Target(regular_expressions, (BadInput,)),
    "acl-hosts": Target(acl_hosts, (InvalidRange,)),
    "producer-snapshots": Target(producer_snapshots, (CorruptLog,)),
    "distinguished-names": Target(distinguished_names, (UnusableName,)),
    "envelopes": Target(envelopes, (ApiError, MalformedMessage, UnsupportedVersion)),
    "snapshots": Target(snapshots, (InvalidSnapshot, MalformedMessage), 2 * DECOMPRESSED_LIMIT_BYTES),
    "dead-letters": Target(dead_letters, (), 8 * DECOMPRESSED_LIMIT_BYTES),
    "share-acknowledgements": Target(states.share_acknowledgements, (MalformedMessage,)),
    "console-heads": Target(console_heads, (BadInput, Refused)),
    "console-requests": Target(console_requests, (BadInput, Refused, ClientGone)),
}
