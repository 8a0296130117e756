"""The rules of a listener for tokens: what its keys say, and the combinations that end the start.

Kafka takes unsecured tokens unless a class is named, checks no signature with that class unless there is an address of
keys, and neither issuer nor audience unless they are given. Here an address of keys is enough for signatures to be
checked, and issuer and audience must be given, or be given up by name (the keys that Kafka 4.4 has for it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pykbroker.config.keys import ConfigurationError, InvalidValue

from ...packages import SIGNED_TOKENS, need
from ...tls.settings import TlsSettings
from .allowed_urls import check_allowed
from .given_keys import GivenKeys
from .secured import Expectations
from .unsecured import UnsecuredValidator

_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
SECURED: Final = f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler"
UNSECURED: Final = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
_BEFORE_4_0: Final = f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler"

JWKS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_VALIDATOR: Final = "sasl.oauthbearer.jwt.validator.class"
_VALIDATORS: Final = {f"{_PACKAGE}.DefaultJwtValidator": "", f"{_PACKAGE}.BrokerJwtValidator": "signatures"}
_AUDIENCE: Final = "sasl.oauthbearer.expected.audience"
_ISSUER: Final = "sasl.oauthbearer.expected.issuer"
_ANY_AUDIENCE: Final = "sasl.oauthbearer.allow.unverified.audience"
_ANY_ISSUER: Final = "sasl.oauthbearer.allow.unverified.issuer"
_OPTIONS_OF_UNSECURED: Final = "unsecuredValidator"


@dataclass(frozen=True, slots=True)
class JwksAddress:
    """The place that keys come from. name: the key of the address, for messages. tls: for https."""

    name: str
    url: str
    refresh_ms: int
    backoff_ms: int
    backoff_max_ms: int
    tls: TlsSettings


@dataclass(frozen=True, slots=True)
class SecuredTokens:
    """Tokens must be signed, and be as expected."""

    jwks: JwksAddress
    expected: Expectations


def token_rules(
    given: GivenKeys, handler: tuple[str, str | None], allowed: frozenset[str] | None
) -> UnsecuredValidator | SecuredTokens:
    """The rules of one listener. Raises ConfigurationError.

    handler: the name of `sasl.server.callback.handler.class` and its value. allowed: the addresses that may be asked,
    None where nobody asks.
    """
    url = given.text(JWKS_URL)
    wanted = _wanted_by_handler(handler) or ("signatures" if url else "") or given.one_of(_VALIDATOR, _VALIDATORS)
    if wanted == "signatures":
        return _secured(given, handler[0], allowed)
    if url is not None:
        raise InvalidValue(
            handler[0], handler[1], f"it looks at no signature, though {given.name(JWKS_URL)} has keys for them"
        )
    for key in (_AUDIENCE, _ISSUER):
        if given.is_given(key):
            raise InvalidValue(
                given.name(key),
                given.text(key),
                f"it is checked in signed tokens, and without {JWKS_URL} tokens without a signature are taken",
            )
    return UnsecuredValidator.of(given.jaas_key, given.options)


def _wanted_by_handler(handler: tuple[str, str | None]) -> str:
    """The tokens that the class asks for; empty where none is named."""
    name, text = handler
    match (text or "").strip():
        case "":
            return ""
        case "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler":
            return "signatures"
        case given if given == UNSECURED:
            return "none"
        case given:
            reason = f"{SECURED} and {UNSECURED} are allowed"
            if given == _BEFORE_4_0:
                reason = f"since Kafka 4.0 its name is {SECURED}"
            raise InvalidValue(name, given, reason)


def _secured(given: GivenKeys, handler: str, allowed: frozenset[str] | None) -> SecuredTokens:
    url = given.url(JWKS_URL)
    if url is None:
        asked = handler if not given.is_given(_VALIDATOR) else f"{handler} or {given.name(_VALIDATOR)}"
        raise ConfigurationError(
            f"{JWKS_URL} is missing: {asked} asks for signed tokens, and without keys no signature can be checked"
        )
    need(SIGNED_TOKENS, given.name(JWKS_URL))
    if allowed is not None:
        check_allowed(given.name(JWKS_URL), url.geturl(), allowed)
    for option in given.options:
        if option.startswith(_OPTIONS_OF_UNSECURED):
            raise InvalidValue(f"{given.jaas_key}: {option}", "[hidden]", "it is of tokens without a signature alone")
    given.one_of(_VALIDATOR, _VALIDATORS)
    audience = tuple(dict.fromkeys(given.typed(_AUDIENCE, list)))
    issuer = given.text(_ISSUER)
    _check_expected(given, _AUDIENCE, bool(audience), _ANY_AUDIENCE)
    _check_expected(given, _ISSUER, issuer is not None, _ANY_ISSUER)
    return SecuredTokens(
        JwksAddress(
            given.name(JWKS_URL),
            url.geturl(),
            refresh_ms=given.at_least("sasl.oauthbearer.jwks.endpoint.refresh.ms", 1),
            backoff_ms=given.at_least("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", 0),
            backoff_max_ms=given.at_least("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", 0),
            tls=given.tls(),
        ),
        Expectations(
            audience=audience or None,
            issuer=issuer,
            clock_skew_s=given.at_least("sasl.oauthbearer.clock.skew.seconds", 0),
            scope_claim=claim_name(given, "sasl.oauthbearer.scope.claim.name"),
            principal_claim=claim_name(given, "sasl.oauthbearer.sub.claim.name"),
        ),
    )


def claim_name(given: GivenKeys, key: str) -> str:
    """The name of a claim. Raises InvalidValue where it is blank."""
    name = given.typed(key, str).strip()
    if not name:
        raise InvalidValue(given.name(key), "", "the name of a claim must not be blank")
    return name


def _check_expected(given: GivenKeys, key: str, is_expected: bool, unverified: str) -> None:
    if not is_expected and not given.typed(unverified, bool):
        raise ConfigurationError(
            f"{key} is missing: tokens for anybody would be taken; {unverified}=true says that they shall be"
        )
