"""Changing configurations, and what they come to: requests and the answers that Kafka gives to them."""

from __future__ import annotations

from typing import Any

import pytest

from pykbroker.config import broker_keys, own_keys
from pykbroker.metadata.effective_configs import (
    BrokerLayers,
    EffectiveConfig,
    broker_configs,
    cluster_broker_configs,
    group_configs,
    topic_configs,
)
from pykbroker.protocol.config_source import ConfigSource
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.metadata_records import ConfigRecord, FeatureLevelRecord
from pykbroker.state_machine import Result
from tests.metadata.cluster import Cluster, one_node
from tests.metadata.test_topics import creatable, create

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, GROUP = 2, 4, 32

Change = tuple[str, int, str | None]


def resource(type_: int, name: str, *changes: Change) -> IncrementalAlterConfigsRequestAlterConfigsResource:
    return IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=type_,
        resource_name=name,
        configs=[
            IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )


def alter(cluster: Cluster, type_: int, name: str, *changes: Change, validate_only: bool = False) -> tuple[int, str]:
    request = IncrementalAlterConfigsRequest(resources=[resource(type_, name, *changes)], validate_only=validate_only)
    [row] = cluster.ask(request).responses
    return row.error_code, row.error_message


def cluster_with_topic() -> Cluster:
    cluster = one_node()
    create(cluster, creatable("t"))
    return cluster


SESSION = "consumer.session.timeout.ms"
HEARTBEAT = "consumer.heartbeat.interval.ms"
TOO_SHORT = f"{SESSION} must be greater than or equal to group.consumer.min.session.timeout.ms"
TOO_LONG = f"{SESSION} must be less than or equal to group.consumer.max.session.timeout.ms"

REFUSED: list[tuple[int, str, Change, int, str]] = [
    (GROUP, "", (SESSION, SET, "46000"), 42, "Default group resources are not allowed."),
    (GROUP, "g", ("nope", SET, "1"), 40, "Unknown group config name: nope"),
    (GROUP, "g", (SESSION, SET, "1000"), 40, TOO_SHORT),
    (GROUP, "g", (SESSION, SET, "999999"), 40, TOO_LONG),
    (GROUP, "g", (SESSION, SET, "abc"), 40, f"Invalid value abc for configuration {SESSION}: Not a number of type INT"),
    (GROUP, "g", (SESSION, APPEND, "46000"), 40, f"Can't APPEND to key {SESSION} because its type is not LIST."),
    (TOPIC, "nope", ("retention.ms", SET, "1"), 3, "The topic 'nope' does not exist."),
    (TOPIC, "", ("retention.ms", SET, "1"), 42, "Default topic resources are not allowed."),
    (TOPIC, "a/b", ("retention.ms", SET, "1"), 17, "Topic name is invalid: 'a/b' contains"),
    (TOPIC, "t", ("nope", SET, "1"), 40, "Unknown topic config name: nope"),
    (TOPIC, "t", ("retention.ms", SET, "abc"), 40, "Invalid value abc for configuration retention.ms: Not a number"),
    (TOPIC, "t", ("retention.ms", SET, "-2"), 40, "Invalid value -2 for configuration retention.ms: Value must be"),
    (TOPIC, "t", ("retention.ms", SET, None), 42, "Null value not supported for : retention.ms"),
    (TOPIC, "t", ("retention.ms", APPEND, "1"), 40, "Can't APPEND to key retention.ms because its type is not LIST."),
    (TOPIC, "t", ("nope", SUBTRACT, "1"), 40, "Can't SUBTRACT to key nope because its type is not LIST."),
    (TOPIC, "t", ("cleanup.policy", APPEND, "foo"), 40, "Invalid value foo for configuration cleanup.policy"),
    (TOPIC, "t", ("retention.ms", 9, "1"), 42, "Unknown operation 9"),
    (BROKER, "abc", ("num.io.threads", SET, "4"), 42, "Node id must be an integer, but it is: abc"),
    (BROKER, "1", ("process.roles", SET, "broker"), 42, "Cannot update these configs dynamically: [process.roles]"),
    (BROKER, "1", ("num.io.threads", SET, "0"), 42, "Invalid value 0 for configuration num.io.threads: Value must be"),
    (BROKER, "1", ("num.io.threads", SET, "x"), 42, "Invalid value x for configuration num.io.threads: Not a number"),
    (BROKER, "", ("ssl.key.password", SET, "x"), 42, "These security configs can be dynamically updated only per-"),
    (BROKER, "", ("sasl.enabled.mechanisms", SET, "PLAIN"), 42, "Cannot update these configs at default cluster level"),
    (
        BROKER,
        "1",
        ("advertised.listeners", SET, "PLAINTEXT://127.0.0.1:1"),
        42,
        "Cannot update these configs dynamically",
    ),
    (BROKER, "1", ("principal.builder.class", SET, "x"), 40, "principal.builder.class: pykbroker does not serve this"),
    (BROKER, "1", ("max.connections.per.ip.overrides", SET, "x"), 42, "max.connections.per.ip.overrides"),
    (BROKER, "1", ("listener.name.a.max.connections", SET, "0"), 42, "Invalid max.connections 0"),
    (BROKER, "1", ("listener.name.a.max.connection.creation.rate", SET, "x"), 42, "Not a number"),
    (BROKER, "1", ("listener.name.a.sasl.login.class", SET, "x"), 40, "would be open where it is meant to be"),
    (
        BROKER,
        "",
        ("listener.name.a.ssl.keystore.location", SET, "x"),
        42,
        "Cannot update these configs at default clus",
    ),
    (BROKER, "1", ("listener.name.a.ssl.client.auth", SET, "maybe"), 42, "Invalid value maybe for configuration ssl."),
    (BROKER, "", ("ssl.enabled.protocols", SET, "TLSv1.3"), 42, "Cannot update these configs at default cluster level"),
    (
        BROKER,
        "1",
        ("ssl.keystore.location", SET, "x"),
        42,
        "These security configs can be dynamically updated only per",
    ),
    (3, "x", ("x", SET, "x"), 42, "Unknown resource type 3"),
    (64, "g", ("consumer.session.timeout.ms", SET, "45000"), 42, "Unknown resource type 64"),
]


