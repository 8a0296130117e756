"""The metrics that clients have pushed of themselves (KIP-714), as families of prometheus_client.

Clients choose the names and types, so that two families may want the same name for a sample. The page would be none
that Prometheus reads: whoever pushed the name first has it, and the other family is not shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.utils import floatToGoString

from pykbroker.telemetry.pushed_metrics import ClientSeries
from pykbroker.telemetry.series import SeriesKey, SeriesKind, SeriesValue

_ENDINGS: Final = {
    SeriesKind.GAUGE: ("",),
    SeriesKind.COUNTER: ("", "_total", "_created"),
    SeriesKind.HISTOGRAM: ("", "_bucket", "_count", "_sum", "_created"),
    SeriesKind.SUMMARY: ("", "_count", "_sum", "_created"),
}
"""What a family of each type makes names of, behind its own."""


def client_families(clients: Sequence[ClientSeries]) -> Iterator[Family]:
    """Yield a family for each name and type, with the series of all clients."""
    series: dict[tuple[str, SeriesKind], list[tuple[ClientSeries, SeriesKey, SeriesValue]]] = {}
    for client in clients:
        for key, value in client.series.items():
            series.setdefault((key.name, key.kind), []).append((client, key, value))
    taken: set[str] = set()
    for (name, kind), rows in series.items():
        names = {name + ending for ending in _ENDINGS[kind]}
        if taken.isdisjoint(names):
            taken |= names
            yield _family(name, kind, rows)


def _family(name: str, kind: SeriesKind, rows: Sequence[tuple[ClientSeries, SeriesKey, SeriesValue]]) -> Family:
    family = Family(name, f"Pushed by clients as {rows[0][1].pushed_name}", kind.value)
    for client, key, value in rows:
        labels = dict((*key.labels, *client.labels))
        match kind:
            case SeriesKind.GAUGE:
                family.add_sample(name, labels, value.number)
            case SeriesKind.COUNTER:
                family.add_sample(f"{name}_total", labels, value.number)
            case SeriesKind.HISTOGRAM:
                bounds = [*map(floatToGoString, value.bounds), "+Inf"]
                counts = list(accumulate(value.counts))
                for bound, count in zip(bounds, counts, strict=True):
                    family.add_sample(f"{name}_bucket", {**labels, "le": bound}, count)
                family.add_sample(f"{name}_count", labels, counts[-1])
                family.add_sample(f"{name}_sum", labels, value.number)
            case SeriesKind.SUMMARY:
                family.add_sample(f"{name}_count", labels, value.count)
                family.add_sample(f"{name}_sum", labels, value.number)
    return family
