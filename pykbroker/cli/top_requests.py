"""Requests and their latency, as brokers tell them at their `/metrics`, in Prometheus' text format.

The parser is that of the official client library; without it, or without an address, a line says so. The names are
those of `docs/metrics.md`, and those that JMX exporters give to the same MBeans (`kafka.network:type=RequestMetrics`)
of Apache Kafka. Latencies are of the last interval where there are buckets to count in; quantiles that are ready are of
whatever time the exporter takes.
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
_COUNT: Final = re.compile(r"kafka_network_requestmetrics_requests(_?per_?sec)?(_total|_count)?")
_TIME: Final = re.compile(r"kafka_network_requestmetrics_total_?time_?ms(_bucket)?")
_BUILD: Final = "pykbroker_build_info"


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One API. Rates are of all brokers together."""

    api: str
    per_s: float | None
    p50_ms: float | None
    p99_ms: float | None


Buckets = dict[float, float]
"""Counts of requests that took no longer, by milliseconds."""


@dataclass(slots=True)
class RequestTotals:
    """The counts and latencies by API that one address told at one time. cluster_id: None where it does not tell."""

    at_s: float
    cluster_id: str | None = None
    counts: dict[str, float] = field(default_factory=dict)
    buckets: dict[str, Buckets] = field(default_factory=dict)
    quantiles_ms: dict[tuple[str, float], float] = field(default_factory=dict)


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

    async def look(self, limit_s: float, cluster_id: str | None) -> RequestView:
        """Return the requests of this cluster; an address of another one tells nothing."""
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
        for url, totals in list(found.items()):
            if None not in (totals.cluster_id, cluster_id) and totals.cluster_id != cluster_id:
                problems.append(f"requests: {url} is of another cluster, {totals.cluster_id}")
                del found[url]
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
        if family.name == _BUILD:
            totals.cluster_id = next((each.labels.get("cluster_id") for each in family.samples), None)
        elif family.name.startswith("kafka_network_requestmetrics_"):
            for sample in family.samples:
                _take(sample, totals)
    return totals


def _take(sample: MetricSample, totals: RequestTotals) -> None:
    api = sample.labels.get("request")
    if not api or not math.isfinite(sample.value):
        return
    if _COUNT.fullmatch(sample.name):
        # Counts of an API's versions stand apart.
        totals.counts[api] = totals.counts.get(api, 0.0) + sample.value
        return
    time = _TIME.fullmatch(sample.name)
    bound = sample.labels.get("le" if time is not None and time[1] else "quantile")
    if time is None or bound is None:
        return
    if time[1]:
        totals.buckets.setdefault(api, {})[float(bound)] = sample.value
    else:
        totals.quantiles_ms[api, float(bound)] = sample.value


def _rows(before: dict[str, RequestTotals], now: dict[str, RequestTotals]) -> Iterable[RequestRow]:
    for api in sorted({api for totals in now.values() for api in totals.counts}):
        rates = [_rate(before.get(url), totals, api) for url, totals in now.items()]
        known = [each for each in rates if each is not None]
        buckets = _sum([_grown(before.get(url), totals, api) for url, totals in now.items()])
        yield RequestRow(
            api, sum(known) if known else None, _quantile(0.5, api, buckets, now), _quantile(0.99, api, buckets, now)
        )


def _grown(before: RequestTotals | None, now: RequestTotals, api: str) -> Buckets:
    """Return what came into the buckets since the last look; all that is in them where the broker began anew."""
    earlier = {} if before is None else before.buckets.get(api, {})
    later = now.buckets.get(api, {})
    grown = {bound: count - earlier.get(bound, 0.0) for bound, count in later.items()}
    return later if any(each < 0 for each in grown.values()) else grown


def _sum(all_buckets: Iterable[Buckets]) -> Buckets:
    total: Buckets = {}
    for buckets in all_buckets:
        for bound, count in buckets.items():
            total[bound] = total.get(bound, 0.0) + count
    return total


def _quantile(quantile: float, api: str, buckets: Buckets, now: dict[str, RequestTotals]) -> float | None:
    """Return the upper bound of the bucket that the quantile is in, or the largest quantile that a broker gives."""
    ready = [each.quantiles_ms[api, quantile] for each in now.values() if (api, quantile) in each.quantiles_ms]
    if not buckets:
        return max(ready, default=None)
    rank = quantile * max(buckets.values())
    bounds = [bound for bound, count in sorted(buckets.items()) if count >= rank]
    if rank <= 0 or not bounds:
        return None
    finite = [bound for bound in buckets if math.isfinite(bound)]
    return bounds[0] if math.isfinite(bounds[0]) else max(finite, default=None)


def _rate(before: RequestTotals | None, now: RequestTotals, api: str) -> float | None:
    """Requests a second; None for the first time, and where the broker has begun to count anew."""
    if before is None or now.at_s <= before.at_s:
        return None
    growth = now.counts.get(api, 0.0) - before.counts.get(api, 0.0)
    return growth / (now.at_s - before.at_s) if growth >= 0 else None
