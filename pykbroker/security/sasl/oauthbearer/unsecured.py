"""Tokens without a signature: whoever connects may say that he is anybody. Kafka takes them where nothing else is said.

The model is `OAuthBearerUnsecuredValidatorCallbackHandler`, whose options stand in the JAAS line of the listener.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pykbroker.config.keys import InvalidValue

from ..mechanism import Identity
from .compact_token import CompactToken, InvalidToken, check_principal, milliseconds, number_claim, read_token

_PREFIX: Final = "unsecuredValidator"
_SKEW: Final = f"{_PREFIX}AllowableClockSkewMs"
_SCOPE: Final = f"{_PREFIX}RequiredScope"
_MAX_INT: Final = (1 << 31) - 1
_SCOPE_ITEM: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class UnsecuredValidator:
    """The rules of one listener. required_scope: all that a token must be good for."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0

    @classmethod
    def of(cls, key: str, options: Mapping[str, str]) -> UnsecuredValidator:
        """Read the options of a login module. key: of the JAAS line. Raises InvalidValue."""
        return cls(
            principal_claim=options.get(f"{_PREFIX}PrincipalClaimName", "").strip() or "sub",
            scope_claim=options.get(f"{_PREFIX}ScopeClaimName", "").strip() or "scope",
            required_scope=_required_scope(key, options.get(_SCOPE, "")),
            clock_skew_ms=_clock_skew_ms(key, options.get(_SKEW, "").strip()),
        )

    def validate(self, token: str, now_ms: int) -> Identity:
        """Return who the token says its bearer is. Raises InvalidToken."""
        read = read_token(token)
        _check_is_unsecured(read)
        claims = {name: _as_kafka_reads(value) for name, value in read.claims.items()}
        name = claims.get(self.principal_claim)
        if not isinstance(name, str) or not name.strip():
            raise InvalidToken(f"its claim '{self.principal_claim}' names no principal")
        expires_s = number_claim(claims, "exp")
        issued_s = number_claim(claims, "iat")
        if expires_s is None:
            raise InvalidToken("it has no claim 'exp'")
        expires_ms = milliseconds(expires_s)
        if issued_s is not None and milliseconds(issued_s) > now_ms + self.clock_skew_ms:
            raise InvalidToken("it was issued in the future ('iat')")
        if now_ms - self.clock_skew_ms >= expires_ms:
            raise InvalidToken("it has expired ('exp')")
        if issued_s is not None and expires_s <= issued_s:
            raise InvalidToken("it expires before it was issued ('exp', 'iat')")
        self._check_scope(claims.get(self.scope_claim))
        return Identity(check_principal(name), expires_ms)

    def _check_scope(self, value: Any) -> None:
        if value is not None and not isinstance(value, str | list):
            raise InvalidToken(f"its claim '{self.scope_claim}' is neither a text nor a list")
        scope = {each.strip() for each in ([value] if isinstance(value, str) else value or [])}
        missing = [each for each in self.required_scope if each not in scope]
        if missing:
            raise InvalidToken(
                f"it lacks a scope that is required: {missing[0]}", scope=f"[{', '.join(self.required_scope)}]"
            )


def _check_is_unsecured(token: CompactToken) -> None:
    if token.header.get("alg") != "none":
        raise InvalidToken("its algorithm is not 'none', the one that unsecured tokens have")
    if token.signature:
        raise InvalidToken("it has a signature, and there is no key to check it with")


def _as_kafka_reads(value: Any) -> Any:
    """Return a number as it is, a list as one of texts, and all else as a text (`JsonNode.asText`)."""
    if isinstance(value, list):
        return [_as_text(each) for each in value]
    return value if isinstance(value, int | float) and not isinstance(value, bool) else _as_text(value)


def _as_text(value: Any) -> str:
    match value:
        case str():
            return value
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case _:
            return ""


def _required_scope(key: str, text: str) -> tuple[str, ...]:
    items = tuple(each for each in text.strip().split(" ") if each)
    for each in items:
        if _SCOPE_ITEM.fullmatch(each) is None:
            raise InvalidValue(
                f"{key}: {_SCOPE}", each, "a scope has neither blanks, quotes, \\ nor signs beyond ASCII"
            )
    return items


def _clock_skew_ms(key: str, text: str) -> int:
    if not text:
        return 0
    if re.fullmatch(r"\+?[0-9]{1,10}", text, re.ASCII) is None or int(text) > _MAX_INT:
        raise InvalidValue(f"{key}: {_SKEW}", text, f"a whole number of milliseconds, from 0 to {_MAX_INT}")
    return int(text)
