"""Envelopes: what a broker puts in, a controller takes out; what is no envelope is refused as Kafka refuses it."""

from __future__ import annotations

import pytest

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.framing import RequestHeader
from pykbroker.protocol.messages.brokers import BrokerHeartbeatResponse, EnvelopeRequest
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from pykbroker.server.quorum.forwarding import (
    disclose,
    disclose_response,
    enclose,
    enclose_response,
    has_error,
)

HEADER = RequestHeader(ApiKey.CREATE_TOPICS, 7, 42, "admin")
REQUEST = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=3, replication_factor=1)])


@pytest.mark.parametrize("address", ["10.1.2.3", "fe80::1"])
def test_what_a_broker_encloses_the_controller_finds_with_its_client(address: str) -> None:
    forwarded = disclose(enclose(REQUEST, HEADER, "User:alice", address))
    assert (forwarded.header, forwarded.principal, forwarded.client_address) == (HEADER, "User:alice", address)
    request, end = decode(CreateTopicsRequest, 7, forwarded.data, forwarded.body)
    assert (request, end) == (REQUEST, len(forwarded.data))


def test_the_controller_is_told_who_has_authenticated_by_a_token() -> None:
    by_token = enclose(REQUEST, HEADER, "User:alice", "10.1.2.3", by_token=True)
    assert disclose(by_token).by_token
    assert not disclose(enclose(REQUEST, HEADER, "User:alice", "10.1.2.3")).by_token
    assert by_token.request_principal == b"\0\0" + b"\x05User" + b"\x06alice" + b"\1" + b"\0"


def test_the_bytes_are_those_of_kafka() -> None:
    """A principal has its version in front, an address has no text form, and a request has no size."""
    envelope = enclose(REQUEST, HEADER, "User:ANONYMOUS", "127.0.0.1")
    assert envelope.request_principal == b"\0\0" + b"\x05User" + b"\x0aANONYMOUS" + b"\0" + b"\0"
    assert envelope.client_host_address == b"\x7f\0\0\1"
    assert envelope.request_data[:15] == b"\0\x13\0\7\0\0\0\x2a\0\5admin"


def test_the_answer_comes_back_as_the_client_will_get_it() -> None:
    response = CreateTopicsResponse(topics=[CreatableTopicResult(name="t", num_partitions=3, error_message=None)])
    envelope = enclose_response(response, HEADER)
    assert envelope.error_code == ErrorCode.NONE
    assert disclose_response(envelope, HEADER) == response


def test_a_controller_that_is_not_active_says_so_on_the_envelope() -> None:
    result = CreatableTopicResult(name="t", error_code=ErrorCode.NOT_CONTROLLER)
    envelope = enclose_response(CreateTopicsResponse(topics=[result]), HEADER)
    assert (envelope.error_code, envelope.response_data) == (ErrorCode.NOT_CONTROLLER, None)
    assert has_error(BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER), ErrorCode.NOT_CONTROLLER)


@pytest.mark.parametrize(
    ("change", "error_code"),
    [
        ({"request_principal": None}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b"\0"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b"\0\7\2U\2A\0\0"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b"\0\0\x7fU\2A\0\0"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"client_host_address": b"\1\2\3"}, ErrorCode.INVALID_REQUEST),
        ({"request_data": b"\0\x13\0"}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_data": b"\0\x00\0\x0b\0\0\0\1\xff\xff\0"}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_no_envelope_is_refused(change: dict[str, bytes | None], error_code: ErrorCode) -> None:
    good = enclose(REQUEST, HEADER, "User:alice", "10.1.2.3")
    parts = {name: getattr(good, name) for name in ("request_data", "request_principal", "client_host_address")}
    with pytest.raises(ApiError) as refused:
        disclose(EnvelopeRequest(**{**parts, **change}))
    assert refused.value.code is error_code
