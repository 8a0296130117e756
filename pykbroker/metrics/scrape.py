"""One scrape: a node is read in turns of its loop, and what was read is written in a worker thread.

Scrapes that come while one is being read or written share it. Neither holds the loop: a turn is about a millisecond,
and the thread that writes gives the interpreter away as others do.
"""

from __future__ import annotations

import gzip
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from pykbroker.config.own_keys import MOST_PARTITIONS_SHOWN
from pykbroker.deferred_imports import deferred
from pykbroker.server.runtime.histogram import BOUNDS_MS, Histogram
from pykbroker.server.runtime.turns import Turn
from pykbroker.web.room import RoomLook

from .catalog import METRICS, Kind
from .of_broker import read_broker, read_directories, read_replicas, read_topics
from .of_cluster import read_controller, read_quorum, read_state
from .of_groups import read_groups
from .of_partitions import read_partitions
from .of_process import read_build, read_loop
from .of_quotas import read_quotas
from .of_requests import read_connections, read_requests
from .of_shares import read_shares
from .of_telemetry import read_telemetry
from .readings import Readings

# Snappy is for pushes to other servers, where it is installed, two megabytes; HTML for a server of the library's own.
with deferred("snappy", "html"):
    from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
    from prometheus_client.exposition import choose_encoder, gzip_accepted
    from prometheus_client.gc_collector import GCCollector
    from prometheus_client.metrics_core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        SummaryMetricFamily,
    )
    from prometheus_client.metrics_core import Metric as Family

    from .client_families import client_families

if TYPE_CHECKING:
    from pykbroker.server.node.node import Node
    from pykbroker.server.runtime.loop_monitor import LoopMonitor

_log = logging.getLogger(__name__)

_GZIP_LEVEL: Final = 3
"""As small as it gets for a third of the CPU: lines are much alike."""
_BOUNDS: Final = [*(f"{bound:g}" for bound in BOUNDS_MS), "+Inf"]


async def read_node(node: Node, monitor: LoopMonitor | None, look: RoomLook) -> Readings:
    """Read all that a node knows of itself. A node that starts or has ended knows little. look: asks volumes."""
    began_s, readings, turn = time.perf_counter(), Readings(), Turn()
    read_state(node, readings)
    if monitor is not None:
        read_loop(monitor, readings)
    parts = node.parts
    if parts is not None:
        most = parts.node.config.int(MOST_PARTITIONS_SHOWN)
        read_build(parts.node, readings)
        read_connections(parts, readings)
        read_quorum(parts.node, readings)
        await read_requests(parts.requests, readings, turn)
        await read_quotas(parts.node, readings, turn, most=most)
        await read_controller(parts.node, readings, turn)
        await read_directories(parts, look, readings)
        role = parts.broker_role
        if role is not None:
            partitions = role.broker.partitions.partitions()
            await read_broker(role, readings, turn)
            await read_replicas(partitions, readings, turn)
            await read_topics(role, readings, turn, most=most)
            await read_partitions(partitions, readings, turn, most=most)
            await read_groups(role.broker, readings, turn, most=most)
            await read_shares(role.broker, readings, turn, most=most)
            read_telemetry(role.broker, readings)
    readings.add("pykbroker_scrape_seconds", time.perf_counter() - began_s)
    return readings


class _Written:
    """The values of a scrape, as prometheus_client collects them; each family is made when its turn comes."""

    def __init__(self, readings: Readings, of_process: CollectorRegistry) -> None:
        self._readings = readings
        self._of_process = of_process

    def collect(self) -> Iterator[Family]:
        for name in METRICS:
            readings = self._readings
            if values := readings.values.get(name):
                yield _family(name, values)
            elif histograms := readings.histograms.get(name):
                yield _histogram(name, histograms)
            elif summaries := readings.summaries.get(name):
                yield _summary(name, summaries)
        yield from client_families(self._readings.clients)
        yield from self._of_process.collect()


