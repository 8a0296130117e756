"""How much of some work is done within one step of a task, where its time would say little."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio


class WorkPerStep(trio.abc.Instrument):
    """Counts the calls of some functions, each by itself, between two steps of the event loop's tasks.

    at_least: how often each is called while somebody watches. most: how often within one step.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, at_least: int, most: int) -> None:
        self._monkeypatch = monkeypatch
        self._at_least = at_least
        self._most = most
        self._now: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.total: dict[str, int] = {}

    def count(self, owner: Any, name: str) -> None:
        called = getattr(owner, name)

        def counted(*args: Any, **values: Any) -> Any:
            self._now[name] = self._now.get(name, 0) + 1
            self.most[name] = max(self.most.get(name, 0), self._now[name])
            self.total[name] = self.total.get(name, 0) + 1
            return called(*args, **values)

        self._monkeypatch.setattr(owner, name, counted)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._now.clear()

    @contextmanager
    def watching(self, *, at_least: int | None = None) -> Iterator[None]:
        """Within a Trio program: the functions are called as often as they should be."""
        wanted = self._at_least if at_least is None else at_least
        self.most.clear()
        self.total.clear()
        self._now.clear()
        trio.lowlevel.add_instrument(self)
        try:
            yield
        finally:
            trio.lowlevel.remove_instrument(self)
        assert all(count >= wanted for count in self.total.values()), self.total
        assert max(self.most.values()) <= self._most, self.most
