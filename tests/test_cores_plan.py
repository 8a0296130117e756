"""The plan of `start --cores`: what each node has of the first one's settings, and what is its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.config.cores_plan import plan_cores

CONTROLLER_PORT = 45_678


def configs(given: dict[str, str], cores: int = 3) -> list[BrokerConfig]:
    nodes = plan_cores(BrokerConfig({"log.dirs": "d", **given}), cores, CONTROLLER_PORT)
    assert [node.node_id for node in nodes] == [BrokerConfig(node.settings).node_id for node in nodes]
    return [BrokerConfig(node.settings) for node in nodes]


def test_nodes_of_nothing_given_have_consecutive_ports_and_directories_below_the_first_ones() -> None:
    first, second, third = configs({})
    assert [config.listeners.client[0].port for config in (first, second, third)] == [9092, 9093, 9094]
    assert [config.log_dirs for config in (first, second, third)] == [["d"], ["d/nodes/2"], ["d/nodes/3"]]
    assert [config.roles for config in (second, third)] == [{"broker"}] * 2
    assert first.listeners.controller[0].port == CONTROLLER_PORT
    assert not first.quorum_voters, "a quorum of its own, as without the flag"
    assert second.quorum_voters == {1: ("127.0.0.1", CONTROLLER_PORT)}


def test_what_is_given_is_for_all_and_one_machine_keeps_one_copy() -> None:
    for config in configs({"num.partitions": "7", "offsets.topic.replication.factor": "2"}):
        assert config.int("num.partitions") == 7
        assert config.int("offsets.topic.replication.factor") == 2
        assert config.int("transaction.state.log.replication.factor") == 1
        assert config.int("transaction.state.log.min.isr") == 1


def test_kafkas_own_file_has_the_controller_on_the_next_port() -> None:
    first, second, third = configs(
        {
            "node.id": "1",
            "process.roles": "broker,controller",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "advertised.listeners": "PLAINTEXT://kafka:9092,CONTROLLER://kafka:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }
    )
    assert first.listeners.controller[0].port == 9093
    assert [config.listeners.client[0].port for config in (second, third)] == [9094, 9096]
    assert [str(config.listeners.advertised[0]) for config in (second, third)] == [
        "PLAINTEXT://kafka:9094",
        "PLAINTEXT://kafka:9096",
    ]
    assert second.quorum_bootstrap_servers == [("localhost", 9093)]


def test_an_advertised_port_of_its_own_moves_by_the_same_distance() -> None:
    second = configs({"listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://h:19092"}, 2)[1]
    assert str(second.listeners.advertised[0]) == "PLAINTEXT://h:19093"


def test_web_listeners_that_are_given_move_as_well() -> None:
    second = configs({"metrics.listener": "0.0.0.0:9093", "console.listener": ""}, 2)[1]
    assert second.str("metrics.listener") == "0.0.0.0:9095"
    assert second.str("console.listener") == ""
    assert second.listeners.client[0].port == 9094


def test_several_log_directories_and_one_of_the_metadata() -> None:
    second = configs({"log.dirs": "/a,/b", "metadata.log.dir": "/m"}, 2)[1]
    assert second.log_dirs == ["/a/nodes/2", "/b/nodes/2"]
    assert second.metadata_log_dir == "/m/nodes/2"


def test_a_map_without_the_controller_gets_it() -> None:
    given = {"listeners": "INTERNAL://:9092", "listener.security.protocol.map": "INTERNAL:PLAINTEXT"}
    assert len(configs(given | {"inter.broker.listener.name": "INTERNAL"}, 2)) == 2


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {
                "process.roles": "controller",
                "listeners": "CONTROLLER://:9093",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": "1@localhost:9093",
            },
            "process.roles has to name broker",
        ),
        ({"listeners": "PLAINTEXT://:65535"}, "no ports below 65536"),
        ({"listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://h:65535"}, "below 65536"),
        (
            {
                "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": "1@a:9093,2@b:9093",
            },
            "another node 2",
        ),
        (
            {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
            "the listener CONTROLLER is PLAINTEXT",
        ),
    ],
)
def test_what_cannot_be_several_nodes_is_an_error(given: dict[str, str], expected: str) -> None:
    with pytest.raises(ConfigurationError, match=expected):
        configs(given, 2)


@given(
    ports=st.lists(st.integers(1, 65535), min_size=1, max_size=4, unique=True),
    controller=st.none() | st.integers(1, 65535),
    cores=st.integers(2, 64),
)
def test_no_port_is_of_two_nodes(ports: list[int], controller: int | None, cores: int) -> None:
    names = [f"L{number}" for number in range(len(ports))]
    listeners = [f"{name}://:{port}" for name, port in zip(names, ports, strict=True) if port != controller]
    if not listeners:
        return
    if controller is not None:
        listeners.append(f"CONTROLLER://:{controller}")
    given = {
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in [*names, "CONTROLLER"]),
        "inter.broker.listener.name": listeners[0].partition(":")[0],
        "controller.listener.names": "CONTROLLER",
    }
    if controller is None:
        del given["controller.listener.names"]
    try:
        found = configs(given, cores)
    except ConfigurationError as error:
        assert "no ports" in str(error)  # noqa: PT017 - of any draw
        return
    bound = [each.port for config in found for each in config.listeners.client]
    if controller is not None:
        bound.append(controller)
    assert len(set(bound)) == len(bound)
