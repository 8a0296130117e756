"""Every key that Kafka knows is read here, or said to have no effect, or refused because it protects."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from pykbroker.config import BrokerConfig, ConfigurationError, broker_keys, group_keys, topic_keys
from pykbroker.config.broker_keys import OF_KAFKA_4_4
from pykbroker.config.dynamic_listeners import KEYS
from pykbroker.config.group_bounds import BOUNDS, KINDS, keys_of
from pykbroker.config.group_keys import GROUP_KEYS_OF_4_4, WITHOUT_EFFECT, broker_key
from pykbroker.config.listener_keys import MOST_PARTS, check_listeners_exist, key_of_listener
from pykbroker.config.topic_keys import BROKER_SYNONYMS, TOPIC_KEYS_OF_4_4
from pykbroker.config.unserved_keys import is_without_effect, protects, unserved
from pykbroker.server.node.dynamic_settings import WATCHED
from pykbroker.storage.segments.log_config import LogConfig

ROOT = Path(__file__).parents[1]
DECLARATIONS = {ROOT / "pykbroker" / "config" / f"{name}_keys.py" for name in ("broker", "topic", "group", "unserved")}
OTHERS = tuple(
    ROOT / "pykbroker" / name
    for name in (
        *("cli", "sim", "client/from_properties.py", "client/replication_throttles.py"),
        *("config/texts", "config/dynamic_rules.py"),
    )
)
"""They give keys to brokers, or read those of clients, or explain or check keys, and act on none of a node's."""

OF_KAFKA = [line.split() for line in Path(__file__).with_name("kafka_4_3_config_keys.txt").read_text().splitlines()[1:]]

KAFKAS_EXAMPLE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,"
    "SASL_SSL:SASL_SSL",
    "num.network.threads": "3",
    "num.io.threads": "8",
    "socket.send.buffer.bytes": "102400",
    "socket.receive.buffer.bytes": "102400",
    "socket.request.max.bytes": "104857600",
    "log.dirs": "/tmp/kraft-combined-logs",
    "num.partitions": "1",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.retention.hours": "168",
    "log.segment.bytes": "1073741824",
    "log.retention.check.interval.ms": "300000",
}
"""The settings of `config/server.properties` as Kafka delivers it."""


@cache
def code() -> tuple[set[str], set[str]]:
    """All texts and all names of attributes in it, where nodes read settings."""
    texts, attributes = set(), set()
    for folder in ("pykbroker", "raft", "storage"):
        for path in (ROOT / folder).rglob("*.py"):
            is_link = any(parent.is_symlink() for parent in path.parents if parent.is_relative_to(ROOT))
            if is_link or path in DECLARATIONS or any(path.is_relative_to(each) for each in OTHERS):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    texts.add(node.value)
                elif isinstance(node, ast.Attribute) and path.name != "log_config.py":
                    attributes.add(node.attr)
    return texts, attributes


def is_topic_key_read(name: str) -> bool:
    field = name.replace(".", "_")
    texts, attributes = code()
    is_level = re.fullmatch(r"compression_\w+_level", field) is not None
    used = field in attributes or (is_level and "compression_level" in attributes)
    return name in texts or (field in LogConfig.__dataclass_fields__ and used)


def is_read(name: str) -> bool:
    topic_names = [topic_name for topic_name, names in BROKER_SYNONYMS.items() if name in names]
    of_groups = {broker_key(each) for each in group_keys() if each not in WITHOUT_EFFECT}.union(*map(keys_of, BOUNDS))
    return name in code()[0] or name in of_groups or any(is_topic_key_read(each) for each in topic_names)


def test_there_are_the_keys_that_kafka_has() -> None:
    def of(kind: str) -> set[str]:
        return {name for each, name, *_ in OF_KAFKA if each == kind}

    documented = {
        name: key.type for name, key in broker_keys().items() if key.update != "internal" and name not in OF_KAFKA_4_4
    }
    assert set(documented) == of("broker")
    assert set(topic_keys()) == of("topic")
    assert set(group_keys()) - GROUP_KEYS_OF_4_4 == of("group")
    types = {name: type_ for kind, name, type_, *_ in OF_KAFKA if kind == "broker"}
    assert documented == types