@pytest.mark.parametrize(("type_", "name", "change", "error_code", "message"), REFUSED)
def test_what_cannot_be_changed(type_: int, name: str, change: Change, error_code: int, message: str) -> None:
    cluster = cluster_with_topic()
    before = len(cluster.log)
    answer = alter(cluster, type_, name, change)
    assert answer[0] == error_code
    assert message in answer[1]
    assert len(cluster.log) == before


@pytest.mark.parametrize("change", [("retention.ms", SET, "abc"), ("retention.ms", APPEND, "1"), ("nope", SET, "1")])
def test_values_are_looked_at_before_it_is_asked_whether_the_topic_is_there(change: Change) -> None:
    assert alter(cluster_with_topic(), TOPIC, "nope", change)[0] == ErrorCode.INVALID_CONFIG


INTERNAL = "internal.segment.bytes"


def test_an_internal_key_of_a_topic_is_shown_where_it_is_set_alone() -> None:
    cluster = cluster_with_topic()
    shown = {
        config.name: config for config in create(cluster, creatable("u", configs={INTERNAL: " 0200 "}))["u"].configs
    }
    assert (len(shown), shown[INTERNAL].value, shown[INTERNAL].config_source) == (
        34,
        " 0200 ",
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
    )
    layers = BrokerLayers(cluster.config, cluster.image, 1)
    described = {each.key.name: each for each in topic_configs(layers, cluster.image.topic_config("u"))}
    assert list(described) == sorted(described)
    assert [(each.name, each.value) for each in described[INTERNAL].synonyms] == [(INTERNAL, " 0200 ")], (
        "as it was given"
    )
    assert INTERNAL not in [each.key.name for each in topic_configs(layers, cluster.image.topic_config("t"))]


def test_a_topic_with_an_internal_key_can_be_altered() -> None:
    cluster = cluster_with_topic()
    assert alter(cluster, TOPIC, "t", (INTERNAL, SET, "300")) == (0, None)
    assert alter(cluster, TOPIC, "t", ("retention.ms", SET, "5")) == (0, None)
    error_code, message = alter(cluster, TOPIC, "t", (INTERNAL, SET, "x"))
    assert (error_code, message) == (40, f"Invalid value x for configuration {INTERNAL}: Not a number of type INT")
    assert alter(cluster, TOPIC, "t", (INTERNAL, APPEND, "7"))[0] == 40
    assert alter(cluster, TOPIC, "t", (INTERNAL, DELETE, None)) == (0, None)
    assert cluster.image.topic_config("t") == {"retention.ms": "5"}


