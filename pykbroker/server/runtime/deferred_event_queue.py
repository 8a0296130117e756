"""A deferred event waits until a log has got far enough: Kafka's `DeferredEventQueue` (server-common).

A driver appends the records of a step and puts what follows from them in the queue: an answer, an effect. Events stand
in the order of their offsets, so the driver asks for the first one only, and a hundred thousand behind it cost nothing.

An offset alone does not name an append: another leader may have truncated it and written other records there. So an
event carries all that it waits for, such as a `replication.appended.Appended`, and the driver's condition asks the
event. Where the leadership of a driver ends, the driver takes all events and fails them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar


class DeferredEvent(Protocol):
    """A deferred event knows the end of the log that it waits for."""

    @property
    def end_offset(self) -> int:
        """The end of the log behind the records that the event waits for."""
        ...


EventT = TypeVar("EventT", bound=DeferredEvent)


class DeferredEventQueue(Generic[EventT]):
    """A queue leaves an event to its caller before the next one is looked at: whatever the caller does with the event
    may add others, or take all.
    """

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: deque[EventT] = deque()

    def __len__(self) -> int:
        return len(self._events)

    @property
    def first(self) -> EventT | None:
        return self._events[0] if self._events else None

    def add(self, event: EventT) -> None:
        """Put an event behind all others. Its offset is not below theirs, as in Kafka."""
        events = self._events
        assert not events or events[-1].end_offset <= event.end_offset, "a log grows at its end"
        events.append(event)

    def take_while(self, condition: Callable[[EventT], bool]) -> Iterator[EventT]:
        """Take events from the front, one by one, as long as the first one meets the condition at that moment."""
        events = self._events
        while events and condition(events[0]):
            yield events.popleft()

    def take_all(self) -> list[EventT]:
        """Take the events that will not come about."""
        events = list(self._events)
        self._events.clear()
        return events