def test_the_keys_of_4_4_are_no_others_than_those_that_it_added() -> None:
    """They are no keys of 4.3, and each has the default that Kafka 4.4.0 has."""
    assert not {name for _, name, *_ in OF_KAFKA} & {*OF_KAFKA_4_4, *TOPIC_KEYS_OF_4_4, *GROUP_KEYS_OF_4_4}
    assert {name: broker_keys()[name].default for name in OF_KAFKA_4_4} == {
        "errors.deadletterqueue.auto.create.topics.enable": "false",
        "errors.deadletterqueue.topic.name.prefix": "dlq.",
        "group.consumer.assignor.offload.enable": "true",
        "group.share.assignor.offload.enable": "true",
        "group.streams.assignor.offload.enable": "true",
        "group.streams.assignors": "sticky",
        "group.streams.rack.aware.assignment.tags": "",
        "group.streams.topology.description.plugin.class": None,
        "log.remote.copy.lag.bytes": "-1",
        "log.remote.copy.lag.ms": "0",
        "max.decompressed.message.bytes": "2147483639",
        "sasl.oauthbearer.allow.unverified.audience": "false",
        "sasl.oauthbearer.allow.unverified.issuer": "false",
    }
    assert {name: key.default for name, key in TOPIC_KEYS_OF_4_4.items()} == {
        "errors.deadletterqueue.group.enable": "false",
        "max.decompressed.message.bytes": "2147483639",
        "remote.copy.lag.bytes": "-1",
        "remote.copy.lag.ms": "0",
    }
    assert {name: group_keys()[name].default for name in GROUP_KEYS_OF_4_4} == {
        "errors.deadletterqueue.copy.record.enable": "false",
        "errors.deadletterqueue.topic.name": "",
        "consumer.assignor.offload.enable": "true",
        "share.assignor.offload.enable": "true",
        "streams.acceptable.recovery.lag": "10000",
        "streams.assignor.name": "sticky",
        "streams.assignor.offload.enable": "true",
        "streams.num.warmup.replicas": "2",
        "streams.rack.aware.assignment.tags": "",
        "streams.task.offset.interval.ms": "60000",
    }


@pytest.mark.parametrize("name", broker_keys())
def test_each_key_is_read_or_has_no_effect_or_protects(name: str) -> None:
    found = [
        what
        for what, holds in (
            ("is read", is_read(name)),
            ("has no effect", is_without_effect(name)),
            ("protects", protects(name)),
        )
        if holds
    ]
    assert len(found) == 1, f"{name}: {found}; see unserved_keys"


ACTED_ON_AT_RUN_TIME = {
    "connections": {"max.connection.creation.rate", "max.connections", "max.connections.per.ip"},
    "hosts": {"max.connections.per.ip.overrides"},
    "replicas": {
        "cordoned.log.dirs",
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    },
    "dead letters": {"errors.deadletterqueue.auto.create.topics.enable", "errors.deadletterqueue.topic.name.prefix"},
    "groups": {f"group.{kind}.assignment.interval.ms" for kind in KINDS},
    "listeners": set(KEYS),
    "dynamic settings": {*WATCHED, "num.recovery.threads.per.data.dir"},
    "transactions": {"transaction.partition.verification.enable"},
}
"""Keys of a broker that are no defaults of topics and neither of TLS nor SASL, by the part that looks at the image."""


def test_a_change_at_run_time_is_acted_on_by_a_part_of_the_node() -> None:
    of_topics = {name for names in BROKER_SYNONYMS.values() for name in names}
    changed = {
        name
        for name, key in broker_keys().items()
        if key.update in ("broker", "cluster") and not name.startswith(("ssl.", "sasl."))
    }
    served = {name for name in changed if not is_without_effect(name) and not protects(name)}
    assert served - of_topics == set().union(*ACTED_ON_AT_RUN_TIME.values())


@pytest.mark.parametrize("name", topic_keys())
def test_each_key_of_a_topic_is_read_or_of_what_is_not_offered(name: str) -> None:
    of_tiered_storage = name.startswith(("remote.", "local."))
    assert is_topic_key_read(name) != of_tiered_storage or name == "remote.storage.enable"


