"""Limits of connections in a node's properties, and where they change at run time."""

from __future__ import annotations

import pytest

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.config.connection_limits import (
    ConnectionCounts,
    check_listener_limits,
    connection_counts,
    parse_overrides,
)

CREATION_RATE = "max.connection.creation.rate"


def test_the_limits_of_the_file_hold_until_others_are_set_at_run_time() -> None:
    config = BrokerConfig(
        {
            "max.connections": "100",
            "max.connections.per.ip": "10",
            "max.connections.per.ip.overrides": "10.0.0.1:5, ::1:7,host:1",
            CREATION_RATE: "20",
            "listener.name.plaintext.max.connections": "50",
            f"listener.name.controller.{CREATION_RATE}": "3",
        }
    )
    given = connection_counts(config, ["PLAINTEXT", "OTHER"])
    hosts = {"10.0.0.1": 5, "::1": 7, "host": 1}
    assert given == ConnectionCounts(100, 20, 10, hosts, {"PLAINTEXT": 50}, {})
    assert connection_counts(config, ["CONTROLLER"]).creation_rate_of_listener == {"CONTROLLER": 3}
    changed = connection_counts(
        config,
        ["PLAINTEXT"],
        {
            "max.connections": "7",
            "max.connections.per.ip.overrides": "",
            f"listener.name.plaintext.{CREATION_RATE}": "1",
        },
    )
    assert changed == ConnectionCounts(7, 20, 10, {}, {"PLAINTEXT": 50}, {"PLAINTEXT": 1})
    assert connection_counts(BrokerConfig({}), ["PLAINTEXT"]) == ConnectionCounts()


@pytest.mark.parametrize("text", ["10.0.0.1", "10.0.0.1:", ":5", "10.0.0.1:many", "10.0.0.1:-1", "a b:5"])
def test_a_bad_pair_is_named_with_its_key(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"max.connections.per.ip.overrides.*is not address:count"):
        BrokerConfig({"max.connections.per.ip.overrides": text})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("max.connections", "-1"),
        (CREATION_RATE, "some"),
        ("listener.name.plaintext.max.connections", "-1"),
        (f"listener.name.plaintext.{CREATION_RATE}", "1.5"),
    ],
)
def test_a_bad_number_is_named_with_its_key_and_its_listener(name: str, text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"Invalid value {text} for configuration {name}: ") as error:
        BrokerConfig({name: text})
    assert "\n" not in str(error.value)


def test_an_address_may_have_no_connections_only_where_others_may() -> None:
    with pytest.raises(ConfigurationError, match=r"max.connections.per.ip: zero only where"):
        BrokerConfig({"max.connections.per.ip": "0"})
    assert parse_overrides("10.0.0.1:0") == {"10.0.0.1": 0}
    BrokerConfig({"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "10.0.0.1:5"})


def test_a_listener_is_not_closed_at_run_time_by_a_limit_of_nothing() -> None:
    with pytest.raises(ConfigurationError, match=r"Invalid max\.connections 0"):
        check_listener_limits({"listener.name.plaintext.max.connections": "0"})
    check_listener_limits({"listener.name.plaintext.max.connections": "1", "listener.name.plaintext.port": "0"})
