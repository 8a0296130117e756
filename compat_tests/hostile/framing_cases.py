"""Frames and headers that are no Kafka, or not quite: rows 1 to 26."""

import struct
from typing import Any

from compat_tests.cases import CLOSED, code
from compat_tests.wire import header, uvarint
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse

from .scene import Case, Scene

API_VERSIONS, METADATA, PRODUCE = 18, 3, 0
ONE_TOPIC_V8 = struct.pack(">i", 1)
NO_TOPICS_V9 = b"\x01\x00\x00\x00\x00"
"""A compact array without elements, three booleans, no tagged fields."""


def raw(data: bytes) -> Any:
    """Sends these bytes and tells which frame comes back."""

    def run(scene: Scene) -> Any:
        with scene.wire() as wire:
            wire.send_raw(data)
            return wire.receive()

    return run


def frame(body: bytes) -> Any:
    """Sends the frame, and tells whether it was served: the correlation id of the answer is the request's."""

    def run(scene: Scene) -> str:
        with scene.wire() as wire:
            wire.send_frame(body)
            answered = wire.receive()
        return "served" if answered[:4] == struct.pack(">i", 7) else repr(answered)

    return run


def api_versions_of_the_future(scene: Scene) -> Any:
    with scene.wire() as wire:
        wire.send_frame(header(API_VERSIONS, 99, tags=b"\x00") + b"\x02a\x02b\x00")
        answered = wire.receive()
    error, count, key, oldest, newest = struct.unpack(">hihhh", answered[4:])
    return code(error), count, (key, oldest, newest)


def software_name(name: str) -> Any:
    def run(scene: Scene) -> str:
        with scene.wire() as wire:
            request = ApiVersionsRequest(client_software_name=name, client_software_version="1.0")
            answer = wire.call(request, 3)
        assert isinstance(answer, ApiVersionsResponse)
        return code(answer.error_code)

    return run


def metadata_with_garbage_behind(scene: Scene) -> str:
    return str(frame(header(METADATA, 9, tags=b"\x00") + NO_TOPICS_V9 + b"garbage")(scene))


def client_id_that_is_not_utf8(scene: Scene) -> str:
    body = struct.pack(">i", 0) + b"\x00"
    return str(frame(header(METADATA, 4, client_id=b"\xff\xfe\x80\n") + body)(scene))


def two_requests_at_once(scene: Scene) -> Any:
    """Answers come in the order of the requests, also when the first asks for more than the second."""
    with scene.wire() as wire:
        every_topic = MetadataRequest(topics=None)
        wire.send(every_topic, 12)
        wire.send(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
        first, second = wire.receive(), wire.receive()
    return struct.unpack(">i", first[:4])[0], struct.unpack(">i", second[:4])[0]


def metadata_of(scene: Scene, topics: list[Any], version: int) -> MetadataResponse:
    with scene.wire() as wire:
        answer = wire.call(MetadataRequest(topics=topics, allow_auto_topic_creation=False), version)
    assert isinstance(answer, MetadataResponse)
    return answer


HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(197)
CUT_CLIENT_ID = struct.pack(">hhih", METADATA, 4, 7, 500) + b"short"
NULL_BELOW_MINUS_ONE = struct.pack(">hhih", METADATA, 4, 7, -2)

CASES = [
    Case("1", "a frame of -1 bytes", raw(struct.pack(">i", -1)), CLOSED),
    Case("2", "a frame of 0 bytes", raw(struct.pack(">i", 0)), CLOSED),
    Case("3", "a frame of 2 GiB", raw(struct.pack(">i", 2**31 - 1)), CLOSED),
    Case("4", "a frame of 100 MiB and a byte", raw(struct.pack(">i", 100 * 2**20 + 1)), CLOSED),
    Case("6", "an HTTP request", raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), CLOSED),
    Case("7", "a TLS ClientHello", raw(HELLO), CLOSED),
    Case("9", "API key 9999", frame(header(9999, 0)), CLOSED),
    Case("10", "API key -1", frame(header(-1, 0)), CLOSED),
    Case(
        "11",
        "ApiVersions of version 99",
        api_versions_of_the_future,
        ("UNSUPPORTED_VERSION", 1, (API_VERSIONS, 0, 4)),
        ("UNSUPPORTED_VERSION", 1, (API_VERSIONS, 0, 5)),  # as Kafka 4.4.0
    ),
    Case("13", "ApiVersions without a software name", software_name(""), "INVALID_REQUEST"),
    Case("13", "ApiVersions with an illegal software name", software_name("a b$"), "INVALID_REQUEST"),
    Case("13", "ApiVersions with a legal software name", software_name("my-client.v1"), "NONE"),
    Case("14", "Metadata of version 99", frame(header(METADATA, 99, tags=b"\x00") + b"\x01\x00\x00\x00\x00"), CLOSED),
    Case("15", "Produce of version 2", frame(header(PRODUCE, 2) + struct.pack(">hii", 1, 1000, 0)), CLOSED),
    Case("16", "a header of two bytes", frame(b"\x00\x03"), CLOSED),
    Case("17", "a client id longer than the frame", frame(CUT_CLIENT_ID), CLOSED),
    Case("18", "a client id of -2 bytes", frame(NULL_BELOW_MINUS_ONE + struct.pack(">iB", 0, 0)), "served", CLOSED),
    Case("18", "an array of -2 elements", frame(header(METADATA, 4) + struct.pack(">iB", -2, 0)), "served", CLOSED),
    Case(
        "18",
        "a compact array of 2**32 - 2 elements",
        frame(header(METADATA, 9, tags=b"\x00") + uvarint(2**32 - 1) + b"\x00\x00\x00\x00"),
        "served",
        CLOSED,
    ),
    Case("19", "a client id that is not UTF-8", client_id_that_is_not_utf8, "served"),
    Case("21", "a tagged field beyond the frame", frame(header(METADATA, 9, tags=b"\x01\x00\x7f")), CLOSED),
    Case("22", "an array of 2**31 - 1 elements", frame(header(METADATA, 4) + struct.pack(">i", 2**31 - 1)), CLOSED),
    Case(
        "24", "an array length of six bytes", frame(header(METADATA, 9, tags=b"\x00") + b"\xff" * 5 + b"\x01"), CLOSED
    ),
    Case("25", "garbage behind the body", metadata_with_garbage_behind, "served"),
    Case("26", "a null topic in Metadata 1", frame(header(METADATA, 1) + ONE_TOPIC_V8 + b"\xff\xff"), CLOSED),
    Case("order", "two requests in one go", two_requests_at_once, (1, 2)),
]
