"""A cluster as the properties of Java's clients name it: what `--command-config` has, and Spark's options.

What TLS and SASL need is imported where they are used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pykbroker.config.keys import ConfigurationError

from .cluster import Cluster, Open, open_tcp, parse_bootstrap_servers

if TYPE_CHECKING:
    from pykbroker.security.sasl.credentials import Credentials
    from pykbroker.security.sasl.jaas import LoginModule

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def security_protocol(properties: Mapping[str, str]) -> str:
    """One of the four. Raises ConfigurationError."""
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in SECURITY_PROTOCOLS:
        allowed = ", ".join(SECURITY_PROTOCOLS)
        raise ConfigurationError(f"security.protocol {protocol} is unknown, allowed are {allowed}")
    return protocol


def cluster_of(bootstrap_server: str, properties: Mapping[str, str], *, client_id: str) -> Cluster:
    """An async context manager. Settings that this client does not have are ignored. Raises ConfigurationError.

    properties: of Java's clients, without a prefix.
    """
    protocol = security_protocol(properties)
    return Cluster(
        parse_bootstrap_servers(bootstrap_server),
        client_id=properties.get("client.id", client_id),
        request_timeout_ms=whole_number(properties, "request.timeout.ms", 30_000),
        api_timeout_ms=whole_number(properties, "default.api.timeout.ms", 60_000),
        open_stream=_open_with_tls(properties) if protocol.endswith("SSL") else open_tcp,
        credentials=read_credentials(properties) if protocol.startswith("SASL_") else None,
    )


def _open_with_tls(properties: Mapping[str, str]) -> Open:
    """Return what opens connections with the `ssl.*` settings. Raises ConfigurationError."""
    from pykbroker.client.tls import open_with_tls
    from pykbroker.security.tls.contexts import client_context
    from pykbroker.security.tls.settings import TlsSettings

    return open_with_tls(client_context(TlsSettings.of(properties)))


def read_credentials(properties: Mapping[str, str]) -> Credentials:
    """The user of `sasl.mechanism` and `sasl.jaas.config`. Raises ConfigurationError."""
    from pykbroker.security.sasl.credentials import check_mechanism, client_credentials
    from pykbroker.security.sasl.jaas import parse_one
    from pykbroker.security.sasl.mechanism import OAUTHBEARER

    mechanism, line = properties.get("sasl.mechanism", "GSSAPI").strip(), properties.get("sasl.jaas.config")
    check_mechanism("sasl.mechanism", mechanism)
    if line is None:
        raise ConfigurationError("sasl.jaas.config is missing: it names the login module, the user and the password")
    module = parse_one("sasl.jaas.config", line)
    if mechanism == OAUTHBEARER:
        return _token_credentials(properties, module)
    return client_credentials("sasl.jaas.config", mechanism, module)


def _token_credentials(properties: Mapping[str, str], module: LoginModule) -> Credentials:
    """Raises ConfigurationError."""
    from pykbroker.client.oauth_tokens import BearerCredentials
    from pykbroker.security.sasl.credentials import check_module
    from pykbroker.security.sasl.mechanism import OAUTHBEARER
    from pykbroker.security.sasl.oauthbearer.allowed_urls import VARIABLE, allowed_urls
    from pykbroker.security.sasl.oauthbearer.given_keys import GivenKeys
    from pykbroker.security.sasl.oauthbearer.login_settings import login

    check_module("sasl.jaas.config", OAUTHBEARER, module)
    assertions = sorted(each for each in properties if each.startswith("sasl.oauthbearer.assertion."))
    if assertions:
        raise ConfigurationError(
            f"{', '.join(assertions)}: tokens by assertions are not served, only by client credentials"
        )
    handler = "sasl.login.callback.handler.class"
    way = login(
        GivenKeys(lambda key: (key, properties.get(key)), "sasl.jaas.config", module.options),
        (handler, properties.get(handler)),
        allowed_urls(os.environ.get(VARIABLE, "")),
    )
    if way is None:
        raise ConfigurationError("sasl.jaas.config says nothing of a token: unsecuredLoginStringClaim_sub and the like")
    return BearerCredentials(way)


def whole_number(properties: Mapping[str, str], name: str, default: int) -> int:
    """A setting that is a number of something, not negative. Raises ConfigurationError."""
    text = properties.get(name, str(default)).strip()
    if not text.isascii() or not text.isdigit():
        raise ConfigurationError(f"{name} must be a whole number, not '{text}'")
    return int(text)
