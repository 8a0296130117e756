"""From a frame to a handler and back to bytes: the one table of what is served.

A module of `pykbroker.api` registers its handler when it is imported; nothing of a node is in the table. The same
table gives ApiVersions what it advertises and each listener what it lets in: nothing is advertised that is not served.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any, Literal, TypeAlias, TypeVar, cast

from pykbroker.protocol.api_keys import ApiKey, response_type
from pykbroker.protocol.compile import OBJECTS_LIMIT, decode
from pykbroker.protocol.errors import ErrorCode, TooManyElements
from pykbroker.protocol.framing import RequestHeader, decode_request_header, encode_response
from pykbroker.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from pykbroker.protocol.schema import Message
from pykbroker.storage.files.errors import DiskFailed

from ..node.broker import Broker, ClusterNode
from ..runtime.fair_queue import FairShare
from ..runtime.log_lines import printable
from ..runtime.threads import OneAtATime
from ..runtime.turns import LongRequests, Turn
from .large_requests import (
    COPIED_AT_ONCE_BYTES,
    FEW_ENTRIES,
    LARGE_FRAME_BYTES,
    MEMBERS,
    MOSTLY_BYTES,
    SMALL_FRAME_BYTES,
    Admission,
    LargeRequests,
)
from .transport import Part

_log = logging.getLogger(__name__)

ListenerKind: TypeAlias = Literal["broker", "controller"]
RequestT = TypeVar("RequestT", bound=Message)

MOST_ENTRIES = 30_000
"""What a client names in one request: three times the partitions that a broker is made for."""

MANY_ENTRIES = OBJECTS_LIMIT
"""And other nodes: assignments of replicas are lists in lists."""

ANONYMOUS = "User:ANONYMOUS"
_BROKER: frozenset[ListenerKind] = frozenset({"broker"})


class RequestRefused(Exception):
    """The peer sent what no client sends; Kafka closes the connection, and so do we. A handler may raise it too."""


class RequestFailed(Exception):
    """Our own fault, logged where it happened, and there is no answer that could say so."""


@dataclass(slots=True)
class ConnectionState:
    """What a connection has told about itself."""

    listener_name: str
    client_address: str
    principal: str = ANONYMOUS
    client_software_name: str = "unknown"
    client_software_version: str = "unknown"
    when_closed: Callable[[], None] | None = None
    """Is called once, when the connection has ended for whatever reason."""
    when_unpacked: Callable[[], None] | None = None
    """Is called where a large frame is released before its request is answered."""
    has_left: bool = False
    """The client has closed its end for some time: nobody waits for long answers any more."""
    give_up: Callable[[], None] | None = None
    """Ends the wait that its request is in, as if the request's time were over."""
    request: RequestHeader | None = None
    """Of the request in hand, or of the last one."""
    fair_share: FairShare = field(default_factory=FairShare)
    """What the checks of its records, and its lookups in records, have cost."""
    long_requests: FairShare = field(default_factory=FairShare)
    """How many turns it has had for what is long."""

    def leave(self) -> None:
        self.has_left = True
        if self.give_up is not None:
            self.give_up()


@dataclass(slots=True, eq=False)  # frozen it would take three times as long to make, for each request
class RequestContext:
    """What a handler knows beside the request. Slices of the request are good until the handler returns.

    broker: on a controller's listener it may have no more than a ClusterNode has. turn: for handlers that loop over
    what the request names. admission: of a large request, to be left by who is about to wait for others. number: the
    node's requests are numbered as they come, whichever is unpacked or handled first.
    """

    broker: Broker
    header: RequestHeader
    listener: ListenerView
    connection: ConnectionState
    turn: Turn = field(default_factory=Turn)
    admission: Admission | None = None
    number: int = 0

    @property
    def listener_name(self) -> str:
        return self.connection.listener_name

    @property
    def client_address(self) -> str:
        return self.connection.client_address

    @property
    def principal(self) -> str:
        return self.connection.principal


HandlerFunction: TypeAlias = Callable[[RequestContext, Any], Awaitable[Message | None]]


@dataclass(frozen=True, slots=True)
class Handler:
    """One served API. `None` as its answer is no answer (Produce with acks=0).

    most_entries: of all lists in one request together; a client that sends more is closed.
    """

    api_key: int
    request_type: type[Message]
    min_version: int
    max_version: int
    listeners: frozenset[ListenerKind]
    function: HandlerFunction
    most_entries: int

    def decode(self, version: int, frame: memoryview, body: int) -> Message:
        request, _ = decode(self.request_type, version, frame, body, objects_limit=self.most_entries)
        return request

    def decode_few(self, version: int, frame: memoryview, body: int) -> Message | None:
        """None where the request lists more than a few entries."""
        try:
            request, _ = decode(self.request_type, version, frame, body, objects_limit=FEW_ENTRIES)
        except TooManyElements:
            return None
        return request


@dataclass(frozen=True, slots=True)
class ListenerView:
    """The handlers that one kind of listener lets in."""

    kind: ListenerKind
    by_api_key: dict[int, Handler] = field(repr=False)


