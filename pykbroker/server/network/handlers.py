"""Handlers serve requests; here is what they are given beside the request, and the tables in which listeners find them.

A table is for one kind of listener, and its type says what its handlers may touch: those of `HandlerTable[NodeT]` take
a `RequestContext[NodeT]`. What a node is, nobody here knows; the tables of a node stand in `node.handlers`.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, Never, Protocol, TypeAlias, TypeVar

from trio import CancelScope

from pykbroker.protocol.compile import OBJECTS_LIMIT, decode
from pykbroker.protocol.errors import TooManyElements
from pykbroker.protocol.framing import RequestHeader
from pykbroker.protocol.schema import Message

from ..runtime.fair_queue import FairShare
from ..runtime.turns import Turn
from .large_requests import FEW_ENTRIES, Admission
from .needs import NOTHING, Needs
from .offer import Offer
from .request_meter import RequestMeter
from .seeking_clients import SeekingClients
from .transport import Address, Part, Transport

ListenerKind: TypeAlias = Literal["broker", "controller"]
RequestT = TypeVar("RequestT", bound=Message)
NodeT = TypeVar("NodeT")
NodeT_co = TypeVar("NodeT_co", covariant=True)
NodeT_contra = TypeVar("NodeT_contra", contravariant=True)

MOST_ENTRIES = 30_000
"""What a client names in one request: three times the partitions that a broker is made for."""

MANY_ENTRIES = OBJECTS_LIMIT
"""And other nodes: assignments of replicas are lists in lists."""

ANONYMOUS = "User:ANONYMOUS"


class CloseConnection(Exception):
    """The request ends without a response, or with `answer` as the last one, and its connection with it; the text
    goes to the log.

    Kafka closes the connection in the same cases: for a request that it cannot read (`InvalidRequestException`), and
    where a handler calls `RequestChannel.closeConnection`, as for a produce request with acks=0 that has failed. It
    answers a failed authentication before it closes.
    """

    def __init__(self, reason: str, answer: list[Part] | None = None) -> None:
        super().__init__(reason)
        self.answer = answer


@dataclass(slots=True, eq=False, weakref_slot=True)
class ConnectionState:
    """The state of a connection is what its client has told about itself, and what the listener and a handler ask of
    each other.
    """

    listener_name: str
    client_address: str
    principal: str = ANONYMOUS
    reached: Address | None = None
    """The broker's own address that the client has reached, where its listener tells that to clients (`auto`)."""
    seeking: SeekingClients | None = None
    """Where it is noted who asks for the broker's address and who comes; None on controllers' listeners."""
    has_worked: bool = False
    """The client has sent something else than questions where the broker is."""
    by_token: bool = False
    """The client has authenticated by a delegation token (KIP-48)."""
    client_software_name: str = "unknown"
    client_software_version: str = "unknown"
    when_closed: Callable[[], None] | None = None
    """Is called once, when the connection has ended for whatever reason."""
    telemetry_ends: Callable[[], None] | None = None
    """Is called then as well, where the client has asked for subscriptions of metrics (KIP-714)."""
    share_sessions_end: Callable[[], None] | None = None
    """And where share sessions have begun on the connection (KIP-932)."""
    when_unpacked: Callable[[], None] | None = None
    """Is called where a large frame is released before its request is answered."""
    has_left: bool = False
    """The client has closed its end for some time: nobody waits for long answers any more."""
    give_up: Callable[[], None] | None = None
    """Ends the wait that its request is in, as if the request's time were over."""
    outlives_client: bool = False
    """That wait goes on when the client has left, and ends where memory is short."""
    asked_again: Callable[[], Awaitable[None]] | None = None
    """Returns when the client waits for the answer to something else as well: see `Connection`."""
    request: RequestHeader | None = None
    """Of the request in hand, or of the last one."""
    authentication: CancelScope | None = None
    """The scope in which a connection is served that must authenticate, until its deadline; None on other listeners."""
    fair_share: FairShare = field(default_factory=FairShare)
    """What the checks of its records, and its lookups in records, have cost."""
    long_requests: FairShare = field(default_factory=FairShare)
    """How many turns it has had for what is long."""

    transport: Transport | None = None
    """For who tells connections apart by their addresses; None in tests without one."""
    tapped: object = None
    """What the tap of the listener keeps of the connection (`tap`)."""
    fetching: object = None
    """What is kept of the connection's fetches, where somebody may ask for it (`replicas.fetch_sightings`)."""
    meter: RequestMeter | None = None
    """Since any quota was set."""
    waited_ns: int = 0
    """For how long the request in hand, or the last one, has waited for replicas or for records."""
    queued_ns: int = 0
    """For how long it has waited for room to be unpacked."""
    held_ns: int = 0
    """For how long its answer has waited between two pieces, for the turns of others."""
    throttle_ms: int = 0
    """The time for which nothing of the client is served behind the answer."""

    @property
    def has_yet_to_authenticate(self) -> bool:
        """Tell whether the client is on a listener with SASL, and has not authenticated yet."""
        return self.authentication is not None and self.authentication.deadline < math.inf

    def begin_work(self) -> None:
        """Note the connection's first request that is more than a question where the broker is."""
        self.has_worked = True
        if self.seeking is not None and self.request is not None:
            self.seeking.has_come(self.client_address, self.request.client_id)

    def leave(self) -> None:
        self.has_left = True
        if self.give_up is not None and not self.outlives_client:
            self.give_up()


