"""Configuration: Kafka's names, types and ranges, the dialect of properties files, listeners, and every complaint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pykbroker.config import BrokerConfig, ConfigKey, ConfigurationError, broker_keys, own_keys, topic_keys
from pykbroker.config.broker_keys import OF_KAFKA_4_4
from pykbroker.config.topic_keys import TOPIC_KEYS_OF_4_4

BROKER = {
    "process.roles": "broker",
    "controller.quorum.bootstrap.servers": "there:9093",
    "controller.listener.names": "CONTROLLER",
}
CONTROLLER = {"process.roles": "controller", "controller.quorum.bootstrap.servers": "there:9093"}


def test_without_configuration_one_node_serves_the_loopback_address() -> None:
    defaults = BrokerConfig.load(None, {})
    assert defaults.node_id == 1
    assert defaults.roles == {"broker", "controller"}
    listeners = defaults.listeners
    assert [str(each) for each in listeners.client] == ["PLAINTEXT://127.0.0.1:9092"]
    assert [str(each) for each in listeners.controller] == ["CONTROLLER://127.0.0.1:0"]
    assert listeners.advertised == listeners.client
    assert (listeners.inter_broker_name, listeners.controller_names) == ("PLAINTEXT", ("CONTROLLER",))
    assert defaults.unknown_keys == []
    assert defaults.quorum_voters == {}


def test_types_are_those_of_kafka() -> None:
    values = BrokerConfig({"log.dirs": "/a, /b", "broker.rack": "r1", "auto.create.topics.enable": " False "})
    assert values.int("socket.request.max.bytes") == 104857600
    assert values.bool("auto.create.topics.enable") is False
    assert values.list("log.dirs") == values.log_dirs == ["/a", "/b"]
    assert values.float("log.cleaner.min.cleanable.ratio") == 0.5
    assert values.str("broker.rack") == "r1"
    assert values.optional_int("log.retention.ms") is None
    assert values.optional_str("metadata.log.dir") is None
    assert values.metadata_log_dir == "/a"
    assert BrokerConfig({"metadata.log.dir": "/m"}).metadata_log_dir == "/m"
    with pytest.raises(AssertionError):
        values.int("broker.rack")


def test_there_are_as_many_keys_as_kafka_has() -> None:
    assert len(topic_keys()) == 33
    of_4_3 = [key for key in broker_keys().values() if key.update != "internal" and key.name not in OF_KAFKA_4_4]
    assert len(of_4_3) == 343
    for key in (*topic_keys().values(), *broker_keys().values()):
        assert key.default is None or key.canonical(key.default) == key.default, key.name


def test_node_id_and_its_old_name_are_one() -> None:
    assert BrokerConfig({"broker.id": "7"}).node_id == 7
    assert BrokerConfig({"node.id": "7"}).int("broker.id") == 7
    assert BrokerConfig({"node.id": "7", "broker.id": "7"}).node_id == 7


BAD = [
    ({"node.id": "a"}, "Invalid value a for configuration node.id: Not a number of type INT"),
    ({"node.id": "-1"}, "Invalid value -1 for configuration node.id: Value must be at least 0"),
    ({"node.id": "99999999999"}, "Not a number of type INT"),
    ({"node.id": "٣"}, "Not a number of type INT"),
    ({"node.id": "1", "broker.id": "2"}, "Invalid value 2 for configuration broker.id: the same as node.id"),
    ({"num.partitions": "0"}, "Invalid value 0 for configuration num.partitions: Value must be at least 1"),
    ({"num.partitions": ""}, "Invalid value  for configuration num.partitions: Not a number"),
    ({"auto.create.topics.enable": "yes"}, "Expected value to be either true or false"),
    ({"log.cleaner.min.cleanable.ratio": "1.5"}, "Value must be no more than 1"),
    ({"log.cleaner.min.cleanable.ratio": "nan"}, "Not a number of type DOUBLE"),
    ({"compression.type": "brotli"}, "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
    ({"group.consumer.migration.policy": "x"}, "(case insensitive): DISABLED, DOWNGRADE, UPGRADE, BIDIRECTIONAL"),
    ({"log.cleanup.policy": "delete,foo"}, "Invalid value foo for configuration log.cleanup.policy"),
    ({"log.cleanup.policy": "delete,,compact"}, "Configuration 'log.cleanup.policy' values must not be empty."),
    ({"remote.log.metadata.manager.class.name": ""}, "String must be non-empty"),
    ({"process.roles": "follower"}, "String must be one of: broker, controller"),
    ({"process.roles": ""}, "broker, controller or both"),
    ({"log.dirs": "", "log.dir": ""}, "at least one directory"),
    ({"broker.session.timeout.ms": "3000"}, "at most half of broker.session.timeout.ms (3000)"),
    ({"group.min.session.timeout.ms": "9000000"}, "at most group.max.session.timeout.ms (1800000)"),
    ({"group.consumer.session.timeout.ms": "10"}, "at least group.consumer.min.session.timeout.ms (45000)"),
    ({"group.consumer.session.timeout.ms": "90000"}, "at most group.consumer.max.session.timeout.ms (60000)"),
    ({"group.consumer.max.heartbeat.interval.ms": "10"}, "at least group.consumer.min.heartbeat.interval.ms (5000)"),
    (
        {"group.consumer.heartbeat.interval.ms": "50000", "group.consumer.max.heartbeat.interval.ms": "50000"},
        "less than group.consumer.session.timeout.ms (45000)",
    ),
    ({"group.share.session.timeout.ms": "10"}, "at least group.share.min.session.timeout.ms (45000)"),
    ({"group.share.max.heartbeat.interval.ms": "10"}, "at least group.share.min.heartbeat.interval.ms (5000)"),
    ({"group.share.delivery.count.limit": "11"}, "Value must be no more than 10"),
    (
        {"group.share.delivery.count.limit": "9", "group.share.max.delivery.count.limit": "8"},
        "at most group.share.max.delivery.count.limit (8)",
    ),
    ({"group.share.record.lock.duration.ms": "14000"}, "at least group.share.min.record.lock.duration.ms (15000)"),
    ({"group.share.partition.max.record.locks": "5000"}, "at most group.share.max.partition.max.record.locks (4000)"),
    ({"group.share.max.share.sessions": "199"}, "at least group.share.max.size (200)"),
    ({"group.share.assignors": ""}, "exactly one assignor, and not 0"),
    ({"group.share.assignors": "simple,simple"}, "exactly one assignor, and not 2"),
    ({"group.share.assignors": "com.example.Mine"}, "assignors of one's own are not offered"),
    ({"group.streams.num.standby.replicas": "3"}, "at most group.streams.max.standby.replicas (2)"),
    ({"group.streams.assignment.interval.ms": "15001"}, "at most group.streams.max.assignment.interval.ms (15000)"),
    (
        {"group.streams.heartbeat.interval.ms": "45000", "group.streams.max.heartbeat.interval.ms": "45000"},
        "less than group.streams.session.timeout.ms (45000)",
    ),
    ({"group.coordinator.rebalance.protocols": "consumer,share"}, "Disabling the 'classic' protocol"),
    ({"group.coordinator.rebalance.protocols": "classic,none"}, "one of: classic, consumer, share, streams"),
    ({"group.consumer.assignors": ""}, "at least one assignor"),
    ({"group.consumer.assignors": "range,range"}, "none of them twice"),
    ({"group.consumer.assignors": "com.example.Mine"}, "uniform or range"),
    ({"controller.quorum.voters": "1@host"}, "Invalid value 1@host for configuration controller.quorum.voters"),
    ({"controller.quorum.voters": "x@h:1"}, "a list of id@host:port"),
    ({"controller.quorum.voters": "1@h:1,1@h:2"}, "one host and port for the voter 1"),
    ({"controller.quorum.voters": "1@h:1,2@h:1"}, "no two voters with the same host and port"),
    ({"listeners": "127.0.0.1:9092"}, "Invalid value 127.0.0.1:9092 for configuration listeners: a listener is"),
    ({"listeners": "PLAINTEXT://127.0.0.1"}, "written NAME://host:port"),
    ({"listeners": "PLAINTEXT://127.0.0.1:99999"}, "a port from 0 to 65535"),
    ({"listeners": "INSIDE://127.0.0.1:9092"}, "no security protocol is given for INSIDE"),
    ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://a:2"}, "each listener must have a different name"),
    (
        {"listeners": "A://h:1,B://:1", "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"},
        "each listener must have a different port",
    ),
    ({"listener.security.protocol.map": "A=PLAINTEXT"}, "a list of NAME:PROTOCOL"),
    ({"listener.security.protocol.map": "PLAINTEXT:PLAIN"}, "with a protocol of PLAINTEXT, SSL"),
    ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, "for configuration advertised.listeners: clients cannot connect"),
    ({"advertised.listeners": "auto,PLAINTEXT://h:1"}, "`auto` stands alone, for all listeners"),
    ({"advertised.listeners": "OTHER://auto"}, "only listeners of clients can be advertised by auto"),
    (
        {"advertised.listeners": "CONTROLLER://auto"},
        "only listeners of clients can be advertised by auto",
    ),
    ({"advertised.listeners": "PLAINTEXT://auto,PLAINTEXT://h:1"}, "each listener must have a different name"),
    ({"advertised.listeners": "PLAINTEXT://automatic"}, "a listener is written NAME://host:port"),
    ({"advertised.listeners": "OTHER://h:1"}, "no security protocol is given for OTHER"),
    ({"advertised.listeners": "PLAINTEXT://h:-1"}, "a port from 0 to 65535"),
    (
        {"advertised.listeners": "B://h:1", "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT"},
        "only the names of `listeners` can be advertised",
    ),
    ({"inter.broker.listener.name": "OTHER"}, "one of the advertised listeners: PLAINTEXT"),
    (
        {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
        "only one of inter.broker.listener.name and security.inter.broker.protocol",
    ),
    (
        {"listeners": "PLAINTEXT://h:1", "controller.listener.names": "CTL"},
        "a controller needs one of these listeners",
    ),
    ({"controller.listener.names": ""}, "a list of listener names"),
    ({"process.roles": "broker", "listeners": "PLAINTEXT://h:1,CONTROLLER://h:2"}, "without the controller role"),
    ({"process.roles": "broker", "listeners": "CONTROLLER://h:2"}, "without the controller role"),
    ({"process.roles": "broker", "controller.listener.names": "CONTROLLER"}, "finds the controllers by this key or by"),
    ({**CONTROLLER, "controller.quorum.voters": "2@a:1", "listeners": "CONTROLLER://h:1"}, "node 1 is not among them"),
    ({"controller.quorum.voters": "2@a:1,3@b:1"}, "node 1 is not among them"),
    ({**BROKER, "controller.quorum.voters": "1@a:1"}, "node 1 is a voter, which takes the controller role"),
    ({"process.roles": "broker", "controller.quorum.voters": "2@a:1"}, "needs the name of a controller listener"),
    ({**BROKER, "controller.quorum.bootstrap.servers": "a"}, "a list of host:port"),
    ({**CONTROLLER, "listeners": "PLAINTEXT://h:1,CONTROLLER://h:2"}, "a controller alone has no listener but those"),
    ({"listeners": "CONTROLLER://h:2"}, "a broker needs a listener that is not in controller.listener.names"),
]


@pytest.mark.parametrize(("properties", "complaint"), BAD)
def test_a_bad_value_is_refused_in_one_line_that_names_it(properties: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        BrokerConfig(properties)
    text = str(refused.value)
    assert complaint in text
    assert "\n" not in text
    assert any(name in text for name in properties) or "advertised.listeners" in text


def test_a_secret_is_not_in_a_complaint() -> None:
    secret = ConfigKey("some.secret", "password", None, "nonempty")
    with pytest.raises(ConfigurationError) as refused:
        secret.parse("")
    assert "[hidden]" in str(refused.value)
    assert broker_keys()["ssl.key.password"].sensitive


def test_keys_that_nobody_knows_are_listed_and_do_no_harm() -> None:
    loaded = BrokerConfig({"num.partition": "3", "listener.name.plaintext.connections.max.idle.ms": "1"})
    assert loaded.unknown_keys == ["num.partition"]
    assert loaded.int("num.partitions") == 1


# Listeners.


TWO = {"listeners": "IN://0.0.0.0:1,OUT://h:2", "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT"}


@pytest.mark.parametrize(
    ("properties", "auto", "registered"),
    [
        ({"advertised.listeners": "auto"}, ["PLAINTEXT"], ["PLAINTEXT://127.0.0.1:9092"]),
        ({"advertised.listeners": " Auto "}, ["PLAINTEXT"], ["PLAINTEXT://127.0.0.1:9092"]),
        ({"listeners": "PLAINTEXT://[::]:0", "advertised.listeners": "auto"}, ["PLAINTEXT"], ["PLAINTEXT://:0"]),
        (TWO | {"advertised.listeners": "auto"}, ["IN", "OUT"], ["IN://:1", "OUT://h:2"]),
        (
            TWO | {"advertised.listeners": "out://broker.example:7,in://auto"},
            ["IN"],
            ["OUT://broker.example:7", "IN://:1"],
        ),
        ({"advertised.listeners": "PLAINTEXT://auto:9092"}, [], ["PLAINTEXT://auto:9092"]),
        ({}, [], ["PLAINTEXT://127.0.0.1:9092"]),
    ],
    ids=str,
)
def test_auto_tells_clients_what_they_reach_and_other_nodes_the_listener(
    properties: dict[str, str], auto: list[str], registered: list[str]
) -> None:
    """With a port, `auto` is a host of that name, as for Kafka."""
    listeners = BrokerConfig(properties).listeners
    assert sorted(listeners.auto) == auto
    assert [str(each) for each in listeners.advertised] == registered


@pytest.mark.parametrize(
    ("properties", "client", "controller", "advertised"),
    [
        ({"listeners": "PLAINTEXT://127.0.0.1:0"}, ["PLAINTEXT://127.0.0.1:0"], ["CONTROLLER://127.0.0.1:0"], None),
        (
            {"listeners": "plaintext://[::1]:9092,CONTROLLER://h:9093"},
            ["PLAINTEXT://[::1]:9092"],
            ["CONTROLLER://h:9093"],
            None,
        ),
        ({"listeners": "PLAINTEXT://:9092"}, ["PLAINTEXT://:9092"], ["CONTROLLER://127.0.0.1:0"], None),
        (
            {"listeners": "PLAINTEXT://0.0.0.0:9092", "advertised.listeners": "PLAINTEXT://broker.example:19092"},
            ["PLAINTEXT://0.0.0.0:9092"],
            ["CONTROLLER://127.0.0.1:0"],
            ["PLAINTEXT://broker.example:19092"],
        ),
        (
            {
                "listeners": "IN://:9092,OUT://:9094,CTL://:9093",
                "advertised.listeners": "IN://broker:9092,OUT://localhost:19094",
                "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT,CTL:PLAINTEXT",
                "controller.listener.names": "CTL",
                "inter.broker.listener.name": "IN",
            },
            ["IN://:9092", "OUT://:9094"],
            ["CTL://:9093"],
            ["IN://broker:9092", "OUT://localhost:19094"],
        ),
        ({**BROKER, "listeners": "PLAINTEXT://h:1"}, ["PLAINTEXT://h:1"], [], None),
        ({**CONTROLLER, "listeners": "CONTROLLER://h:1"}, [], ["CONTROLLER://h:1"], []),
    ],
)
def test_listeners(
    properties: dict[str, str], client: list[str], controller: list[str], advertised: list[str] | None
) -> None:
    listeners = BrokerConfig(properties).listeners
    assert [str(each) for each in listeners.client] == client
    assert [str(each) for each in listeners.controller] == controller
    assert [str(each) for each in listeners.advertised] == (client if advertised is None else advertised)
    for each in listeners.advertised:
        assert listeners.advertised_for(each.name) == each


def test_quorum_voters_are_ids_with_addresses() -> None:
    loaded = BrokerConfig({"controller.quorum.voters": "1@a:9093, 2@[::1]:9094"})
    assert loaded.quorum_voters == {1: ("a", 9093), 2: ("::1", 9094)}


def test_bootstrap_servers_are_hosts_and_ports() -> None:
    loaded = BrokerConfig({"controller.quorum.bootstrap.servers": "a:9093, [::1]:9094"})
    assert loaded.quorum_bootstrap_servers == [("a", 9093), ("::1", 9094)]


def test_a_controller_is_found_where_it_is_advertised() -> None:
    bound = {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093", "controller.listener.names": "CONTROLLER"}
    listeners = BrokerConfig({**bound, "advertised.listeners": "PLAINTEXT://b:1,CONTROLLER://c:2"}).listeners
    assert [str(each) for each in listeners.advertised] == ["PLAINTEXT://b:1"]
    assert [str(each) for each in listeners.advertised_controller] == ["CONTROLLER://c:2"]
    assert [str(each) for each in BrokerConfig(bound).listeners.advertised_controller] == ["CONTROLLER://:9093"]


# Defaults of topics.


@pytest.mark.parametrize(
    ("properties", "key", "value"),
    [
        ({}, "retention.ms", "604800000"),
        ({"log.retention.hours": "1"}, "retention.ms", "3600000"),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, "retention.ms", "120000"),
        ({"log.retention.minutes": "2", "log.retention.ms": "3"}, "retention.ms", "3"),
        ({"log.retention.hours": "-1"}, "retention.ms", "-1"),
        ({"log.roll.hours": "2"}, "segment.ms", "7200000"),
        ({"log.roll.ms": "5"}, "segment.ms", "5"),
        ({"log.roll.jitter.hours": "1"}, "segment.jitter.ms", "3600000"),
        ({"log.flush.scheduler.interval.ms": "9"}, "flush.ms", "9"),
        ({"message.max.bytes": " 0100 "}, "max.message.bytes", "100"),
        ({"log.cleanup.policy": "compact , delete,compact"}, "cleanup.policy", "compact,delete"),
        ({"min.insync.replicas": "2"}, "min.insync.replicas", "2"),
        ({}, "remote.storage.enable", "false"),
    ],
)
def test_a_topics_defaults_come_from_the_brokers_keys(properties: dict[str, str], key: str, value: str) -> None:
    defaults = BrokerConfig(properties).topic_defaults()
    assert set(defaults) == {*topic_keys(), *TOPIC_KEYS_OF_4_4}
    assert defaults[key] == value


def test_a_topics_defaults_follow_what_was_set_at_run_time() -> None:
    defaults = BrokerConfig({"log.segment.bytes": "2000000"}).topic_defaults({"log.segment.bytes": "3000000"})
    assert defaults["segment.bytes"] == "3000000"


# Properties files.

JAVA_DIALECT = (
    b"# a comment\n"
    b"! another comment\n"
    b"\n"
    b"  node.id = 3  \n"
    b"num.partitions:4\n"
    b"broker.rack r\\u00e4ck\\ one\\\n"
    b"     \\ttwo\n"
    b"log.dirs=/a,\\\n"
    b"         /b\n"
    b"num\\.io\\:threads=x\n"
    b"listeners=PLAINTEXT://127.0.0.1:1\r\n"
    b"listeners=PLAINTEXT://127.0.0.1:2\r"
    b"advertised.listeners=PLAINTEXT://caf\xe9:9\n"
    b"metadata.log.dir=C:\\\\data"
)


def test_a_properties_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(JAVA_DIALECT)
    loaded = BrokerConfig.load(path, {})
    assert loaded.node_id == 3
    assert loaded.int("num.partitions") == 4
    assert loaded.str("broker.rack") == "räck one\ttwo"
    assert loaded.log_dirs == ["/a", "/b"]
    assert loaded.unknown_keys == ["num.io:threads"]
    assert loaded.listeners.client[0].port == 2
    assert loaded.listeners.advertised[0].host == "café"
    assert loaded.metadata_log_dir == "C:\\data"


def test_overrides_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=4\nnode.id=2\n")
    loaded = BrokerConfig.load(str(path), {"num.partitions": "6"})
    assert (loaded.int("num.partitions"), loaded.node_id) == (6, 2)


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"Cannot read the properties file .*: No such file or directory"):
        BrokerConfig.load(tmp_path / "nowhere", {})
    with pytest.raises(ConfigurationError, match=r"Cannot read the properties file .*: Is a directory"):
        BrokerConfig.load(tmp_path, {})
    malformed = tmp_path / "malformed"
    malformed.write_text("broker.rack=\\u00zz\n")
    with pytest.raises(ConfigurationError, match="Malformed properties file") as refused:
        BrokerConfig.load(malformed, {})
    assert "\n" not in str(refused.value)


def test_half_a_surrogate_pair_is_no_value_for_no_record_of_the_metadata_can_carry_it(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=1\nbroker.rack=\\ud800\n")
    with pytest.raises(ConfigurationError, match="line 2: half of a surrogate pair"):
        BrokerConfig.load(path, {})


def test_a_start_without_a_file_does_not_load_the_properties_library() -> None:
    code = "import sys; from pykbroker.config import BrokerConfig; BrokerConfig.load(None, {}); " + (
        "sys.exit('javaproperties' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_pykbrokers_own_keys_are_known_and_have_an_effect() -> None:
    config = BrokerConfig(
        {"metrics.listener": " 127.0.0.1:9481 ", "metrics.partitions.max": "7", "console.hosts": "a, b"}
    )
    assert (config.unknown_keys, config.without_effect) == ([], [])
    assert config.int("metrics.partitions.max") == 7
    assert config.list("console.hosts") == ["a", "b"]
    assert config.str("console.listener") == "127.0.0.1:9480"
    assert not own_keys().keys() & broker_keys().keys()
    with pytest.raises(ConfigurationError, match=r"metrics\.partitions\.max"):
        BrokerConfig({"metrics.partitions.max": "-1"})
