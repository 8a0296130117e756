"""The content of a push: OpenTelemetry's `MetricsData`, read within bounds into series as Prometheus has them.

What is beyond a bound, or is no number, is left out and counted; what is no message at all is MalformedPush. The
library is imported with the first push, so all of this is for threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise
from math import inf, isfinite
from typing import TYPE_CHECKING, Final

from pykbroker.metric_labels import label

from .series import Labels, SeriesKey, SeriesKind, SeriesValue
from .series_names import label_name, series_name
from .wire_fields import FieldRoom, MalformedPush, length_delimited

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue
    from opentelemetry.proto.metrics.v1.metrics_pb2 import (
        ExponentialHistogramDataPoint,
        HistogramDataPoint,
        Metric,
        NumberDataPoint,
        SummaryDataPoint,
    )

_RESOURCE_METRICS: Final = 1
_RESOURCE: Final = 1
_SCOPE_METRICS: Final = 2
_METRICS: Final = 2
_MOST_RESOURCES: Final = 10_000
_MOST_SCOPES: Final = 64
_MOST_METRICS: Final = 10_000
_MOST_POINTS: Final = 20_000
_MOST_METRIC_BYTES: Final = 128 * 1024
_MOST_RESOURCE_BYTES: Final = 16 * 1024
_MOST_LABELS: Final = 16
_MOST_BUCKETS: Final = 64
_LONGEST_NAME: Final = 500
_DELTA: Final = 1


@dataclass(slots=True)
class Pushed:
    """The series of a push. left_out: how many series, or metrics, found no room."""

    series: dict[SeriesKey, SeriesValue] = field(default_factory=dict)
    left_out: int = 0


def read_push(data: bytes | bytearray | memoryview, wants: Callable[[str], bool], most_series: int) -> Pushed:
    """Read the series whose metrics are asked for. Raises MalformedPush."""
    pushed, reading = Pushed(), _Reading()
    for resource_labels, metric in _metrics(data, pushed, reading):
        if not wants(metric.name) or len(metric.name) > _LONGEST_NAME:
            continue
        for key, value in reading.series(metric, resource_labels):
            if len(pushed.series) >= most_series and key not in pushed.series:
                pushed.left_out += 1
                break
            pushed.series[key] = value
    pushed.left_out += reading.left_out
    return pushed


def _metrics(
    data: bytes | bytearray | memoryview, pushed: Pushed, reading: _Reading
) -> Iterator[tuple[dict[str, str], Metric]]:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource

    room, fields = _MOST_METRICS, FieldRoom()
    known: dict[bytes, dict[str, str]] = {}
    try:
        # Java's clients have a resource for each metric.
        for resource in islice(length_delimited(memoryview(data), _RESOURCE_METRICS, fields), _MOST_RESOURCES):
            about = bytes(next(length_delimited(resource, _RESOURCE, fields), b""))
            if about not in known:
                is_small = len(about) <= _MOST_RESOURCE_BYTES
                known[about] = reading.labels(Resource.FromString(about).attributes) if is_small else {}
            for scope in islice(length_delimited(resource, _SCOPE_METRICS, fields), _MOST_SCOPES):
                for metric in length_delimited(scope, _METRICS, fields):
                    room -= 1
                    if room < 0 or len(metric) > _MOST_METRIC_BYTES:
                        pushed.left_out += 1
                    else:
                        yield known[about], Metric.FromString(metric.tobytes())
                    if room < 0:
                        return
    except DecodeError as error:
        raise MalformedPush(str(error)) from None
    pushed.left_out += fields.left_out


class _Reading:
    """The reading of one push; texts that come again are kept once."""

    def __init__(self) -> None:
        self._label_names: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._room = _MOST_POINTS
        self.left_out = 0
        """Metrics whose points had no room."""

    def labels(self, attributes: Iterable[KeyValue]) -> dict[str, str]:
        """The labels of attributes that are texts, numbers or truths."""
        found: dict[str, str] = {}
        for each in islice(attributes, _MOST_LABELS):
            kind = each.value.WhichOneof("value")
            if kind not in ("string_value", "bool_value", "int_value", "double_value"):
                continue
            value = getattr(each.value, kind)
            name = self._label_names.get(each.key)
            if name is None:
                name = self._label_names[each.key] = label_name(each.key)
            text = label(str(value).lower() if kind == "bool_value" else str(value))
            found[name] = self._texts.setdefault(text, text)
        return found

    def series(self, metric: Metric, resource_labels: Mapping[str, str]) -> Iterator[tuple[SeriesKey, SeriesValue]]:
        what = metric.WhichOneof("data")
        if what is None:
            return
        self._room -= len(getattr(getattr(metric, what), "data_points", ()))
        if self._room < 0:
            self.left_out += 1
            return
        pushed_name = label(metric.name)
        pushed_name = self._texts.setdefault(pushed_name, pushed_name)
        match what:
            case "gauge":
                kind, values = SeriesKind.GAUGE, _numbers(metric.gauge.data_points, is_delta=False)
            case "sum":
                kind = SeriesKind.COUNTER if metric.sum.is_monotonic else SeriesKind.GAUGE
                values = _numbers(metric.sum.data_points, is_delta=metric.sum.aggregation_temporality == _DELTA)
            case "histogram":
                kind, is_delta = SeriesKind.HISTOGRAM, metric.histogram.aggregation_temporality == _DELTA
                values = _histograms(metric.histogram.data_points, is_delta=is_delta)
            case "exponential_histogram":
                kind, is_delta = SeriesKind.SUMMARY, metric.exponential_histogram.aggregation_temporality == _DELTA
                values = _sums(metric.exponential_histogram.data_points, is_delta=is_delta)
            case _:  # a summary; what a later release of the library knows besides has none
                kind, values = SeriesKind.SUMMARY, _sums(metric.summary.data_points, is_delta=False)
        name = series_name(metric.name, is_counter=kind is SeriesKind.COUNTER)
        name = self._texts.setdefault(name, name)
        for attributes, value in values:
            if kind is not SeriesKind.GAUGE and not 0 <= value.number < inf:
                continue  # what is counted cannot be less than nothing
            labels: Labels = tuple(sorted({**resource_labels, **self.labels(attributes)}.items()))
            yield SeriesKey(kind, name, labels, pushed_name), value


def _numbers(points: Iterable[NumberDataPoint], *, is_delta: bool) -> Iterator[tuple[Iterable[KeyValue], SeriesValue]]:
    for point in points:
        number = float(point.as_int) if point.WhichOneof("value") == "as_int" else point.as_double
        yield point.attributes, SeriesValue(number, is_delta=is_delta)


def _histograms(
    points: Iterable[HistogramDataPoint], *, is_delta: bool
) -> Iterator[tuple[Iterable[KeyValue], SeriesValue]]:
    """Histograms whose bounds ascend, and are as many as their buckets but one."""
    for point in points:
        if len(point.bucket_counts) > _MOST_BUCKETS:
            continue
        bounds, counts = tuple(point.explicit_bounds), tuple(point.bucket_counts) or (point.count,)
        ascend = all(map(isfinite, bounds)) and all(low < high for low, high in pairwise(bounds))
        if ascend and len(counts) == len(bounds) + 1:
            yield point.attributes, SeriesValue(point.sum, point.count, bounds, counts, is_delta)


def _sums(
    points: Iterable[ExponentialHistogramDataPoint | SummaryDataPoint], *, is_delta: bool
) -> Iterator[tuple[Iterable[KeyValue], SeriesValue]]:
    for point in points:
        yield point.attributes, SeriesValue(point.sum, point.count, is_delta=is_delta)
