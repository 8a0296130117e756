"""Brokers of the release 4.4: each test that asks for one is there twice, for Apache Kafka 4.4.0 and for pykbroker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.apache_kafka import JarsMissing
from compat_tests.brokers import BrokerProcess
from compat_tests.conftest import assert_all_went_well, watch_log
from compat_tests.personalities.releases import jars_of

from .nodes import NEWEST, new_node


class FreshNode:
    """Starts nodes of the test's own: `fresh_node({"num.partitions": "2"}, release="4.3-IV0")`."""

    def __init__(self, kind: str, directory: Path, item: pytest.Item) -> None:
        self._kind, self._directory, self._item = kind, directory, item
        self.started: list[BrokerProcess] = []

    def __call__(self, properties: dict[str, str] | None = None, *, release: str = NEWEST) -> BrokerProcess:
        node = self.make(properties, release=release)
        node.start()
        return node

    def make(self, properties: dict[str, str] | None = None, *, release: str = NEWEST) -> BrokerProcess:
        """One that the test gives more properties, and starts then."""
        node = new_node(self._kind, self._directory / f"node-{len(self.started)}", properties or {}, release)
        self.started.append(node)
        watch_log(self._item, node)
        return node


@pytest.fixture
def fresh_node(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[FreshNode]:
    if kind == "external":
        pytest.skip("needs nodes that the test starts itself")
    if kind != "pykbroker":
        jars_of_4_4()
    fresh = FreshNode(kind, tmp_path, request.node)
    yield fresh
    for node in fresh.started:
        node.close()
        assert_all_went_well(node)


@pytest.fixture
def kafka_4_4() -> None:
    """For a test that starts a node of Kafka 4.4.0 itself."""
    jars_of_4_4()


def jars_of_4_4() -> None:
    try:
        jars_of("4.4").directory()
    except JarsMissing as reason:
        pytest.skip(str(reason))
