"""Every entry of DescribeConfigs is as Apache Kafka 4.4.0 has it, before and after configurations are altered.

The keys that Kafka 4.3 has, too, are asked for in `compat_tests/test_described_configs.py`, and here once more.
"""

from __future__ import annotations

from typing import Final

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.broker_configs import DELETE, SET, Change
from compat_tests.test_described_configs import (
    ALTERATIONS,
    CLIENT_METRICS,
    REFUSED,
    STATIC,
    SUBSCRIPTION,
    TOPIC,
    altered,
    entries,
    every_entry,
)
from compat_tests.topics import create_topic
from compat_tests.waiting import until

from .conftest import FreshNode
from .nodes import NEWEST

OF_THE_FILE: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.rack.aware.assignment.tags": "zone, cluster",
    "group.streams.assignor.offload.enable": "false",
    "group.streams.num.warmup.replicas": "3",
    "log.remote.copy.lag.ms": "5",
    "max.decompressed.message.bytes": "5000000",
}
ALTERATIONS_OF_4_4: Final[tuple[tuple[str, tuple[Change, ...]], ...]] = (
    ("topic", (("remote.copy.lag.ms", SET, "7"), ("remote.copy.lag.bytes", SET, " 0 "))),
    ("topic", (("max.decompressed.message.bytes", SET, "4000000"),)),
    (
        "all brokers",
        (
            ("group.consumer.assignor.offload.enable", SET, "false"),
            ("group.streams.assignor.offload.enable", SET, "TRUE"),
            ("log.remote.copy.lag.bytes", SET, "9"),
        ),
    ),
    (
        "broker",
        (("max.decompressed.message.bytes", SET, "6000000"), ("group.streams.assignor.offload.enable", DELETE, None)),
    ),
    (
        "group",
        (
            ("streams.rack.aware.assignment.tags", SET, "zone,cluster , rack"),
            ("streams.assignor.name", SET, "sticky"),
            ("streams.acceptable.recovery.lag", SET, "0700"),
            ("streams.num.warmup.replicas", SET, "20"),
            ("share.assignor.offload.enable", SET, "false"),
        ),
    ),
)
REFUSED_IN_4_4: Final[tuple[tuple[str, Change], ...]] = (
    ("topic", ("remote.copy.lag.ms", SET, "-3")),
    ("topic", ("remote.copy.lag.bytes", SET, "-3")),
    ("topic", ("remote.copy.lag.bytes", SET, "x")),
    ("group", ("streams.rack.aware.assignment.tags", SET, "zone,zone")),
    ("group", ("streams.rack.aware.assignment.tags", SET, "zone,,rack")),
    ("group", ("streams.rack.aware.assignment.tags", SET, "")),
    ("group", ("streams.assignor.name", SET, "mine")),
    ("group", ("streams.assignor.name", SET, "")),
    ("group", ("streams.acceptable.recovery.lag", SET, "-1")),
    ("group", ("streams.num.warmup.replicas", SET, "21")),
    ("group", ("streams.num.warmup.replicas", SET, "-1")),
    ("group", ("streams.task.offset.interval.ms", SET, "14999")),
    ("group", ("streams.task.offset.interval.ms", SET, "0")),
    ("group", ("consumer.assignor.offload.enable", SET, "yes")),
    ("all brokers", ("group.share.assignor.offload.enable", SET, "yes")),
    ("all brokers", ("group.streams.num.warmup.replicas", SET, "1")),
    ("all brokers", ("group.streams.rack.aware.assignment.tags", SET, "zone")),
    ("broker", ("group.streams.assignors", SET, "sticky")),
    ("broker", ("log.remote.copy.lag.ms", SET, "-2")),
    ("broker", ("max.decompressed.message.bytes", SET, "0")),
)


@pytest.mark.parametrize("release", [NEWEST])
def test_every_entry_before_and_after_alterations(fresh_node: FreshNode, answers: TestAnswers, release: str) -> None:
    node = fresh_node(STATIC | OF_THE_FILE, release=release)
    create_topic(node, TOPIC, 1, {"max.message.bytes": "5000"})
    found = every_entry(node)
    answers.all_same({f"{where}, before": each for where, each in found.items()})
    for where, changes in (*ALTERATIONS, *ALTERATIONS_OF_4_4):
        assert altered(node, where, *changes)[0] == "NONE", (where, changes)
    until(lambda: "match" in str(entries(node, CLIENT_METRICS, SUBSCRIPTION)["match"]["synonyms"]), "all is applied")
    found = every_entry(node)
    answers.all_same({f"{where}, after": each for where, each in found.items()})


def test_values_that_are_not_allowed_are_refused_in_the_same_words(fresh_node: FreshNode, answers: TestAnswers) -> None:
    node = fresh_node()
    create_topic(node, TOPIC, 1)
    for where, change in (*REFUSED, *REFUSED_IN_4_4):
        key, _, value = change
        answers.same(f"{where}: {key}={value}", altered(node, where, change))