def _family(name: str, values: Iterable[tuple[tuple[str, ...], float]]) -> Family:
    metric = METRICS[name]
    make = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    family = make(name, metric.meaning, labels=metric.labels)
    for labels, value in values:
        family.add_metric(labels, value)
    return family


def _histogram(name: str, histograms: Iterable[tuple[tuple[str, ...], Histogram]]) -> Family:
    metric = METRICS[name]
    family = HistogramMetricFamily(name, metric.meaning, labels=metric.labels)
    for labels, histogram in histograms:
        buckets = list(zip(_BOUNDS, accumulate(histogram.counts), strict=True))
        family.add_metric(labels, buckets, histogram.sum_ns / 1e6)
    return family


def _summary(name: str, summaries: Iterable[tuple[tuple[str, ...], int, float]]) -> Family:
    metric = METRICS[name]
    family = SummaryMetricFamily(name, metric.meaning, labels=metric.labels)
    for labels, count, total in summaries:
        family.add_metric(labels, count, total)
    return family


class Exposition(NamedTuple):
    """A scrape as it is sent."""

    body: bytes
    content_type: str
    is_compressed: bool


class ScrapeFailed(Exception):
    """The values could not be read, which is logged."""


class _Scrape:
    """One scrape under way. is_read: set when the values are there, or could not be had."""

    def __init__(self) -> None:
        self.is_read = trio.Event()
        self.readings: Readings | None = None
        self.users = 0
        self.written: dict[tuple[str, bool], Exposition] = {}


class Scrapes:
    """The scrapes of one node. monitor: tells the monitor of the loop, None before it watches.

    nursery: reads, so that a scraper that leaves ends no scrape that others share.
    """

    def __init__(self, node: Node, monitor: Callable[[], LoopMonitor | None], nursery: trio.Nursery) -> None:
        self._node = node
        self._monitor = monitor
        self._nursery = nursery
        self._look = RoomLook()
        self._scrape: _Scrape | None = None
        self._writing = trio.Lock()
        self._of_process = CollectorRegistry()
        ProcessCollector(registry=self._of_process)
        PlatformCollector(registry=self._of_process)
        GCCollector(registry=self._of_process)

    async def exposition(self, accept: str, accept_encoding: str) -> Exposition:
        """Return what a scraper gets that accepts these formats and encodings. Raises ScrapeFailed."""
        scrape = self._scrape
        if scrape is None:
            scrape = self._scrape = _Scrape()
            self._nursery.start_soon(self._read, scrape)
        scrape.users += 1
        try:
            await scrape.is_read.wait()
            return await self._written(scrape, accept, gzip_accepted(accept_encoding))
        finally:
            scrape.users -= 1
            if not scrape.users and self._scrape is scrape and scrape.is_read.is_set():
                self._scrape = None

    async def _read(self, scrape: _Scrape) -> None:
        try:
            scrape.readings = await read_node(self._node, self._monitor(), self._look)
        except Exception:
            _log.exception("the node's metrics cannot be read")  # and the node goes on
        finally:
            scrape.is_read.set()
            if not scrape.users and self._scrape is scrape:
                self._scrape = None

    async def _written(self, scrape: _Scrape, accept: str, is_compressed: bool) -> Exposition:
        """Write the scrape in one thread at a time, and once for those who want the same."""
        if scrape.readings is None:
            raise ScrapeFailed
        encoder, content_type = choose_encoder(accept)
        async with self._writing:
            found = scrape.written.get((content_type, is_compressed))
            if found is None:
                collector = _Written(scrape.readings, self._of_process)
                body = await trio.to_thread.run_sync(_encode, encoder, collector, is_compressed)
                found = scrape.written[content_type, is_compressed] = Exposition(body, content_type, is_compressed)
            return found


def _encode(encoder: Callable[[Any], bytes], collector: _Written, is_compressed: bool) -> bytes:
    text = encoder(collector)
    return gzip.compress(text, _GZIP_LEVEL) if is_compressed else text