def test_values_are_set_deleted_appended_and_subtracted() -> None:
    cluster = cluster_with_topic()
    assert alter(cluster, TOPIC, "t", ("retention.ms", SET, "5"), ("cleanup.policy", APPEND, "compact"))[0] == 0
    assert cluster.image.topic_config("t") == {"retention.ms": "5", "cleanup.policy": "delete,compact"}
    assert alter(cluster, TOPIC, "t", ("retention.ms", DELETE, None), ("cleanup.policy", SUBTRACT, "delete"))[0] == 0
    assert cluster.image.topic_config("t") == {"cleanup.policy": "compact"}
    assert alter(cluster, TOPIC, "t", ("cleanup.policy", SUBTRACT, "compact"))[0] == 0
    assert cluster.image.topic_config("t") == {"cleanup.policy": ""}
    assert (TOPIC, "t") in cluster.changes.configs


def test_what_changes_nothing_is_not_recorded() -> None:
    cluster = cluster_with_topic()
    alter(cluster, TOPIC, "t", ("retention.ms", SET, "5"))
    before = len(cluster.log)
    assert alter(cluster, TOPIC, "t", ("retention.ms", SET, "5"), ("segment.ms", DELETE, None)) == (0, None)
    assert alter(cluster, TOPIC, "t", ("retention.ms", SET, "6"), validate_only=True)[0] == 0
    assert len(cluster.log) == before


def test_a_resource_changes_as_a_whole_or_not_at_all() -> None:
    cluster = cluster_with_topic()
    assert alter(cluster, TOPIC, "t", ("retention.ms", SET, "5"), ("segment.ms", SET, "x"))[0] == 40
    assert alter(cluster, TOPIC, "t", ("retention.ms", SET, "5"), ("retention.ms", SET, "6")) == (
        42,
        "Error due to duplicate config keys",
    )
    assert not cluster.image.topic_config("t")
    request = IncrementalAlterConfigsRequest(
        resources=[
            resource(TOPIC, "t", ("retention.ms", SET, "5")),
            resource(TOPIC, "t", ("retention.ms", SET, "6")),
            resource(BROKER, "", ("log.cleaner.threads", SET, "2")),
        ]
    )
    rows = cluster.ask(request).responses
    assert [row.error_code for row in rows] == [42, 42, 0]
    assert cluster.image.broker_config(1) == {"log.cleaner.threads": "2", "min.insync.replicas": "1"}


def test_keys_of_a_broker_that_nobody_knows_are_kept() -> None:
    cluster = one_node()
    assert alter(cluster, BROKER, "1", ("plugin.key", SET, "secret"))[0] == 0
    shown = {config.key.name: config for config in broker_configs(BrokerLayers(cluster.config, cluster.image, 1))}
    assert (shown["plugin.key"].value, shown["plugin.key"].key.sensitive) == (None, True)


# What configurations come to.


def topic_config(cluster: Cluster, name: str) -> EffectiveConfig:
    layers = BrokerLayers(cluster.config, cluster.image, 1)
    configs = topic_configs(layers, cluster.image.topic_config("t"))
    return next(config for config in configs if config.key.name == name)


def rows(config: EffectiveConfig) -> list[tuple[str, str | None, int]]:
    return [(synonym.name, synonym.value, int(synonym.source)) for synonym in config.synonyms]


def test_a_topics_value_comes_before_the_brokers_and_those_are_its_synonyms() -> None:
    """The same steps against Kafka gave these synonyms."""
    cluster = cluster_with_topic()
    config = topic_config(cluster, "retention.ms")
    assert (config.value, config.source, rows(config)) == ("604800000", 5, [])
    alter(cluster, BROKER, "1", ("log.retention.ms", SET, "900000"))
    config = topic_config(cluster, "retention.ms")
    below = [("log.retention.ms", "900000", 2), ("log.retention.hours", "168", 5)]
    assert (config.value, config.source, rows(config)) == ("900000", 2, below)
    alter(cluster, TOPIC, "t", ("retention.ms", SET, " 1000 "))
    config = topic_config(cluster, "retention.ms")
    assert (config.value, config.source, rows(config)) == ("1000", 1, [("retention.ms", "1000", 1), *below])


