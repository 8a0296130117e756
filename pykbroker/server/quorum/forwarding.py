"""An Envelope brings a client's request from a broker to the active controller (KIP-590).

Kafka's counterparts are `ForwardingManager`, `EnvelopeUtils` and the serialized form of `KafkaPrincipal`. The module
turns bytes to values and back; who asks whom is decided elsewhere.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass

from pykbroker.protocol.api_keys import ApiKey, response_type
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import ApiError, ErrorCode, MalformedMessage, UnsupportedVersion
from pykbroker.protocol.framing import (
    SIZE_BYTES,
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request,
    encode_response,
)
from pykbroker.protocol.messages.brokers import EnvelopeRequest, EnvelopeResponse
from pykbroker.protocol.messages.principals import DefaultPrincipalData
from pykbroker.protocol.schema import Message

FORWARDABLE = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.UNREGISTER_CONTROLLER,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)
"""What brokers pass on; nothing else may come in an Envelope."""

_PRINCIPAL_VERSION = 0
_VERSION = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The forwarded request is what a broker passes on: body is where the request begins in data.

    by_token: its client has authenticated by a delegation token.
    """

    header: RequestHeader
    data: memoryview
    body: int
    principal: str
    client_address: str
    by_token: bool = False


def enclose(
    request: Message, header: RequestHeader, principal: str, client_address: str, *, by_token: bool = False
) -> EnvelopeRequest:
    """Put the request in an Envelope. header: of the request as it came; principal: its type, a colon and its name.

    by_token: the client has authenticated by a delegation token.
    """
    kind, _, name = principal.partition(":")
    data = DefaultPrincipalData(type=kind, name=name, token_authenticated=by_token)
    frame = encode_request(request, header.api_version, header.correlation_id, header.client_id)
    return EnvelopeRequest(
        request_data=frame[SIZE_BYTES:],
        request_principal=_VERSION.pack(_PRINCIPAL_VERSION) + encode(data, _PRINCIPAL_VERSION),
        client_host_address=_packed(client_address),
    )


def disclose(envelope: EnvelopeRequest) -> Forwarded:
    """The request in an envelope. Raises ApiError where the envelope itself is not in order, whatever it holds."""
    principal = _principal(envelope.request_principal)
    try:
        client_address = str(ipaddress.ip_address(bytes(envelope.client_host_address)))
    except ValueError:
        raise ApiError(ErrorCode.INVALID_REQUEST, "its client has no IP address") from None
    data = memoryview(envelope.request_data)
    try:
        header, body = decode_request_header(data)
    except MalformedMessage as error:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from None
    if header.api_key not in FORWARDABLE:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{ApiKey(header.api_key).name} is nothing to forward")
    return Forwarded(
        header, data, body, f"{principal.type}:{principal.name}", client_address, principal.token_authenticated
    )


def enclose_response(response: Message, header: RequestHeader) -> EnvelopeResponse:
    """A controller that is not active any more says so on the envelope, so that the broker looks for another one."""
    if has_error(response, ErrorCode.NOT_CONTROLLER):
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    parts = encode_response(header.correlation_id, response, header.api_version)
    frame = b"".join(part for part in parts if isinstance(part, bytes))  # no such API answers with records
    return EnvelopeResponse(response_data=frame[SIZE_BYTES:])


def disclose_response(envelope: EnvelopeResponse, header: RequestHeader) -> Message:
    """The answer to the request that was enclosed. Raises MalformedMessage."""
    data = memoryview(envelope.response_data or b"")
    _, body = decode_response_header(data, header.api_key, header.api_version)
    response, _ = decode(response_type(header.api_key), header.api_version, data, body)
    return response


def has_error(response: Message, error_code: ErrorCode) -> bool:
    """Tell whether the response, or the first level of its parts, has this error code."""
    if getattr(response, "error_code", None) == error_code:
        return True
    arrays = (getattr(response, each.name) for each in response.__schema__.fields if each.is_array)
    return any(getattr(part, "error_code", None) == error_code for array in arrays for part in array or ())


def _principal(data: bytes | None) -> DefaultPrincipalData:
    try:
        if data is None:
            raise MalformedMessage("there is none")
        (version,) = _VERSION.unpack_from(data)
        principal, _ = decode(DefaultPrincipalData, version, data, _VERSION.size)
    except (struct.error, MalformedMessage, UnsupportedVersion) as error:
        raise ApiError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from None
    return principal


def _packed(client_address: str) -> bytes:
    """A host that is no IP address, as in a simulated network, stands for this machine."""
    try:
        return ipaddress.ip_address(client_address.partition("%")[0]).packed
    except ValueError:
        return ipaddress.IPv4Address("127.0.0.1").packed
