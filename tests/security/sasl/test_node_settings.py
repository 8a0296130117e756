"""The SASL settings of a node: each wrong combination names its key, and no error shows a secret."""

from __future__ import annotations

import pytest

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.security.sasl.node_settings import between_brokers, check_sasl, sasl_settings, to_controllers

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
BASE = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN} username=me password=hunter2 user_me=hunter2;",
}


def config(**changes: str | None) -> BrokerConfig:
    return BrokerConfig({key: value for key, value in {**BASE, **changes}.items() if value is not None})


def test_a_listener_without_sasl_needs_no_key() -> None:
    check_sasl(BrokerConfig({}))
    assert between_brokers(BrokerConfig({})) is None
    assert to_controllers(BrokerConfig({})) is None


def test_what_a_listener_offers_is_read_for_it_alone() -> None:
    given = config(
        **{
            "listeners": "SASL_PLAINTEXT://127.0.0.1:9092,EXT://127.0.0.1:9094,CONTROLLER://127.0.0.1:9093",
            "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,EXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listener.name.ext.sasl.enabled.mechanisms": "SCRAM-SHA-512, PLAIN",
            "listener.name.ext.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
            "listener.name.ext.plain.sasl.jaas.config": f"{PLAIN} user_bob=bobs;",
            "listener.name.ext.connections.max.reauth.ms": "2000",
            "listener.name.ext.plain.connections.max.reauth.ms": "1000",
            "connections.max.reauth.ms": "9000",
            "listener.name.ext.sasl.server.max.receive.size": "1234",
        }
    )
    check_sasl(given)
    own = sasl_settings(given, "SASL_PLAINTEXT")
    assert [(each.name, each.max_reauth_ms) for each in own.mechanisms] == [("PLAIN", 9000)]
    assert (own.max_receive_bytes, own.failure_delay_ms) == (524288, 100)
    external = sasl_settings(given, "EXT")
    offered = [(each.name, each.max_reauth_ms) for each in external.mechanisms]
    assert offered == [("SCRAM-SHA-512", 2000), ("PLAIN", 1000)]
    assert external.mechanisms[1].options == {"user_bob": "bobs"}
    assert external.max_receive_bytes == 1234
    assert "bobs" not in repr(external)


def test_a_node_has_a_name_of_its_own_for_other_brokers() -> None:
    own = between_brokers(config())
    assert own is not None
    assert own.credentials().mechanism == "PLAIN"
    assert "hunter2" not in repr(own) + repr(own.credentials())


def test_a_node_without_a_name_starts_and_says_so_when_it_needs_one() -> None:
    given = config(**{"listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN} user_admin=hunter2;"})
    check_sasl(given)
    own = between_brokers(given)
    assert own is not None
    with pytest.raises(ConfigurationError, match=r"plain\.sasl\.jaas\.config: username and password must be given"):
        own.credentials()


def test_a_broker_alone_authenticates_with_controllers_of_another_node() -> None:
    given = config(
        **{
            "process.roles": "broker",
            "controller.listener.names": "CONTROLLER",
            "node.id": "2",
            "listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
            "controller.quorum.voters": "1@127.0.0.1:9093",
            "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
            "listener.name.controller.scram-sha-256.sasl.jaas.config": f"{SCRAM} username=n password=p tokenauth=true;",
        }
    )
    check_sasl(given)
    own = to_controllers(given)
    assert own is not None
    assert own.credentials().new_exchange().step(b"").startswith(b"n,,n=n,r=")


CONTROLLER_SASL = {"listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"}
LINE = "listener.name.sasl_plaintext.plain.sasl.jaas.config"


@pytest.mark.parametrize(
    ("changes", "key", "reason"),
    [
        ({"sasl.enabled.mechanisms": None}, "sasl.enabled.mechanisms", "GSSAPI (Kerberos), Kafka's default"),
        ({"sasl.enabled.mechanisms": ""}, "sasl.enabled.mechanisms", "at least one mechanism"),
        ({"sasl.enabled.mechanisms": "PLAIN,DIGEST-MD5"}, "sasl.enabled.mechanisms", "PLAIN, SCRAM-SHA-256"),
        ({"sasl.enabled.mechanisms": "plain"}, "sasl.enabled.mechanisms", "are offered"),
        (
            {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"},
            "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config is missing",
            "needs a line such as",
        ),
        ({LINE: None}, f"{LINE} is missing", "needs a line such as"),
        ({LINE: None, "sasl.jaas.config": f"{PLAIN} a=hunter2;"}, f"{LINE} is missing", "needs a line such as"),
        ({LINE: f"{SCRAM} password=hunter2;"}, LINE, "the login module of PLAIN is"),
        ({LINE: f"{PLAIN} password=hunter2"}, LINE, "must end with a semicolon"),
        ({LINE: f"{PLAIN} a=hunter2; {PLAIN};"}, LINE, "2 login modules are named"),
        (
            {"sasl.mechanism.inter.broker.protocol": None},
            "sasl.mechanism.inter.broker.protocol",
            "GSSAPI (Kerberos), Kafka's default",
        ),
        (
            {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"},
            "sasl.mechanism.inter.broker.protocol",
            "one of sasl.enabled.mechanisms of the listener SASL_PLAINTEXT",
        ),
        (
            {
                **CONTROLLER_SASL,
                "listener.name.controller.plain.sasl.jaas.config": f"{PLAIN} user_a=b;",
            },
            "sasl.mechanism.controller.protocol",
            "GSSAPI (Kerberos), Kafka's default",
        ),
        (
            {**CONTROLLER_SASL, "sasl.mechanism.controller.protocol": "PLAIN"},
            "listener.name.controller.plain.sasl.jaas.config is missing",
            "needs a line such as",
        ),
        (
            {"connection.failed.authentication.delay.ms": "600000"},
            "connection.failed.authentication.delay.ms",
            "less than connections.max.idle.ms (600000)",
        ),
        (
            {"listener.name.sasl_plaintext.sasl.server.max.receive.size": "much"},
            "listener.name.sasl_plaintext.sasl.server.max.receive.size",
            "Not a number",
        ),
    ],
)
def test_a_wrong_combination_names_its_key_and_no_secret(changes: dict[str, str | None], key: str, reason: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_sasl(config(**changes))
    line = str(refused.value)
    assert key in line
    assert reason in line
    assert "hunter2" not in line
    assert "\n" not in line
