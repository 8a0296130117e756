"""The dispatcher takes a frame, has its handler called, and gives the answer as bytes."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from functools import cached_property, partial
from itertools import count
from time import perf_counter_ns
from typing import Generic, cast

from pykbroker.protocol.api_keys import ApiKey, response_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.framing import RequestHeader, decode_request_header, encode_response
from pykbroker.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from pykbroker.protocol.schema import Message
from pykbroker.quotas.client_quotas import ClientQuotas
from pykbroker.quotas.rate import QuotaWindows
from pykbroker.storage.files.errors import FileError

from ..runtime.clock import SystemClock
from ..runtime.log_lines import printable
from ..runtime.threads import OneAtATime, Threads
from ..runtime.turns import LongRequests, Turn
from .handlers import CloseConnection, ConnectionState, Handler, HandlerTable, NodeT, RequestContext
from .large_requests import (
    COPIED_AT_ONCE_BYTES,
    LARGE_FRAME_BYTES,
    MEMBERS,
    MOSTLY_BYTES,
    SMALL_FRAME_BYTES,
    LargeRequests,
)
from .offer import Offer
from .remembered_answers import LARGEST_QUESTION_BYTES, RememberedAnswers
from .request_meter import RequestMeter, Timed
from .request_metrics import RequestMetrics
from .seeking_clients import QUESTIONS
from .throttling import Throttling
from .transport import Part

_log = logging.getLogger(__name__)

_encode_response = cast("Callable[[int, Message, int], list[Part]]", encode_response)
"""Each of its parts is one; said here and not behind each call, since `cast` is a call, too."""


class NoErrorResponse(Exception):
    """A handler failed, which is logged, and the API has no response that could carry an error."""


class Dispatcher(Generic[NodeT]):
    """Answers the frames of one listener's connections.

    threads: unpack and pack what is large. disk_failed: is told of a file that could not be read, and of which an
    answer is made. numbers: shared by the listeners of a node. throttling: by quotas, where this kind of listener has
    clients that may be throttled. requests: counts them with those of other listeners.
    """

    def __init__(
        self,
        node: NodeT,
        handlers: HandlerTable[NodeT],
        threads: Threads,
        *,
        disk_failed: Callable[[FileError], None],
        numbers: Iterator[int] | None = None,
        throttling: Throttling | None = None,
        requests: RequestMetrics | None = None,
    ) -> None:
        self._requests = requests or RequestMetrics()
        self._node = node
        self._throttling = throttling or Throttling(ClientQuotas(QuotaWindows(), QuotaWindows()), SystemClock())
        self._quotas = self._throttling.quotas
        self._handlers = handlers
        self._by_api_key = handlers.by_api_key
        self._threads = threads
        self.disk_failed = disk_failed
        self._large: defaultdict[int, LargeRequests] = defaultdict(LargeRequests)
        self._long = LongRequests()
        self._numbers = numbers or count(1)
        self._remembered = RememberedAnswers(node)

    @property
    def offer(self) -> Offer | None:
        """The offer of the listener; None where everything is offered that is served."""
        return self._handlers.offer

    @cached_property
    def _packing(self) -> OneAtATime:
        return OneAtATime(self._threads)

    async def next_turn(self, connection: ConnectionState) -> None:
        """Wait for a turn of a connection that receives or sends much, or one request right behind another."""
        await self._long.next_turn(connection.long_requests)

    def has_turn(self) -> bool:
        """Tell whether a connection need not wait for its turn, because few have had one in this round of the loop."""
        return self._long.has_turn()

    def answer(self, frame: memoryview, connection: ConnectionState) -> Awaitable[list[Part] | None]:
        """The parts of the response; None where the request has none. Raises what closes the connection."""
        if not self._quotas.is_set:
            return self._begin(frame, connection, None)
        meter = self._throttling.begin(connection, len(frame))
        if not self._quotas.request.is_set:
            return self._begin(frame, connection, meter)
        return Timed(partial(self._begin, frame, connection, meter), meter)

    def answer_at_once(self, frame: memoryview, connection: ConnectionState) -> bytes | None:
        """Return the whole answer to a request that needs no handler; None where it is for `answer`.

        frame: may be kept by nobody. Clients that have quotas are measured, for which there is `answer`.
        """
        return None if self._quotas.is_set else self._remembered.find(frame, connection)

    def begins(self, api_key: int) -> bool:
        """Tell whether requests of the API may be ones for `begin`."""
        handler = self._by_api_key.get(api_key)
        return handler is not None and handler.begin is not None and not self._quotas.is_set

    def begin(self, frame: memoryview, connection: ConnectionState, then: Callable[[bytes | None], None]) -> bool:
        """Begin to handle a request without a task; False where it is for `answer`, and nothing has happened.

        then: is called once, with the whole answer, or with None where the connection has to end, which is logged.
        Raises MalformedMessage.
        """
        if self._quotas.is_set:
            return False
        header, body = decode_request_header(frame)
        handler = self._by_api_key.get(header.api_key)
        version = header.api_version
        if handler is None or handler.begin is None or not handler.min_version <= version <= handler.max_version:
            return False
        request, _ = decode(handler.request_type, version, frame, body, objects_limit=handler.most_entries)
        connection.request = header
        if not connection.has_worked and header.api_key not in QUESTIONS:
            connection.begin_work()
        turn = Turn(self._long, connection.long_requests)
        context = RequestContext(self._node, header, self._handlers, connection, turn, None, next(self._numbers))

        def give(response: Message) -> None:
            try:
                self._requests.note_errors(header.api_key, response)
                (answer,) = encode_response(header.correlation_id, response, version)
                assert isinstance(answer, bytes), "no answer that comes without a task has records"
            except Exception:
                name = handler.request_type.__name__
                _log.exception("%s version %d of client %s failed", name, version, printable(header.client_id))
                then(None)
            else:
                then(answer)

        return handler.begin(context, request, give)

    def answer_unmeasured(self, frame: memoryview, connection: ConnectionState) -> Awaitable[list[Part] | None]:
        """Answer a client that has not said yet who it is: no quota is there to find."""
        return self._begin(frame, connection, None)

    def _begin(
        self, frame: memoryview, connection: ConnectionState, meter: RequestMeter | None
    ) -> Awaitable[list[Part] | None]:
        number = next(self._numbers)
        header, body = decode_request_header(frame)
        connection.request = header
        if not connection.has_worked and header.api_key not in QUESTIONS:
            connection.begin_work()
        handler = self._by_api_key.get(header.api_key)
        if handler is None:
            raise CloseConnection(f"API key {header.api_key} is not served on this listener")
        version = header.api_version
        if not handler.min_version <= version <= handler.max_version:
            return self._answer_unsupported_version(header, handler)
        turn = Turn(self._long, connection.long_requests)
        context = RequestContext(self._node, header, self._handlers, connection, turn, None, number)
        size = len(frame)
        request: Message | None
        if size <= LARGE_FRAME_BYTES:
            request, _ = decode(handler.request_type, version, frame, body, objects_limit=handler.most_entries)
        elif handler.api_key not in MOSTLY_BYTES:
            request = None
        elif size <= COPIED_AT_ONCE_BYTES:
            request = handler.decode_few(version, frame, body)
        else:
            return self._answer_long(handler, context, frame, body, meter)
        if request is None:
            return self._answer_large(handler, context, frame, body, meter)
        if size > SMALL_FRAME_BYTES:
            _let_go(frame, context)
        elif handler.made_of is not None and size <= LARGEST_QUESTION_BYTES and meter is None:
            state = handler.made_of(self._node)
            if state is not None:
                return self._answer_and_remember(handler, handler.made_of, state, context, request, bytes(frame))
        return self._answer(handler, context, request, meter)

    async def _answer_and_remember(
        self,
        handler: Handler[NodeT],
        made_of: Callable[[NodeT], object | None],
        state: object,
        context: RequestContext[NodeT],
        request: Message,
        frame: bytes,
    ) -> list[Part] | None:
        """Remember the answer where the handler says so, and nothing that it is made of has changed meanwhile.

        state: what `made_of` says before.
        """
        parts = await self._answer(handler, context, request, None)
        repeat = context.repeat
        if repeat is not None and parts is not None and len(parts) == 1:
            (answer,) = parts
            if isinstance(answer, bytes) and made_of(self._node) == state:
                self._remembered.keep(frame, context.header, answer, made_of, state, repeat)
        return parts

    async def _answer_long(
        self,
        handler: Handler[NodeT],
        context: RequestContext[NodeT],
        frame: memoryview,
        body: int,
        meter: RequestMeter | None,
    ) -> list[Part] | None:
        """Megabytes that are mostly bytes: even a few entries are unpacked in a thread."""
        request = await self._packing.run(handler.decode_few, context.header.api_version, frame, body)
        if request is None:
            return await self._answer_large(handler, context, frame, body, meter)
        _let_go(frame, context)
        return await self._answer(handler, context, request, meter)

    async def _answer_large(
        self,
        handler: Handler[NodeT],
        context: RequestContext[NodeT],
        frame: memoryview,
        body: int,
        meter: RequestMeter | None,
    ) -> list[Part] | None:
        """Unpacked in a thread, when there is room for what comes out."""
        header = context.header
        is_let_in = header.api_key in MEMBERS
        began_ns = perf_counter_ns()
        admission = context.admission = await self._large[header.api_key].enter(0 if is_let_in else len(frame))
        context.connection.queued_ns += perf_counter_ns() - began_ns
        try:
            request = await self._packing.run(handler.decode, header.api_version, frame, body)
            _let_go(frame, context)
            return await self._answer(handler, context, request, meter)
        finally:
            admission.leave()

    async def _answer(
        self,
        handler: Handler[NodeT],
        context: RequestContext[NodeT],
        request: Message,
        meter: RequestMeter | None,
    ) -> list[Part] | None:
        header = context.header
        try:
            response = await handler.function(context, request)
            if meter is not None:
                meter.settle(header.api_key, request, response)
            if response is None:
                return None
            self._requests.note_errors(header.api_key, response)
            packed = header.correlation_id, response, header.api_version
            if context.turn.is_long or context.admission is not None:
                return await self._packing.run(_encode_response, *packed)
            return _encode_response(*packed)
        except CloseConnection:
            raise
        except Exception as error:
            name, version = handler.request_type.__name__, header.api_version
            _log.exception("%s version %d of client %s failed", name, version, printable(header.client_id))
            answer = _unknown_server_error(header.api_key)
            self._requests.note_error(header.api_key, ErrorCode.UNKNOWN_SERVER_ERROR)
            if answer is None:
                raise NoErrorResponse from error
            return _encode_response(header.correlation_id, answer, version)

    async def _answer_unsupported_version(self, header: RequestHeader, handler: Handler[NodeT]) -> list[Part]:
        """A newer client asks ApiVersions first: it gets version 0, saying which versions of ApiVersions there are."""
        if header.api_key != ApiKey.API_VERSIONS:
            raise CloseConnection(f"{handler.request_type.__name__} version {header.api_version} is not served")
        known = ApiVersion(api_key=handler.api_key, min_version=handler.min_version, max_version=handler.max_version)
        offer = self._handlers.offer
        named = [known] if offer is None or offer.names_api_versions else []
        response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=named)
        return _encode_response(header.correlation_id, response, 0)


def _let_go(frame: memoryview, context: RequestContext[object]) -> None:
    """Members wait for each other, for minutes perhaps, and nothing of their requests is a slice of the frame."""
    if context.header.api_key in MEMBERS and context.connection.when_unpacked is not None:
        frame.release()
        context.connection.when_unpacked()


def _unknown_server_error(api_key: int) -> Message | None:
    """The response that carries nothing but the error, where the API has a place for it."""
    answer = response_type(api_key)
    if all(each.name != "error_code" for each in answer.__schema__.fields):
        return None
    response = answer()
    response.error_code = ErrorCode.UNKNOWN_SERVER_ERROR  # type: ignore[attr-defined]
    return response
