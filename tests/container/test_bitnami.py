"""Variables of Bitnami's image: its aliases and commands, users, key stores, and its volume."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pykbroker.config import ConfigurationError
from pykbroker.security.sasl.jaas import parse_one

from .builders import config_of, read, write

ONE_NODE = {
    "KAFKA_CFG_NODE_ID": "0",
    "KAFKA_CFG_PROCESS_ROLES": "controller,broker",
    "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS": "0@kafka:9093",
    "KAFKA_CFG_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "KAFKA_CFG_ADVERTISED_LISTENERS": "PLAINTEXT://:9092",
    "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "KAFKA_CFG_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CFG_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
}
SASL = {
    **ONE_NODE,
    "KAFKA_CFG_LISTENERS": "CLIENT://:9092,INTERNAL://:9094,CONTROLLER://:9093",
    "KAFKA_CFG_ADVERTISED_LISTENERS": "CLIENT://localhost:9092,INTERNAL://kafka:9094",
    "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": ",".join(
        f"{name}:SASL_PLAINTEXT" for name in ("CLIENT", "INTERNAL", "CONTROLLER")
    ),
    "KAFKA_CFG_INTER_BROKER_LISTENER_NAME": "INTERNAL",
    "KAFKA_CFG_SASL_MECHANISM_INTER_BROKER_PROTOCOL": "SCRAM-SHA-256",
    "KAFKA_CFG_SASL_MECHANISM_CONTROLLER_PROTOCOL": "PLAIN",
    "KAFKA_CLIENT_USERS": "alice,bob",
    "KAFKA_CLIENT_PASSWORDS": 'a1;b"2',
    "KAFKA_INTER_BROKER_USER": "nodes",
    "KAFKA_INTER_BROKER_PASSWORD": "n3",
    "KAFKA_CONTROLLER_USER": "boss",
    "KAFKA_CONTROLLER_PASSWORD": "c4",
}


def test_a_compose_file_of_bitnami_gives_the_node_it_meant(tmp_path: Path) -> None:
    config = config_of(ONE_NODE, tmp_path)
    assert config.node_id == 0
    assert config.log_dirs == [f"{tmp_path}/bitnami/kafka/data"]
    assert config.int("offsets.topic.replication.factor") == 1
    assert config.unknown_keys == []


def test_switches_of_the_image_are_no_keys() -> None:
    node = read({**ONE_NODE, "ALLOW_PLAINTEXT_LISTENER": "yes", "KAFKA_ENABLE_KRAFT": "yes", "BITNAMI_DEBUG": "true"})
    assert node.notes == []


@pytest.mark.parametrize(
    ("alias", "key"),
    [
        ("KAFKA_LOGS_DIRS", "log.dirs"),
        ("KAFKA_SEGMENT_BYTES", "log.segment.bytes"),
        ("KAFKA_MAX_MESSAGE_BYTES", "message.max.bytes"),
        ("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "auto.create.topics.enable"),
    ],
)
def test_aliases_set_their_keys(alias: str, key: str) -> None:
    assert read({alias: "1"}).properties == {key: "1"}


def test_commands_give_values() -> None:
    node = read({"KAFKA_NODE_ID_COMMAND": "echo $NAME | cut -d- -f2", "NAME": "kafka-7", "PATH": "/usr/bin:/bin"})
    assert node.properties["node.id"] == "7"
    assert node.named("node.id is wrong") == "KAFKA_NODE_ID_COMMAND: node.id is wrong"
    with pytest.raises(ConfigurationError, match=r"^KAFKA_NODE_ID_COMMAND has ended with 3 and ''"):
        read({"KAFKA_NODE_ID_COMMAND": "exit 3"})


def test_each_listener_and_mechanism_has_its_users() -> None:
    properties = read(SASL).properties
    prefix = "listener.name."
    lines = {key.removeprefix(prefix): text for key, text in properties.items() if key.endswith("jaas.config")}
    mechanisms = ("plain", "scram-sha-256", "scram-sha-512")
    of_clients = {f"{name}.{each}.sasl.jaas.config" for name in ("client", "internal") for each in mechanisms}
    assert lines.keys() == {*of_clients, "controller.plain.sasl.jaas.config"}
    parsed = {name: parse_one(name, text).options for name, text in lines.items()}
    clients = {"user_alice": "a1", "user_bob": 'b"2'}
    assert parsed["client.plain.sasl.jaas.config"] == clients
    nodes = {"username": "nodes", "password": "n3"}
    assert parsed["internal.plain.sasl.jaas.config"] == {**nodes, **clients, "user_nodes": "n3"}
    assert parsed["internal.scram-sha-256.sasl.jaas.config"] == nodes
    assert parsed["client.scram-sha-256.sasl.jaas.config"] == {}
    assert parsed["controller.plain.sasl.jaas.config"] == {"username": "boss", "password": "c4", "user_boss": "c4"}
    assert properties["sasl.enabled.mechanisms"] == "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
    assert properties["listener.name.controller.sasl.enabled.mechanisms"] == "PLAIN"


def test_users_of_scram_are_there_from_the_beginning() -> None:
    assert read(SASL).scram_users == [
        "SCRAM-SHA-256=[name=alice,password=a1]",
        'SCRAM-SHA-256=[name=bob,password=b"2]',
        "SCRAM-SHA-512=[name=alice,password=a1]",
        'SCRAM-SHA-512=[name=bob,password=b"2]',
        "SCRAM-SHA-256=[name=nodes,password=n3]",
    ]
    assert read(ONE_NODE).scram_users == []


@pytest.mark.parametrize(
    ("missing", "complaint"),
    [
        ("KAFKA_CLIENT_USERS", "^KAFKA_CLIENT_USERS and KAFKA_CLIENT_PASSWORDS are not both set"),
        ("KAFKA_INTER_BROKER_PASSWORD", "^KAFKA_INTER_BROKER_USER and KAFKA_INTER_BROKER_PASSWORD are not both set"),
        ("KAFKA_CONTROLLER_USER", "^KAFKA_CONTROLLER_USER and KAFKA_CONTROLLER_PASSWORD are not both set"),
        ("KAFKA_CFG_SASL_MECHANISM_CONTROLLER_PROTOCOL", "^KAFKA_CFG_SASL_MECHANISM_CONTROLLER_PROTOCOL is not set"),
    ],
)
def test_no_password_is_known_to_everybody(missing: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        read({name: text for name, text in SASL.items() if name != missing})


def test_jaas_lines_of_ones_own_need_no_users_of_the_image() -> None:
    own = {"KAFKA_CFG_LISTENER_NAME_CLIENT_PLAIN_SASL_JAAS_CONFIG": 'a.PlainLoginModule required user_a="b";'}
    variables = {**SASL, **own, "KAFKA_CLIENT_USERS": "", "KAFKA_CLIENT_PASSWORDS": ""}
    node = read({**variables, "KAFKA_CFG_SASL_MECHANISM_INTER_BROKER_PROTOCOL": "PLAIN"})
    assert node.properties["listener.name.client.plain.sasl.jaas.config"] == next(iter(own.values()))
    assert node.properties["sasl.enabled.mechanisms"] == "PLAIN"
    line = node.properties["listener.name.internal.plain.sasl.jaas.config"]
    assert parse_one("key", line).options == {"username": "nodes", "password": "n3", "user_nodes": "n3"}
    assert node.scram_users == []


def test_a_mounted_file_or_a_jaas_file_has_the_users(tmp_path: Path) -> None:
    variables = {name: text for name, text in SASL.items() if name != "KAFKA_CLIENT_USERS"}
    node = read({**variables, "KAFKA_OPTS": "-Djava.security.auth.login.config=/jaas.conf"})
    assert [key for key in node.properties if key.endswith("jaas.config")] == []
    write(tmp_path, "bitnami/kafka/config/server.properties", "num.partitions=3\n")
    assert [key for key in read(variables, tmp_path).properties if key.endswith("jaas.config")] == []


def test_each_user_has_a_password() -> None:
    with pytest.raises(ConfigurationError, match=r"^KAFKA_CLIENT_USERS names 2 users, and .* has 1 passwords$"):
        read({**SASL, "KAFKA_CLIENT_PASSWORDS": "a1"})


def test_passwords_may_be_in_files(tmp_path: Path) -> None:
    path = write(tmp_path, "passwords", "a1,b2\n")
    variables = {name: text for name, text in SASL.items() if name != "KAFKA_CLIENT_PASSWORDS"}
    node = read({**variables, "KAFKA_CLIENT_PASSWORDS_FILE": str(path)})
    assert "SCRAM-SHA-256=[name=bob,password=b2]" in node.scram_users


TLS = {
    **ONE_NODE,
    "KAFKA_CFG_LISTENERS": "SSL://:9092,CONTROLLER://:9093",
    "KAFKA_CFG_ADVERTISED_LISTENERS": "SSL://kafka:9092",
    "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,SSL:SSL",
    "KAFKA_CFG_INTER_BROKER_LISTENER_NAME": "SSL",
    "KAFKA_CERTIFICATE_PASSWORD": "secret",
}


@pytest.mark.parametrize("place", ["opt/bitnami/kafka/config/certs", "bitnami/kafka/config/certs"])
def test_key_stores_are_found_at_their_places(tmp_path: Path, place: str) -> None:
    keystore = write(tmp_path, f"{place}/kafka.keystore.jks", "store")
    truststore = write(tmp_path, f"{place}/kafka.truststore.jks", "store")
    given = read(TLS, tmp_path).properties
    assert {key: text for key, text in given.items() if key.startswith("ssl.")} == {
        "ssl.client.auth": "required",
        "ssl.keystore.type": "JKS",
        "ssl.keystore.location": str(keystore),
        "ssl.keystore.password": "secret",
        "ssl.key.password": "secret",
        "ssl.truststore.type": "JKS",
        "ssl.truststore.location": str(truststore),
        "ssl.truststore.password": "secret",
    }


def test_pem_files_are_read(tmp_path: Path) -> None:
    place = "opt/bitnami/kafka/config/certs"
    for name in ("kafka.keystore.key", "kafka.keystore.pem", "kafka.truststore.pem"):
        write(tmp_path, f"{place}/{name}", f"{name}\nend\n")
    given = read({**TLS, "KAFKA_TLS_TYPE": "PEM", "KAFKA_TLS_SSL_CLIENT_AUTH": "none"}, tmp_path).properties
    assert given["ssl.keystore.key"] == "kafka.keystore.key\nend"
    assert given["ssl.keystore.certificate.chain"] == "kafka.keystore.pem\nend"
    assert given["ssl.truststore.certificates"] == "kafka.truststore.pem\nend"
    assert given["listener.name.ssl.ssl.client.auth"] == "none"


def test_stores_that_are_missing_or_wrong_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=re.escape("KAFKA_TLS_TYPE: there is no file kafka.keystore.jks in ")):
        read(TLS, tmp_path)
    with pytest.raises(ConfigurationError, match=r"^KAFKA_TLS_TYPE='ZIP': JKS, PEM are allowed$"):
        read({**TLS, "KAFKA_TLS_TYPE": "ZIP"}, tmp_path)


def test_a_store_that_is_given_by_its_key_is_not_looked_for(tmp_path: Path) -> None:
    given = read({**TLS, "KAFKA_CFG_SSL_KEYSTORE_LOCATION": "/my.jks"}, tmp_path).properties
    assert given["ssl.keystore.location"] == "/my.jks"
