"""Callers: names of the node, other origins, other sites."""

from __future__ import annotations

import pytest

from pykbroker.web.callers import KnownNames, host_name, is_of_another_origin, is_of_another_site


@pytest.mark.parametrize(
    "host",
    [
        None,
        "localhost",
        "LOCALHOST:9480",
        "localhost.",
        "a.localhost",
        "127.0.0.1:1",
        "[::1]:9480",
        "192.0.2.7:80",
        "kafka-1:9480",
    ],
)
def test_a_node_is_called_by_its_names_and_by_addresses(host: str | None) -> None:
    assert KnownNames(["kafka-1", ""]).has(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:9480",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "a@evil.example",
        "[::1",
        "kafka-11",
        "[evil]:80",
    ],
)
def test_a_node_is_not_called_by_other_names(host: str) -> None:
    assert not KnownNames(["kafka-1"]).has(host)


def test_any_name_will_do_where_that_is_configured() -> None:
    assert KnownNames(["*"]).has("evil.example")


def test_another_origin_is_one_that_is_not_the_host() -> None:
    assert not is_of_another_origin(None, "a:1")
    assert not is_of_another_origin("http://A:1", "a:1")
    for origin in ("http://b:1", "http://a:2", "null", "http://[", ""):
        assert is_of_another_origin(origin, "a:1")


def test_another_site_is_what_the_browser_says() -> None:
    assert not is_of_another_site(None)
    assert not is_of_another_site("same-origin")
    assert is_of_another_site("cross-site")
    assert is_of_another_site("same-site")


def test_what_is_no_host_has_no_name() -> None:
    assert host_name("[::1]:80") == "::1"
    assert host_name("[") == ""
