"""The verdict on each round's history, in a process of its own, whose memory goes with it. The next round runs
meanwhile.
"""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.history.check import check
from tests.history.findings import Report
from tests.history.operations import parse_history

from .apart import gather


@dataclass(frozen=True, slots=True)
class Verdict:
    """acknowledged: how many records somebody was told to be stored. text: the report, figures and anomalies."""

    path: Path
    is_good: bool
    operations: int
    acknowledged: int
    text: str


def judge(path: Path) -> Verdict:
    """Raises MalformedHistory."""
    gather(path)
    with path.open(encoding="utf-8") as lines:
        operations = parse_history(lines)
    report: Report = check(operations)
    acknowledged = sum(send.offset is not None for each in operations if each.outcome == "ok" for send in each.sends)
    return Verdict(path, not report.bad, report.operations, acknowledged, f"{report}")


class Judge:
    """A context manager. Histories are judged one by one; a good one is packed, or removed where nobody keeps it."""

    def __init__(self, *, keeps: bool) -> None:
        self._keeps = keeps
        self._process = ProcessPoolExecutor(
            1, mp_context=get_context("spawn"), initializer=os.nice, initargs=(10,), max_tasks_per_child=1
        )
        self._under_way: list[Future[Verdict]] = []
        self.verdicts: list[Verdict] = []

    def submit(self, path: Path) -> None:
        self._under_way.append(self._process.submit(judge, path))

    def ready(self) -> Iterator[Verdict]:
        """Yield the verdicts that nobody has heard yet."""
        while self._under_way and self._under_way[0].done():
            yield self._next()

    def rest(self) -> Iterator[Verdict]:
        """Wait for all verdicts, and yield those that nobody has heard yet."""
        while self._under_way:
            yield self._next()

    def _next(self) -> Verdict:
        verdict = self._under_way.pop(0).result()
        self.verdicts.append(verdict)
        if verdict.is_good:
            self._put_away(verdict.path)
        return verdict

    def _put_away(self, path: Path) -> None:
        if self._keeps:
            with path.open("rb") as plain, gzip.open(path.with_suffix(".jsonl.gz"), "wb") as packed:
                shutil.copyfileobj(plain, packed)
        path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.shutdown(wait=kind is None, cancel_futures=True)
