"""Listeners that come and go while a broker runs, with real clients on real ports."""

from __future__ import annotations

import logging
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from compat_tests.certificates import Authority
from compat_tests.key_stores import pem_certificates
from compat_tests.ports import take_ports
from compat_tests.wire import Closed, Wire
from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.config.dynamic_listeners import served, wanted_listeners
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest
from pykbroker.testing import Broker
from tests.server.encrypted_network import pem_key_store

MAP = "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SECOND:SSL"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path / "data") as broker:
        yield broker


def altered(broker: Broker, **texts: str | None) -> str | None:
    """Why the settings of the broker are not altered; None where they are. Names have __ in place of dots."""
    entries = [
        ConfigEntry(
            name.replace("__", "."),
            text,
            incremental_operation=AlterConfigOpType.DELETE if text is None else AlterConfigOpType.SET,
        )
        for name, text in texts.items()
    ]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (future,) = admin.incremental_alter_configs(
        [ConfigResource(ResourceType.BROKER, "1", incremental_configs=entries)]
    ).values()
    try:
        future.result(20)
    except KafkaException as failure:
        return failure.args[0].str()
    return None


def own(broker: Broker) -> str:
    return f"PLAINTEXT://{broker.bootstrap_servers}"


def with_extra(broker: Broker, port: int, name: str = "EXTRA") -> str | None:
    listeners = f"{own(broker)},{name}://127.0.0.1:{port}"
    return altered(broker, listeners=listeners, listener__security__protocol__map=MAP)


def soon(holds: Callable[[], bool]) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.02)


def answers(wire: Wire) -> bool:
    try:
        wire.call(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    except (OSError, Closed):
        return False
    return True


def is_served(port: int) -> bool:
    try:
        with Wire(("127.0.0.1", port)) as wire:
            return answers(wire)
    except OSError:
        return False


def brokers_told(port: int, **config: str) -> list[int]:
    """The ports of the brokers that a client of this listener is told."""
    metadata = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", **config}).list_topics(timeout=20)
    return [each.port for each in metadata.brokers.values()]


def test_a_listener_comes_and_its_clients_are_told_of_it(broker: Broker) -> None:
    (port,) = take_ports(1)
    assert with_extra(broker, port) is None
    soon(lambda: is_served(port) and brokers_told(port) == [port])
    bootstrap = f"127.0.0.1:{port}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("apples", 1)])["apples"].result(20)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("apples", b"by the new listener")
    assert producer.flush(20) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["apples"])
    message = consumer.poll(20)
    assert message is not None
    assert message.value() == b"by the new listener"
    consumer.close()
    assert brokers_told(int(broker.bootstrap_servers.rpartition(":")[2])) != [port]


