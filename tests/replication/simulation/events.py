"""What happens when: a heap of events, and processes whose plans die with them."""

from __future__ import annotations

import heapq
from collections.abc import Callable

Action = Callable[[], None]


class Events:
    """Virtual time in milliseconds. Of two events at one time the one that was planned first comes first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Action]] = []
        self._planned = 0
        self.now_ms = 0.0

    def after(self, delay_ms: float, action: Action) -> None:
        self._planned += 1
        heapq.heappush(self._heap, (self.now_ms + delay_ms, self._planned, action))

    def step(self) -> None:
        self.now_ms, _, action = heapq.heappop(self._heap)
        action()


class Process:
    """One that can die and come again, or be paused: whatever reaches it then happens when it goes on."""

    def __init__(self, name: str, events: Events) -> None:
        self.name = name
        self.events = events
        self.is_up = False
        self.is_paused = False
        self._incarnation = 0
        self._held: list[Action] = []

    def begin(self) -> None:
        self._incarnation += 1
        self.is_up = True

    def end(self) -> None:
        self._incarnation += 1
        self.is_up = self.is_paused = False
        self._held = []

    def later(self, delay_ms: float, action: Action) -> None:
        """Unless it is another process by then."""
        self.events.after(delay_ms, self.bound(action))

    def bound(self, action: Action) -> Action:
        """The action as one of this process, which may have ended when it is due."""
        incarnation = self._incarnation

        def act() -> None:
            if self._incarnation != incarnation:
                return
            if self.is_paused:
                self._held.append(act)
            else:
                action()

        return act

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        held, self._held = self._held, []
        for act in held:
            self.events.after(0, act)
