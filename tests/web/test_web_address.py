"""Addresses of web listeners, as the configuration gives them."""

from __future__ import annotations

import pytest

from pykbroker.config import InvalidValue
from pykbroker.web.address import WebAddress, parse_address


@pytest.mark.parametrize(
    ("text", "host", "port", "shown"),
    [
        ("127.0.0.1:9480", "127.0.0.1", 9480, "127.0.0.1:9480"),
        (" localhost:0 ", "localhost", 0, "localhost:0"),
        ("[::1]:80", "::1", 80, "[::1]:80"),
        (":9480", "", 9480, ":9480"),
    ],
)
def test_an_address_has_a_host_and_a_port(text: str, host: str, port: int, shown: str) -> None:
    address = parse_address("console.listener", text)
    assert address == WebAddress(host, port)
    assert str(address) == shown


def test_an_empty_value_closes_the_listener() -> None:
    assert parse_address("console.listener", "  ") is None


@pytest.mark.parametrize(
    "text",
    [
        "9480",
        "localhost",
        "localhost:",
        "localhost:x",
        "localhost:-1",
        "localhost:65536",
        "localhost:0000009480",
        "localhost:٣",
        "::1:80",
        "http://localhost:80",
        "a b:1",
        "a:" + "1" * 9999,
        "\x1b[2J:80",
        "h" * 300 + ":1",
    ],
)
def test_what_is_no_address_is_one_line(text: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        parse_address("console.listener", text)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300