class HandlerTable:
    """Handlers by API key, one for each kind of listener at most."""

    def __init__(self) -> None:
        self._handlers: list[Handler] = []

    def handles(
        self,
        request_type: type[RequestT],
        *,
        listeners: frozenset[ListenerKind] = _BROKER,
        most_entries: int = MOST_ENTRIES,
    ) -> Callable[
        [Callable[[RequestContext, RequestT], Awaitable[Message | None]]],
        Callable[[RequestContext, RequestT], Awaitable[Message | None]],
    ]:
        """Register an `async (context, request) -> response | None`, for every version that the request declares."""

        def register(
            function: Callable[[RequestContext, RequestT], Awaitable[Message | None]],
        ) -> Callable[[RequestContext, RequestT], Awaitable[Message | None]]:
            schema = request_type.__schema__
            assert schema.api_key is not None, f"{schema.name} is not a request"
            for other in self._handlers:
                twice = other.api_key == schema.api_key and other.listeners & listeners
                assert not twice, f"{schema.name} has two handlers on one listener"
            served = schema.stable_versions
            versions = served.low, served.high
            self._handlers.append(Handler(schema.api_key, request_type, *versions, listeners, function, most_entries))
            return function

        return register

    def view(self, kind: ListenerKind) -> ListenerView:
        return ListenerView(kind, {each.api_key: each for each in self if kind in each.listeners})

    def __iter__(self) -> Iterator[Handler]:
        return iter(sorted(self._handlers, key=lambda each: each.api_key))


HANDLERS = HandlerTable()
"""Filled by importing `pykbroker.api`; constant from then on."""

handles = HANDLERS.handles


class Dispatcher:
    """Answers the frames of one listener's connections. numbers: shared by the listeners of a node."""

    def __init__(self, node: ClusterNode, listener: ListenerView, numbers: Iterator[int] | None = None) -> None:
        self._broker = cast(Broker, node)
        self._listener = listener
        self._by_api_key = listener.by_api_key
        self._large: defaultdict[int, LargeRequests] = defaultdict(LargeRequests)
        self._long = LongRequests()
        self._numbers = numbers or count(1)

    @cached_property
    def _packing(self) -> OneAtATime:
        return OneAtATime(self._broker.threads)

    async def next_turn(self, connection: ConnectionState) -> None:
        """For a connection that receives or sends much, or one request right behind another."""
        await self._long.next_turn(connection.long_requests)

    def has_turn(self) -> bool:
        """Whether a connection need not wait for its turn, because few have had one in this round of the loop."""
        return self._long.has_turn()

    def disk_failed(self, failure: DiskFailed) -> None:
        """A file could not be read that an answer is made of."""
        if isinstance(self._broker, Broker):
            self._broker.partitions.failures.at_path(failure)

    def answer(self, frame: memoryview, connection: ConnectionState) -> Awaitable[list[Part] | None]:
        """The parts of the response; None where the request has none. Raises what closes the connection."""
        number = next(self._numbers)
        header, body = decode_request_header(frame)
        connection.request = header
        handler = self._by_api_key.get(header.api_key)
        if handler is None:
            raise RequestRefused(f"API key {header.api_key} is not served on this listener")
        version = header.api_version
        if not handler.min_version <= version <= handler.max_version:
            return self._answer_unsupported_version(header, handler)
        context = self._context(header, connection, number)
        size = len(frame)
        if size > LARGE_FRAME_BYTES:
            return self._answer_long(handler, context, frame, body)
        request, _ = decode(handler.request_type, version, frame, body, objects_limit=handler.most_entries)
        if size > SMALL_FRAME_BYTES:
            _let_go(frame, context)
        return self._answer(handler, context, request)

    async def _answer_long(
        self, handler: Handler, context: RequestContext, frame: memoryview, body: int
    ) -> list[Part] | None:
        version = context.header.api_version
        if handler.api_key not in MOSTLY_BYTES:
            request = None
        elif len(frame) <= COPIED_AT_ONCE_BYTES:
            request = handler.decode_few(version, frame, body)
        else:
            request = await self._packing.run(handler.decode_few, version, frame, body)
        if request is None:
            return await self._answer_large(handler, context, frame, body)
        _let_go(frame, context)
        return await self._answer(handler, context, request)

    async def _answer_large(
        self, handler: Handler, context: RequestContext, frame: memoryview, body: int
    ) -> list[Part] | None:
        """Unpacked in a thread, when there is room for what comes out."""
        header = context.header
        is_let_in = header.api_key in MEMBERS
        admission = context.admission = await self._large[header.api_key].enter(0 if is_let_in else len(frame))
        try:
            request = await self._packing.run(handler.decode, header.api_version, frame, body)
            _let_go(frame, context)
            return await self._answer(handler, context, request)
        finally:
            admission.leave()

    def _context(self, header: RequestHeader, connection: ConnectionState, number: int) -> RequestContext:
        turn = Turn(self._long, connection.long_requests)
        return RequestContext(self._broker, header, self._listener, connection, turn, None, number)

    async def _answer(self, handler: Handler, context: RequestContext, request: Message) -> list[Part] | None:
        header = context.header
        try:
            response = await handler.function(context, request)
            if response is None:
                return None
            packed = header.correlation_id, response, header.api_version
            if context.turn.is_long or context.admission is not None:
                parts = await self._packing.run(encode_response, *packed)
            else:
                parts = encode_response(*packed)
            return cast("list[Part]", parts)
        except RequestRefused:
            raise
        except Exception as error:
            name, version = handler.request_type.__name__, header.api_version
            _log.exception("%s version %d of client %s failed", name, version, printable(header.client_id))
            answer = _unknown_server_error(header.api_key)
            if answer is None:
                raise RequestFailed from error
            return cast("list[Part]", encode_response(header.correlation_id, answer, version))

    async def _answer_unsupported_version(self, header: RequestHeader, handler: Handler) -> list[Part]:
        """A newer client asks ApiVersions first: it gets version 0, saying which versions of ApiVersions there are."""
        if header.api_key != ApiKey.API_VERSIONS:
            raise RequestRefused(f"{handler.request_type.__name__} version {header.api_version} is not served")
        known = ApiVersion(api_key=handler.api_key, min_version=handler.min_version, max_version=handler.max_version)
        response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[known])
        return cast("list[Part]", encode_response(header.correlation_id, response, 0))


def _let_go(frame: memoryview, context: RequestContext) -> None:
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
