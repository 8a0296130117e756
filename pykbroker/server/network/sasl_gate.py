"""A SASL listener's gate stands between a connection and the dispatcher, and lets nothing through but ApiVersions
until the client has authenticated.

The order of requests is `security.sasl.server_handshake`'s. Here are its clocks, its delays and its bounds: the size of
a frame before authentication (`sasl.server.max.receive.size`), the time until a client must have authenticated, and the
delay of a refusal (`connection.failed.authentication.delay.ms`). Listeners without SASL have no gate, so that their
requests pay nothing for it.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import trio

from pykbroker.storage.files.errors import FileError

from ..runtime.clock import Clock
from .connection import Connection
from .dispatch import Dispatcher
from .handlers import ANONYMOUS, CloseConnection, ConnectionState
from .receive_buffer import ReceiveBuffer
from .transport import Part

if TYPE_CHECKING:
    from pykbroker.security.sasl.server_handshake import OfferedMechanism, Step

AUTHENTICATION_S: Final = 30.0
"""Kafka waits while the connection is not idle. No client takes so long, and a silent one holds a connection."""

_ERROR_CODE: Final = slice(8, 10)
"""Of a response of ApiVersions: behind its size and its correlation id."""


@dataclass(slots=True)
class ListenerSasl:
    """The SASL of one listener, which its gates share.

    offered: the mechanisms by name; others take their place as a whole when settings change, for exchanges to come.
    """

    offered: Mapping[str, OfferedMechanism]
    clock: Clock
    max_receive_bytes: int
    failure_delay_s: float

    def gate(self, dispatcher: Dispatcher[Any], buffer: ReceiveBuffer, deadline: trio.CancelScope) -> SaslGate:
        """The gate of a new connection. deadline: ends the connection, unless the gate takes the deadline away."""
        return SaslGate(self, dispatcher, buffer, deadline)

    async def serve(self, connection: Connection) -> bool:
        """Serve a connection behind a gate. Return False where it was closed since it has not authenticated in time."""
        deadline = connection.state.authentication
        assert deadline is not None, "a connection behind a gate has a deadline"
        with deadline:
            await connection.serve()
        return not deadline.cancelled_caught


class SaslGate:
    """The gate of one connection, in the place of its dispatcher."""

    __slots__ = ("_buffer", "_deadline", "_dispatcher", "_handshake", "_max_request_bytes", "_sasl")

    def __init__(
        self, sasl: ListenerSasl, dispatcher: Dispatcher[Any], buffer: ReceiveBuffer, deadline: trio.CancelScope
    ) -> None:
        self._sasl = sasl
        self._dispatcher = dispatcher
        self._buffer = buffer
        self._deadline = deadline
        self._max_request_bytes = buffer.max_frame_bytes
        offer = dispatcher.offer
        from pykbroker.security.sasl.server_handshake import SaslHandshake

        self._handshake = SaslHandshake(lambda: sasl.offered, None if offer is None else offer.versions)
        self._keep_short()

    async def next_turn(self, connection: ConnectionState) -> None:
        await self._dispatcher.next_turn(connection)

    def has_turn(self) -> bool:
        return self._dispatcher.has_turn()

    def disk_failed(self, failure: FileError) -> None:
        self._dispatcher.disk_failed(failure)

    def answer(self, frame: memoryview, connection: ConnectionState) -> Awaitable[list[Part] | None]:
        """Answer as the dispatcher does, or in its place. Raises what closes the connection."""
        handshake, clock = self._handshake, self._sasl.clock
        was_complete = handshake.is_complete
        step = handshake.receive(frame, now_ms=clock.monotonic_ms(), wall_ms=clock.now_ms())
        if step.is_for_handler:
            if handshake.is_complete:
                return self._dispatcher.answer(frame, connection)
            return self._answer_versions(frame, connection)
        if was_complete and not handshake.is_complete:
            connection.principal, connection.by_token = ANONYMOUS, False
            self._keep_short()
        return self._take(step, connection)

    def _keep_short(self) -> None:
        self._buffer.max_frame_bytes = min(self._sasl.max_receive_bytes, self._max_request_bytes)
        self._deadline.deadline = trio.current_time() + AUTHENTICATION_S

    async def _answer_versions(self, frame: memoryview, connection: ConnectionState) -> list[Part] | None:
        answer = await self._dispatcher.answer_unmeasured(frame, connection)
        assert answer, "ApiVersions has an answer"
        first = answer[0]
        assert isinstance(first, bytes), "ApiVersions has no records"
        self._handshake.api_versions_answered(int.from_bytes(first[_ERROR_CODE], "big", signed=True))
        return answer

    async def _take(self, step: Step, connection: ConnectionState) -> list[Part] | None:
        answer: list[Part] | None = [step.answer] if step.answer else None
        if step.failure is not None:
            if step.is_delayed:
                await trio.sleep(self._sasl.failure_delay_s)
            raise CloseConnection(step.failure, answer)
        principal, identity = self._handshake.principal, self._handshake.identity
        if principal is not None and identity is not None:
            connection.principal, connection.by_token = principal, identity.by_token
            self._buffer.max_frame_bytes = self._max_request_bytes
            self._deadline.deadline = math.inf
        return answer
