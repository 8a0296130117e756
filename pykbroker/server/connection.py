"""One client connection: a request after another, in order, the next one not before the answer is sent.

As in Kafka, a connection has one request in hand. That is the back-pressure: while an answer cannot be sent, nothing is
read. There is no timer and no cancel scope per request; `Listener` watches over all connections with one task.
"""

from __future__ import annotations

from enum import Enum, auto

import trio

from pykbroker.protocol.errors import MalformedMessage
from pykbroker.storage.errors import DiskFailed

from .dispatch import ConnectionState, Dispatcher, RequestFailed, RequestRefused
from .log_lines import RateLimitedLog, printable
from .receive_buffer import MalformedFrame, ReceiveBuffer
from .transport import Transport

_BYTES_BETWEEN_CHECKPOINTS = 256 * 1024
_REQUEST_COST_BYTES = 16 * 1024
_SLOWEST_PROGRESS_BYTES = 4096
_LOOKS_AFTER_LEAVING = 2


class Phase(Enum):
    RECEIVING = auto()
    HANDLING = auto()
    SENDING = auto()


class Connection:
    __slots__ = (
        "_buffer",
        "_dispatcher",
        "_finishing",
        "_idle_checks",
        "_looks_since_left",
        "_phase",
        "_progress_seen",
        "_refusals",
        "_served_when_looked",
        "_transport",
        "_unyielded_bytes",
        "received_bytes",
        "served_requests",
        "state",
    )

    def __init__(
        self,
        transport: Transport,
        state: ConnectionState,
        dispatcher: Dispatcher,
        buffer: ReceiveBuffer,
        refusals: RateLimitedLog,
    ) -> None:
        self._transport = transport
        self.state = state
        self._dispatcher = dispatcher
        self._buffer = buffer
        self._refusals = refusals
        self._phase = Phase.RECEIVING
        self._finishing = False
        self._unyielded_bytes = 0
        self._progress_seen = (-1, -1, -1)
        self._idle_checks = 0
        self._looks_since_left = 0
        self._served_when_looked = -1
        self.received_bytes = 0
        self.served_requests = 0

    @property
    def buffered_bytes(self) -> int:
        return self._buffer.held_bytes

    async def serve(self) -> None:
        """Serve until the peer leaves, sends what no client sends, or `close` is called."""
        try:
            while await self._serve_request():
                pass
        except (trio.BrokenResourceError, trio.ClosedResourceError, RequestFailed):
            pass  # the peer has gone, or we have; a failed handler is logged where it failed
        except MalformedFrame as refused:
            self._log_refusal(f"{refused}{_guess(refused.first_bytes)}")
        except DiskFailed as failure:
            # In the middle of an answer, so that nobody can be told.
            self._dispatcher.disk_failed(failure)
        except (MalformedMessage, RequestRefused) as refused:
            self._log_refusal(printable(str(refused)))
        finally:
            self._transport.close()
            self._buffer.release()
            if self.state.when_closed is not None:
                self.state.when_closed()

    def finish(self) -> None:
        """Close as soon as no request is in hand."""
        self._finishing = True
        if self._phase is Phase.RECEIVING:
            self._transport.close()

    def close_if_idle(self, checks: int) -> None:
        """Close if nothing has moved for so many calls in a row, except while a handler has the request.

        A frame that comes in drops is no progress either: a byte a minute must not hold a buffer for ever.
        """
        progress = (
            self.served_requests,
            self.received_bytes // _SLOWEST_PROGRESS_BYTES,
            self._transport.waits_for_peer,
        )
        if self._phase is Phase.HANDLING or progress != self._progress_seen:
            self._progress_seen = progress
            self._idle_checks = 0
            return
        self._idle_checks += 1
        if self._idle_checks >= checks:
            self._transport.close()

    def look_for_peer(self) -> None:
        """Let go of what a client left behind; to be called every few seconds.

        As with Kafka, who has closed its end may still read the answer to its request, for some seconds. After that a
        long poll is answered as if its time were over, and where nothing else is there to be served, the descriptor
        goes, while a handler that others depend on goes on.
        """
        is_new = self.served_requests != self._served_when_looked
        self._served_when_looked = self.served_requests
        if self._phase is not Phase.HANDLING or is_new or not self._transport.has_peer_left():
            self._looks_since_left = 0
            return
        self._looks_since_left += 1
        if self._looks_since_left < _LOOKS_AFTER_LEAVING:
            return
        self.state.leave()
        if self._looks_since_left > _LOOKS_AFTER_LEAVING and not self._has_more:
            self._transport.close()

    @property
    def _has_more(self) -> bool:
        """Requests behind the one in hand, which Kafka would serve."""
        return bool(self._buffer.received_bytes) or self._transport.has_unread_bytes

    async def _serve_request(self) -> bool:
        """Views into the receive buffer live in this call only: before the next read they are gone."""
        frame = await self._next_frame()
        if frame is None:
            return False
        self._phase = Phase.HANDLING
        answer = await self._dispatcher.answer(frame, self.state)
        self.served_requests += 1
        if answer is not None:
            self._phase = Phase.SENDING
            await self._transport.send(answer)
        self._phase = Phase.RECEIVING
        self._unyielded_bytes += len(frame) + _REQUEST_COST_BYTES
        if self._unyielded_bytes > _BYTES_BETWEEN_CHECKPOINTS:  # a peer that always has more must not starve others
            self._unyielded_bytes = 0
            await trio.lowlevel.checkpoint()
        return not self._finishing

    async def _next_frame(self) -> memoryview | None:
        buffer, transport = self._buffer, self._transport
        while (frame := buffer.next_frame()) is None:
            count = transport.receive_now(buffer.writable())
            if count is None:
                buffer.rest()
                self._unyielded_bytes = 0
                await transport.wait_readable()
            elif count == 0:
                return None
            else:
                buffer.wrote(count)
                self.received_bytes += count
        return frame

    def _log_refusal(self, reason: str) -> None:
        state = self.state
        self._refusals.warning("closed %s on listener %s: %s", self._transport.peer, state.listener_name, reason)


def _guess(first_bytes: bytes) -> str:
    if first_bytes[:1] == b"\x16" and first_bytes[1:2] == b"\x03":
        return " (a TLS handshake on a plaintext port?)"
    if first_bytes[:4] in (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI"):
        return " (an HTTP request?)"
    return ""
