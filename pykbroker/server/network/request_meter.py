"""A request meter goes along with one request, and decides what its client has to wait for it (KIP-219).

A Fetch asks before it is answered (`api.fetch`), since a throttled one is empty. Other brokers' fetches and markers,
and authentication, count for nobody. Kafka's counterparts are `RequestHandlerHelper`, and `KafkaApis` for Produce and
Fetch.

The time of a request is what its task holds the event loop for: decoding, handling, encoding. What it waits for costs
nothing, nor do worker threads; the loop is one thread, so that all clients together have 100 %.
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
_EXEMPT: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.WRITE_TXN_MARKERS})
_PERCENT_OF_NS: Final = 100 / 1e9


class ThrottledClient(Protocol):
    """A connection says who its client is, and is told for how long it is throttled."""

    throttle_ms: int

    @property
    def principal(self) -> str: ...
    @property
    def request(self) -> RequestHeader | None: ...


class RequestMeter:
    """The meter of one request knows what it costs its client.

    size_bytes: of its frame. nanos: tells how long the loop was held.
    """

    __slots__ = (
        "_clock",
        "_connection",
        "_counted_ns",
        "_is_settled",
        "_quotas",
        "_size_bytes",
        "_throttle_ms",
        "nanos",
        "spent_ns",
        "step_ns",
    )

    def __init__(
        self,
        quotas: ClientQuotas,
        clock: Clock,
        nanos: Callable[[], int],
        connection: ThrottledClient,
        size_bytes: int,
    ) -> None:
        self._quotas = quotas
        self._clock = clock
        self.nanos = nanos
        self._connection = connection
        self._size_bytes = size_bytes
        self._throttle_ms = 0
        self._is_settled = False
        self._counted_ns = 0
        self.spent_ns = 0
        """In steps of the task that are over."""
        self.step_ns: int | None = None
        """When the step that runs began; None where nobody measures."""

    def exempt(self) -> None:
        """Let the request count for nobody: it is another broker's."""
        self._is_settled = True

    def most_fetched_at_once(self) -> float:
        """Return how many bytes a Fetch may have without being throttled for ever."""
        user, client_id, now_ms = self._client()
        return self._quotas.fetch.most_at_once(user, client_id, now_ms)

    def holds_back(self, size_bytes: int) -> bool:
        """Count a Fetch and its answer; tell whether an empty one is to go out in its place, which does not count."""
        user, client_id, now_ms = self._client()
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
        throttle_ms = self._throttle_ms
        if response is not None:
            throttle_ms = max(throttle_ms, getattr(response, "throttle_time_ms", 0))
        if not self._is_settled and api_key not in _EXEMPT:
            user, client_id, now_ms = self._client()
            has_time = True
            if api_key == _PRODUCE:
                produce = self._quotas.produce
                if produce.is_set:
                    throttle_ms = max(throttle_ms, produce.record(user, client_id, self._size_bytes, now_ms))
                has_time = request.acks != 0
            if has_time:
                throttle_ms = max(throttle_ms, self._count_time(user, client_id, now_ms))
        if throttle_ms > 0:
            self._connection.throttle_ms = throttle_ms
            if response is not None and hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = throttle_ms

    def count_rest(self) -> None:
        """Count what came behind `settle`; the next request will be throttled for it."""
        if self._counted_ns:
            user, client_id, now_ms = self._client()
            self._count_time(user, client_id, now_ms)

    def _client(self) -> tuple[str, str, int]:
        connection = self._connection
        header = connection.request
        client_id = None if header is None else header.client_id
        return connection.principal.partition(":")[2], client_id or "", self._clock.monotonic_ms()

    def _count_time(self, user: str, client_id: str, now_ms: int) -> int:
        request = self._quotas.request
        if not request.is_set:
            return 0
        spent_ns = self.spent_ns
        if self.step_ns is not None:
            spent_ns += self.nanos() - self.step_ns
        uncounted_ns, self._counted_ns = spent_ns - self._counted_ns, spent_ns
        return request.record(user, client_id, uncounted_ns * _PERCENT_OF_NS, now_ms)


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
                now_ns = nanos()
                meter.spent_ns += 0 if meter.step_ns is None else now_ns - meter.step_ns
                meter.step_ns = None
            try:
                send, argument = steps.send, (yield waited_for)
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:
                send, argument = steps.throw, error
            meter.step_ns = nanos()
