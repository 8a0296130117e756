"""Addresses of brokers as people write them."""

from __future__ import annotations

import pytest

from pykbroker.client.addresses import parse_bootstrap_servers
from pykbroker.client.errors import BadInput


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("localhost", [("localhost", 9092)]),
        (" a:1 , b:65535,", [("a", 1), ("b", 65535)]),
        ("[::1]:9093,[fe80::1]", [("::1", 9093), ("fe80::1", 9092)]),
    ],
)
def test_addresses_are_hosts_with_ports(text: str, servers: list[tuple[str, int]]) -> None:
    assert parse_bootstrap_servers(text) == servers


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("http://host:9092", "brokers speak Kafka's protocol and not HTTP, write host:9092"),
        ("HTTPS://host:9092/topics?a=b", "brokers speak Kafka's protocol and not HTTP, write host:9092"),
        ("http://", "write the host and the port alone"),
        ("kafka://host:9092", "it has kafka:// in front, write host:9092"),
        ("PLAINTEXT://host:9092", "it has PLAINTEXT:// in front, write host:9092"),
        ("SASL_SSL://host:9092", "write host:9092, and security.protocol=SASL_SSL in the client's properties"),
        ("host:0", "a port is a number from 1 to 65535"),
        ("host:65536", "a port is a number from 1 to 65535"),
        ("host:" + "9" * 5000, "a port is a number from 1 to 65535"),
        ("host:abc", "a port is a number from 1 to 65535"),
        ("host:", "a port is a number from 1 to 65535"),
        ("host:\u0669", "a port is a number from 1 to 65535"),
        (":9092", "there is no host"),
        ("[]:9092", "there is no host"),
        ("a b:9092", "a host has no spaces"),
        ("a\x1b[31m:9092", "a host has no spaces"),
        ("::1", "an IPv6 address stands in brackets, [::1]:9092"),
        ("::1:9092", "an IPv6 address stands in brackets, [::1]:9092"),
        ("fe80::1%eth0:9093", "an IPv6 address stands in brackets, [fe80::1%eth0]:9093"),
        ("a:9092;b:9092", "one server has one port; a comma stands between two servers"),
        ("fe80::1:2:3:4:5:6:9093", "an IPv6 address stands in brackets, [fe80::1:2:3:4:5:6]:9093"),
        ("user@host:9092", "a host is a name or an address and nothing else"),
    ],
)
def test_what_is_no_address_says_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(BadInput) as bad:
        parse_bootstrap_servers(f"good:1,{text}")
    line = str(bad.value)
    assert line.startswith("Bootstrap server '")
    assert advice in line
    assert line.isprintable()
    assert len(line) < 500


def test_no_address_at_all_is_told() -> None:
    for text in ("", " , "):
        with pytest.raises(BadInput, match="No bootstrap server"):
            parse_bootstrap_servers(text)
