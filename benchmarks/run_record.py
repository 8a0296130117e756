"""What a run has measured so far, as the results that it leaves (`benchmarks/results.py`)."""

from __future__ import annotations

import inspect
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.bench import Scene
from benchmarks.brokers import KINDS
from benchmarks.clusters import ClusterScene
from benchmarks.machine import commit, this_machine, versions
from benchmarks.produce_matrix import MATRIX
from benchmarks.report import MATRIX_MEDIAN, TARGETS, Results, Target
from benchmarks.results import (
    VERSION,
    Machine,
    ProfileResult,
    Row,
    RunResults,
    TargetResult,
    finite,
    spread,
    write_results,
)

_MATRIX_FIGURE = "median of MB/s"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Collects what a run measures, and writes it as often as it is asked to.

    rounds: as many as were asked for. results: by a broker's kind, filled by the run. profiles: by measure.
    """

    rounds: int
    scale: float
    began: str
    commit: str
    versions: Mapping[str, str]
    machine: Machine
    results: Mapping[str, Results] = field(default_factory=lambda: {kind.kind: {} for kind in KINDS})
    profiles: dict[str, list[ProfileResult]] = field(default_factory=dict)

    @classmethod
    def of_this_machine(cls, rounds: int, scale: float, java: str) -> RunRecord:
        return cls(rounds, scale, _now(), commit(), versions(java), this_machine())

    def so_far(self, scenes: Mapping[str, Scene | ClusterScene]) -> RunResults:
        rows = [
            self._row(name, measure, step)
            for name, scene in scenes.items()
            for measure, step in scene.measures.items()
            if any(measure in results for results in self.results.values())
        ]
        return RunResults(
            VERSION, self.began, _now(), self.rounds, self.scale, self.commit, dict(self.versions), self.machine,
            (*rows, *_matrix_medians(rows)),
        )  # fmt: skip

    def write(self, path: Path, scenes: Mapping[str, Scene | ClusterScene]) -> None:
        write_results(self.so_far(scenes), path)

    def _row(self, scene: str, measure: str, step: Callable[[Any], Any]) -> Row:
        ours, theirs = (tuple(map(finite, results.get(measure, []))) for results in self.results.values())
        return Row(
            scene, measure, _about(step), ours, theirs, targets_of(measure, ours, theirs, TARGETS),
            tuple(self.profiles.get(measure, [])),
        )  # fmt: skip


def targets_of(
    measure: str,
    ours: Sequence[Mapping[str, float]],
    theirs: Sequence[Mapping[str, float]],
    targets: Mapping[tuple[str, str], Target],
) -> tuple[TargetResult, ...]:
    """The targets of a measure's figures, with verdicts on the medians. A ratio to nothing is 0, as in the table."""
    found = []
    for figure in dict.fromkeys(name for each in ours for name in each):
        target = targets.get((measure, figure))
        our, their = spread(ours, figure), spread(theirs, figure)
        if target is not None and our is not None:
            is_met = target.met(our.median, their.median if their is not None else 0.0)
            found.append(_target_result(figure, target, is_met))
    return tuple(found)


def _target_result(figure: str, target: Target, is_met: bool) -> TargetResult:
    return TargetResult(figure, target.ratio, target.absolute, target.higher, "reached" if is_met else "falls short")


def _matrix_medians(rows: Sequence[Row]) -> list[Row]:
    """The one figure that is of many measures: the median of the ratios of the matrix's cells."""
    cells = [(spread(row.ours, "MB/s"), spread(row.theirs, "MB/s")) for row in rows if row.measure in MATRIX]
    ratios = [ours.median / theirs.median for ours, theirs in cells if ours and theirs and theirs.median]
    if not ratios:
        return []
    median = statistics.median(ratios)
    target = _target_result(_MATRIX_FIGURE, MATRIX_MEDIAN, MATRIX_MEDIAN.met(median, 1.0))
    return [
        Row(
            "matrix", "produce, all cells", "The median of all cells' ratios, Apache Kafka's being 1.",
            ({_MATRIX_FIGURE: median},), ({_MATRIX_FIGURE: 1.0},), (target,), (),
        )
    ]  # fmt: skip


def _about(step: Callable[[Any], Any]) -> str:
    """The first paragraph of a measure's docstring, on one line."""
    return " ".join((inspect.getdoc(step) or "").split("\n\n")[0].split())


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
