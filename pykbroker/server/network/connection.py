"""A client connection serves one request after another, in order, and reads the next one when the answer is sent.

As in Kafka, a connection has one request in hand. That is the back-pressure: while an answer cannot be sent, nothing is
read. There is no timer and no cancel scope per request; `Listener` watches over all connections with one task for each
concern.

A connection is in one of three phases, and its own task alone moves it from one to the next:

- RECEIVING: bytes come into the receive buffer until a frame is whole. Only here does the connection wait for memory,
  and here `finish` closes at once.
- HANDLING: the dispatcher has the frame. The idle timer stands still, since the next move is the broker's. A client
  that has left is noticed by `look_for_peer`, and a long poll is answered as if its time were over. So is the long poll
  of a client that asks for something else meanwhile, whose answer would have to wait behind it (`asked_again`).
- SENDING: the answer goes out as far as the peer takes it. The memory of a large answer counts from here until the peer
  has it.

A connection whose last requests needed no task rests in the listener's lane (`lane`). Requests of that kind are served
there, with the same phases, and its task sleeps until anything else comes: another request, a piece of one, the end.
Where a request is begun then and its answer is still to come, the task waits for the answer and sends it.

A client beyond its quotas is muted when it has its answer: for a time nothing of it is received or served (KIP-219).
That time holds a receive buffer only where more of the client came before it, ends when the client leaves, and counts
as idle.

After SENDING comes RECEIVING again, or the end: the peer has closed, has sent what no client sends, is idle for
`connections.max.idle.ms`, is evicted for its memory, or the listener stops. A closed connection releases its buffer and
its answer, and calls `state.when_closed` once.

Not handled here: what a request means (`dispatch`, `handlers`), cutting bytes into frames (`receive_buffer`), and which
connection has to go when memory is short (`listener`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from struct import Struct
from time import perf_counter_ns
from typing import Final, Protocol

import trio

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.framing import RequestHeader
from pykbroker.storage.files.errors import FileError

from ..runtime.log_lines import RateLimitedLog, printable
from .client_memory import ClientMemory
from .dispatch import NoErrorResponse
from .handlers import CloseConnection, ConnectionState
from .lane import Lane, WithSocket
from .large_requests import SMALL_FRAME_BYTES
from .receive_buffer import MalformedFrame, ReceiveBuffer
from .request_metrics import RequestMetrics
from .transport import Part, Transport

_BYTES_BETWEEN_CHECKPOINTS = 256 * 1024
_RECEIVED_IN_FIRST_TURN_BYTES = 128 * 1024
_RECEIVED_IN_A_TURN_BYTES = 1 << 20
_REQUEST_COST_BYTES = 16 * 1024
_UNPACKED_COST = 16
_ANSWER_COST = 4
"""A byte that is no record becomes part of an object, and one of an answer comes from one."""
_SLOWEST_PROGRESS_BYTES = 4096
_LOOKS_AFTER_LEAVING = 2
_SPARED_LOOKS = 4
"""Where a client waits for its answer before it sends more, to look for a request right behind it is mostly in vain."""
_SMALL_ANSWER_BYTES = 2048
_ANSWERED_BEFORE_LANE = 3
"""Requests that needed no task, one behind another, before a connection rests in the lane."""
_STUCK_BYTES = 64 * 1024
_PRODUCE = int(ApiKey.PRODUCE)
_FETCH = int(ApiKey.FETCH)
_BEGINNING = Struct(">ih")
"""The size of a frame and its API key, with which each request begins."""


class AtOnce(Protocol):
    """A dispatcher that answers some requests without a task (`Dispatcher`)."""

    def answer_at_once(self, frame: memoryview, connection: ConnectionState) -> bytes | None: ...
    def begins(self, api_key: int) -> bool: ...
    def begin(self, frame: memoryview, connection: ConnectionState, then: Callable[[bytes | None], None]) -> bool: ...


@dataclass(slots=True, eq=False)
class _Begun:
    """A request that was begun in the lane. answer: once it is there. is_answered: for the connection's task, where
    that waits for it; None as long as the connection rests.
    """

    began_ns: int
    size_bytes: int
    header: RequestHeader | None = None
    answer: bytes | None = None
    is_answered: trio.Event | None = None


class FrameDispatcher(Protocol):
    """A dispatcher of frames is a `Dispatcher`, or the gate in front of one."""

    def answer(self, frame: memoryview, connection: ConnectionState) -> Awaitable[list[Part] | None]: ...
    async def next_turn(self, connection: ConnectionState) -> None: ...
    def has_turn(self) -> bool: ...
    def disk_failed(self, failure: FileError, /) -> None: ...


class Phase(Enum):
    """The phase says whose move is next: the peer's, the handler's, or the peer's that takes the answer."""

    RECEIVING = auto()
    HANDLING = auto()
    SENDING = auto()


