"""Tokens that an authorization server has signed. The model is Kafka's `BrokerJwtValidator`, with jose4j below it.

Nothing of a token is believed before its signature is verified with a key of the JWKS document. `exp`, `iat` and the
principal must be there; audience and issuer must be those that are expected, unless the configuration says by name that
they are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..mechanism import Identity
from .compact_token import InvalidToken, check_principal, milliseconds, number_claim, read_token
from .key_set import ALGORITHMS, VerificationKey


class Keys(Protocol):
    """Keys by which tokens are verified."""

    def find(self, header: Mapping[str, Any], now_ms: int) -> VerificationKey | None:
        """The key that the header of a token names, None where there is none so far."""
        ...


@dataclass(frozen=True, slots=True)
class Expectations:
    """The claims that a token must have. audience, issuer: None where anything is taken."""

    audience: tuple[str, ...] | None
    issuer: str | None
    clock_skew_s: int = 30
    scope_claim: str = "scope"
    principal_claim: str = "sub"


class SecuredValidator:
    """The rules of one listener, and the keys that it shares with others."""

    def __init__(self, keys: Keys, expected: Expectations) -> None:
        self._keys = keys
        self._expected = expected

    def validate(self, token: str, now_ms: int) -> Identity:
        """Return who the token says its bearer is. Raises InvalidToken."""
        read = read_token(token)
        algorithm = read.header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise InvalidToken(f"its algorithm is none of {', '.join(ALGORITHMS)}")
        if "crit" in read.header or "b64" in read.header:
            raise InvalidToken("its header has extensions that must be understood ('crit')")
        key = self._keys.find(read.header, now_ms)
        if key is None:
            raise InvalidToken("no key that is known fits its header ('alg', 'kid')")
        if not key.verifies(algorithm, read.signed, read.signature):
            raise InvalidToken("its signature is wrong")
        return self._identity(read.claims, now_ms)

    def _identity(self, claims: Mapping[str, Any], now_ms: int) -> Identity:
        expected = self._expected
        expires_ms = _check_times(claims, now_ms // 1000, expected.clock_skew_s)
        if expected.issuer is not None and claims.get("iss") != expected.issuer:
            raise InvalidToken("it is of another issuer ('iss')")
        if expected.audience is not None and not set(expected.audience).intersection(_audience(claims)):
            raise InvalidToken("it is for another audience ('aud')")
        _check_scopes(expected.scope_claim, claims.get(expected.scope_claim))
        for of_text in ("sub", "jti"):
            if not isinstance(claims.get(of_text), str | None):
                raise InvalidToken(f"its claim '{of_text}' is not a text")
        name = claims.get(expected.principal_claim)
        if not isinstance(name, str) or not name.strip():
            raise InvalidToken(f"its claim '{expected.principal_claim}' names no principal")
        return Identity(check_principal(name.strip()), expires_ms)


def _check_times(claims: Mapping[str, Any], now_s: int, skew_s: int) -> int:
    """Return when the token expires, in milliseconds. Raises InvalidToken."""
    expires_ms, issued_ms, begins_ms = (_moment_ms(claims, name) for name in ("exp", "iat", "nbf"))
    if expires_ms is None or expires_ms < 0:
        raise InvalidToken("it has no claim 'exp' that names a moment")
    if issued_ms is None or issued_ms < 0:
        raise InvalidToken("it has no claim 'iat' that names a moment")
    if (now_s - skew_s) * 1000 >= expires_ms:
        raise InvalidToken("it has expired ('exp')")
    if expires_ms < issued_ms:
        raise InvalidToken("it expires before it was issued ('exp', 'iat')")
    if begins_ms is not None and (expires_ms < begins_ms or (now_s + skew_s) * 1000 < begins_ms):
        raise InvalidToken("it is not yet valid ('nbf')")
    return expires_ms


def _moment_ms(claims: Mapping[str, Any], name: str) -> int | None:
    """The claim in whole seconds, as jose4j has it."""
    seconds = number_claim(claims, name)
    if seconds is None:
        return None
    return milliseconds(seconds) // 1000 * 1000


def _audience(claims: Mapping[str, Any]) -> list[str]:
    value = claims.get("aud")
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InvalidToken("it names no audience ('aud')")
    return found


def _check_scopes(name: str, value: Any) -> None:
    """Check a form that Kafka insists on, whatever the scopes are."""
    scopes = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    if not all(isinstance(each, str) and each.strip() for each in scopes):
        raise InvalidToken(f"its claim '{name}' has a scope that is no text")
    if len({each.strip() for each in scopes}) != len(scopes):
        raise InvalidToken(f"its claim '{name}' has a scope twice")
