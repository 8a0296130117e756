"""The values of one scrape, by metric, as they were read in the node's loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pykbroker.server.runtime.histogram import Histogram

from .catalog import METRICS, Kind, Metric

if TYPE_CHECKING:
    from pykbroker.telemetry.pushed_metrics import ClientSeries

Labels = tuple[str, ...]


class Readings:
    """Values by metric and labels. A metric without labels that nobody reads is not shown."""

    def __init__(self) -> None:
        self.values: dict[str, list[tuple[Labels, float]]] = {}
        self.summaries: dict[str, list[tuple[Labels, int, float]]] = {}
        self.histograms: dict[str, list[tuple[Labels, Histogram]]] = {}
        self.clients: Sequence[ClientSeries] = ()
        """The series that clients have pushed; nobody changes them any more."""

    def add(self, name: str, value: float, *labels: str) -> None:
        self.of(name).append((labels, value))

    def of(self, name: str) -> list[tuple[Labels, float]]:
        """Return the values of a metric, for who has many to add."""
        found = self.values.get(name)
        if found is None:
            assert _metric(name).kind in (Kind.COUNTER, Kind.GAUGE), f"{name} is no single value"
            found = self.values[name] = []
        return found

    def add_summary(self, name: str, count: int, total: float, *labels: str) -> None:
        assert _metric(name).kind is Kind.SUMMARY, f"{name} is no summary"
        self.summaries.setdefault(name, []).append((labels, count, total))

    def add_histogram(self, name: str, histogram: Histogram, *labels: str) -> None:
        """Take the times as they are now."""
        assert _metric(name).kind is Kind.HISTOGRAM, f"{name} is no histogram"
        self.histograms.setdefault(name, []).append((labels, histogram.copy()))


def _metric(name: str) -> Metric:
    return METRICS[name]
