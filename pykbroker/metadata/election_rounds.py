"""Rounds of elections by the controller itself: `maybeBalancePartitionLeaders`, `maybeElectUncleanLeaders`.

A round comes an interval after there was something to do for it first, and soon after one that left something. Kafka
waits for the next round when a topic allows unclean leaders at run time; here one follows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pykbroker.long_work import LongWork
from pykbroker.protocol.messages.metadata_records import ConfigRecord, PartitionChangeRecord
from pykbroker.protocol.schema import Message

from .controller_state import ControllerState
from .elect_leaders import MAX_ELECTIONS, elect_preferred, elect_unclean
from .elections import UNCLEAN

_SOON_MS = 10
"""Others get their turn between two rounds."""


@dataclass(slots=True)
class _Round:
    interval_ms: int
    has_work: Callable[[], bool]
    elect: Callable[[ControllerState], LongWork[list[PartitionChangeRecord]]]
    cause: str
    due_ms: int | None = None


class ElectionRounds:
    def __init__(self, state: ControllerState) -> None:
        config = state.config
        self._state = state
        self._unclean = _Round(
            config.int("unclean.leader.election.interval.ms"),
            lambda: bool(state.partitions.leaderless),
            elect_unclean,
            "unclean elections",
        )
        self._rounds = [self._unclean]
        if config.bool("auto.leader.rebalance.enable"):
            preferred = _Round(
                config.int("leader.imbalance.check.interval.seconds") * 1000,
                lambda: bool(state.partitions.imbalanced),
                elect_preferred,
                "leaders back to preferred replicas",
            )
            self._rounds.append(preferred)

    def stop(self) -> None:
        for each in self._rounds:
            each.due_ms = None

    def observe(self, record: Message, now_ms: int) -> None:
        """A record of this controller was replayed."""
        if isinstance(record, ConfigRecord) and record.name == UNCLEAN and self._unclean.has_work():
            self._unclean.due_ms = now_ms

    def next_deadline_ms(self, now_ms: int) -> int | None:
        """Return when a round is due. now_ms: when the controller was last asked for something."""
        for each in self._rounds:
            if not each.has_work():
                each.due_ms = None
            elif each.due_ms is None:
                each.due_ms = now_ms + each.interval_ms
        return min((each.due_ms for each in self._rounds if each.due_ms is not None), default=None)

    def run(self, now_ms: int) -> LongWork[tuple[Sequence[Message], str]]:
        """The first round that is due, with its cause."""
        for each in self._rounds:
            if each.due_ms is not None and each.due_ms <= now_ms:
                records = yield from each.elect(self._state)
                each.due_ms = now_ms + (_SOON_MS if len(records) == MAX_ELECTIONS else each.interval_ms)
                return records, each.cause
        return [], ""