def test_a_key_that_protects_ends_the_start_with_one_line_that_names_them_all() -> None:
    given = {
        "listeners": "SASL_SSL://:9092",
        "client.quota.callback.class": "org.example.Quotas",
        "listener.name.sasl_ssl.plain.sasl.server.callback.handler.class": "secret",
        "principal.builder.class": "org.example.Builder",
    }
    with pytest.raises(ConfigurationError) as refused:
        BrokerConfig(given)
    line = str(refused.value)
    assert all(name in line for name in given if name != "listeners")
    assert "secret" not in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("client.quota.callback.class", "org.example.Quotas"),
        ("principal.builder.class", "org.example.Builder"),
        ("sasl.server.callback.handler.class", "org.example.Handler"),
        ("ssl.client.auth", "required"),
        ("listener.name.plaintext.ssl.client.auth", "requested"),
        ("listener.name.PLAINTEXT.ssl.keystore.location", "/etc/keys"),
        ("listener.name.elsewhere.ssl.client.auth", "required"),
        ("config.providers", "file"),
        ("listener.name.x.gssapi.sasl.kerberos.service.name", "kafka"),
    ],
)
def test_what_would_limit_or_guard_in_kafka_is_refused(name: str, text: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(name)):
        BrokerConfig({name: text})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("authorizer.class.name", ""),
        ("allow.everyone.if.no.acl.found", "true"),
        ("ssl.client.auth", "none"),
        ("sasl.enabled.mechanisms", "GSSAPI"),
        ("ssl.endpoint.identification.algorithm", ""),
        ("connections.max.reauth.ms", "0"),
        ("listener.name.plaintext.max.connections", "5"),
    ],
)
def test_a_value_that_protects_nothing_harms_nobody(name: str, text: str) -> None:
    config = BrokerConfig({name: text})
    assert config.without_effect == []


def test_what_certificates_clients_show_is_no_matter_for_a_listener_of_another_node() -> None:
    assert BrokerConfig({"listener.name.sasl_ssl.ssl.client.auth": "required"}).without_effect == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("connections.max.reauth.ms", "3600000"),
        ("delegation.token.secret.key", "hush"),
        ("sasl.jaas.config", "secret"),
        ("listener.name.x.sasl.jaas.config", "secret"),
        ("listener.name.x.sasl.mechanism.inter.broker.protocol", "PLAIN"),
        ("listener.name.x.sasl.server.max.receive.size", "9"),
        ("listener.name.x.oauthbearer.sasl.oauthbearer.expected.audience", "kafka"),
        ("listener.name.x.plain.sasl.enabled.mechanisms", "PLAIN"),
    ],
)
def test_what_is_read_at_the_start_is_refused_at_run_time(name: str, text: str) -> None:
    assert unserved({name: text}) == []
    assert unserved({name: text}, at_run_time=True) == [name]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sasl.enabled.mechanisms", "PLAIN"),
        ("listener.name.x.sasl.enabled.mechanisms", "PLAIN"),
        ("listener.name.x.plain.sasl.jaas.config", "secret"),
        ("listener.name.x.connections.max.reauth.ms", "3600000"),
        ("listener.name.x.plain.connections.max.reauth.ms", "3600000"),
    ],
)
def test_who_is_let_in_may_change_at_run_time(name: str, text: str) -> None:
    assert unserved({name: text}) == unserved({name: text}, at_run_time=True) == []


def test_a_key_has_fewer_parts_than_are_looked_at() -> None:
    """Behind a listener's name, and a mechanism's."""
    assert max(name.count(".") for name, *_ in OF_KAFKA) + 2 < MOST_PARTS


@pytest.mark.parametrize("parts", [MOST_PARTS - 2, MOST_PARTS - 1, MOST_PARTS, MOST_PARTS + 1, 500])
def test_a_key_is_found_however_many_parts_stand_around_it(parts: int) -> None:
    filling = "a." * parts
    assert key_of_listener(f"listener.name.{filling}ssl.keystore.type") is broker_keys()["ssl.keystore.type"]
    assert protects(f"listener.name.{filling}sasl.kerberos.service.name")
    assert protects(f"listener.name.x.sasl.{filling}y")
    assert protects(f"listener.name.x.{filling}sasl.{filling}y")
    assert not protects(f"listener.name.sasl.{filling}y")
    assert not protects(f"listener.name.x.{filling}saslx.{filling}y")
    for family in ("ssl.", "sasl."):
        with pytest.raises(ConfigurationError, match="no listener has this name"):
            check_listeners_exist([f"listener.name.{filling}{family}{filling}y"], ["other"])
    check_listeners_exist([f"listener.name.{filling}xsasl.{filling}y", f"listener.name.sasl.{filling}y"], ["other"])


def test_settings_without_effect_are_named_where_they_differ_from_the_default() -> None:
    given = {"num.io.threads": "08", "num.network.threads": "9", "remote.log.storage.system.enable": "true"}
    assert BrokerConfig(given).without_effect == ["num.network.threads", "remote.log.storage.system.enable"]


def test_kafkas_own_example_starts_without_a_word() -> None:
    config = BrokerConfig(KAFKAS_EXAMPLE)
    assert config.unknown_keys == []
    assert config.without_effect == []
