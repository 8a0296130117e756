"""What variables say of a node: precedence, defaults, cluster ids, log levels, and complaints that name variables."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from pykbroker.config import BrokerConfig, ConfigurationError

from .builders import ONE_NODE, config_of, read, write

DEFAULT_FILE = "etc/pykbroker/server.properties"


def test_a_compose_file_of_apache_kafka_gives_the_node_it_meant() -> None:
    config = config_of(ONE_NODE)
    assert config.node_id == 1
    assert [str(each) for each in config.listeners.advertised] == [
        "PLAINTEXT_HOST://localhost:9092",
        "PLAINTEXT://broker:19092",
    ]
    assert config.quorum_voters == {1: ("broker", 29093)}
    assert config.unknown_keys == []


def test_the_environment_wins_over_the_mounted_file_and_that_over_the_defaults(tmp_path: Path) -> None:
    write(tmp_path, DEFAULT_FILE, "num.partitions=1\nnode.id=1\nlog.dirs=/default\n")
    write(tmp_path, "mnt/shared/config/server.properties", "num.partitions=2\nnode.id=2\nmessage.max.bytes=9\n")
    config = config_of({"KAFKA_NODE_ID": "3"}, tmp_path)
    assert (config.node_id, config.int("num.partitions"), config.int("message.max.bytes")) == (3, 2, 9)


@pytest.mark.parametrize("variables", [{}, {"KAFKA_NUM_PARTITIONS": "7"}])
def test_the_default_file_holds_where_nothing_says_what_node_it_is(tmp_path: Path, variables: dict[str, str]) -> None:
    write(tmp_path, DEFAULT_FILE, "node.id=5\nnum.partitions=3\n")
    config = config_of(variables, tmp_path)
    assert (config.node_id, config.int("num.partitions")) == (5, 7 if variables else 3)


@pytest.mark.parametrize("text", [None, " \n \n"])
def test_a_node_that_says_what_it_is_has_nothing_of_the_default_file_but_the_directory(
    tmp_path: Path, text: str | None
) -> None:
    write(tmp_path, DEFAULT_FILE, "node.id=5\noffsets.topic.replication.factor=1\n")
    if text is not None:
        write(tmp_path, "mnt/shared/config/server.properties", text)
    config = config_of(ONE_NODE, tmp_path)
    assert config.int("offsets.topic.replication.factor") == 3
    assert config.log_dirs == [f"{tmp_path}/var/lib/pykbroker/data"]


@pytest.mark.parametrize("key", ["log.dirs", "log.dir"])
def test_directories_that_are_given_stay(tmp_path: Path, key: str) -> None:
    assert config_of({f"KAFKA_{key.replace('.', '_').upper()}": "/a"}, tmp_path).log_dirs == ["/a"]
    write(tmp_path, "mnt/shared/config/server.properties", f"{key}=/b\n")
    assert config_of({}, tmp_path).log_dirs == ["/b"]


def test_without_an_image_no_file_counts() -> None:
    node = read({})
    assert (node.file, node.properties, node.defaults) == (None, {}, {})


def test_a_variable_that_is_no_key_is_told_with_what_may_be_meant() -> None:
    notes = read({"KAFKA_NUM_PARTITION": "3", "KAFKA_XYZZY": "1", "KAFKA_CFG_NUM_PARTITIONSS": "3"}).notes
    assert notes == [
        "KAFKA_CFG_NUM_PARTITIONSS is ignored: a broker has no key num.partitionss; "
        "did you mean KAFKA_CFG_NUM_PARTITIONS?",
        "KAFKA_NUM_PARTITION is ignored: a broker has no key num.partition; did you mean KAFKA_NUM_PARTITIONS?",
        "KAFKA_XYZZY is ignored: a broker has no key xyzzy",
    ]


def test_very_many_variables_are_some_lines() -> None:
    notes = read({f"KAFKA_XYZZY_{number}": "1" for number in range(5_000)}).notes
    assert len(notes) == 21
    assert notes[-1] == "4980 more variables are ignored: they are no keys"


def test_variables_without_meaning_are_one_line() -> None:
    node = read(
        {
            "KAFKA_HEAP_OPTS": "-Xmx1g",
            "KAFKA_JMX_PORT": "9999",
            "KAFKA_OPTS": "-javaagent:/jmx.jar",
            "KAFKA_LOG4J_LOGGERS": "kafka.controller=WARN,kafka.server=WARN",
            "KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE": "false",
            "KAFKA_VERSION": "3.9.0",
            "KAFKA_PORT_9092_TCP": "tcp://10.0.0.1:9092",
            "PATH": "/bin",
        }
    )
    assert node.notes == [
        "without meaning in pykbroker: KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE, KAFKA_HEAP_OPTS, KAFKA_JMX_PORT, "
        "KAFKA_LOG4J_LOGGERS, KAFKA_OPTS"
    ]
    assert node.properties == {}


def test_options_of_java_that_are_read_are_not_called_meaningless() -> None:
    assert read({"KAFKA_OPTS": "-Djava.security.auth.login.config=/jaas.conf"}).notes == []


def test_zookeeper_is_told_to_be_gone() -> None:
    notes = read({"KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181", "KAFKA_BROKER_ID": "1"}).notes
    assert notes[-1].startswith("there is no ZooKeeper (KAFKA_ZOOKEEPER_CONNECT)")
    assert "KAFKA_CONTROLLER_QUORUM_VOTERS" in notes[-1]


def test_variables_of_both_images_go_together_where_they_agree() -> None:
    assert read({"KAFKA_NODE_ID": "1", "KAFKA_CFG_NODE_ID": "1"}).properties["node.id"] == "1"
    with pytest.raises(
        ConfigurationError, match=r"^KAFKA_CFG_NODE_ID and KAFKA_NODE_ID set node.id to different values$"
    ):
        read({"KAFKA_NODE_ID": "1", "KAFKA_CFG_NODE_ID": "2"})


def test_listeners_follow_from_what_is_advertised() -> None:
    given = {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://broker:9092,SSL://[::1]:9093"}
    assert read(given).properties["listeners"] == "PLAINTEXT://0.0.0.0:9092,SSL://0.0.0.0:9093"
    given = {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://broker:9092", "KAFKA_LISTENERS": ""}
    assert read(given).properties["listeners"] == "PLAINTEXT://0.0.0.0:9092"
    assert "listeners" not in read({"KAFKA_ADVERTISED_LISTENERS": ""}).properties


def test_the_mounted_listeners_stay_where_only_the_advertised_are_given(tmp_path: Path) -> None:
    write(tmp_path, "mnt/shared/config/server.properties", "listeners=PLAINTEXT://:7000\n")
    config = config_of({"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://broker:9092"}, tmp_path)
    assert [each.port for each in config.listeners.client] == [7000]


def test_a_controller_advertises_nothing() -> None:
    with pytest.raises(ConfigurationError, match=r"^KAFKA_ADVERTISED_LISTENERS is set, and a node with"):
        read({**ONE_NODE, "KAFKA_PROCESS_ROLES": "controller"})
    read({"KAFKA_PROCESS_ROLES": "controller", "KAFKA_ADVERTISED_LISTENERS": ""})


def test_stores_and_their_passwords_come_from_the_directory_of_secrets(tmp_path: Path) -> None:
    store = write(tmp_path, "etc/kafka/secrets/kafka.jks", "store")
    write(tmp_path, "etc/kafka/secrets/credentials", "pass word\n")
    properties = read(
        {
            "KAFKA_SSL_KEYSTORE_FILENAME": "kafka.jks",
            "KAFKA_SSL_KEYSTORE_CREDENTIALS": "credentials",
            "KAFKA_SSL_KEY_CREDENTIALS": "credentials",
        },
        tmp_path,
    ).properties
    assert properties == {
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": "pass word",
        "ssl.key.password": "pass word",
    }
    with pytest.raises(ConfigurationError, match=r"^KAFKA_SSL_TRUSTSTORE_FILENAME: there is no file .*/none.jks$"):
        read({"KAFKA_SSL_TRUSTSTORE_FILENAME": "none.jks"}, tmp_path)


def test_a_secret_may_be_in_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, "password", "secret\n")
    assert read({"KAFKA_SSL_KEY_PASSWORD_FILE": str(path)}).properties == {"ssl.key.password": "secret"}
    with pytest.raises(ConfigurationError, match=r"^KAFKA_SSL_KEY_PASSWORD_FILE: .* cannot be read"):
        read({"KAFKA_SSL_KEY_PASSWORD_FILE": "/none"})


@pytest.mark.parametrize("variable", ["CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID"])
def test_a_cluster_has_the_id_that_is_given(variable: str) -> None:
    assert read({variable: "abcdefghijklmnopqrstuv"}).cluster_id == "abcdefghijklmnopqrstuv"


@pytest.mark.parametrize("garbage", ["a b", "a\nb", "x" * 101, "ü"])
def test_garbage_is_no_cluster_id(garbage: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^CLUSTER_ID is no cluster id; `pykbroker format --random-uuid`"):
        read({"CLUSTER_ID": garbage})


def test_two_cluster_ids_are_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"^CLUSTER_ID and KAFKA_KRAFT_CLUSTER_ID are different cluster ids$"):
        read({"CLUSTER_ID": "a", "KAFKA_KRAFT_CLUSTER_ID": "b"})


def test_nodes_that_are_given_no_id_find_one_another() -> None:
    voters = {"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@a:1,2@b:1"}
    assert read(voters).cluster_id == read({"CLUSTER_ID": ""}).cluster_id is not None
    assert read({"KAFKA_CFG_CONTROLLER_QUORUM_VOTERS": "1@a:1,2@b:1"}).cluster_id == read(voters).cluster_id
    assert read({"KAFKA_CFG_NODE_ID": "1"}).cluster_id is None


def test_levels_of_the_log_are_those_of_log4j() -> None:
    variables = {"KAFKA_LOG4J_ROOT_LOGLEVEL": "warn", "KAFKA_LOG4J_LOGGERS": "pykbroker.raft=TRACE,kafka=INFO"}
    levels = read(variables).log_levels
    assert levels == {"pykbroker": logging.WARNING, "pykbroker.raft": logging.DEBUG}
    with pytest.raises(ConfigurationError, match=r"^KAFKA_LOG4J_ROOT_LOGLEVEL has the log level 'LOUD'; there are ALL"):
        read({"KAFKA_LOG4J_ROOT_LOGLEVEL": "loud"})


@pytest.mark.parametrize(
    ("variables", "beginning", "rest"),
    [
        ({"KAFKA_NODE_ID": "x"}, "KAFKA_NODE_ID: ", "node.id"),
        ({"KAFKA_NODE_ID": ""}, "KAFKA_NODE_ID: ", "node.id"),
        ({"KAFKA_CFG_NODE_ID": "-5"}, "KAFKA_CFG_NODE_ID: ", "node.id"),
        ({"KAFKA_PROCESS_ROLES": "boss"}, "KAFKA_PROCESS_ROLES: ", "process.roles"),
        ({"KAFKA_PROCESS_ROLES": "broker"}, "KAFKA_PROCESS_ROLES: ", r"\(see .*KAFKA_CONTROLLER_QUORUM_VOTERS"),
        ({"KAFKA_LISTENERS": "foo"}, "KAFKA_LISTENERS: ", "foo"),
        ({"KAFKA_ADVERTISED_LISTENERS": "foo"}, "KAFKA_ADVERTISED_LISTENERS: ", "foo"),
        (
            {"KAFKA_ADVERTISED_LISTENERS": '"PLAINTEXT://a:1"'},
            "KAFKA_ADVERTISED_LISTENERS: ",
            "; the quotes are part of",
        ),
        ({"KAFKA_BROKER_HEARTBEAT_INTERVAL_MS": "9000"}, "KAFKA_BROKER_HEARTBEAT_INTERVAL_MS: ", "session"),
    ],
)
def test_a_wrong_value_is_told_with_its_variable(variables: dict[str, str], beginning: str, rest: str) -> None:
    node = read(variables)
    with pytest.raises(ConfigurationError) as error:
        BrokerConfig.load(node.file, node.properties, node.defaults)
    text = node.named(str(error.value))
    assert text.startswith(beginning), text
    assert re.search(rest, text)
    assert "\n" not in text


def test_a_key_of_the_mounted_file_has_no_variable(tmp_path: Path) -> None:
    write(tmp_path, "mnt/shared/config/server.properties", "node.id=x\n")
    complaint = "Invalid value x for configuration node.id: Not a number of type INT"
    assert read({}, tmp_path).named(complaint) == complaint
