"""The controller channel is the way from this node to the active controller, which may be in the same process or on
another node.

A request is tried again while there is no controller, with the next one when there is another, and is answered with
REQUEST_TIMED_OUT when `request.timeout.ms` are over. `submit` is for this node itself, `forward` for a client: its
request goes in an Envelope where the controller is elsewhere (`forwarding`). Handlers ask by
`api.controller_requests.submit`.

As with Apache Kafka, a request whose answer was lost with its connection is sent again, so that it may have been
carried out twice. Kafka's counterparts are `NodeToControllerChannelManager` and `ForwardingManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Protocol

import trio

from pykbroker.client.errors import ClientError, UnsupportedByBroker
from pykbroker.metadata.error_responses import error_response
from pykbroker.protocol.api_keys import ApiKey, response_type
from pykbroker.protocol.errors import ApiError, ErrorCode, MalformedMessage
from pykbroker.protocol.messages.brokers import EnvelopeResponse
from pykbroker.protocol.schema import Message

from ..network.handlers import CloseConnection, RequestContext
from ..network.large_requests import LARGE_FRAME_BYTES
from ..network.node_connections import NodeAddress, NodeConnections
from ..runtime.signal import Signal
from ..runtime.threads import Threads
from ..runtime.turns import Turn
from .forwarding import disclose_response, enclose, has_error

_log = logging.getLogger(__name__)

_BACKOFF_S = 0.1

_PURPOSES: Final = {
    ApiKey.BROKER_REGISTRATION: "heartbeats",
    ApiKey.BROKER_HEARTBEAT: "heartbeats",
    ApiKey.ALTER_PARTITION: "in-sync replicas",
    ApiKey.ENVELOPE: "clients",
}
"""A controller answers one connection's requests one by one: a heartbeat does not wait until a topic is created, and
a connection that brings heartbeats stands for its broker."""

_Step = Callable[[], Awaitable[Message | None]]


class LocalController(Protocol):
    """The local controller is the `ControllerDriver`, where this node is a controller."""

    @property
    def is_active(self) -> bool: ...

    async def submit(self, request: Message, *, client: RequestContext[object] | None = None) -> Any: ...


class ControllerChannel:
    """The channel sends requests of this node and of its clients to the active controller.

    find: where the active controller listens, as far as it is known here. threads: pack and unpack large requests.
    `leader_may_have_changed` is to be called when `find` may say something new, or the local controller becomes active.
    """

    def __init__(
        self,
        connections: NodeConnections,
        *,
        local: LocalController | None,
        find: Callable[[], NodeAddress | None],
        timeout_ms: int,
        threads: Threads,
    ) -> None:
        self._connections = connections
        self._local = local
        self._find = find
        self._timeout_ms = timeout_ms
        self._threads = threads
        self._seen: tuple[bool, NodeAddress | None] = (False, None)
        self._changed = Signal()
        self._asking: dict[trio.CancelScope, NodeAddress] = {}

    async def submit(self, request: Message, *, timeout_ms: int | None = None) -> Any:
        """The response to a request of this node itself."""
        if self._local is not None and self._local.is_active:
            response: Message = await self._local.submit(request)
            if not has_error(response, ErrorCode.NOT_CONTROLLER):
                return response
        return await self._retry(
            request, self._of_local(request), lambda leader: self._ask(leader, request), timeout_ms
        )

    async def forward(self, context: RequestContext[object], request: Message) -> Any:
        """The response to a client's request. Raises CloseConnection where the controller does not know its version."""
        if self._local is not None and self._local.is_active:
            response: Message = await self._local.submit(request, client=context)
            if not has_error(response, ErrorCode.NOT_CONTROLLER):
                return response
        return await self._retry(
            request,
            self._of_local(request, context),
            lambda leader: self._ask_for_client(leader, context, request),
            None,
        )

    def leader_may_have_changed(self) -> None:
        """A paused controller is not waited for when another one takes over."""
        now = self._local is not None and self._local.is_active, self._find()
        if now == self._seen:
            return
        self._seen = now
        self._changed.set()
        is_local, leader = now
        for scope, asked in self._asking.items():
            if is_local or leader not in (None, asked):
                scope.cancel()

    async def aclose(self) -> None:
        await self._connections.aclose()

    def _of_local(self, request: Message, client: RequestContext[object] | None = None) -> _Step | None:
        local = self._local
        return None if local is None else lambda: local.submit(request, client=client)

    async def _retry(
        self,
        request: Message,
        local: _Step | None,
        elsewhere: Callable[[NodeAddress], Awaitable[Message | None]],
        timeout_ms: int | None,
    ) -> Message:
        timeout_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        with trio.move_on_after(timeout_ms / 1000):
            while True:
                looked, leader = self._changed.count, self._find()
                response = None
                if local is not None and self._local is not None and self._local.is_active:
                    response = await local()
                elif leader is not None:
                    response = await elsewhere(leader)
                if response is not None and not has_error(response, ErrorCode.NOT_CONTROLLER):
                    return response
                with trio.move_on_after(_BACKOFF_S):
                    await self._changed.next(looked)
        name = type(request).__name__
        reason = f"No controller answered {name} within {timeout_ms} ms."
        return await _error_response(request, ApiError(ErrorCode.REQUEST_TIMED_OUT, reason))

    async def _ask(self, leader: NodeAddress, request: Message) -> Message | None:
        key = request.__schema__.api_key
        assert key is not None
        purpose = _PURPOSES.get(ApiKey(key), "")
        with trio.CancelScope() as scope:
            self._asking[scope] = leader
            try:
                return await self._connections.request(leader, request, response_type(key), purpose=purpose)
            except UnsupportedByBroker as error:
                return await _error_response(request, ApiError(ErrorCode.UNSUPPORTED_VERSION, str(error)))
            except ClientError as error:
                _log.info("no answer to %s from %s: %s", type(request).__name__, leader.node, error)
            finally:
                del self._asking[scope]
        return None

    async def _ask_for_client(
        self, leader: NodeAddress, context: RequestContext[object], request: Message
    ) -> Message | None:
        header = context.header
        contents = partial(
            enclose,
            request,
            header,
            context.principal,
            context.client_address,
            by_token=context.connection.by_token,
        )
        enclosed = contents() if context.admission is None else await self._threads.run(contents)
        answer = await self._ask(leader, enclosed)
        if not isinstance(answer, EnvelopeResponse) or answer.error_code == ErrorCode.NOT_CONTROLLER:
            return None
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            # As from Kafka: the client looks anew which versions there are.
            raise CloseConnection(f"{leader.node} does not know version {header.api_version} of API {header.api_key}")
        try:
            if not answer.error_code:
                if len(answer.response_data or b"") <= LARGE_FRAME_BYTES:
                    return disclose_response(answer, header)
                return await self._threads.run(disclose_response, answer, header)
            reason = f"error code {answer.error_code}"
        except MalformedMessage as error:
            reason = str(error)
        _log.error(
            "%s does not accept the %s that this broker forwards: %s", leader.node, type(request).__name__, reason
        )
        return await _error_response(request, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR))


async def _error_response(request: Message, error: ApiError) -> Message:
    return await Turn().through(error_response(request, error))
