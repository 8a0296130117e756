"""Messages between processes: lost, late, twice, in another order, or cut off in one direction."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from .events import Action, Events, Process

Reply = Callable[[Any], None]
REFUSED_AFTER_MS = 1.0


class Wires:
    """loss, duplication: shares of all messages. A message in ten is ten times as late as the others."""

    def __init__(
        self, events: Events, rng: random.Random, *, longest_delay_ms: float, loss: float, duplication: float
    ) -> None:
        self._events = events
        self._rng = rng
        self.longest_delay_ms = longest_delay_ms
        self.loss = loss
        self.duplication = duplication
        self.cuts: set[tuple[str, str]] = set()

    def heal(self) -> None:
        self.cuts.clear()
        self.loss = self.duplication = 0.0

    def send(self, source: str, target: str, deliver: Action) -> None:
        if (source, target) in self.cuts or self._rng.random() < self.loss:
            return
        self._events.after(self._delay_ms(), deliver)
        if self._rng.random() < self.duplication:
            self._events.after(self._delay_ms() * 5, deliver)

    def _delay_ms(self) -> float:
        delay = self._rng.uniform(0.05, self.longest_delay_ms)
        return delay * 10 if self._rng.random() < 0.1 else delay

    def ask(
        self,
        source: Process,
        target: Process,
        handle: Callable[[Reply], None],
        *,
        answered: Callable[[Any], None],
        failed: Action,
        timeout_ms: float,
    ) -> None:
        """handle: what the target does, which replies now or later. Either `answered` or `failed` is called, once."""
        outcome: list[Action] = []

        def end() -> None:
            if outcome and not is_over:
                is_over.append(True)
                outcome[0]()

        is_over: list[bool] = []
        end_of_source = source.bound(end)

        def conclude(action: Action) -> None:
            if not outcome:
                outcome.append(action)
            end_of_source()

        def arrive() -> None:
            if target.is_up:
                target.bound(lambda: handle(reply))()
            else:
                self.send(target.name, source.name, lambda: conclude(failed))

        def reply(answer: Any) -> None:
            self.send(target.name, source.name, lambda: conclude(lambda: answered(answer)))

        self._events.after(timeout_ms, lambda: conclude(failed))
        self.send(source.name, target.name, arrive)
