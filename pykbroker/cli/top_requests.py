"""Requests and their latency, as brokers tell them at their `/metrics`, in Prometheus' text format.

The parser is that of the official client library; without it, or without an address, a line says so. The names are
those that JMX exporters give to the MBeans `kafka.network:type=RequestMetrics`, here and on Apache Kafka.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import trio

from .command import CommandFailed

if TYPE_CHECKING:
    from prometheus_client.samples import Sample as MetricSample

DEFAULT_URL: Final = "http://127.0.0.1:9480/metrics"
_LARGEST_ANSWER_BYTES: Final = 32 << 20
_LONGEST_REASON: Final = 200
_LOOPBACK: Final = ("127.", "localhost", "[::1]", "::1")
_COUNT: Final = re.compile(r"kafka_network_requestmetrics_requests_?per_?sec(_total|_count)?")
_TIME: Final = re.compile(r"kafka_network_requestmetrics_total_?time_?(ms|seconds)")
_MEDIAN: Final = ("0.5", "0.50")
_P99: Final = ("0.99",)


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One API. Rates are of all brokers together, percentiles those of the slowest broker."""

    api: str
    per_s: float | None
    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True)
class RequestTotals:
    """The counts and percentiles by API that one address told at one time."""

    at_s: float
    counts: dict[str, float] = field(default_factory=dict)
    p50_ms: dict[str, float] = field(default_factory=dict)
    p99_ms: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestView:
    """The requests of all brokers. problems: a line for each address that told nothing."""

    rows: tuple[RequestRow, ...] = ()
    problems: tuple[str, ...] = ()


def metrics_urls(given: str | None, bootstrap_server: str) -> tuple[str, ...]:
    """The addresses to ask: those given, or the default one of a broker on this machine. Raises CommandFailed."""
    if given is None:
        return (DEFAULT_URL,) if bootstrap_server.lower().startswith(_LOOPBACK) else ()
    urls = tuple(each.strip() for each in given.split(",") if each.strip())
    for url in urls:
        if not _is_http(url):
            raise CommandFailed(f"--metrics-url '{url}' is no http address")
    return urls


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


class RequestMetrics:
    """The addresses are asked again at each look, all at once; what they told the last time is kept."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls
        self._before: dict[str, RequestTotals] = {}

    async def look(self, limit_s: float) -> RequestView:
        if not self._urls:
            return RequestView(problems=("requests: no metrics URL (--metrics-url)",))
        try:
            import prometheus_client.parser  # noqa: F401
        except ImportError:
            return RequestView(problems=("requests: pip install 'pykbroker[metrics]' to see them",))
        found: dict[str, RequestTotals] = {}
        problems: list[str] = []
        async with trio.open_nursery() as nursery:
            for url in self._urls:
                nursery.start_soon(self._ask, url, limit_s, found, problems)
        rows = tuple(_rows(self._before, found))
        self._before = found
        return RequestView(rows, tuple(sorted(problems)))

    async def _ask(self, url: str, limit_s: float, found: dict[str, RequestTotals], problems: list[str]) -> None:
        with trio.move_on_after(limit_s):
            try:
                text = await trio.to_thread.run_sync(partial(_fetch, url, limit_s), abandon_on_cancel=True)
                found[url] = await trio.to_thread.run_sync(
                    partial(totals_of, text, trio.current_time()), abandon_on_cancel=True
                )
            except (OSError, ValueError) as error:
                problems.append(f"requests: {url}: {_why(error)}")
            return
        problems.append(f"requests: {url}: no answer within {limit_s:g} s")


def _fetch(url: str, limit_s: float) -> str:
    """Raises OSError, ValueError."""
    from http.client import HTTPException
    from urllib.request import ProxyHandler, build_opener

    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(url, timeout=limit_s) as response:
            data = response.read(_LARGEST_ANSWER_BYTES + 1)
    except HTTPException as error:
        raise OSError(f"no answer of HTTP ({type(error).__name__})") from None
    if len(data) > _LARGEST_ANSWER_BYTES:
        raise ValueError(f"more than {_LARGEST_ANSWER_BYTES >> 20} MB")
    return str(data, "utf-8", "replace")


def _why(error: OSError | ValueError) -> str:
    cause = getattr(error, "reason", error)
    text = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    return " ".join(str(text).split())[:_LONGEST_REASON]


def totals_of(text: str, at_s: float) -> RequestTotals:
    """Raises ValueError where the text is not Prometheus' format."""
    from prometheus_client.parser import text_string_to_metric_families

    totals = RequestTotals(at_s)
    for family in text_string_to_metric_families(text):
        if family.name.startswith("kafka_network_requestmetrics_"):
            for sample in family.samples:
                _take(sample, totals)
    return totals


def _take(sample: MetricSample, totals: RequestTotals) -> None:
    api = sample.labels.get("request") or sample.labels.get("api")
    if not api or not math.isfinite(sample.value):
        return
    if _COUNT.fullmatch(sample.name):
        # Counts of an API's versions stand apart.
        totals.counts[api] = totals.counts.get(api, 0.0) + sample.value
        return
    unit = _TIME.fullmatch(sample.name)
    quantile = sample.labels.get("quantile")
    if unit is None or quantile is None:
        return
    value_ms = sample.value * 1000 if unit[1] == "seconds" else sample.value
    for quantiles, values in ((_MEDIAN, totals.p50_ms), (_P99, totals.p99_ms)):
        if quantile in quantiles:
            values[api] = max(value_ms, values.get(api, 0.0))


def _rows(before: dict[str, RequestTotals], now: dict[str, RequestTotals]) -> Iterable[RequestRow]:
    apis = {api for totals in now.values() for api in (*totals.counts, *totals.p99_ms)}
    for api in sorted(apis):
        rates = [_rate(before.get(url), totals, api) for url, totals in now.items()]
        known = [each for each in rates if each is not None]
        yield RequestRow(
            api,
            sum(known) if known else None,
            max((each.p50_ms[api] for each in now.values() if api in each.p50_ms), default=None),
            max((each.p99_ms[api] for each in now.values() if api in each.p99_ms), default=None),
        )


def _rate(before: RequestTotals | None, now: RequestTotals, api: str) -> float | None:
    """Requests a second; None for the first time, and where the broker has begun to count anew."""
    if before is None or now.at_s <= before.at_s:
        return None
    growth = now.counts.get(api, 0.0) - before.counts.get(api, 0.0)
    return growth / (now.at_s - before.at_s) if growth >= 0 else None
