"""The keys that pykbroker has and Kafka has not, one sentence each."""

from __future__ import annotations

from typing import Final

OWN: Final = {
    "console.allow.changes.without.login": "Whether whoever reaches the console may change everything, without users.",
    "console.client.listener": "The listener by which the console is a client of its broker; empty for one with users.",
    "console.hosts": "Names by which browsers and scrapers call the node, beside those that it knows.",
    "console.listener": "The address of the console, metrics and health over HTTP, host:port; empty for none.",
    "console.read.only": "Whether the console shows everything and changes nothing.",
    "console.security.protocol": "PLAINTEXT or SSL: whether the console and what is beside it speak HTTPS.",
    "metrics.client.series.max": "How many series of what clients push of themselves are kept and shown.",
    "metrics.listener": "One more address over HTTP, for metrics and health alone, host:port; empty for none.",
    "metrics.security.protocol": "PLAINTEXT or SSL: whether the listener for metrics alone speaks HTTPS.",
    "metrics.partitions.max": "A node with more partitions than this has metrics of topics alone.",
}
