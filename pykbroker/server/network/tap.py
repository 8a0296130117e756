"""A tap is in the way of every request of a listener's clients and of its answer: it may look, wait, and change both.

The control of a broker is such a tap (`pykbroker.control`). A broker without one has the plain dispatcher. What comes
before a client is known, SASL's exchange with its secrets, does not pass the tap.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol, TypeAlias

from .dispatch import Dispatcher
from .handlers import ConnectionState, NodeT
from .request_meter import RequestMeter
from .transport import Part

Answer: TypeAlias = list[Part] | None
Handle: TypeAlias = Callable[[], Awaitable[Answer]]
"""Has the broker handle the request; raises what closes the connection. The frame may be gone when it returns."""


class Tap(Protocol):
    async def exchange(self, frame: memoryview, connection: ConnectionState, handle: Handle) -> Answer:
        """Return the answer to a request; None where it has none. Raises what closes the connection.

        frame: the request without its size, good until `handle` is called.
        """
        ...


class TappedDispatcher(Dispatcher[NodeT]):
    """A dispatcher whose exchanges pass a tap."""

    def __init__(self, tap: Tap, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._tap = tap

    def answer_at_once(self, frame: memoryview, connection: ConnectionState) -> bytes | None:
        """Return nothing: every request is for the tap."""
        return None

    def begins(self, api_key: int) -> bool:
        """Tell that no request is handled without its exchange."""
        return False

    def begin(self, frame: memoryview, connection: ConnectionState, then: Callable[[bytes | None], None]) -> bool:
        """Begin nothing: every request is for the tap."""
        return False

    def _begin(self, frame: memoryview, connection: ConnectionState, meter: RequestMeter | None) -> Awaitable[Answer]:
        return self._tap.exchange(frame, connection, partial(super()._begin, frame, connection, meter))
