"""A cluster as the properties of Java's clients name it: what `--command-config` has, and Spark's options.

What TLS and SASL need is imported where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pykbroker.config.keys import ConfigurationError

from .cluster import Cluster, LookCloser, Open, open_tcp, parse_bootstrap_servers

if TYPE_CHECKING:
    from pykbroker.security.sasl.credentials import Credentials
    from pykbroker.security.sasl.jaas import LoginModule

_JAAS: Final = "sasl.jaas.config"
SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def security_protocol(properties: Mapping[str, str]) -> str:
    """One of the four. Raises ConfigurationError."""
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in SECURITY_PROTOCOLS:
        allowed = ", ".join(SECURITY_PROTOCOLS)
        raise ConfigurationError(f"security.protocol {protocol} is unknown, allowed are {allowed}")
    return protocol


def cluster_of(
    bootstrap_server: str, properties: Mapping[str, str], *, client_id: str, look_closer: LookCloser | None = None
) -> Cluster:
    """An async context manager. Settings that this client does not have are ignored. Raises ConfigurationError.

    properties: of Java's clients, without a prefix.
    """
    return Cluster(
        parse_bootstrap_servers(bootstrap_server),
        client_id=properties.get("client.id", client_id),
        request_timeout_ms=whole_number(properties, "request.timeout.ms", 30_000),
        api_timeout_ms=whole_number(properties, "default.api.timeout.ms", 60_000),
        open_stream=opening_of(properties),
        credentials=read_credentials(properties) if security_protocol(properties).startswith("SASL_") else None,
        look_closer=look_closer,
    )


def opening_of(properties: Mapping[str, str]) -> Open:
    """Return what opens connections, with TLS where the properties ask for it. Raises ConfigurationError."""
    if not security_protocol(properties).endswith("SSL"):
        return open_tcp
    from pykbroker.client.tls import open_with_tls
    from pykbroker.security.tls.contexts import client_context
    from pykbroker.security.tls.settings import TlsSettings

    return open_with_tls(client_context(TlsSettings.of(properties)))


def read_credentials(properties: Mapping[str, str]) -> Credentials:
    """The user of `sasl.mechanism` and `sasl.jaas.config`. Raises ConfigurationError."""
    from pykbroker.security.sasl.credentials import check_mechanism, client_credentials
    from pykbroker.security.sasl.jaas import parse_one
    from pykbroker.security.sasl.mechanism import OAUTHBEARER

    mechanism, line = properties.get("sasl.mechanism", "GSSAPI").strip(), properties.get(_JAAS)
    check_mechanism("sasl.mechanism", mechanism)
    place, module = _of_file(mechanism) if line is None else (_JAAS, parse_one(_JAAS, line))
    if mechanism == OAUTHBEARER:
        return _token_credentials(properties, place, module)
    return client_credentials(place, mechanism, module)


def _of_file(mechanism: str) -> tuple[str, LoginModule]:
    """The login module in the JAAS file of this process, and its place. Raises ConfigurationError."""
    from pykbroker.security.java_options import options_of_process
    from pykbroker.security.sasl.jaas_file import CLIENT

    file = options_of_process().jaas_file
    if file is None or CLIENT not in file.sections:
        other = "" if file is None else f", and {file.path} has no section {CLIENT}"
        raise ConfigurationError(f"{_JAAS} is missing{other}: it names the login module, the user and the password")
    return file.place(CLIENT), file.login(CLIENT, mechanism)


def _token_credentials(properties: Mapping[str, str], place: str, module: LoginModule) -> Credentials:
    """Raises ConfigurationError. place: of the login module, for messages."""
    from pykbroker.client.oauth_tokens import BearerCredentials
    from pykbroker.security.java_options import allowed_urls_of_process
    from pykbroker.security.sasl.credentials import check_module
    from pykbroker.security.sasl.mechanism import OAUTHBEARER
    from pykbroker.security.sasl.oauthbearer.given_keys import GivenKeys
    from pykbroker.security.sasl.oauthbearer.login_settings import login

    check_module(place, OAUTHBEARER, module)
    assertions = sorted(each for each in properties if each.startswith("sasl.oauthbearer.assertion."))
    if assertions:
        raise ConfigurationError(
            f"{', '.join(assertions)}: tokens by assertions are not served, only by client credentials"
        )
    handler = "sasl.login.callback.handler.class"
    way = login(
        GivenKeys(lambda key: (key, properties.get(key)), place, module.options),
        (handler, properties.get(handler)),
        allowed_urls_of_process(),
    )
    if way is None:
        raise ConfigurationError(f"{place} says nothing of a token: unsecuredLoginStringClaim_sub and the like")
    return BearerCredentials(way)


def whole_number(properties: Mapping[str, str], name: str, default: int) -> int:
    """A setting that is a number of something, not negative. Raises ConfigurationError."""
    text = properties.get(name, str(default)).strip()
    if not text.isascii() or not text.isdigit():
        raise ConfigurationError(f"{name} must be a whole number, not '{text}'")
    return int(text)
