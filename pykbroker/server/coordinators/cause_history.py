"""The history of causes: what has become of each group and transactional id lately, why, and at whose request.

The causes are those of the state machines' steps. The history answers who asks why (`pykbroker.control.why`); nothing
else depends on it. It is bounded in groups, in steps of a group and in characters, goes with its group, and with the
shard when another broker leads it, or its log is read again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from pykbroker.state_machine import Cause, CauseKind, CoordinatorContext

from ..runtime.causes import current_cause

MOST_KEYS: Final = 1_000
MOST_TRANSITIONS: Final = 32
MOST_REBALANCES: Final = 16
"""Rebalances are kept besides, so that the steps of many members do not push them out."""
MOST_CHARACTERS: Final = 500
"""Of one cause."""
MOST_CHARACTERS_OF_STEP: Final = 1_500
"""Of all causes of a step; those that come behind are left out, and their number is told."""
MOST_CHARACTERS_OF_ALL: Final = 4 * 1024 * 1024
"""Of all groups or transactional ids together; those without news for longest go first."""
_NAME_CHARACTERS: Final = 250


class Origin(NamedTuple):
    """The request of a step: nothing of it where time or the metadata brought the step about.

    request_number: of the journal (`runtime.causes`), 0 where nobody numbers requests.
    """

    api: str = ""
    member_id: str = ""
    client_id: str = ""
    client_host: str = ""
    principal: str = ""
    request_number: int = 0


NOBODY: Final = Origin()


class Transition(NamedTuple):
    """One step of a group or transactional id.

    timestamp_ms: by the wall clock. causes: in the order of the step. rebalance: why a rebalance began with the step;
    empty where none did.
    """

    timestamp_ms: int
    causes: tuple[str, ...]
    rebalance: str
    origin: Origin

    @property
    def characters(self) -> int:
        origin = self.origin
        names = len(origin.member_id) + len(origin.client_id) + len(origin.principal)
        return sum(map(len, self.causes)) + len(self.rebalance) + names


def origin_of(request: object, context: object) -> Origin:
    """Return who asked for a step."""
    if not isinstance(context, CoordinatorContext):
        return NOBODY
    member_id = getattr(request, "member_id", "")
    return Origin(
        type(request).__name__.removesuffix("Request"),
        member_id[:_NAME_CHARACTERS] if isinstance(member_id, str) else "",
        context.client_id[:_NAME_CHARACTERS],
        context.client_host,
        context.principal[:_NAME_CHARACTERS],
        current_cause(),
    )


class Asked(NamedTuple):
    """The request of a step, whose origin is looked at where the step brings anything about."""

    request: Any
    context: Any


class _Lately:
    __slots__ = ("characters", "place", "rebalances", "transitions")

    def __init__(self, place: int) -> None:
        self.place = place
        self.characters = 0
        self.transitions: deque[Transition] = deque(maxlen=MOST_TRANSITIONS)
        self.rebalances: deque[Transition] = deque(maxlen=MOST_REBALANCES)

    def add(self, transition: Transition) -> None:
        for steps in (self.transitions, self.rebalances) if transition.rebalance else (self.transitions,):
            if len(steps) == steps.maxlen:
                self.characters -= steps[0].characters
            steps.append(transition)
            self.characters += transition.characters


class CauseHistory:
    """The history of one coordinator. most_keys: groups or transactional ids; those without news for longest go.
    most_characters: of all of them.
    """

    def __init__(self, most_keys: int = MOST_KEYS, most_characters: int = MOST_CHARACTERS_OF_ALL) -> None:
        self._most_keys = most_keys
        self._most_characters = most_characters
        self._characters = 0
        self._by_key: dict[str, _Lately] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def keep(self, place: int, causes: Sequence[Cause], origin: Origin, timestamp_ms: int) -> None:
        """Keep a step's causes. place: the partition in which the groups or ids live."""
        for key, of_key in _by_key(causes).items():
            lately = self._take_out(key)
            if any(cause.kind is CauseKind.END for cause in of_key):
                continue
            if lately is None:
                lately = _Lately(place)
            lately.add(Transition(timestamp_ms, _words(of_key), _rebalance(of_key), origin))
            self._by_key[key] = lately  # the newest last
            self._characters += lately.characters
        while len(self._by_key) > self._most_keys or self._characters > self._most_characters:
            self._take_out(next(iter(self._by_key)))

    def _take_out(self, key: str) -> _Lately | None:
        lately = self._by_key.pop(key, None)
        if lately is not None:
            self._characters -= lately.characters
        return lately

    def transitions(self, key: str) -> Sequence[Transition]:
        """Return the last steps of a group or transactional id, the newest last."""
        lately = self._by_key.get(key)
        return () if lately is None else tuple(lately.transitions)

    def rebalances(self, key: str) -> Sequence[Transition]:
        """Return the last steps that began a rebalance."""
        lately = self._by_key.get(key)
        return () if lately is None else tuple(lately.rebalances)

    def forget(self, place: int) -> None:
        """Forget what lives in a partition, which is led elsewhere from now on."""
        for key in [key for key, lately in self._by_key.items() if lately.place == place]:
            self._take_out(key)


def _words(causes: Sequence[Cause]) -> tuple[str, ...]:
    """Return the causes of a step, as many as are kept."""
    words: list[str] = []
    left = MOST_CHARACTERS_OF_STEP
    for number, cause in enumerate(causes):
        text = cause.words[:MOST_CHARACTERS]
        left -= len(text)
        if left < 0:
            return (*words, f"and {len(causes) - number} more")
        words.append(text)
    return tuple(words)


def _rebalance(causes: Sequence[Cause]) -> str:
    """Return why a rebalance began: what stands before it in the step, or else behind its own colon."""
    for number, cause in enumerate(causes):
        if cause.kind is CauseKind.REBALANCE:
            before = "; ".join(each.words for each in causes[:number])
            return (before or cause.words.partition(": ")[2] or cause.words)[:MOST_CHARACTERS]
    return ""


def _by_key(causes: Sequence[Cause]) -> Mapping[str, Sequence[Cause]]:
    if len(causes) == 1:
        return {causes[0].key: causes}
    by_key: dict[str, list[Cause]] = {}
    for cause in causes:
        by_key.setdefault(cause.key, []).append(cause)
    return by_key
