"""`pykbroker cluster` as a process: what it prints, what it refuses, how it ends."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from pykbroker.cli.cluster_setup import ports_from
from pykbroker.config import ConfigurationError
from pykbroker.config.cluster_plan import FIRST_CONTROLLER_ID, listener_count, plan_cluster

from .cluster_command import TIMEOUT_S, ClusterCommand


def test_the_first_brokers_are_controllers_where_there_are_no_others() -> None:
    plan = plan_cluster(brokers=5, controllers=0, ports=range(9092, 9192))
    assert plan.bootstrap_servers == ",".join(f"127.0.0.1:{port}" for port in range(9092, 9097))
    assert plan.voters == {number: f"127.0.0.1:{9096 + number}" for number in (1, 2, 3)}
    assert [node.roles for node in plan.nodes] == ["broker,controller"] * 3 + ["broker"] * 2


def test_two_brokers_have_one_controller_so_that_either_of_the_others_may_be_lost() -> None:
    assert list(plan_cluster(brokers=2, controllers=0, ports=range(9092, 9192)).voters) == [1]


def test_controllers_of_their_own_are_no_brokers() -> None:
    plan = plan_cluster(brokers=1, controllers=3, ports=range(9092, 9192))
    assert [node.roles for node in plan.nodes] == ["broker", *["controller"] * 3]
    assert list(plan.voters) == [FIRST_CONTROLLER_ID + number for number in range(3)]


def test_ports_end_at_the_last_one() -> None:
    count = listener_count(brokers=3)
    assert plan_cluster(brokers=3, controllers=0, ports=ports_from(65530, count)).nodes[-1].controller_port == 65535
    with pytest.raises(ConfigurationError, match="65536"):
        ports_from(65531, count)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_line_says_that_it_serves_and_a_signal_stops_it_cleanly(
    start_cluster: Callable[..., ClusterCommand], tmp_path: Path, base_port: int, number: signal.Signals
) -> None:
    cluster = start_cluster("--brokers", "1", "--config", "num.partitions=5")
    assert cluster.wait_until_ready() == f"127.0.0.1:{base_port}"
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{base_port}"})
    admin.create_topics([NewTopic("t")])["t"].result(TIMEOUT_S)
    assert len(admin.list_topics("t", TIMEOUT_S).topics["t"].partitions) == 5
    assert cluster.end(number) == 0, cluster.log()
    assert "Traceback" not in cluster.log()
    assert all(line.startswith("node-1 | ") for line in cluster.lines), cluster.log()
    assert (tmp_path / "pykbroker-cluster" / "node-1" / "data" / ".kafka_cleanshutdown").exists()


def test_a_restart_finds_its_cluster_again(start_cluster: Callable[..., ClusterCommand], tmp_path: Path) -> None:
    for _ in range(2):
        cluster = start_cluster("--brokers", "1", "--data-dir", "d", "--config", "num.partitions=2")
        bootstrap = cluster.wait_until_ready()
        admin = AdminClient({"bootstrap.servers": bootstrap})
        if "kept" not in admin.list_topics(timeout=TIMEOUT_S).topics:
            admin.create_topics([NewTopic("kept")])["kept"].result(TIMEOUT_S)
        assert cluster.end() == 0
    assert len(list((tmp_path / "d" / "node-1" / "data").glob("kept-*"))) == 2


def test_a_temporary_directory_is_gone_at_the_end(start_cluster: Callable[..., ClusterCommand], tmp_path: Path) -> None:
    cluster = start_cluster("--brokers", "1", "--ephemeral")
    cluster.wait_until_ready()
    (node,) = cluster.nodes().values()
    directory = Path(node.cmdline()[-1]).parents[1]
    assert directory.exists()
    assert cluster.end() == 0
    assert not directory.exists()
    assert list(tmp_path.iterdir()) == []


def test_when_no_node_is_left_it_ends(start_cluster: Callable[..., ClusterCommand]) -> None:
    cluster = start_cluster("--brokers", "1", "--ephemeral")
    cluster.wait_until_ready()
    cluster.nodes()[1].kill()
    assert cluster.wait() == 1
    assert cluster.lines[-1] == "pykbroker cluster: node-1 was ended by SIGKILL; no node is left\n"


def test_a_port_in_use_is_said_and_ends_it(start_cluster: Callable[..., ClusterCommand], base_port: int) -> None:
    with socket.create_server(("127.0.0.1", base_port)):
        cluster = start_cluster("--brokers", "1", "--ephemeral")
        assert cluster.wait() == 1
    assert "node-1 did not start" in cluster.lines[-1]
    assert f"127.0.0.1:{base_port}" in cluster.lines[-1]
    assert "Traceback" not in cluster.log()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--brokers", "0"], "--brokers"),
        (["--brokers", "200"], "--brokers"),
        (["--base-port", "65535"], "--base-port"),
        (["--ephemeral", "--data-dir", "d"], "exclude each other"),
        (["--config", "num.partitions"], "key=value"),
        (["--config", "num.partitions=0"], "num.partitions"),
        (["--config", "authorizer.class.name=x"], "authorizer.class.name"),
        (["--config", "node.id=7"], "node.id"),
        (["--config", "listeners=PLAINTEXT://:9092"], "listeners"),
        (["--data-dir", "file/below"], "file"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    start_cluster: Callable[..., ClusterCommand], tmp_path: Path, arguments: list[str], expected: str
) -> None:
    (tmp_path / "file").write_text("")
    cluster = start_cluster(*arguments)
    assert cluster.wait() == 1
    (line,) = cluster.lines
    assert line.startswith("Error: ")
    assert expected in line
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_other_controllers_than_those_that_it_was_made_with_are_one_line(
    start_cluster: Callable[..., ClusterCommand],
) -> None:
    cluster = start_cluster("--brokers", "1", "--data-dir", "d")
    cluster.wait_until_ready()
    assert cluster.end() == 0
    refused = start_cluster("--brokers", "1", "--controllers", "1", "--data-dir", "d")
    assert refused.wait() == 1
    (line,) = refused.lines
    assert "has the controllers 1, not 3001" in line
