"""What a node takes of a personality, and what it says that it has not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pykbroker.api import HANDLERS
from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.personality.applying import (
    listeners_of_nodes,
    missing_versions,
    offer_of,
    properties_of,
    settings_left_out,
)
from pykbroker.personality.personality import BadPersonality, Personality
from pykbroker.personality.shipped import shipped, shipped_names
from pykbroker.protocol.schema import Versions

OF_ONE = {"listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"}
WITH_TWO = {
    "listeners": "PLAINTEXT://127.0.0.1:9092,NODES://127.0.0.1:9094,CONTROLLER://127.0.0.1:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,NODES:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "NODES",
}
OF_THREE = {"controller.quorum.voters": "1@127.0.0.1:9093,2@127.0.0.1:9193,3@127.0.0.1:9293"}


def personality(**given: object) -> Personality:
    return replace(Personality(versions={0: Versions(0, 8)}), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", shipped_names())
def test_a_release_gives_properties_that_a_node_takes(name: str) -> None:
    config = BrokerConfig.load(None, {}, properties_of(shipped(name)))
    assert config.unknown_keys == []
    assert config.without_effect == []
    assert config.int("message.max.bytes") == shipped(name).limits["message.max.bytes"]


def test_limits_and_configurations_become_properties() -> None:
    given = personality(
        limits={"message.max.bytes": 1000}, broker={"auto.create.topics.enable": False, "no.such.key": 1}
    )
    assert properties_of(given) == {"message.max.bytes": "1000", "auto.create.topics.enable": "false"}
    assert settings_left_out(given) == ["no.such.key"]


def test_an_older_name_stands_for_its_newer_ones() -> None:
    given = personality(broker={"log.message.timestamp.difference.max.ms": 5, "log.message.timestamp.after.max.ms": 7})
    assert properties_of(given) == {
        "log.message.timestamp.before.max.ms": "5",
        "log.message.timestamp.after.max.ms": "7",
    }
    assert settings_left_out(given) == []


def test_topics_defaults_count_where_the_broker_does_not_tell_its_own() -> None:
    assert properties_of(personality(topic={"retention.ms": 5})) == {"log.retention.ms": "5"}
    hours = {"log.retention.hours": 9}
    assert properties_of(personality(topic={"retention.ms": 5}, broker=hours)) == {"log.retention.hours": "9"}


def test_what_is_the_default_is_not_given() -> None:
    assert properties_of(personality(limits={"message.max.bytes": 1048588}, broker={"num.partitions": 1})) == {}


def test_what_protects_is_never_taken() -> None:
    given = personality(broker={"create.topic.policy.class.name": "org.example.Policy"})
    assert properties_of(given) == {}
    assert settings_left_out(given) == ["create.topic.policy.class.name"]


def test_a_value_that_no_broker_takes_is_named() -> None:
    with pytest.raises(BadPersonality, match=r"num.partitions"):
        properties_of(personality(broker={"num.partitions": "many"}))


def test_protocols_and_assignors_are_those_that_are_served() -> None:
    of_3_9 = properties_of(shipped("3.9"))
    assert of_3_9["group.coordinator.rebalance.protocols"] == "classic"
    assert "group.consumer.assignors" not in of_3_9  # the default, by the names that it has today
    assert "group.coordinator.rebalance.protocols" not in properties_of(shipped("4.4"))
    assert properties_of(personality(broker={"group.coordinator.rebalance.protocols": "classic,consumer"})) == {
        "group.coordinator.rebalance.protocols": "classic,consumer"
    }
    assert settings_left_out(shipped("4.4")) == []


def test_a_file_wins_and_so_does_another_key_for_the_same() -> None:
    defaults = {"log.retention.ms": "5", "num.partitions": "9"}
    assert BrokerConfig.load(None, {"num.partitions": "3"}, defaults).int("num.partitions") == 3
    assert "log.retention.ms" not in BrokerConfig.load(None, {"log.retention.hours": "1"}, defaults).originals
    assert BrokerConfig.load(None, {}, defaults).originals["log.retention.ms"] == "5"


def test_features_are_those_that_both_have() -> None:
    of_4_0 = offer_of(shipped("4.0"))
    assert of_4_0.features == {
        "eligible.leader.replicas.version": (0, 1),
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "transaction.version": (0, 2),
    }
    assert of_4_0.initial_levels == {
        "eligible.leader.replicas.version": 0,
        "group.version": 1,
        "share.version": 0,
        "streams.version": 0,
        "transaction.version": 2,
    }
    assert offer_of(shipped("2.8")).features == {}
    assert set(offer_of(shipped("2.8")).initial_levels.values()) == {0}
    assert offer_of(shipped("4.3")).features["metadata.version"] == (30, 30)


def test_what_is_missing_is_named_by_api_and_version() -> None:
    given = personality(versions={0: Versions(0, 99), 1: Versions(0, 3), 4: Versions(0, 1), 18: Versions(0, 4)})
    assert missing_versions(given, HANDLERS.broker) == ["Produce 0-2", "Produce 14-99", "Fetch", "LeaderAndIsr"]


def test_a_table_offers_what_both_have() -> None:
    table = HANDLERS.broker.offering(offer_of(personality(versions={0: Versions(0, 8), 1: Versions(0, 3)})))
    assert [(each.api_key, each.min_version, each.max_version) for each in table] == [(0, 3, 8)]


def test_all_listeners_of_a_node_that_is_alone_have_the_personality() -> None:
    assert listeners_of_nodes(BrokerConfig(OF_ONE)) == frozenset()
    assert listeners_of_nodes(BrokerConfig({})) == frozenset()
    alone = {**OF_ONE, "controller.quorum.bootstrap.servers": "127.0.0.1:9093"}
    assert listeners_of_nodes(BrokerConfig(alone)) == frozenset()


def test_a_listener_for_nodes_keeps_all_versions() -> None:
    assert listeners_of_nodes(BrokerConfig(WITH_TWO)) == {"NODES"}
    assert listeners_of_nodes(BrokerConfig({**WITH_TWO, **OF_THREE})) == {"NODES"}


@pytest.mark.parametrize(
    "others", [OF_THREE, {"controller.quorum.bootstrap.servers": "127.0.0.1:9193"}], ids=["voters", "bootstrap"]
)
def test_nodes_that_share_a_listener_with_clients_are_refused(others: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"--as needs a listener for the nodes.*inter.broker.listener.name"):
        listeners_of_nodes(BrokerConfig({**OF_ONE, **others}))


def test_a_controller_is_refused() -> None:
    controller = {
        "process.roles": "controller",
        "listeners": "CONTROLLER://127.0.0.1:9093",
        "controller.quorum.voters": "1@127.0.0.1:9093",
    }
    with pytest.raises(ConfigurationError, match="--as is for nodes with the broker role"):
        listeners_of_nodes(BrokerConfig(controller))
