"""The cluster that `--bootstrap-server` and `--command-config` name."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from pykbroker.client.cluster import Cluster, Open, open_tcp, parse_bootstrap_servers
from pykbroker.security.sasl.credentials import Credentials
from pykbroker.security.sasl.jaas import LoginModule

from .command import CommandFailed, run

_SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class ClusterOptions(Protocol):
    """The options that `bootstrap_options` gives a command."""

    @property
    def bootstrap_server(self) -> str: ...
    @property
    def command_config(self) -> Path | None: ...


Options = TypeVar("Options", bound=ClusterOptions)


def run_on_cluster(action: Callable[[Cluster, Options], Awaitable[None]], options: Options, *, client_id: str) -> None:
    """A command that does one thing with one cluster, to its end."""
    properties = read_client_properties(options.command_config)

    async def work() -> None:
        async with open_cluster(options.bootstrap_server, properties, client_id=client_id) as cluster:
            await action(cluster, options)

    run(work)


def read_client_properties(path: Path | None) -> dict[str, str]:
    """The settings in a properties file; none without a file."""
    if path is None:
        return {}
    from pykbroker.config.keys import ConfigurationError
    from pykbroker.config.properties import read_properties

    try:
        return read_properties(path)
    except ConfigurationError as error:
        raise CommandFailed(str(error)) from None


def open_cluster(bootstrap_server: str, properties: Mapping[str, str], *, client_id: str) -> Cluster:
    """An async context manager. Settings that this client does not have are ignored."""
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in _SECURITY_PROTOCOLS:
        allowed = ", ".join(_SECURITY_PROTOCOLS)
        raise CommandFailed(f"security.protocol {protocol} is unknown, allowed are {allowed}")
    return Cluster(
        parse_bootstrap_servers(bootstrap_server),
        client_id=properties.get("client.id", client_id),
        request_timeout_ms=whole_number(properties, "request.timeout.ms", 30_000),
        api_timeout_ms=whole_number(properties, "default.api.timeout.ms", 60_000),
        open_stream=_open_with_tls(properties) if protocol.endswith("SSL") else open_tcp,
        credentials=read_credentials(properties) if protocol.startswith("SASL_") else None,
    )


def _open_with_tls(properties: Mapping[str, str]) -> Open:
    """Return what opens connections with the `ssl.*` settings. Raises CommandFailed."""
    from pykbroker.client.tls import open_with_tls
    from pykbroker.config.keys import ConfigurationError
    from pykbroker.security.tls.contexts import client_context
    from pykbroker.security.tls.settings import TlsSettings

    try:
        return open_with_tls(client_context(TlsSettings.of(properties)))
    except ConfigurationError as error:
        raise CommandFailed(str(error)) from None


def read_credentials(properties: Mapping[str, str]) -> Credentials:
    """The user of `sasl.mechanism` and `sasl.jaas.config`."""
    from pykbroker.config.keys import ConfigurationError
    from pykbroker.security.sasl.credentials import check_mechanism, client_credentials
    from pykbroker.security.sasl.jaas import parse_one
    from pykbroker.security.sasl.mechanism import OAUTHBEARER

    mechanism, line = properties.get("sasl.mechanism", "GSSAPI").strip(), properties.get("sasl.jaas.config")
    try:
        check_mechanism("sasl.mechanism", mechanism)
        if line is None:
            raise CommandFailed("sasl.jaas.config is missing: it names the login module, the user and the password")
        module = parse_one("sasl.jaas.config", line)
        if mechanism == OAUTHBEARER:
            return _token_credentials(properties, module)
        return client_credentials("sasl.jaas.config", mechanism, module)
    except ConfigurationError as error:
        raise CommandFailed(str(error)) from None


def _token_credentials(properties: Mapping[str, str], module: LoginModule) -> Credentials:
    """Raises ConfigurationError, CommandFailed."""
    from pykbroker.client.oauth_tokens import TokenCredentials
    from pykbroker.security.sasl.credentials import check_module
    from pykbroker.security.sasl.mechanism import OAUTHBEARER
    from pykbroker.security.sasl.oauthbearer.allowed_urls import VARIABLE, allowed_urls
    from pykbroker.security.sasl.oauthbearer.given_keys import GivenKeys
    from pykbroker.security.sasl.oauthbearer.login_settings import login

    check_module("sasl.jaas.config", OAUTHBEARER, module)
    assertions = sorted(each for each in properties if each.startswith("sasl.oauthbearer.assertion."))
    if assertions:
        raise CommandFailed(f"{', '.join(assertions)}: tokens by assertions are not served, only by client credentials")
    handler = "sasl.login.callback.handler.class"
    way = login(
        GivenKeys(lambda key: (key, properties.get(key)), "sasl.jaas.config", module.options),
        (handler, properties.get(handler)),
        allowed_urls(os.environ.get(VARIABLE, "")),
    )
    if way is None:
        raise CommandFailed("sasl.jaas.config says nothing of a token: unsecuredLoginStringClaim_sub and the like")
    return TokenCredentials(way)


def whole_number(properties: Mapping[str, str], name: str, default: int) -> int:
    """A setting that is a number of something, not negative."""
    text = properties.get(name, str(default)).strip()
    if not text.isascii() or not text.isdigit():
        raise CommandFailed(f"{name} must be a whole number, not '{text}'")
    return int(text)