def test_the_brokers_layers_are_one_broker_all_brokers_file_default() -> None:
    cluster = one_node({"log.cleaner.threads": "3"})
    layers: list[tuple[str, str | None, int]] = [("log.cleaner.threads", "3", 4), ("log.cleaner.threads", "1", 5)]
    for broker, value, source in (("", "4", 3), ("1", "5", 2)):
        alter(cluster, BROKER, broker, ("log.cleaner.threads", SET, value))
        layers.insert(0, ("log.cleaner.threads", value, source))
        shown = {config.key.name: config for config in broker_configs(BrokerLayers(cluster.config, cluster.image, 1))}
        config = shown["log.cleaner.threads"]
        assert (config.value, config.source, rows(config)) == (value, source, layers)
    shown_everywhere = cluster_broker_configs(BrokerLayers(cluster.config, cluster.image, 1))
    assert {(each.key.name, each.value, int(each.source)) for each in shown_everywhere} == {
        ("log.cleaner.threads", "4", 3),
        ("min.insync.replicas", "1", 3),
    }


def test_a_key_of_one_listener_has_the_key_of_all_listeners_behind_it_in_each_layer() -> None:
    """As in Kafka, whose own DynamicBrokerReconfigurationTest looks for it."""
    own, of_all = "listener.name.plaintext.max.connections", "max.connections"
    cluster = one_node({own: "7", of_all: "100"})
    alter(cluster, BROKER, "", (own, SET, "8"))
    alter(cluster, BROKER, "1", (of_all, SET, "90"))
    shown = {config.key.name: config for config in broker_configs(BrokerLayers(cluster.config, cluster.image, 1))}
    below = [(own, "8", 3), (own, "7", 4), (of_all, "100", 4), (of_all, "2147483647", 5)]
    assert (shown[own].value, shown[own].source, rows(shown[own])) == ("8", 3, below), "from its first own value on"
    alter(cluster, BROKER, "1", (own, SET, "9"))
    shown = {config.key.name: config for config in broker_configs(BrokerLayers(cluster.config, cluster.image, 1))}
    assert rows(shown[own]) == [(own, "9", 2), (of_all, "90", 2), *below]


def test_a_topic_has_33_keys_and_a_broker_340_and_secrets_are_not_shown() -> None:
    cluster = one_node({"x.y": "z"})
    secret = ConfigRecord(resource_type=BROKER, resource_name="1", name="ssl.key.password", value="hush")
    cluster.image.replay(secret, 0)
    layers = BrokerLayers(cluster.config, cluster.image, 1)
    assert len(topic_configs(layers, {})) == 33
    shown = {config.key.name: config for config in broker_configs(layers)}
    assert len([name for name in shown if name in broker_keys()]) == 340
    assert shown["ssl.key.password"].value is None
    assert rows(shown["ssl.key.password"]) == [("ssl.key.password", None, 2)]
    assert (shown["x.y"].value, shown["x.y"].key.sensitive, shown["x.y"].key.type) == (None, True, "unknown")
    assert rows(shown["x.y"]) == [("x.y", None, 4)]
    assert shown["process.roles"].key.read_only
    assert not shown["log.retention.ms"].key.read_only
    assert shown["log.retention.hours"].key.read_only


def test_the_rates_of_replication_are_shown_where_they_are_set() -> None:
    cluster, rate = one_node(), "leader.replication.throttled.rate"

    def shown() -> dict[str, EffectiveConfig]:
        return {each.key.name: each for each in broker_configs(BrokerLayers(cluster.config, cluster.image, 1))}

    assert not [name for name in shown() if "throttled" in name]
    assert alter(cluster, BROKER, "1", (rate, SET, "1000")) == (0, None)
    assert alter(cluster, BROKER, "1", (rate, SET, "-1"))[0] == 42
    assert (shown()[rate].value, shown()[rate].key.type, rows(shown()[rate])) == ("1000", "long", [(rate, "1000", 2)])


def test_internal_keys_are_shown_where_the_properties_have_them() -> None:
    cluster = one_node({"log.initial.task.delay.ms": "5"})
    shown = {each.key.name: each for each in broker_configs(BrokerLayers(cluster.config, cluster.image, 1))}
    internal = [each for name, each in shown.items() if broker_keys()[name].update == "internal"]
    assert [(each.key.name, each.value, each.source) for each in internal] == [
        ("log.initial.task.delay.ms", "5", ConfigSource.STATIC_BROKER_CONFIG)
    ]


def test_broker_id_is_shown_as_node_id_is_given() -> None:
    cluster = one_node({"node.id": "7"})
    shown = {each.key.name: each for each in broker_configs(BrokerLayers(cluster.config, cluster.image, 7))}
    assert (shown["broker.id"].value, rows(shown["broker.id"])) == (
        "7",
        [("broker.id", "7", 4), ("broker.id", "-1", 5)],
    )


