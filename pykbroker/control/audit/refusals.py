"""Refusals of commits whose clients are no members any more, or have missed a rebalance.

Who has missed a rebalance may have the partition still, and commit again: that is nothing. It is a finding where
another member begins below what was to be committed, whichever comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pykbroker.protocol.errors import ErrorCode

from .findings import Kind
from .remembered import Remembered
from .who import Place, Who, of_client_at

MOST_PLACES: Final = 20_000

NO_MEMBER: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
    }
)
BEHIND: Final = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH})
"""The client is a member, and has missed a rebalance."""

Find = Callable[[Kind, str, dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A commit that was refused. number: of the connection."""

    number: int
    who: Who
    group: str
    member: str
    place: Place
    offset: int
    error: int


class _Beginning(NamedTuple):
    """The committed offset at which a member begins; -1 where there is none."""

    number: int
    who: Who
    offset: int


class Refusals:
    """The refused commits of an audit. find: takes what is found."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._open: Remembered[tuple[str, Place], Refusal] = Remembered(MOST_PLACES)
        self._begun: Remembered[tuple[str, Place], _Beginning] = Remembered(MOST_PLACES)

    def refused(self, refusal: Refusal) -> None:
        """Look at a commit that was refused by an error of `NO_MEMBER` or `BEHIND`."""
        key = refusal.group, refusal.place
        begun = self._begun.get(key)
        if refusal.error in NO_MEMBER:
            self._tell(refusal, "it is no member any more")
        elif begun is not None and _is_other(begun, refusal) and begun.offset < refusal.offset:
            self._tell(refusal, f"{_begins(begun)} instead")
        else:
            self._open.put(key, refusal)

    def begins(self, number: int, who: Who, group: str, place: Place, offset: int) -> None:
        """Note that a member asks where to begin. offset: what it is told."""
        begun = _Beginning(number, who, offset)
        self._begun.put((group, place), begun)
        refusal = self._open.forget((group, place))
        if refusal is not None and _is_other(begun, refusal) and offset < refusal.offset:
            self._tell(refusal, f"{_begins(begun)} since")

    def committed(self, group: str, place: Place, offset: int) -> None:
        """Note a commit that was taken."""
        refusal = self._open.get((group, place))
        if refusal is not None and offset >= refusal.offset:
            self._open.forget((group, place))

    def _tell(self, refusal: Refusal, why: str) -> None:
        who, place, name = refusal.who, refusal.place, ErrorCode(refusal.error).name
        self._find(
            Kind.ZOMBIE,
            f"{who} wanted to commit {refusal.offset} for {place} in group {refusal.group}, and was refused ({name}): "
            f"{why}, and these records are read again",
            {
                "group": refusal.group,
                **of_client_at(who, place),
                "member_id": refusal.member,
                "offset": refusal.offset,
                "error": name,
            },
        )


def _is_other(begun: _Beginning, refusal: Refusal) -> bool:
    """Tell whether another client begins: who has a name of his own may have another connection by now."""
    return begun.number != refusal.number and (begun.who != refusal.who or not begun.who.is_named)


def _begins(begun: _Beginning) -> str:
    where = f"from {begun.offset} on" if begun.offset >= 0 else "where nothing is committed"
    return f"{begun.who} has it {where}"
