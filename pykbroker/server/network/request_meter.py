"""A request meter belongs to a connection, measures one request after another, and decides what the client has to wait
(KIP-219).

A Fetch asks before it is answered (`api.fetch`), since a throttled one is empty. Other brokers' fetches and markers,
and authentication, count for nobody. Kafka's counterparts are `RequestHandlerHelper`, and `KafkaApis` for Produce and
Fetch.

The time of a request is what its task holds the event loop for: decoding, handling, encoding. What it waits for costs
nothing, nor do worker threads; the loop is one thread, so that all clients together have 100 %. The encoding is known
when the answer is on its way, and counts with the connection's next request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final, Generic, Protocol, TypeVar

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.framing import RequestHeader
from pykbroker.quotas.client_quotas import ClientQuotas

from ..runtime.clock import Clock

T = TypeVar("T")

_PRODUCE: Final = int(ApiKey.PRODUCE)
_EXEMPT: Final = frozenset(map(int, (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.WRITE_TXN_MARKERS)))
_PERCENT_OF_NS: Final = 100 / 1e9


class ThrottledClient(Protocol):
    """A connection says who its client is, and is told for how long it is throttled."""

    throttle_ms: int

    @property
    def principal(self) -> str: ...
    @property
    def request(self) -> RequestHeader | None: ...


class RequestMeter:
    """The meter of one connection. nanos: tells how long the loop was held.

    is_open: whether the request in hand is measured; quotas may come while it waits. spent_ns, step_ns: what was spent
    in steps that are over and is not counted yet, and when the step that runs began, None where nobody measures time.
    """

    __slots__ = (
        "_clock",
        "_connection",
        "_is_settled",
        "_principal",
        "_quotas",
        "_size_bytes",
        "_throttle_ms",
        "_user",
        "is_open",
        "nanos",
        "spent_ns",
        "step_ns",
    )

    def __init__(
        self, quotas: ClientQuotas, clock: Clock, nanos: Callable[[], int], connection: ThrottledClient
    ) -> None:
        self._quotas = quotas
        self._clock = clock
        self.nanos = nanos
        self._connection = connection
        self._principal = self._user = ""
        self._size_bytes = 0
        self._throttle_ms = 0
        self._is_settled = False
        self.is_open = False
        self.spent_ns = 0
        self.step_ns: int | None = None

    def begin(self, size_bytes: int) -> None:
        """Open the meter for a request. size_bytes: of its frame."""
        self._size_bytes = size_bytes
        self._throttle_ms = 0
        self._is_settled = False
        self.is_open = True

    def exempt(self) -> None:
        """Let the request count for nobody: it is another broker's."""
        self._is_settled = True

    def most_fetched_at_once(self) -> float:
        """Return how many bytes a Fetch may have without being throttled for ever."""
        return self._quotas.fetch.most_at_once(self._client(), self._client_id(), self._clock.monotonic_ms())

    @property
    def throttle_ms(self) -> int:
        """The time for which the client is throttled behind the Fetch that was held back."""
        return self._throttle_ms

    def holds_back(self, size_bytes: int) -> bool:
        """Count a Fetch and its answer; tell whether an empty one is to go out in its place, which does not count."""
        user, client_id, now_ms = self._client(), self._client_id(), self._clock.monotonic_ms()
        fetch = self._quotas.fetch
        time_ms = self._count_time(user, client_id, now_ms)
        self._is_settled = True
        self._throttle_ms = max(fetch.record(user, client_id, size_bytes, now_ms), time_ms)
        if self._throttle_ms > 0:
            fetch.take_back(user, client_id, size_bytes, now_ms)
        return self._throttle_ms > 0

    def settle(self, api_key: int, request: Any, response: Any) -> None:
        """Count the request, and throttle its client where that is too much.

        response: None where there is none. What a controller said of its own quota stands in it already.
        """
        self.is_open = False
        if self._is_settled:
            throttle_ms = self._throttle_ms
        elif api_key == _PRODUCE:
            throttle_ms = self._count_produce(request.acks)
        else:
            throttle_ms = getattr(response, "throttle_time_ms", 0)
            if self._quotas.request.is_set and api_key not in _EXEMPT:
                now_ms = self._clock.monotonic_ms()
                throttle_ms = max(throttle_ms, self._count_time(self._client(), self._client_id(), now_ms))
        if throttle_ms > 0:
            self._connection.throttle_ms = throttle_ms
            if response is not None and hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = throttle_ms

    def _count_produce(self, acks: int) -> int:
        quotas, throttle_ms = self._quotas, 0
        has_bytes, has_time = quotas.produce.is_set, acks and quotas.request.is_set
        if has_bytes or has_time:
            user, client_id, now_ms = self._client(), self._client_id(), self._clock.monotonic_ms()
            if has_bytes:
                throttle_ms = quotas.produce.record(user, client_id, self._size_bytes, now_ms)
            if has_time:
                throttle_ms = max(throttle_ms, self._count_time(user, client_id, now_ms))
        return throttle_ms

    def _client(self) -> str:
        principal = self._connection.principal
        if principal is not self._principal:
            self._principal, self._user = principal, principal.partition(":")[2]
        return self._user

    def _client_id(self) -> str:
        header = self._connection.request
        return "" if header is None else header.client_id or ""

    def _count_time(self, user: str, client_id: str, now_ms: int) -> int:
        request = self._quotas.request
        if not request.is_set or self.step_ns is None:
            return 0
        now_ns = self.nanos()
        spent_ns, self.spent_ns = self.spent_ns + now_ns - self.step_ns, 0
        self.step_ns = now_ns
        return request.record(user, client_id, spent_ns * _PERCENT_OF_NS, now_ms)


class Timed(Generic[T]):
    """An awaitable that measures the steps of another one: between them it waits, and others have the loop."""

    __slots__ = ("_begin", "_meter")

    def __init__(self, begin: Callable[[], Awaitable[T]], meter: RequestMeter) -> None:
        self._begin = begin
        self._meter = meter

    def __await__(self) -> Generator[Any, Any, T]:
        meter, nanos = self._meter, self._meter.nanos
        meter.step_ns = nanos()
        steps: Any = self._begin().__await__()
        send, argument = steps.send, None
        while True:
            try:
                waited_for = send(argument)
            except StopIteration as done:
                answer: T = done.value
                return answer
            finally:
                if meter.step_ns is not None:
                    meter.spent_ns += nanos() - meter.step_ns
                    meter.step_ns = None
            try:
                send, argument = steps.send, (yield waited_for)
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:
                send, argument = steps.throw, error
            meter.step_ns = nanos()
