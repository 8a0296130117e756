"""The journal for programs in any language: plain JSON values in and out, for who serves HTTP or a command line.

All of it runs on the broker's loop. Entries are decoded in a thread, a few at a time, one question after the other;
nothing goes on once the caller is cancelled.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

import trio

from pykbroker.control.one_line import one_line

from .decoding import event_values
from .exchange import Event, Exchange
from .journal import Journal
from .json_lines import json_lines
from .pcap import pcap
from .query import Wanted, entries_of, forgotten, look_through
from .recorded_request import RecordedRequest

DEFAULT_MOST: Final = 100
MOST: Final = 1_000
"""Entries of one answer."""
MOST_ANSWER_BYTES: Final = 1024 * 1024
"""Of one answer as JSON, but for its last entry: what is packed in the event loop."""
_PIECE_BYTES: Final = 256 * 1024
_PIECE_S: Final = 0.02
_SHOWN: Final = 64
"""Characters of what means nothing."""
_FILTERS: Final = ("api", "client_id", "topic", "error")

T = TypeVar("T")


class BadQuestion(ValueError):
    """A question has a parameter that means nothing; the message is one line."""


class JournalRequests:
    """The questions to the journals of one broker, or of a cluster in one process. All raise BadQuestion, UnknownApi
    and UnknownError, which are ValueErrors.
    """

    def __init__(self, journals: Sequence[Journal]) -> None:
        """No journals: the broker was started without."""
        self._journals = journals
        self._limiter = trio.CapacityLimiter(1)

    def status(self) -> dict[str, Any]:
        """The size of the journal; `position` is the number of the latest entry."""
        journals = self._kept()
        return {
            "position": max((each.last_number for each in journals), default=0),
            "entries": sum(len(each) for each in journals),
            "forgotten": forgotten(journals),
            "bytes": sum(each.kept_bytes for each in journals),
            "most_bytes": sum(each.most_bytes for each in journals),
        }

    def clear(self) -> dict[str, Any]:
        """Forget everything so far."""
        for each in self._kept():
            each.clear()
        return self.status()

    async def requests(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the requests that fit `api`, `client_id`, `topic` and `error`, the oldest first, from behind `since`
        on, `most` at most. `next`, where it is not None, is the `since` of the next page.
        """
        _check(question, (*_FILTERS, "since", "most"))
        wanted = Wanted.of(*(_text(question, name) for name in _FILTERS))
        since, most = _since(question), _most(question)
        journals = self._kept()
        found: list[dict[str, Any]] = []
        after: int | None = None
        async for values in self._in_thread(_page(look_through(journals, wanted, since), most)):
            if isinstance(values, int):
                after = values
            elif values is not None:
                found.append(values)
        return {"requests": found, "next": after, "forgotten": forgotten(journals, since)}

    async def events(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return what coordinators did and why, from behind `since` on, `most` at most; `next` as for requests."""
        _check(question, ("since", "most"))
        since, most = _since(question), _most(question)
        journals = self._kept()
        found: list[dict[str, Any]] = []
        after: int | None = None
        async for event in self._in_thread(islice(_events(journals, since), most + 1)):
            if len(found) == most:
                after = found[-1]["number"]
            else:
                found.append(event_values(event))
        return {"events": found, "next": after, "forgotten": forgotten(journals, since)}

    async def json_lines(self, question: Mapping[str, Any]) -> AsyncIterator[bytes]:
        """The journal from behind `since` on as JSON lines, in pieces."""
        _check(question, ("since",))
        lines = json_lines(self._kept(), _since(question))
        async for piece in self._in_thread(_joined(line.encode() for line in lines)):
            yield piece

    async def pcap(self, question: Mapping[str, Any]) -> AsyncIterator[bytes]:
        """The requests and responses from behind `since` on as a capture file, in pieces."""
        _check(question, ("since",))
        packets = _packets(self._kept(), _since(question))
        async for piece in self._in_thread(_joined(packets)):
            yield piece

    async def _in_thread(self, items: Iterator[T]) -> AsyncIterator[T]:
        """The items, which are computed in a thread, for some milliseconds at a time."""
        while True:
            some, is_over = await trio.to_thread.run_sync(partial(_some, items), limiter=self._limiter)
            for each in some:
                yield each
            if is_over:
                return

    def _kept(self) -> Sequence[Journal]:
        if not self._journals:
            raise BadQuestion("this broker keeps no journal")
        return self._journals


def _some(items: Iterator[T]) -> tuple[list[T], bool]:
    """Return the next items, as many as there are in some milliseconds, and whether that was all."""
    found: list[T] = []
    deadline = time.monotonic() + _PIECE_S
    for each in items:
        found.append(each)
        if time.monotonic() > deadline:
            return found, False
    return found, True


def _page(requests: Iterator[RecordedRequest | None], most: int) -> Iterator[dict[str, Any] | int | None]:
    """The values of a page, and behind them, where there are more, the number to go on from."""
    left, left_bytes, number = most, MOST_ANSWER_BYTES, 0
    for request in requests:
        if request is None:
            yield None
            continue
        if not left or left_bytes <= 0:
            yield number
            return
        values = request.as_json
        left, left_bytes, number = left - 1, left_bytes - len(json.dumps(values)), request.number
        yield values


def _events(journals: Sequence[Journal], since: int) -> Iterator[Event]:
    for entry, _ in entries_of(journals, since):
        if isinstance(entry, Event):
            yield entry


def _packets(journals: Sequence[Journal], since: int) -> Iterator[bytes]:
    yield from pcap(entry for entry, _ in entries_of(journals, since) if isinstance(entry, Exchange))


def _joined(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of some size."""
    piece = bytearray()
    for part in parts:
        piece += part
        if len(piece) >= _PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def _check(question: Mapping[str, Any], known: Collection[str]) -> None:
    for name in question:
        if name not in known:
            shown = one_line(str(name)[:_SHOWN])
            close = get_close_matches(shown, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            raise BadQuestion(f"there is no parameter '{shown}'; {hint}")


def _text(question: Mapping[str, Any], name: str) -> str | None:
    value = question.get(name)
    if value is not None and not isinstance(value, str):
        raise BadQuestion(f"{name} is a text, not {repr(value)[:_SHOWN]}")
    return value


def _since(question: Mapping[str, Any]) -> int:
    return _number(question, "since", 0, 0, 1 << 62)


def _most(question: Mapping[str, Any]) -> int:
    return _number(question, "most", DEFAULT_MOST, 1, MOST)


def _number(question: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    """Read a number, which in a URL is a text."""
    value = question.get(name, default)
    try:
        number = int(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else None
    except ValueError:
        number = None
    if number is None or not least <= number <= most:
        raise BadQuestion(f"{name} is a number from {least} to {most}, not {repr(value)[:_SHOWN]}")
    return number