def test_every_error_of_a_row_is_one_of_kafkas() -> None:
    assert all(ErrorCode(case[3]) for case in REFUSED)


def test_defaults_of_topics_follow_what_the_cluster_sets_at_run_time() -> None:
    cluster = cluster_with_topic()
    alter(cluster, BROKER, "", ("log.segment.bytes", SET, "2097152"))
    row: Any = create(cluster, creatable("u"))["u"]
    found = next(config for config in row.configs if config.name == "segment.bytes")
    assert (found.value, found.config_source) == ("2097152", 3)


def test_a_group_has_values_of_its_own_before_the_brokers() -> None:
    cluster = one_node({"group.consumer.session.timeout.ms": "50000"})
    assert alter(cluster, GROUP, "g", (SESSION, SET, "46000")) == (0, None)
    layers = BrokerLayers(cluster.config, cluster.replayed(), 1)
    found = {each.key.name: each for each in group_configs(layers, cluster.image.group_config("g"))}
    assert (found[SESSION].value, found[SESSION].source) == ("46000", ConfigSource.GROUP_CONFIG)
    assert [(each.name, each.value) for each in found[SESSION].synonyms] == [
        (SESSION, "46000"),
        ("group.consumer.session.timeout.ms", "50000"),
        ("group.consumer.session.timeout.ms", "45000"),
    ]
    assert (found[HEARTBEAT].value, found[HEARTBEAT].source) == ("5000", ConfigSource.DEFAULT_CONFIG)
    assert alter(cluster, GROUP, "g", (SESSION, DELETE, None)) == (0, None)
    assert cluster.image.group_config("g") == {}


def test_a_groups_heartbeats_come_within_its_session() -> None:
    cluster = one_node(
        {"group.consumer.min.session.timeout.ms": "1000", "group.consumer.min.heartbeat.interval.ms": "1"}
    )
    assert alter(cluster, GROUP, "g", (SESSION, SET, "6000"), (HEARTBEAT, SET, "5999")) == (0, None)
    error_code, message = alter(cluster, GROUP, "g", (HEARTBEAT, SET, "6000"))
    assert (error_code, message) == (40, f"{SESSION} must be greater than {HEARTBEAT}")


def test_pykbrokers_own_keys_are_shown_where_the_properties_have_them_and_change_at_no_run_time() -> None:
    cluster = one_node({"console.listener": "127.0.0.1:1"})
    shown = {each.key.name: each for each in broker_configs(BrokerLayers(cluster.config, cluster.image, 1))}
    own = [each for name, each in shown.items() if name in own_keys()]
    assert [(each.key.name, each.value, each.source) for each in own] == [
        ("console.listener", "127.0.0.1:1", ConfigSource.STATIC_BROKER_CONFIG)
    ]
    code, message = alter(cluster, BROKER, "1", ("metrics.listener", SET, "127.0.0.1:2"))
    assert (code, message) == (42, "Cannot update these configs dynamically: [metrics.listener]")


def test_keys_of_4_4_are_shown_from_its_levels_on_and_where_they_are_set() -> None:
    cluster = cluster_with_topic()
    of_topic, of_group = "errors.deadletterqueue.group.enable", "errors.deadletterqueue.topic.name"
    of_broker = "errors.deadletterqueue.topic.name.prefix"

    def shown(topic: str = "t", group: str = "g") -> set[str]:
        layers = BrokerLayers(cluster.config, cluster.image, 1)
        configs = topic_configs(layers, cluster.image.topic_config(topic))
        configs += group_configs(layers, cluster.image.group_config(group)) + broker_configs(layers)
        return {each.key.name for each in configs} & {of_topic, of_group, of_broker}

    assert not shown()
    assert alter(cluster, TOPIC, "t", (of_topic, SET, "true")) == (0, None)
    assert alter(cluster, GROUP, "g", (of_group, SET, "dlq.t")) == (0, None)
    assert alter(cluster, BROKER, "", (of_broker, SET, "")) == (0, None)
    assert shown() == {of_topic, of_group, of_broker}
    assert alter(cluster, BROKER, "", (of_broker, DELETE, None)) == (0, None)
    assert not shown("u", "h")
    cluster.take(Result([FeatureLevelRecord(name="metadata.version", feature_level=31)]))
    assert shown("u", "h") == {of_topic, of_group, of_broker}
