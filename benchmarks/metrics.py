"""The cost of metrics: a producer beside a broker that is scraped each second and one that is not, in turns; and what a
broker takes that does nothing, once its console and its metrics were visited.

The producer is librdkafka's. Apache Kafka has its metrics in JMX, where nobody asks for them here: of its figures those
of the idle broker alone mean something.
"""

from __future__ import annotations

import gzip
import re
import statistics
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import HTTPError

from confluent_kafka import Producer

from benchmarks.bench import PARTITIONS, Bench, Figures
from benchmarks.brokers import cpu_seconds, rss_bytes
from compat_tests.brokers import Pykbroker

_RECORD = b"x" * 1000
_RECORDS = 200_000
_TURNS = 7
_WAIT_S = 120
_IDLE_S = 60.0
_SETTLING_S = 15.0
_ADDRESS = re.compile(r"metrics and health at (http://\S+)/")


def scraped_produce(bench: Bench) -> Figures:
    """Compare each turn with the one beside it."""
    names = ["MB/s when scraped", "% lost to scrapes"]
    if not isinstance(bench.broker, Pykbroker):
        return dict.fromkeys(names, 0.0)
    url, records = _url(bench.broker), bench.count(_RECORDS)
    bench.create_topic("scraped", PARTITIONS)
    took_s: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(2 * _TURNS + 2):
        is_scraped = bool(turn % 2)
        with _scraping(url) if is_scraped else _nothing():
            run_s = _produce(bench.broker.bootstrap, records)
        if turn > 1:  # the first ones warm up
            took_s[is_scraped].append(run_s)
    lost = statistics.median(1 - off / on for on, off in zip(took_s[True], took_s[False], strict=True))
    bench.delete_topic("scraped")
    return dict(zip(names, [records / min(took_s[True]) / 1000, lost * 100], strict=True))


def idle(bench: Bench) -> Figures:
    """A scrape and a visit to the console, some seconds to settle after each, and a minute in which nothing happens."""
    broker = bench.broker
    unvisited = scraped = rss_bytes(broker)
    if isinstance(broker, Pykbroker):
        for path in ("/healthz", "/readyz", "/metrics"):
            _visit(_url(broker) + path)
        time.sleep(_SETTLING_S)
        scraped = rss_bytes(broker)
        for path in ("/", "/static/app.js", "/api/session", "/api/overview"):
            _visit(_url(broker) + path)
    time.sleep(_SETTLING_S)
    before_s = cpu_seconds(broker)
    time.sleep(_IDLE_S)
    return {
        "RSS MB before": unvisited / 1e6,
        "RSS MB when scraped": scraped / 1e6,
        "RSS MB": rss_bytes(broker) / 1e6,
        "% of a core": (cpu_seconds(broker) - before_s) / _IDLE_S * 100,
    }


def _url(broker: Pykbroker) -> str:
    found = _ADDRESS.findall(broker.log_text())
    assert found, broker.log_text()[-2000:]
    return str(found[-1])


def _produce(bootstrap: str, records: int) -> float:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000})
    producer.produce("scraped", b"first")
    assert producer.flush(_WAIT_S) == 0
    began = time.perf_counter()
    for _ in range(records):
        producer.produce("scraped", _RECORD)
    assert producer.flush(_WAIT_S) == 0
    return time.perf_counter() - began


@contextmanager
def _scraping(url: str) -> Iterator[None]:
    """Scrape each second, as Prometheus does with its shortest interval, and take what comes compressed."""
    ended = threading.Event()

    def scrape() -> None:
        while not ended.wait(1.0):
            request = urllib.request.Request(f"{url}/metrics", headers={"Accept-Encoding": "gzip"})
            with urllib.request.urlopen(request, timeout=_WAIT_S) as answer:
                assert b"kafka_server_brokertopicmetrics" in gzip.decompress(answer.read())

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def _visit(url: str) -> None:
    try:
        with urllib.request.urlopen(url, timeout=_WAIT_S) as answer:
            answer.read()
    except HTTPError as error:  # without the console's packages there is no first page
        error.close()
