"""Names of variables: the rule of the images, and what is no key."""

from __future__ import annotations

import pytest

from pykbroker.config import broker_keys
from pykbroker.container.names import is_known, is_of_kubernetes, key_of, nearest_key, variable_of


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("KAFKA_NODE_ID", "node.id"),
        ("KAFKA_ABC__DEF", "abc_def"),
        ("KAFKA_ABC___DEF", "abc-def"),
        ("KAFKA_VALID___PROPERTY__ALL_CASES", "valid-property_all.cases"),
        ("KAFKA_ABC_KAFKA_DEF", "abc.kafka.def"),
        ("KAFKA_CFG_NODE_ID", "node.id"),
        ("KAFKA_CFG_LISTENER_NAME_SASL_SSL_SSL_CLIENT_AUTH", "listener.name.sasl_ssl.ssl.client.auth"),
        ("KAFKA_LISTENER_NAME_SASL__SSL_SSL_CLIENT_AUTH", "listener.name.sasl_ssl.ssl.client.auth"),
        (
            "KAFKA_CFG_LISTENER_NAME_IN_SCRAM-SHA-512_SASL_JAAS_CONFIG",
            "listener.name.in.scram-sha-512.sasl.jaas.config",
        ),
    ],
)
def test_a_variable_is_a_key(variable: str, key: str) -> None:
    assert key_of(variable) == key


@pytest.mark.parametrize("name", ["SCRAM___SHA___256", "SCRAM__SHA__256", "SCRAM_SHA_256", "SCRAM-SHA-256"])
def test_each_image_writes_a_mechanism_in_its_own_way(name: str) -> None:
    assert (
        key_of(f"KAFKA_LISTENER_NAME_IN_{name}_SASL_JAAS_CONFIG") == "listener.name.in.scram-sha-256.sasl.jaas.config"
    )


def test_every_key_has_a_variable_of_its_own() -> None:
    assert [key for key in broker_keys() if key_of(variable_of(key)) != key] == []
    assert len({variable_of(key) for key in broker_keys()}) == len(broker_keys())


def test_keys_of_the_authorizer_and_of_listeners_are_known() -> None:
    assert is_known("super.users")
    assert is_known("listener.name.internal.ssl.client.auth")
    assert is_known("console.ssl.keystore.location")
    assert is_known("console.client.ssl.truststore.location")
    assert not is_known("console.ssl.keystore.lokation")
    assert not is_known("cfg.node.id")


def test_a_wrong_key_is_near_a_right_one_or_none() -> None:
    assert nearest_key("num.partition") == "num.partitions"
    assert nearest_key("auto.create.topics.enabled") == "auto.create.topics.enable"
    assert nearest_key("xyzzy") is None
    assert nearest_key("a." * 100_000) is None


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("KAFKA_SERVICE_HOST", "10.0.0.1", True),
        ("KAFKA_SERVICE_PORT_CLIENTS", "9092", True),
        ("KAFKA_HEADLESS_SERVICE_PORT", "9092", True),
        ("KAFKA_PORT", "tcp://10.0.0.1:9092", True),
        ("KAFKA_PORT_9092_TCP_ADDR", "10.0.0.1", True),
        ("KAFKA_PORT", "9092", False),
        ("KAFKA_LISTENERS", "tcp://10.0.0.1:9092", False),
    ],
)
def test_variables_that_kubernetes_sets_for_services_are_no_keys(variable: str, value: str, expected: bool) -> None:
    assert is_of_kubernetes(variable, value) is expected
