"""The way of a node, or of a command, to its token: what its keys and its JAAS line say.

Kafka's `OAuthBearerUnsecuredLoginCallbackHandler` makes one itself, `OAuthBearerLoginCallbackHandler` reads a file or
asks a token endpoint by the client's name and secret (`FileJwtRetriever`, `ClientCredentialsJwtRetriever`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from pykbroker.config.keys import ConfigurationError, InvalidValue

from ...tls.settings import TlsSettings
from .allowed_urls import check_allowed
from .client_first import is_extension
from .given_keys import GivenKeys
from .unsecured_login import EXTENSION, PREFIX, UnsecuredLogin
from .validator_settings import claim_name

_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
FETCHING: Final = f"{_PACKAGE}.OAuthBearerLoginCallbackHandler"
UNSECURED: Final = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 - no password

_RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"
_RETRIEVERS: Final = {
    f"{_PACKAGE}.DefaultJwtRetriever": "",
    f"{_PACKAGE}.FileJwtRetriever": "file",
    f"{_PACKAGE}.ClientCredentialsJwtRetriever": "https",
}
_JWT_BEARER: Final = f"{_PACKAGE}.JwtBearerJwtRetriever"
_EXTENSION: Final = "extension_"


@dataclass(frozen=True, slots=True)
class FileLogin:
    """The token stands in a file."""

    path: str


@dataclass(frozen=True, slots=True)
class EndpointLogin:
    """The token comes from a token endpoint, by the grant of client credentials (RFC 6749, section 4.4)."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None
    is_header_encoded: bool
    tls: TlsSettings
    connect_timeout_ms: int | None
    read_timeout_ms: int | None
    backoff_ms: int
    backoff_max_ms: int


@dataclass(frozen=True, slots=True)
class Login:
    """One user's way to tokens. refresh_factor: how much of a token's lifetime may be over."""

    source: UnsecuredLogin | FileLogin | EndpointLogin
    extensions: Mapping[str, str]
    principal_claim: str = "sub"
    refresh_factor: float = 0.8


def login(given: GivenKeys, handler: tuple[str, str | None], allowed: frozenset[str] | None) -> Login | None:
    """The way to tokens; None where neither options nor an address say one. Raises ConfigurationError.

    handler: the name of `sasl.login.callback.handler.class` and its value. allowed: the addresses that may be asked,
    None where nobody asks.
    """
    is_fetching = _is_fetching(handler)
    if given.is_given(TOKEN_URL) and is_fetching is False:
        raise InvalidValue(handler[0], handler[1], f"it asks for no token, though {given.name(TOKEN_URL)} is given")
    if is_fetching or given.is_given(TOKEN_URL):
        return _fetched(given, allowed)
    if not any(each.startswith(PREFIX) for each in given.options):
        return None
    extensions = _checked(given, EXTENSION)
    if len(extensions) == sum(each.startswith(PREFIX) for each in given.options):
        raise InvalidValue(given.jaas_key, "[hidden]", "it has extensions, and says no principal of a token")
    source = UnsecuredLogin.of(given.jaas_key, given.options)
    return Login(source, extensions, source.principal_claim)


def _is_fetching(handler: tuple[str, str | None]) -> bool | None:
    """Tell what the class asks for; None where none is named."""
    name, text = handler
    classes = {"": None, FETCHING: True, UNSECURED: False}
    asked = (text or "").strip()
    if asked not in classes:
        raise InvalidValue(name, asked, f"{FETCHING} and {UNSECURED} are allowed")
    return classes[asked]


def _fetched(given: GivenKeys, allowed: frozenset[str] | None) -> Login:
    url = given.url(TOKEN_URL)
    if url is None:
        raise ConfigurationError(f"{TOKEN_URL} is missing: a token comes from a file or a token endpoint")
    if given.text(_RETRIEVER) == _JWT_BEARER:
        raise InvalidValue(
            given.name(_RETRIEVER), _JWT_BEARER, f"the grant jwt-bearer is not served; {', '.join(_RETRIEVERS)} are"
        )
    scheme = given.one_of(_RETRIEVER, _RETRIEVERS)
    if scheme and scheme != url.scheme:
        raise InvalidValue(given.name(_RETRIEVER), given.text(_RETRIEVER), f"it takes {scheme}, not {url.geturl()}")
    if allowed is not None:
        check_allowed(given.name(TOKEN_URL), url.geturl(), allowed)
    source = FileLogin(unquote(url.path)) if url.scheme == "file" else _endpoint(given, url.geturl())
    factor = given.typed("sasl.login.refresh.window.factor", float)
    claim = claim_name(given, "sasl.oauthbearer.sub.claim.name")
    return Login(source, _checked(given, _EXTENSION), claim, factor)


def _endpoint(given: GivenKeys, url: str) -> EndpointLogin:
    return EndpointLogin(
        url,
        client_id=_required(given, "sasl.oauthbearer.client.credentials.client.id", "clientId"),
        client_secret=_required(given, "sasl.oauthbearer.client.credentials.client.secret", "clientSecret"),
        scope=given.text("sasl.oauthbearer.scope") or given.option("scope"),
        is_header_encoded=given.typed("sasl.oauthbearer.header.urlencode", bool),
        tls=given.tls(),
        connect_timeout_ms=given.optional_ms("sasl.login.connect.timeout.ms"),
        read_timeout_ms=given.optional_ms("sasl.login.read.timeout.ms"),
        backoff_ms=given.at_least("sasl.login.retry.backoff.ms", 0),
        backoff_max_ms=given.at_least("sasl.login.retry.backoff.max.ms", 0),
    )


def _required(given: GivenKeys, key: str, option: str) -> str:
    """A key, or the option of the JAAS line that it had before Kafka 4.1."""
    found = given.text(key) or given.option(option)
    if found is None:
        raise ConfigurationError(f"{key} is missing, and so is {option} in {given.jaas_key}")
    return found


def _checked(given: GivenKeys, prefix: str) -> dict[str, str]:
    extensions = given.extensions(prefix)
    for name, text in extensions.items():
        if not is_extension(name, text):
            raise InvalidValue(
                f"{given.jaas_key}: {prefix}{name}",
                "[hidden]",
                "an extension has a name of letters, and printable text",
            )
    return extensions
