"""Events that wait for offsets: each is taken once, in order, when its turn has come or when all fail."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from pykbroker.server.runtime.deferred_event_queue import DeferredEventQueue

MANY = 100_000


@dataclass(frozen=True)
class Event:
    end_offset: int
    name: str = ""


class Committed:
    """A high watermark as a condition. looks: how many events were asked."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.looks = 0

    def __call__(self, event: Event) -> bool:
        self.looks += 1
        return event.end_offset <= self.offset


def queue_of(*events: Event) -> DeferredEventQueue[Event]:
    queue = DeferredEventQueue[Event]()
    for event in events:
        queue.add(event)
    return queue


def taken(queue: DeferredEventQueue[Event], offset: int) -> list[int]:
    return [event.end_offset for event in queue.take_while(Committed(offset))]


def test_events_are_taken_in_order_up_to_the_offset() -> None:
    queue = queue_of(Event(1), Event(3), Event(5))
    assert taken(queue, 0) == []
    assert taken(queue, 4) == [1, 3]
    assert queue.first == Event(5)
    assert taken(queue, 4) == []
    assert taken(queue, 5) == [5]
    assert (len(queue), queue.first) == (0, None)


def test_events_of_one_offset_are_taken_as_they_came() -> None:
    queue = queue_of(Event(2, "a"), Event(2, "b"), Event(2, "c"))
    assert [event.name for event in queue.take_while(Committed(2))] == ["a", "b", "c"]


def test_all_are_taken_where_they_fail() -> None:
    queue = queue_of(Event(1), Event(2), Event(3))
    assert taken(queue, 1) == [1]
    assert [event.end_offset for event in queue.take_all()] == [2, 3]
    assert queue.take_all() == []
    queue.add(Event(1))  # the log of another leadership may be shorter
    assert taken(queue, 1) == [1]


def test_whoever_takes_an_event_may_add_others() -> None:
    queue, names = queue_of(Event(1, "a"), Event(2, "b")), list[str]()
    for event in queue.take_while(Committed(2)):
        names.append(event.name)
        if event.name == "a":
            queue.add(Event(2, "c"))
            queue.add(Event(3, "not committed"))
    assert names == ["a", "b", "c"]
    assert len(queue) == 1


def test_whoever_takes_an_event_may_make_more_of_them_due() -> None:
    queue, committed, offsets = queue_of(*map(Event, range(1, 6))), Committed(1), list[int]()
    for event in queue.take_while(committed):
        offsets.append(event.end_offset)
        committed.offset = min(event.end_offset + 1, 4)
    assert offsets == [1, 2, 3, 4]


def test_whoever_takes_an_event_may_fail_the_others() -> None:
    queue, names = queue_of(Event(1, "a"), Event(1, "b"), Event(1, "c")), list[str]()
    for event in queue.take_while(Committed(1)):
        names.append(event.name)
        queue.take_all()
    assert names == ["a"]


def test_an_event_that_is_taken_within_another_taking_is_taken_once() -> None:
    queue, names = queue_of(Event(1, "a"), Event(1, "b"), Event(1, "c")), list[str]()
    for event in queue.take_while(Committed(1)):
        names.append(event.name)
        names += [inner.name for inner in queue.take_while(Committed(1))]
    assert names == ["a", "b", "c"]


def test_a_hundred_thousand_in_order_are_not_touched_by_the_first() -> None:
    queue, committed = queue_of(*map(Event, range(1, MANY + 1))), Committed(0)
    for offset in range(1, MANY + 1):
        committed.offset = offset
        assert next(queue.take_while(committed)).end_offset == offset
        if offset == 1000:
            assert committed.looks == offset
    assert committed.looks == MANY
    assert not queue


def test_what_is_not_due_costs_one_look() -> None:
    queue, committed = queue_of(*map(Event, range(1, MANY + 1))), Committed(10)
    assert len(list(queue.take_while(committed))) == 10
    assert committed.looks == 11


def test_an_offset_below_the_last_one_is_a_fault_of_the_caller() -> None:
    queue = queue_of(Event(MANY))
    for offset in range(MANY - 1, 0, -1):
        with pytest.raises(AssertionError):
            queue.add(Event(offset))
    assert taken(queue, MANY) == [MANY]


def test_every_event_is_taken_once_whatever_the_order_of_calls() -> None:
    rng, queue, end, committed, out = Random(12), DeferredEventQueue[Event](), 0, 0, list[str]()
    for number in range(2000):
        end += rng.randrange(3)
        queue.add(Event(end, str(number)))
        committed = max(committed, rng.randint(committed, end)) if rng.random() < 0.3 else committed
        for event in queue.take_while(Committed(committed)):
            assert event.end_offset <= committed
            out.append(event.name)
    out += [event.name for event in queue.take_all()]
    assert out == [str(number) for number in range(2000)]