def test_the_log_tells_the_port_of_a_listener_that_takes_any(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    def told() -> re.Match[str] | None:
        return re.search(r"the listener EXTRA://127\.0\.0\.1:0 is there, on port (\d+),", caplog.text)

    with caplog.at_level(logging.INFO, "pykbroker.server.node.dynamic_listeners"):
        assert with_extra(broker, 0) is None
        soon(lambda: told() is not None)
    found = told()
    assert found is not None
    assert is_served(int(found[1]))


def test_the_name_of_this_machine_is_not_asked_for_on_the_event_loop(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of names that does not answer would keep every client waiting."""
    on_the_loop: list[bool] = []

    def asked() -> str:
        on_the_loop.append(trio.lowlevel.in_trio_run())
        return "localhost"

    monkeypatch.setattr(socket, "getfqdn", asked)
    (port,) = take_ports(1)
    listeners = f"{own(broker)},EXTRA://:{port}"
    assert altered(broker, listeners=listeners, listener__security__protocol__map=MAP) is None
    soon(lambda: is_served(port) and bool(on_the_loop))
    assert not any(on_the_loop)


def test_a_listener_moves_and_goes_with_its_connections(broker: Broker) -> None:
    first, second = take_ports(2)
    assert with_extra(broker, first) is None
    soon(lambda: is_served(first))
    with Wire(("127.0.0.1", first)) as idle:
        assert with_extra(broker, second) is None
        soon(lambda: is_served(second) and brokers_told(second) == [second])
        assert not is_served(first)
        soon(lambda: not answers(idle))
    assert altered(broker, listeners=None) is None
    soon(lambda: not is_served(second))
    assert with_extra(broker, first) is None
    soon(lambda: is_served(first))


def test_what_is_there_at_a_restart_is_there_behind_it(broker: Broker) -> None:
    (port,) = take_ports(1)
    assert with_extra(broker, port) is None
    soon(lambda: is_served(port))
    broker.restart()
    assert is_served(port)
    soon(lambda: brokers_told(port) == [port])
    assert altered(broker, listeners=None, listener__security__protocol__map=None) is None
    soon(lambda: not is_served(port))
    broker.restart()
    assert not is_served(port)


def test_a_port_in_use_is_refused_and_nothing_changes(broker: Broker) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refusal = with_extra(broker, port) or ""
        assert f"Invalid value EXTRA://127.0.0.1:{port} for configuration listeners: cannot listen there" in refusal
    assert with_extra(broker, port) is None
    soon(lambda: is_served(port))


def test_a_listener_whose_port_is_taken_at_a_restart_is_told_and_the_others_serve(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    (port,) = take_ports(1)
    assert with_extra(broker, port) is None
    soon(lambda: is_served(port))
    broker.stop()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        broker.start()
        assert brokers_told(int(broker.bootstrap_servers.rpartition(":")[2]))
    assert "cannot listen there" in caplog.text


def test_what_the_broker_cannot_secure_is_refused(broker: Broker) -> None:
    (port,) = take_ports(1)
    assert "no listener with TLS since its start" in (with_extra(broker, port, "SSL") or "")
    assert not is_served(port)


def certificate_at(port: int) -> str:
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=20).strip()


def test_a_new_listener_has_stores_of_its_own(tmp_path: Path) -> None:
    authority = Authority.root()
    first, second = authority.server("CN=first"), authority.server("CN=second")
    (port,) = take_ports(1)
    config = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "inter.broker.listener.name": "PLAINTEXT",
        **{f"listener.name.ssl.{name}": text for name, text in pem_key_store(first).items()},
    }
    with Broker(config, data_dir=tmp_path / "data") as broker:
        listeners = f"PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SECOND://127.0.0.1:{port}"
        wanted = {"listeners": listeners, "listener__security__protocol__map": MAP}
        assert "key store" in (altered(broker, **wanted) or "")
        stores = {
            f"listener.name.second.{name}".replace(".", "__"): text for name, text in pem_key_store(second).items()
        }
        assert altered(broker, **wanted, **stores) is None
        soon(lambda: is_listening(port))
        assert certificate_at(port) == pem_certificates(second.chain[:1]).strip()
        broker.restart()
        assert certificate_at(port) == pem_certificates(second.chain[:1]).strip()
        third = pem_key_store(authority.server("CN=second"))
        again = {f"listener.name.second.{name}".replace(".", "__"): text for name, text in third.items()}
        assert altered(broker, **again) is None
        expected = third["ssl.keystore.certificate.chain"].strip()
        soon(lambda: certificate_at(port) in expected)
        assert altered(broker, listeners=None, **dict.fromkeys(stores)) is None
        soon(lambda: not is_listening(port))


def jaas(user: str, password: str) -> str:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return f'{module} required user_{user}="{password}";'


def test_a_new_listener_has_users_of_its_own() -> None:
    (port,) = take_ports(1)
    config = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas("alice", "first"),
    }

    def client(password: str) -> dict[str, str]:
        login = {"sasl.mechanism": "PLAIN", "sasl.username": "bob", "sasl.password": password}
        return {"security.protocol": "SASL_PLAINTEXT", **login}

    with Broker(config) as broker:
        wanted = {
            "listeners": f"PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,THIRD://127.0.0.1:{port}",
            "listener__security__protocol__map": f"{MAP},SASL_PLAINTEXT:SASL_PLAINTEXT,THIRD:SASL_PLAINTEXT",
        }
        key = "listener__name__third__plain__sasl__jaas__config"
        assert "listener.name.third.plain.sasl.jaas.config" in (altered(broker, **wanted) or "")
        assert altered(broker, **wanted, **{key: jaas("bob", "second")}) is None
        soon(lambda: is_listening(port))
        assert brokers_told(port, **client("second")) == [port]
        assert altered(broker, **{key: jaas("bob", "third")}) is None
        soon(lambda: not lets_in(port, **client("second")))
        assert lets_in(port, **client("third"))
        assert altered(broker, listeners=None, **{key: None}) is None
        soon(lambda: not is_listening(port))


def lets_in(port: int, **config: str) -> bool:
    try:
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": "0", **config})
        return bool(admin.list_topics(timeout=2).brokers)
    except KafkaException:
        return False


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("listeners", "reason"),
    [
        ("EXTRA://127.0.0.1:1", "Advertised listeners 'Set(ListenerName(PLAINTEXT))' must be a subset of listeners"),
        ("PLAINTEXT://127.0.0.1:9092,OTHER://127.0.0.1:1", "no security protocol is given for OTHER"),
        ("PLAINTEXT://127.0.0.1:9092,EXTRA://127.0.0.1:9092", "each listener must have a different port"),
        ("PLAINTEXT://127.0.0.1:9092,EXTRA://127.0.0.1:1,EXTRA://127.0.0.1:2", "a different name"),
        ("PLAINTEXT://127.0.0.1:9092,EXTRA://0.0.0.0:1", "clients cannot connect to the address of all interfaces"),
        ("PLAINTEXT://127.0.0.1:9092,EXTRA", "a listener is written NAME://host:port"),
        ("", "a broker has a listener"),
    ],
)
def test_listeners_that_a_broker_cannot_have(listeners: str, reason: str) -> None:
    config = BrokerConfig({})
    dynamic = {"listeners": listeners, "listener.security.protocol.map": MAP}
    with pytest.raises(ConfigurationError) as refused:
        wanted_listeners(config, config.listeners, dynamic)
    assert reason in str(refused.value)


def test_a_listener_of_the_file_keeps_its_protocol_and_its_place() -> None:
    config = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:9092"})
    static = config.listeners
    other = {"listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT"}
    with pytest.raises(ConfigurationError, match="Security protocol cannot be updated for existing listener"):
        wanted_listeners(config, static, other)
    moved = wanted_listeners(config, static, {"listeners": "PLAINTEXT://127.0.0.1:9999"})
    assert served(static, moved) == {"PLAINTEXT": static.client[0]}


def test_listeners_of_controllers_stay() -> None:
    given = {"listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"}
    config = BrokerConfig(given)
    secured = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL"}
    with pytest.raises(ConfigurationError, match="Listeners of controllers cannot be changed"):
        wanted_listeners(config, config.listeners, secured)


def test_what_is_not_advertised_may_go_and_come_again() -> None:
    config = BrokerConfig(
        {
            "listeners": "PLAINTEXT://127.0.0.1:9092,INSIDE://127.0.0.1:9094",
            "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
    )
    static = config.listeners
    without = wanted_listeners(config, static, {"listeners": "PLAINTEXT://127.0.0.1:9092"})
    assert list(served(static, without)) == ["PLAINTEXT"]
    assert [each.name for each in without.advertised] == ["PLAINTEXT"]


def test_settings_of_other_keys_change_no_listener() -> None:
    config = BrokerConfig({})
    assert wanted_listeners(config, config.listeners, {"log.retention.ms": "5"}) is config.listeners
