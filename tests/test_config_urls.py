"""URLs in settings, as the log, errors and the console show them."""

from __future__ import annotations

import pytest

from pykbroker.config.keys import InvalidValue
from pykbroker.config.urls import without_secrets
from pykbroker.console.api.topic_configs import config_row
from pykbroker.protocol.config_source import ConfigSource
from pykbroker.protocol.messages.configs import DescribeConfigsResourceResult


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://idp/keys", "https://idp/keys"),
        ("https://me:pass@idp:8443/keys", "https://[hidden]@idp:8443/keys"),
        ("https://token@idp", "https://[hidden]@idp"),
        ("https://a:b@c:d@idp/x@y", "https://[hidden]@idp/x@y"),
        ("https://idp/keys?token=abc&x=%20;y=1#z", "https://idp/keys?token=[hidden]&x=[hidden];y=[hidden]#[hidden]"),
        ("https://idp/keys?abc", "https://idp/keys?[hidden]"),
        ("https://a:b@x/,https://c:d@y/", "https://[hidden]@x/,https://[hidden]@y/"),
        ("PLAINTEXT://:9092,SSL://host:9093", "PLAINTEXT://:9092,SSL://host:9093"),
        ("me@example.com?x=1", "me@example.com?x=1"),
    ],
)
def test_what_may_be_a_secret_in_a_url_is_hidden(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_an_error_of_a_url_has_no_password() -> None:
    error = InvalidValue("sasl.oauthbearer.token.endpoint.url", "http://me:secret@idp/", "it is not https")
    assert "secret" not in str(error)
    assert "idp" in str(error)


def test_the_console_shows_a_url_without_its_password() -> None:
    config = DescribeConfigsResourceResult(
        name="sasl.oauthbearer.jwks.endpoint.url", value="https://me:secret@idp/keys", read_only=True
    )
    assert config_row(config, ConfigSource.DYNAMIC_BROKER_CONFIG).value == "https://[hidden]@idp/keys"