# To get a member from its enumeration takes Python 3.11 as long as a call.
_RECEIVING: Final = Phase.RECEIVING
_HANDLING: Final = Phase.HANDLING
_SENDING: Final = Phase.SENDING


class Connection:
    """The connection is served by one task, `serve`; the listener's keepers look at it and may close it.

    at_once: None where every request is for the dispatcher. lane: where the connection may rest.
    """

    __slots__ = (
        "_answer_bytes",
        "_at_once",
        "_begun",
        "_buffer",
        "_came_alone",
        "_dispatcher",
        "_finishing",
        "_has_turn",
        "_idle_checks",
        "_is_evicted",
        "_lane",
        "_looks_since_left",
        "_memory",
        "_muted",
        "_needed_no_task",
        "_phase",
        "_progress_seen",
        "_received_when_looked",
        "_refusals",
        "_requests",
        "_served_when_looked",
        "_spared_looks",
        "_transport",
        "_unsent",
        "_unyielded_bytes",
        "_waits_for_memory",
        "_waits_for_turn",
        "received_bytes",
        "served_requests",
        "state",
    )

    def __init__(
        self,
        transport: Transport,
        state: ConnectionState,
        dispatcher: FrameDispatcher,
        buffer: ReceiveBuffer,
        refusals: RateLimitedLog,
        memory: ClientMemory,
        requests: RequestMetrics | None = None,
        at_once: AtOnce | None = None,
        lane: Lane | None = None,
    ) -> None:
        self._memory = memory
        self._at_once = at_once
        self._lane = lane
        self._needed_no_task = 0
        """Requests since the last one that did, or may have."""
        self._begun: _Begun | None = None
        self._unsent = b""
        """Of an answer that was given in the lane."""
        self._requests = requests or RequestMetrics()
        self._answer_bytes = 0
        self._came_alone = False
        self._spared_looks = 0
        self._received_when_looked = 0
        self._waits_for_memory = self._waits_for_turn = False
        self._is_evicted = False
        self._muted: trio.Event | None = None
        """Set where the connection is closed while its client is muted."""
        self._transport = transport
        self.state = state
        state.when_unpacked = buffer.let_go
        state.asked_again = self._asked_again
        self._dispatcher = dispatcher
        self._buffer = buffer
        self._refusals = refusals
        self._phase = _RECEIVING
        self._finishing = False
        self._has_turn = False
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

    @property
    def request_bytes(self) -> int:
        """Memory of the request in hand, or of what has come of it; 0 where nothing would make it let go of that."""
        if self._phase is _HANDLING and self.state.give_up is None:
            return 0
        return self._buffer.held_bytes

    @property
    def unfinished_bytes(self) -> int:
        """Memory of a request that is still being received."""
        return self._buffer.held_bytes if self._phase is _RECEIVING else 0

    @property
    def unsent_bytes(self) -> int:
        """Memory of an answer that the peer has not taken so far."""
        return self._answer_bytes if self._phase is _SENDING else 0

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing of its client is in hand, and it is not on its way out."""
        return self._phase is _RECEIVING and not self._is_evicted

    @property
    def idleness(self) -> int:
        """Return how many looks of `close_if_idle` have found it idle."""
        return self._idle_checks

    def note_progress(self) -> None:
        self._received_when_looked = self.received_bytes

    @property
    def is_stuck(self) -> bool:
        """Next to nothing has come of its request since `note_progress`, and not for our sake."""
        return (
            self.unfinished_bytes > 0
            and not (self._waits_for_memory or self._waits_for_turn)
            and self.received_bytes - self._received_when_looked < _STUCK_BYTES
        )

    def evict(self, reason: str) -> None:
        """Close it, or end the wait that it is in, for the sake of memory, which is free at once."""
        if self._phase is _HANDLING:
            if self.state.give_up is not None:
                self.state.give_up()
            return
        request = self.state.request
        client = printable(None if request is None else request.client_id)
        self._log_refusal(f"client {client} {reason}")
        self._is_evicted = True
        self._close()
        self._release_answer()
        if self._phase is _RECEIVING:
            self._buffer.release()

    async def serve(self) -> None:
        """Serve until the peer leaves, sends what no client sends, or `close` is called."""
        try:
            while await self._serve_request():
                pass
        except (trio.BrokenResourceError, trio.ClosedResourceError, NoErrorResponse):
            pass  # the peer has gone, or we have; a failed handler is logged where it failed
        except MalformedFrame as error:
            self._log_refusal(f"{error}{_guess(error.first_bytes)}")
        except FileError as failure:
            # In the middle of an answer, so that nobody can be told.
            self._dispatcher.disk_failed(failure)
        except MalformedMessage as error:
            self._log_refusal(printable(str(error)))
        except CloseConnection as error:
            self._log_refusal(printable(str(error)))
            if error.answer:
                self._phase = _SENDING
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    await self._transport.send(error.answer)
        finally:
            self._transport.close()
            self._begun = None
            self._buffer.release()
            self.state.asked_again = None
            if self.state.when_closed is not None:
                self.state.when_closed()
            if self.state.telemetry_ends is not None:
                self.state.telemetry_ends()
            if self.state.share_sessions_end is not None:
                self.state.share_sessions_end()

    def finish(self) -> None:
        """Close as soon as no request is in hand."""
        self._finishing = True
        if self._phase is _RECEIVING:
            self._close()

    def close_if_idle(self, checks: int) -> None:
        """Close if nothing has moved for so many calls in a row, except while a handler has the request.

        A frame that comes in drops is no progress either: a byte a minute must not hold a buffer for ever.
        """
        progress = (
            self.served_requests,
            self.received_bytes // _SLOWEST_PROGRESS_BYTES,
            self._transport.waits_for_peer,
        )
        is_ours_to_move = self._phase is _HANDLING or self._waits_for_memory or self._waits_for_turn
        if is_ours_to_move or progress != self._progress_seen:
            self._progress_seen = progress
            self._idle_checks = 0
            return
        self._idle_checks += 1
        if self._idle_checks >= checks:
            self._close()

    def look_for_peer(self) -> None:
        """Let go of what a client left behind; to be called every few seconds.

        As with Kafka, who has closed its end may still read the answer to its request, for some seconds. After that a
        long poll is answered as if its time were over, and where nothing else is there to be served, the descriptor
        goes, while a handler that others depend on goes on.
        """
        if self._muted is not None:
            if self._transport.has_peer_left() and not self._has_more:
                self._close()
            return
        is_new = self.served_requests != self._served_when_looked
        self._served_when_looked = self.served_requests
        if self._phase is not _HANDLING or is_new or not self._transport.has_peer_left():
            self._looks_since_left = 0
            return
        self._looks_since_left += 1
        if self._looks_since_left < _LOOKS_AFTER_LEAVING:
            return
        self.state.leave()
        if self._looks_since_left > _LOOKS_AFTER_LEAVING and not self._has_more:
            self._transport.close()

    def _close(self) -> None:
        self._transport.close()
        if self._muted is not None:
            self._muted.set()

    @property
    def _has_more(self) -> bool:
        """Requests behind the one in hand, which Kafka would serve."""
        return bool(self._buffer.received_bytes) or bool(self._transport.peek(1))

    async def _asked_again(self) -> None:
        """Return when another request than a Fetch stands behind the one in hand, which keeps it from its answer.

        Never returns where none comes, the client leaves, or another Fetch comes, which would only wait in its place.
        """
        with suppress(trio.ClosedResourceError, trio.BrokenResourceError):
            while (beginning := self._next_beginning()) is None:
                await self._transport.wait_readable()
            if len(beginning) == _BEGINNING.size and _BEGINNING.unpack(beginning)[1] != _FETCH:
                return
        await trio.sleep_forever()

    def _next_beginning(self) -> bytes | None:
        """The size and the API key of the next request, as much as is there; None where nothing is."""
        known = self._buffer.peek(_BEGINNING.size)
        if len(known) == _BEGINNING.size:
            return known
        more = self._transport.peek(_BEGINNING.size - len(known))
        return more if more is None else known + more

    async def _serve_request(self) -> bool:
        """Views into the receive buffer live in this call only: before the next read they are gone."""
        frame = await self._next_frame()
        if frame is None:
            return False
        size = len(frame)
        if size <= SMALL_FRAME_BYTES or self._memory.is_short:
            frame = self._buffer.detach(frame)
        self._phase = _HANDLING
        state, began_ns, before = self.state, perf_counter_ns(), self.state.request
        state.waited_ns = state.queued_ns = state.held_ns = 0
        answer: list[Part] | None
        at_once = self._at_once
        known = None if at_once is None else at_once.answer_at_once(frame, state)
        if known is not None:
            self._needed_no_task += 1
            answer = [known]
        else:
            answer = await self._dispatcher.answer(frame, state)
            is_begun = at_once is not None and state.request is not None and at_once.begins(state.request.api_key)
            self._needed_no_task = self._needed_no_task + 1 if is_begun else 0
        answered_ns = perf_counter_ns()
        self.served_requests += 1
        if answer is not None:
            in_memory = 0
            for part in answer:
                if isinstance(part, (bytes, bytearray, memoryview)):
                    in_memory += len(part)
            self._phase = _SENDING
            if in_memory <= _SMALL_ANSWER_BYTES:
                await self._transport.send(answer)
            else:
                await self._send_large(answer, in_memory)
        self._phase = _RECEIVING
        request = state.request
        if request is not None and request is not before:  # the gate of SASL has requests of its own
            self._requests.answered(
                request.api_key,
                request.api_version,
                size,
                answered_ns - began_ns,
                perf_counter_ns() - answered_ns,
                queued_ns=state.queued_ns,
                waited_ns=state.waited_ns,
                held_ns=state.held_ns,
                throttle_ms=state.throttle_ms,
            )
        if state.throttle_ms:
            return await self._stay_muted()
        # Counted and not timed, so that a simulation can be played again.
        is_produce = request is None or request.api_key == _PRODUCE
        self._unyielded_bytes += _REQUEST_COST_BYTES + (size if is_produce else size * _UNPACKED_COST)
        if self._unyielded_bytes > _BYTES_BETWEEN_CHECKPOINTS:  # a peer that always has more must not starve others
            self._unyielded_bytes = 0
            if size > _RECEIVED_IN_FIRST_TURN_BYTES:  # it had a turn, and the next one asks for its own
                self._has_turn = False
                await trio.lowlevel.checkpoint()
            else:
                await self._next_turn()
        return not self._finishing

    def _serve_now(self) -> bool:
        """Answer the request that came, beside the connection's task; False where it is for the task.

        What has come is in the receive buffer then, and what the peer has not taken of the answer in `_unsent`.
        """
        buffer, transport, state, at_once = self._buffer, self._transport, self.state, self._at_once
        if self._begun is not None or self._finishing or at_once is None:
            return False
        view = buffer.writable()
        if view is None or buffer.held_bytes:
            return False
        count = transport.receive_now(view)
        if not count:
            return count is None
        del view  # a slice that is alive keeps the buffer from being used again
        began_ns = perf_counter_ns()
        buffer.wrote(count)
        self.received_bytes += count
        frame = buffer.lone_frame
        if frame is None:
            return False
        answer = at_once.answer_at_once(frame, state)
        if answer is None:
            if self._begin(at_once, frame, began_ns):
                buffer.drop_lone_frame()
                return True
            self._came_alone = True
            self._needed_no_task = 0
            return False
        buffer.drop_lone_frame()
        self._send_now(answer, state.request, len(frame), began_ns)
        return not self._unsent

    def _begin(self, at_once: AtOnce, frame: memoryview, began_ns: int) -> bool:
        """Begin a request, which is answered when its answer comes, by the lane or by the task."""
        begun = self._begun = _Begun(began_ns, len(frame))
        self._phase = _HANDLING
        is_begun = False
        try:
            is_begun = at_once.begin(frame, self.state, partial(self._take_answer, begun))
        finally:
            if not is_begun:
                self._begun, self._phase = None, _RECEIVING
        begun.header = self.state.request
        return is_begun

    def _take_answer(self, begun: _Begun, answer: bytes | None) -> None:
        if self._begun is not begun:
            return  # the connection has ended
        if answer is None:
            self._begun = None
            self._transport.close()
            if begun.is_answered is not None:
                begun.is_answered.set()
            return
        begun.answer = answer
        if begun.is_answered is not None:
            begun.is_answered.set()
        elif self._lane is not None:
            self._lane.call_soon(self._answer_begun)

    def _answer_begun(self) -> None:
        """Send the answer to the request that was begun, unless the task has seen to that."""
        begun = self._begun
        if begun is None or begun.answer is None or begun.is_answered is not None:
            return
        self._begun, self._phase = None, _RECEIVING
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):  # the task finds out for itself
            self._send_now(begun.answer, begun.header, begun.size_bytes, begun.began_ns)
        if (self._unsent or self._finishing) and self._lane is not None and isinstance(self._transport, WithSocket):
            self._lane.wake(self._transport)

    def _send_now(self, answer: bytes, request: RequestHeader | None, size_bytes: int, began_ns: int) -> None:
        """Send what the peer takes; the rest is in `_unsent`."""
        answered_ns = perf_counter_ns()
        self.served_requests += 1
        sent = self._transport.send_now(answer)
        if request is not None:
            sent_ns = perf_counter_ns() - answered_ns
            self._requests.answered(request.api_key, request.api_version, size_bytes, answered_ns - began_ns, sent_ns)
        if sent < len(answer):
            self._unsent = answer[sent:]

    async def _end_rest(self) -> None:
        """Send what is left of what was begun in the lane."""
        begun = self._begun
        if begun is not None:
            if begun.answer is None:
                begun.is_answered = trio.Event()
                await begun.is_answered.wait()
                begun.is_answered = None
            self._answer_begun()
        if self._unsent:
            await self._send_unsent()
        if self._finishing:
            raise trio.ClosedResourceError

    async def _send_unsent(self) -> None:
        unsent, self._unsent = self._unsent, b""
        self._phase = _SENDING
        await self._send_large([unsent], len(unsent))
        self._phase = _RECEIVING

    async def _stay_muted(self) -> bool:
        """Wait until the client's throttle time is over; False where the connection is closed before."""
        throttle_s, self.state.throttle_ms = self.state.throttle_ms / 1000, 0
        self._leave_turn()
        self._muted = trio.Event()
        with trio.move_on_after(throttle_s):
            await self._muted.wait()
        is_closed, self._muted = self._muted.is_set(), None
        return not (is_closed or self._finishing)

    async def _send_large(self, answer: list[Part], in_memory: int) -> None:
        self._memory.hold_answer(in_memory)
        self._answer_bytes = in_memory
        try:
            await self._transport.send(answer, self._next_turn_of_answer)
        finally:
            self._release_answer()
        self._unyielded_bytes += in_memory * _ANSWER_COST

    def _release_answer(self) -> None:
        if self._answer_bytes:
            self._memory.release_answer(self._answer_bytes)
            self._answer_bytes = 0

    async def _room(self) -> None:
        """Wait until there may be memory."""
        self._waits_for_memory = True
        try:
            await self._memory.room()
        finally:
            self._waits_for_memory = False
        if self._is_evicted or self._finishing:
            raise trio.ClosedResourceError

    async def _next_frame(self) -> memoryview | None:
        buffer, transport = self._buffer, self._transport
        if self._came_alone and self._spared_looks:
            self._spared_looks -= 1
            await self._rest()
        received_bytes = 0
        while (frame := buffer.next_frame()) is None:
            view = buffer.writable()
            if view is None:
                self._unyielded_bytes = 0
                await self._room()
                continue
            limit_bytes = _RECEIVED_IN_A_TURN_BYTES if self._has_turn else _RECEIVED_IN_FIRST_TURN_BYTES
            if len(view) > limit_bytes:
                view = view[:limit_bytes]
            count = transport.receive_now(view)
            del view  # a slice that is alive keeps the buffer from being used again
            if count is None:
                if self._came_alone:
                    self._spared_looks = _SPARED_LOOKS
                received_bytes = 0
                await self._rest()
            elif count == 0:
                return None
            else:
                buffer.wrote(count)
                self._came_alone = buffer.has_lone_frame
                self.received_bytes += count
                received_bytes += count
                if received_bytes > limit_bytes:
                    received_bytes = 0
                    if not self._has_turn and self._dispatcher.has_turn():
                        self._has_turn = True
                    else:
                        await self._next_turn()
        return frame

    async def _rest(self) -> None:
        """Wait until there is something to read, without a turn and, unless a frame has begun, without a buffer."""
        self._leave_turn()
        lane, transport = self._lane, self._transport
        if (
            lane is not None
            and self._needed_no_task >= _ANSWERED_BEFORE_LANE
            and lane.is_open
            and not self._buffer.received_bytes
            and isinstance(transport, WithSocket)
        ):
            await lane.rest(transport, self._serve_now)
            await self._end_rest()
        else:
            await transport.wait_readable()

    def _leave_turn(self) -> None:
        self._came_alone = self._has_turn = False
        self._buffer.rest()
        self._unyielded_bytes = 0

    async def _next_turn(self) -> None:
        self._waits_for_turn = True
        try:
            await self._dispatcher.next_turn(self.state)
        finally:
            self._waits_for_turn = False
        self._has_turn = True

    async def _next_turn_of_answer(self) -> None:
        began_ns = perf_counter_ns()
        await self._next_turn()
        self.state.held_ns += perf_counter_ns() - began_ns

    def _log_refusal(self, reason: str) -> None:
        state = self.state
        self._refusals.warning("closed %s on listener %s: %s", self._transport.peer, state.listener_name, reason)


def _guess(first_bytes: bytes) -> str:
    if first_bytes[:1] == b"\x16" and first_bytes[1:2] == b"\x03":
        return " (a TLS handshake on a plaintext port?)"
    if first_bytes[:4] in (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI"):
        return " (an HTTP request?)"
    return ""
