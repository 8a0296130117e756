"""A run that follows: what it outlives, and what ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat

import pytest

from pykbroker.spark import following
from pykbroker.spark.errors import (
    ClusterUnavailable,
    JobFailed,
    NotAllowed,
    PipelineError,
    RecordsLost,
    TakenOver,
    WriteFailed,
)
from pykbroker.spark.following import follow


class Ended(Exception):
    """What ends a run here."""


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses in seconds, none of which is made."""
    found: list[float] = []
    monkeypatch.setattr(following.time, "sleep", found.append)
    return found


def step_of(outcomes: Iterator[Exception | None], log: list[str], name: str) -> Callable[[], None]:
    def step() -> None:
        log.append(name)
        outcome = next(outcomes)
        if outcome is not None:
            raise outcome

    return step


def run(*outcomes: Exception | None) -> tuple[list[str], list[str]]:
    """The steps, and what was said. The outcomes are those of all steps, in their order."""
    log: list[str] = []
    lines: list[str] = []
    each = iter(outcomes)
    with pytest.raises(type(outcomes[-1])):
        follow(*(step_of(each, log, name) for name in ("first", "step", "resume")), 5.0, lines.append)
    return log, lines


def test_a_cluster_may_be_away_for_hours(pauses: list[float]) -> None:
    """Also where the first that is noticed is a job or a write that fails."""
    away = [JobFailed("broken off"), *repeat(ClusterUnavailable("no answer"), 200), WriteFailed("timed out"), None]
    log, lines = run(None, *away, Ended())
    assert log == ["first", "step", *["resume"] * 202, "step"]
    assert sum(pauses) > 3 * 3600
    assert max(pauses) == 60
    assert lines[1] == "no answer; the next try is in 2 s"


@pytest.mark.parametrize("error", [JobFailed("again"), WriteFailed("again")])
def test_what_fails_while_the_cluster_is_there_ends_a_run(pauses: list[float], error: PipelineError) -> None:
    log, _ = run(None, error, error, ClusterUnavailable("no answer"), *[error] * 5)
    assert log == ["first", "step", *["resume"] * 7]
    assert pauses == [5, 1, 2, 4, 8, 16, 32, 60]


@pytest.mark.parametrize("error", [TakenOver("by another run"), RecordsLost("gone"), NotAllowed("denied")])
def test_what_no_further_try_can_help(pauses: list[float], error: PipelineError) -> None:
    log, lines = run(error)
    assert (log, lines, pauses) == (["first"], [], [])