@dataclass(slots=True, eq=False)  # frozen it would take three times as long to make, for each request
class RequestContext(Generic[NodeT_co]):
    """The context is what a handler knows beside the request. Slices of the request are good until the handler returns.

    node: a Broker on brokers' listeners, a ClusterNode on controllers'. listener: what is served beside this request.
    turn: for handlers that loop over what the request names. admission: of a large request, to be left before the
    handler waits for others. number: the node's requests are numbered as they come, whichever is unpacked or handled
    first. is_forwarded: a broker has checked it, and passed it on in an Envelope. repeat: is set by a handler whose
    answer anybody may have who asks the same, as long as `Handler.made_of` says the same; it is called with the
    connection of each who does.
    """

    node: NodeT_co
    header: RequestHeader
    listener: ServedApis
    connection: ConnectionState
    turn: Turn = field(default_factory=Turn)
    admission: Admission | None = None
    number: int = 0
    is_forwarded: bool = False
    repeat: Callable[[ConnectionState], None] | None = None

    @property
    def listener_name(self) -> str:
        return self.connection.listener_name

    @property
    def client_address(self) -> str:
        return self.connection.client_address

    @property
    def principal(self) -> str:
        return self.connection.principal

    @property
    def user(self) -> str:
        """The principal's name without its type: that of quotas."""
        return self.connection.principal.partition(":")[2]


HandlerFunction: TypeAlias = Callable[[RequestContext[NodeT], RequestT], Awaitable[Message | None]]
"""`None` as its answer is no answer (Produce with acks=0)."""

Begin: TypeAlias = Callable[[RequestContext[NodeT], RequestT, Callable[[Message], None]], bool]
"""Begins to handle a request, and has the function called with the response, at once or later, but once in every case.

False: nothing has happened, and the request is for the handler's function, which knows all cases. What is begun takes
a part of a turn. Only a handler that stands behind no guard has this.
"""


@dataclass(frozen=True, slots=True)
class Handler(Generic[NodeT_contra]):
    """A handler serves one API. most_entries: of all lists in one request together; a client that
    sends more is closed. needs: the rights that its clients need. made_of: what of a node the answers that are the same
    for all are made of, to be compared; None while none are, or where no answer of the API is (`remembered_answers`).
    begin: handles a request without a task (`Begin`); None where every request is for the function.
    """

    api_key: int
    request_type: type[Message]
    min_version: int
    max_version: int
    function: Callable[[RequestContext[NodeT_contra], Any], Awaitable[Message | None]]
    most_entries: int
    needs: Needs = NOTHING
    made_of: Callable[[NodeT_contra], object | None] | None = None
    begin: Callable[[RequestContext[NodeT_contra], Any, Callable[[Message], None]], bool] | None = None

    def decode(self, version: int, frame: memoryview, body: int) -> Message:
        request, _ = decode(self.request_type, version, frame, body, objects_limit=self.most_entries)
        return request

    def decode_few(self, version: int, frame: memoryview, body: int) -> Message | None:
        """Return None where the request lists more than a few entries."""
        try:
            request, _ = decode(self.request_type, version, frame, body, objects_limit=FEW_ENTRIES)
        except TooManyElements:
            return None
        return request


