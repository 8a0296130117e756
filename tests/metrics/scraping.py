"""Scrapes of brokers in this process, as prometheus_client parses them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import trio
from prometheus_client.openmetrics.parser import text_string_to_metric_families as strictly_parsed
from prometheus_client.parser import text_string_to_metric_families as parsed

from pykbroker.metrics.scrape import Scrapes
from pykbroker.testing import Broker, Cluster

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


@dataclass(frozen=True)
class Scraped:
    """What a scrape told. families: their types by name. samples: by name and labels."""

    families: dict[str, str]
    samples: dict[tuple[str, frozenset[tuple[str, str]]], float]

    def value(self, name: str, **labels: str) -> float:
        return self.samples[name, frozenset(labels.items())]

    def get(self, name: str, **labels: str) -> float | None:
        return self.samples.get((name, frozenset(labels.items())))

    def of(self, name: str) -> Iterator[dict[str, str]]:
        """Return the labels of each sample of this name."""
        return (dict(labels) for each, labels in self.samples if each == name)


def read(text: str, *, strictly: bool = True) -> Scraped:
    families, samples = {}, {}
    for family in (strictly_parsed if strictly else parsed)(text):
        families[family.name] = family.type
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in samples, f"{key} is there twice"
            samples[key] = sample.value
    return Scraped(families, samples)


def scrape(kafka: Broker | Cluster, number: int = 0) -> Scraped:
    """Scrape one broker, and read what comes as strictly as OpenMetrics wants it."""
    return read(expose(kafka, number))


def expose(kafka: Broker | Cluster, number: int = 0, accept: str = OPEN_METRICS) -> str:
    node = kafka.nodes[number].node
    assert node is not None

    async def exposition() -> bytes:
        found: Any = None
        async with trio.open_nursery() as nursery:
            found = await Scrapes(node, lambda: None, nursery).exposition(accept, "")
        return bytes(found.body)

    return kafka.running_loop().call(exposition).decode()
