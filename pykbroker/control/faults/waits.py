"""The waits of requests and answers that faults hold back: bounded in number and bytes, and ended from outside.

A wait ends when its time is over or its barrier is met, and besides

- when the rule that asked for it is removed; one that is removed already waits for nothing;
- when the broker needs the memory of a request, or the client of an answer has left. A request whose client has left
  goes on waiting: it has been sent, and is carried out when its time comes, as one that was slow on its way;
- when the node stops, which waits for nobody.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

import trio

from pykbroker.server.network.handlers import ConnectionState

from .condition import Condition
from .rule import Held, Rule

MOST_WAITS: Final = 1000
MOST_BYTES: Final = 64 * 1024 * 1024


class End(Enum):
    """The reason why a wait is over."""

    TIME = auto()
    MET = auto()
    """What the barrier waits for has happened."""
    REMOVED = auto()
    """The rule is no more."""
    NO_ROOM = auto()
    """There was no wait: too much waits already."""
    LET_GO = auto()
    """For the memory's sake, or because the client has left."""
    STOPPED = auto()


class Waits:
    """The waits of one start of a node."""

    def __init__(self) -> None:
        self._waiting: dict[_Wait, None] = {}
        self._bytes = 0
        self._is_stopped = False

    def __len__(self) -> int:
        return len(self._waiting)

    def stop(self) -> None:
        """End all waits, those to come as well."""
        self._is_stopped = True
        for wait in list(self._waiting):
            wait.end(End.STOPPED)

    def let_go(self, rule: Rule) -> None:
        """End the waits of a rule."""
        for wait in list(self._waiting):
            if wait.rule is rule:
                wait.end(End.REMOVED)

    async def wait(
        self, rule: Rule, connection: ConnectionState, held: Held, size: int, time_ms: float, until: Condition | None
    ) -> End:
        """Wait, and return why it is over. size: the bytes that are kept meanwhile."""
        if rule.is_removed:
            return End.REMOVED
        if until is not None and until.is_met:
            return End.MET
        if self._is_stopped:
            return End.STOPPED
        if held is Held.ANSWER and connection.has_left:
            return End.LET_GO
        if len(self._waiting) >= MOST_WAITS or self._bytes + size > MOST_BYTES:
            return End.NO_ROOM
        wait = _Wait(rule)
        if until is not None:
            until.when_met.append(wait.met)
        self._waiting[wait] = None
        self._bytes += size
        connection.give_up, connection.outlives_client = wait.give_up, held is Held.REQUEST
        try:
            with trio.move_on_after(time_ms / 1000):
                await wait.is_over.wait()
        finally:
            connection.give_up, connection.outlives_client = None, False
            self._bytes -= size
            del self._waiting[wait]
            if until is not None and wait.met in until.when_met:
                until.when_met.remove(wait.met)
        return wait.why


class _Wait:
    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.is_over = trio.Event()
        self.why = End.TIME

    def end(self, why: End) -> None:
        if not self.is_over.is_set():
            self.why = why
            self.is_over.set()

    def met(self) -> None:
        self.end(End.MET)

    def give_up(self) -> None:
        self.end(End.LET_GO)