class ServedApis(Protocol):
    """The served APIs are what a listener advertises, as its handlers see it: to be told to others, and not to be
    called.
    """

    @property
    def kind(self) -> ListenerKind: ...

    @property
    def offer(self) -> Offer | None:
        """The offer of the listener; None where everything is offered that is served."""
        ...

    def __iter__(self) -> Iterator[Handler[Never]]: ...


Guard: TypeAlias = Callable[
    [Callable[[RequestContext[NodeT], Any], Awaitable[Message | None]], Needs],
    Callable[[RequestContext[NodeT], Any], Awaitable[Message | None]],
]
"""Makes of a handler one that first looks whether its client has the rights that the request needs."""


class HandlerTable(Generic[NodeT]):
    """The handlers of one kind of listener, by API key. It gives ApiVersions what it advertises and the dispatcher
    what it lets in: nothing is advertised that is not served.

    guard: stands before every handler. Without one, a table takes only handlers that need nothing. offer: None where
    everything is offered that is served.
    """

    def __init__(self, kind: ListenerKind, guard: Guard[NodeT] | None = None, offer: Offer | None = None) -> None:
        self._kind: ListenerKind = kind
        self._guard = guard
        self._offer = offer
        self.by_api_key: dict[int, Handler[NodeT]] = {}

    @property
    def kind(self) -> ListenerKind:
        return self._kind

    @property
    def offer(self) -> Offer | None:
        return self._offer

    def offering(self, offer: Offer) -> HandlerTable[NodeT]:
        """A table with the same handlers, as far as the offer has their versions."""
        table = HandlerTable(self._kind, self._guard, offer)
        for api_key, handler in self.by_api_key.items():
            offered = offer.versions.get(api_key)
            if offered is None:
                continue
            low, high = max(offered.low, handler.min_version), min(offered.high, handler.max_version)
            if low <= high:
                table.by_api_key[api_key] = replace(handler, min_version=low, max_version=high)
        return table

    def without(self, api_keys: Collection[int]) -> HandlerTable[NodeT]:
        """A table with the other handlers."""
        table = HandlerTable(self._kind, self._guard, self._offer)
        table.by_api_key = {key: each for key, each in self.by_api_key.items() if key not in api_keys}
        return table

    def handles(
        self,
        request_type: type[RequestT],
        *,
        needs: Needs,
        most_entries: int = MOST_ENTRIES,
        made_of: Callable[[NodeT], object | None] | None = None,
        begin: Begin[NodeT, RequestT] | None = None,
    ) -> Callable[[HandlerFunction[NodeT, RequestT]], HandlerFunction[NodeT, RequestT]]:
        """Register an `async (context, request) -> response | None`, for every version that the request declares.

        needs: what the table's guard and the handler look for, see `needs`. made_of, begin: see `Handler`.
        """

        def register(function: HandlerFunction[NodeT, RequestT]) -> HandlerFunction[NodeT, RequestT]:
            schema = request_type.__schema__
            assert schema.api_key is not None, f"{schema.name} is not a request"
            assert schema.api_key not in self.by_api_key, f"{schema.name} has two handlers on one listener"
            served = schema.stable_versions
            assert self._guard is not None or needs == NOTHING, f"nobody checks what {schema.name} needs"
            guarded = function if self._guard is None else self._guard(function, needs)
            handler = Handler(
                schema.api_key, request_type, served.low, served.high, guarded, most_entries, needs, made_of, begin
            )
            self.by_api_key[schema.api_key] = handler
            return function

        return register

    def __iter__(self) -> Iterator[Handler[NodeT]]:
        return iter(sorted(self.by_api_key.values(), key=lambda each: each.api_key))
