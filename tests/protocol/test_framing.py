"""Frames, whichever way their bytes arrive, and the headers in them."""

from __future__ import annotations

import struct
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.protocol.api_keys import ApiKey, request_type, response_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.framing import (
    FrameSplitter,
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request,
    encode_response,
)
from pykbroker.protocol.messages.api_versions import ApiVersionsResponse
from pykbroker.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from pykbroker.protocol.messages.headers import RequestHeader as RequestHeaderMessage
from pykbroker.protocol.messages.produce import ProduceRequest
from tests.examples import examples

from .maker import make_message

FIRST = struct.Struct(">hhi")


def _apis() -> list[tuple[ApiKey, int]]:
    found = []
    for key in ApiKey:
        versions = request_type(key).__schema__.versions
        found += [(key, version) for version in range(versions.low, versions.high + 1)]
    return found


@examples(60)
@given(seed=st.integers(0, 2**32), most_bytes=st.sampled_from([1, 3, 17, 4000]))
def test_requests_arrive_whole_in_whatever_pieces_they_come(seed: int, most_bytes: int) -> None:
    rng = Random(seed)
    sent = [
        (key, version, make_message(request_type(key), version, seed)) for key, version in rng.choices(_apis(), k=5)
    ]
    stream = b"".join(
        encode_request(request, version, number, rng.choice((None, "", "client-1")))
        for number, (_, version, request) in enumerate(sent)
    )
    splitter = FrameSplitter(2**20)
    frames = []
    while stream:
        size = rng.randint(1, most_bytes)
        frames += list(splitter.feed(stream[:size]))
        stream = stream[size:]
    assert splitter.pending_bytes == 0
    assert len(frames) == len(sent)
    for number, (frame, (key, version, request)) in enumerate(zip(frames, sent, strict=True)):
        header, body = decode_request_header(frame)
        assert (header.api_key, header.api_version, header.correlation_id) == (key, version, number)
        assert decode(type(request), version, frame, body) == (request, len(frame))


@examples(60)
@given(seed=st.integers(0, 2**32))
def test_responses_are_read_back_by_their_request(seed: int) -> None:
    for key, version in Random(seed).choices(_apis(), k=5):
        response = make_message(response_type(key), version, seed)
        whole = b"".join(part for part in encode_response(-7, response, version) if isinstance(part, bytes))
        [frame] = FrameSplitter(2**20).feed(whole)
        correlation_id, body = decode_response_header(frame, key, version)
        assert correlation_id == -7
        assert decode(type(response), version, frame, body) == (response, len(frame))


@examples(200)
@given(frame=st.binary(max_size=60))
def test_made_up_headers_are_read_or_malformed(frame: bytes) -> None:
    try:
        header, body = decode_request_header(frame)
    except MalformedMessage:
        return
    assert 10 <= body <= len(frame)
    assert header.api_key in set(ApiKey)


def test_a_region_of_records_counts_for_the_size_and_is_left_to_the_transport() -> None:
    class Region:
        size = 1000

    region = Region()
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=region)])])
    first, sent_region, last = encode_response(5, response, 16)
    assert isinstance(first, bytes)
    assert isinstance(last, bytes)
    assert sent_region is region
    assert struct.unpack_from(">i", first) == (len(first) - 4 + 1000 + len(last),)


def test_api_versions_is_answered_with_the_old_header_in_every_version() -> None:
    for version in range(5):
        [whole] = encode_response(0x01020304, ApiVersionsResponse(), version)
        assert isinstance(whole, bytes)
        assert decode_response_header(whole[4:], ApiKey.API_VERSIONS, version) == (0x01020304, 4)


def test_the_header_of_a_version_yet_to_come_can_be_read() -> None:
    frame = FIRST.pack(ApiKey.API_VERSIONS, 99, 3) + b"\x00\x01c" + b"\x00" + b"what ever follows"
    assert decode_request_header(frame) == (RequestHeader(18, 99, 3, "c"), 12)


@pytest.mark.parametrize(
    ("frame", "complaint"),
    [
        (b"", "a request of 0 bytes"),
        (b"\x00\x12", "a request of 2 bytes"),
        (FIRST.pack(9999, 0, 1) + b"\xff\xff", "no API key 9999"),
        (FIRST.pack(-1, 0, 1) + b"\xff\xff", "no API key -1"),
        (FIRST.pack(4, 0, 1) + b"\xff\xff", "no API key 4"),
        (FIRST.pack(18, 0, 1), "a request of 8 bytes"),
        (FIRST.pack(18, 0, 1) + b"\xff\xfe", "a client id of -2 bytes"),
        (FIRST.pack(18, 0, 1) + b"\x00\x09abc", "a client id of 9 bytes, 3 are left"),
        (FIRST.pack(18, 3, 1) + b"\xff\xff", "cut short"),
        (FIRST.pack(18, 3, 1) + b"\xff\xff\x81\x01" + bytes(500), "129 tagged fields in a request header"),
        (FIRST.pack(18, 3, 1) + b"\xff\xff\x01\x05\x09abc", "tagged field 5 has 9 bytes"),
        (FIRST.pack(18, 3, 1) + b"\xff\xff\x02\x05\x00\x05\x00", "tagged field 5 comes after 5"),
    ],
)
def test_headers_that_cannot_be_are_refused(frame: bytes, complaint: str) -> None:
    with pytest.raises(MalformedMessage, match=complaint):
        decode_request_header(frame)


def test_a_client_id_that_is_not_utf_8_is_accepted() -> None:
    header, body = decode_request_header(FIRST.pack(18, 0, 1) + b"\x00\x03a\xffb")
    assert (header.client_id, body) == ("a\ufffdb", 13)


def test_the_header_is_the_one_that_is_declared() -> None:
    frame = encode_request(ProduceRequest(), 9, 77, "me")[4:]
    header, body = decode(RequestHeaderMessage, 2, frame)
    assert header == RequestHeaderMessage(request_api_key=0, request_api_version=9, correlation_id=77, client_id="me")
    assert decode_request_header(frame) == (RequestHeader(0, 9, 77, "me"), body)


@pytest.mark.parametrize("size", [-1, 0, 101, 2**31 - 1])
def test_a_frame_of_a_size_that_may_not_be_is_refused_before_it_arrives(size: int) -> None:
    splitter = FrameSplitter(100)
    with pytest.raises(MalformedMessage, match=f"a frame of {size} bytes"):
        list(splitter.feed(struct.pack(">i", size)))


def test_frames_in_front_of_a_bad_one_are_delivered() -> None:
    splitter = FrameSplitter(100)
    stream = splitter.feed(struct.pack(">i2si", 2, b"ab", -1))
    assert next(stream) == b"ab"
    with pytest.raises(MalformedMessage):
        next(stream)
