"""Envelope (key 58): a client's request that a broker passes on, with the client's principal and address (KIP-590).

Served is version 0, on controller listeners. What is inside is answered as if its client had sent it here.
"""

from __future__ import annotations

import logging

from pykbroker.protocol.api_keys import request_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ApiError, ErrorCode, MalformedMessage
from pykbroker.protocol.framing import RequestHeader
from pykbroker.protocol.messages.brokers import EnvelopeRequest, EnvelopeResponse
from pykbroker.protocol.schema import Message
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import MANY_ENTRIES, ConnectionState, Handler, RequestContext
from pykbroker.server.network.large_requests import LARGE_FRAME_BYTES
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import HANDLERS, handles_on_controllers
from pykbroker.server.quorum.forwarding import Forwarded, disclose, enclose_response
from pykbroker.server.runtime.log_lines import printable

_log = logging.getLogger(__name__)


@handles_on_controllers(EnvelopeRequest, needs=cluster(Operation.CLUSTER_ACTION), most_entries=MANY_ENTRIES)
async def envelope(context: RequestContext[ClusterNode], request: EnvelopeRequest) -> EnvelopeResponse:
    try:
        forwarded = disclose(request)
        handler = _handler_of(forwarded.header)
        enclosed = await _unpacked(context, forwarded)
    except ApiError as error:
        _log.warning("an envelope of %s gets %s: %s", context.client_address, error.code.name, printable(str(error)))
        return EnvelopeResponse(error_code=error.code)
    return await _answer(context, handler, forwarded, enclosed)


def _handler_of(header: RequestHeader) -> Handler[ClusterNode]:
    handler = HANDLERS.controller.by_api_key.get(header.api_key)
    if handler is None or not handler.min_version <= header.api_version <= handler.max_version:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION, f"version {header.api_version} of API {header.api_key} is not served"
        )
    return handler


async def _answer(
    context: RequestContext[ClusterNode], handler: Handler[ClusterNode], forwarded: Forwarded, request: Message
) -> EnvelopeResponse:
    header = forwarded.header
    client = ConnectionState(
        context.listener_name, forwarded.client_address, forwarded.principal, by_token=forwarded.by_token
    )
    inner = RequestContext(context.node, header, context.listener, client, is_forwarded=True)
    response = await handler.function(inner, request)
    assert response is not None, "every API that is forwarded has an answer"
    if len(forwarded.data) <= LARGE_FRAME_BYTES:
        return enclose_response(response, header)
    return await context.node.threads.run(enclose_response, response, header)


async def _unpacked(context: RequestContext[ClusterNode], forwarded: Forwarded) -> Message:
    """The request in the envelope; a thread decodes a large one. Raises ApiError."""
    header = forwarded.header
    arguments = request_type(header.api_key), header.api_version, forwarded.data, forwarded.body
    try:
        if len(forwarded.data) <= LARGE_FRAME_BYTES:
            return decode(*arguments)[0]
        request, _ = await context.node.threads.run(decode, *arguments)
    except MalformedMessage as error:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from None
    return request
