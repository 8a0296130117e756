"""One bad request, or one attack, and what each kind of broker answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pykbroker.protocol.errors import ErrorCode

from .wire import Closed, Silent

CLOSED, SILENT = "connection closed", "no answer"

SceneT = TypeVar("SceneT")


class ComparedCase(Generic[SceneT]):
    """`run` asks and returns the answer; `ours` is set where pykbroker is meant to answer differently."""

    __slots__ = ()

    run: Callable[[SceneT], Any]
    kafka: Any
    ours: Any

    def expected(self, kind: str) -> Any:
        return self.ours if kind == "pykbroker" and self.ours is not None else self.kafka

    def answer(self, scene: SceneT) -> Any:
        try:
            return self.run(scene)
        except Closed:
            return CLOSED
        except Silent:
            return SILENT


def code(number: int) -> str:
    return ErrorCode(number).name
