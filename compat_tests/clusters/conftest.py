"""Three nodes for the scenarios: on Apache Kafka first, then on pykbroker, one cluster for all of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping

import pytest

from compat_tests.conftest import LOG_LIMIT_CHARS
from compat_tests.loop_holds import assert_loop_not_held
from tests.cli.cluster_command import base_port, start_cluster  # noqa: F401 - fixtures

from .cluster import Cluster
from .layout import KAFKA, PYKBROKER, NodeSpec
from .nodes import Node

CLUSTER_PROPERTIES = {
    # Sessions short enough for a test that waits for their end, and long enough for three JVMs on two cores.
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "auto.create.topics.enable": "false",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}

NewCluster = Callable[..., Cluster]
"""(nodes, properties=…, is_dynamic=…) -> a cluster that is not started yet."""

_watched = pytest.StashKey[dict[Node, int]]()


@pytest.fixture(scope="package", params=[pytest.param(KAFKA, marks=pytest.mark.java), PYKBROKER])
def cluster_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="package")
def shared_cluster(cluster_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), [cluster_kind] * 3, properties=CLUSTER_PROPERTIES) as cluster:
        cluster.start()
        yield cluster
    assert_all_went_well(cluster)


@pytest.fixture
def cluster(shared_cluster: Cluster, request: pytest.FixtureRequest) -> Cluster:
    """Three running nodes of both roles. Whoever ended one of them left it to the next test to start it again."""
    watch_logs(request.node, shared_cluster)
    for node in shared_cluster.nodes.values():
        if node.is_paused:
            node.resume()
    if not all(node.is_running for node in shared_cluster.nodes.values()):
        shared_cluster.start()
    return shared_cluster


@pytest.fixture
def new_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewCluster]:
    """Clusters of the test's own."""
    made: list[Cluster] = []

    def make(
        nodes: list[NodeSpec | str], properties: Mapping[str, str] | None = None, *, is_dynamic: bool = False
    ) -> Cluster:
        directory = tmp_path_factory.mktemp("cluster")
        cluster = Cluster(
            directory, nodes, properties=CLUSTER_PROPERTIES | dict(properties or {}), is_dynamic=is_dynamic
        )
        made.append(cluster)
        watch_logs(request.node, cluster)
        return cluster

    yield make
    for cluster in made:
        cluster.close()
        assert_all_went_well(cluster)


def assert_all_went_well(cluster: Cluster) -> None:
    for node in cluster.nodes.values():
        if node.kind == PYKBROKER:
            log = node.log_text()
            assert "Traceback" not in log, log[max(log.index("Traceback") - 2000, 0) :][:LOG_LIMIT_CHARS]
            assert_loop_not_held(log)


def watch_logs(item: pytest.Item, cluster: Cluster) -> None:
    """Where the test fails, what the nodes log from now on is shown."""
    watched = item.stash.setdefault(_watched, {})
    watched.update({node: len(node.log_text()) for node in cluster.nodes.values()})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for node, start in item.stash.get(_watched, {}).items():
            log = node.log_text()[start:]
            report.sections.append((f"log of node {node.node_id}, {node.kind}", log[-LOG_LIMIT_CHARS // 3 :]))
    return report
