"""Requests to a running broker: made from the schemas, so that most of them mean something, with content that is bent.

Names are often those of a topic, a group and a transactional id that there are; numbers are often those of a partition,
an epoch or an error; record batches are often sound. Whatever comes of a request, the broker answers it in its schema,
closes the connection, or lets it wait; it logs no error, holds its loop for no longer than any request may, and serves
others all the while.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from compat_tests.wire import Closed, Silent, Wire
from pykbroker.protocol.api_keys import ApiKey, request_type, response_type
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.framing import decode_response_header, encode_request
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.records.batch import encode_batch
from pykbroker.protocol.records.record import Record
from pykbroker.protocol.schema import Message, Struct
from tests.protocol.maker import Choices, make_message

TOPIC, GROUP, TRANSACTIONAL_ID = "topic", "group", "transactional-id"
MOST_WAIT_S: Final = 0.3
"""So long a request may wait for its answer before its client leaves."""
OTHER_TEXTS: Final = (
    "",
    "consumer",
    "range",
    "1",
    "share",
    "streams",
    "__consumer_offsets",
    "x" * 300,
    "9" * 32_760,
    "\0é",
)
TEXTS: Final = (TOPIC, TOPIC, GROUP, TRANSACTIONAL_ID, *OTHER_TEXTS)
NUMBERS: Final = (-1, 0, 1, 2, 3, 100, 10_000)
LEFT_OUT: Final = frozenset((ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE))
"""Whose answer changes what a connection may ask next."""
_MOST_LEARNED: Final = 20
_LONGEST_LEARNED: Final = 100
ENDS_THE_BROKER: Final = frozenset((ApiKey.UNREGISTER_BROKER, ApiKey.DELETE_TOPICS))
"""What a client with every right does in earnest: then nothing is left that others could ask about."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and what came of it: `answered`, `closed` or `waits`."""

    request: Message
    version: int
    outcome: str

    def __str__(self) -> str:
        return f"{self.request!r} in version {self.version}: {self.outcome}"


def served_versions(address: tuple[str, int]) -> dict[int, range]:
    with Wire(address) as wire:
        answer = wire.call(ApiVersionsRequest(), 0)
    assert isinstance(answer, ApiVersionsResponse)
    return {each.api_key: range(each.min_version, each.max_version + 1) for each in answer.api_keys}


class Learned:
    """What answers have told, such as ids of members, topics and producers: requests name the last of it again."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque(maxlen=_MOST_LEARNED)
        self._numbers: deque[int] = deque(maxlen=_MOST_LEARNED)
        self._uuids: deque[bytes] = deque(maxlen=_MOST_LEARNED)

    @property
    def choices(self) -> Choices:
        return Choices(
            texts=(*TEXTS, *self._texts),
            sizes=(0, 1, 16, 300),
            numbers=(*NUMBERS, *self._numbers),
            uuids=tuple(self._uuids),
        )

    def learn(self, answer: Struct) -> None:
        for f in type(answer).__schema__.fields:
            value = getattr(answer, f.name)
            match f.kind:
                case "string" if value and len(value) < _LONGEST_LEARNED and value not in self._texts:
                    self._texts.append(value)
                case "int32" | "int64" if value > NUMBERS[-1] and value not in self._numbers:
                    self._numbers.append(value)
                case "uuid" if any(value) and value not in self._uuids:
                    self._uuids.append(value)
        for inner in _structs(answer):
            self.learn(inner)


def bent_requests(
    seed: int, served: dict[int, range], rounds: int, learned: Learned
) -> Iterator[tuple[Message, int, bytes]]:
    """Yield requests of every API that is served, with their versions and frames; of one in four, bytes are bent."""
    rng = Random(seed)
    for _ in range(rounds):
        for key, versions in served.items():
            if key in LEFT_OUT or key in ENDS_THE_BROKER:
                continue
            cls = request_type(key)
            version = rng.choice([each for each in versions if cls.__schema__.versions.includes(each)])
            most = rng.choice((1, 2, 4))
            request = make_message(cls, version, rng.getrandbits(32), most_elements=most, choices=learned.choices)
            _put_records(request, rng)
            _limit(request)
            frame = bytearray(encode_request(request, version, rng.getrandbits(31), rng.choice((None, "client", ""))))
            if rng.random() < 0.25:
                _bend(frame, rng)
            yield request, version, bytes(frame)


def ask(address: tuple[str, int], request: Message, version: int, frame: bytes, learned: Learned) -> Asked:
    """Send a frame on a connection of its own. An answer that is not of the schema is an AssertionError."""
    with Wire(address) as wire:
        try:
            wire.send_raw(frame)
            answer = wire.receive(MOST_WAIT_S)
        except Closed:
            return Asked(request, version, "closed")
        except Silent:
            return Asked(request, version, "waits")
    key, sent_version = struct.unpack_from(">hh", frame, 4)
    answered_version = sent_version
    if key == ApiKey.API_VERSIONS and not request_type(key).__schema__.versions.includes(sent_version):
        answered_version = 0
    _, start = decode_response_header(answer, key, answered_version)
    response, end = decode(response_type(key), answered_version, answer, start)
    assert end == len(answer), f"{request!r} in version {version}: {len(answer) - end} bytes behind the answer"
    assert encode(response, answered_version) == answer[start:], f"{request!r} in version {version}: {response!r}"
    learned.learn(response)
    return Asked(request, version, "answered")


def _bend(frame: bytearray, rng: Random) -> None:
    """Change bytes behind the size, the API and its version."""
    for _ in range(rng.randint(1, 4)):
        if len(frame) > 12:
            frame[rng.randrange(12, len(frame))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _put_records(value: Struct, rng: Random) -> None:
    """Half of all batches are sound."""
    for f in type(value).__schema__.fields:
        if f.kind == "records" and rng.random() < 0.5:
            records = [Record(b"k", rng.randbytes(rng.randrange(40)), (), 0, number) for number in range(3)]
            setattr(value, f.name, encode_batch(records, producer_id=rng.choice((-1, 0, 1)), base_sequence=0))
    for inner in _structs(value):
        _put_records(inner, rng)


def _limit(value: Struct) -> None:
    """Topics of a few partitions only: how many there may be is a matter of configuration, and not of decoding."""
    for f in type(value).__schema__.fields:
        if f.name in ("num_partitions", "count") and f.kind == "int32":
            setattr(value, f.name, min(getattr(value, f.name), 5))
    for inner in _structs(value):
        _limit(inner)


def _structs(value: Struct) -> Iterator[Struct]:
    for f in type(value).__schema__.fields:
        inner = getattr(value, f.name)
        if isinstance(inner, Struct):
            yield inner
        elif isinstance(inner, list):
            yield from (each for each in inner if isinstance(each, Struct))
