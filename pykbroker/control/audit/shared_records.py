"""Records of share groups that a client has worked on, and whose acknowledgement came too late (KIP-932).

An acknowledgement that is refused is no finding by itself: the records may be settled already, when its client sends it
a second time. It is one where the records are delivered again, whichever comes first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pykbroker.protocol.errors import ErrorCode

from .findings import Kind
from .remembered import Remembered
from .who import Place, Who, of_client_at

MOST_PLACES: Final = 20_000
MOST_OF_ONE: Final = 16
"""Deliveries, and refused acknowledgements, of one partition; the newest are kept."""

LOST: Final = frozenset(
    {
        ErrorCode.INVALID_RECORD_STATE,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    }
)
"""The errors by which the records are the client's no more."""
_ACCEPT: Final = 1
_REJECT: Final = 3

Find = Callable[[Kind, str, dict[str, Any]], None]


class Offsets(NamedTuple):
    """Consecutive offsets, both ends included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class LateAcknowledgement:
    """Records that a client has settled in vain. error: by which it was refused."""

    who: Who
    group: str
    member: str
    place: Place
    offsets: Offsets
    error: int


class SharedRecords:
    """The refused acknowledgements of an audit. find: takes what is found."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._again: Remembered[tuple[str, Place], deque[Offsets]] = Remembered(MOST_PLACES)
        self._refused: Remembered[tuple[str, Place], deque[LateAcknowledgement]] = Remembered(MOST_PLACES)

    def delivered(self, group: str, place: Place, acquired: Iterable[Any]) -> None:
        """Look at records that somebody has acquired, those that were delivered before among them."""
        key = group, place
        again = [Offsets(each.first_offset, each.last_offset) for each in acquired if each.delivery_count > 1]
        if not again:
            return
        self._again.get_or(key, lambda: deque(maxlen=MOST_OF_ONE)).extend(again)
        refused = self._refused.get(key)
        for late in [each for each in refused or () if any(_meet(each.offsets, of) for of in again)]:
            self._tell(late)
            if refused is not None:
                refused.remove(late)

    def refused(self, late: LateAcknowledgement) -> None:
        """Look at an acknowledgement that was refused by an error of `LOST`."""
        key = late.group, late.place
        if any(_meet(late.offsets, each) for each in self._again.get(key) or ()):
            self._tell(late)
        else:
            self._refused.get_or(key, lambda: deque(maxlen=MOST_OF_ONE)).append(late)

    def _tell(self, late: LateAcknowledgement) -> None:
        (first, last), name = late.offsets, ErrorCode(late.error).name
        which = f"offset {first}" if first == last else f"the offsets {first} to {last}"
        self._find(
            Kind.LATE,
            f"{late.who} wanted to acknowledge {which} of {late.place} in share group {late.group}, and was refused "
            f"({name}): the records were not its own any more, and are delivered again",
            {
                "group": late.group,
                **of_client_at(late.who, late.place),
                "member_id": late.member,
                "first_offset": first,
                "last_offset": last,
                "error": name,
            },
        )


def settled(batches: Iterable[Any]) -> Iterator[Offsets]:
    """Give the offsets that acknowledgements accept or reject: neighbours together."""
    for batch in batches:
        types = batch.acknowledge_types
        if len(types) == 1:
            if types[0] in (_ACCEPT, _REJECT):
                yield Offsets(batch.first_offset, batch.last_offset)
            continue
        first: int | None = None
        for number, kind in enumerate(types):
            offset = batch.first_offset + number
            if kind in (_ACCEPT, _REJECT):
                first = offset if first is None else first
            elif first is not None:
                yield Offsets(first, offset - 1)
                first = None
        if first is not None:
            yield Offsets(first, batch.first_offset + len(types) - 1)


def newest(ranges: Iterable[Offsets]) -> Iterable[Offsets]:
    """Return those of one refused request and partition that are looked at: no more than are kept. A member that names
    thousands, of alternating types, has the loop for no longer than another one.
    """
    return deque(ranges, maxlen=MOST_OF_ONE)


def _meet(one: Offsets, other: Offsets) -> bool:
    return one.first <= other.last and other.first <= one.last
