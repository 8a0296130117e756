"""A token without a signature, as a client or a node makes it for itself (`OAuthBearerUnsecuredLoginCallbackHandler`).

The options of the JAAS line say what it claims: `unsecuredLoginStringClaim_sub="alice"` and the like.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pykbroker.config.keys import InvalidValue

PREFIX: Final = "unsecuredLogin"
EXTENSION: Final = f"{PREFIX}Extension_"
_STRING: Final = f"{PREFIX}StringClaim_"
_NUMBER: Final = f"{PREFIX}NumberClaim_"
_LIST: Final = f"{PREFIX}ListClaim_"
_LIFETIME: Final = f"{PREFIX}LifetimeSeconds"
_PRINCIPAL: Final = f"{PREFIX}PrincipalClaimName"
_RESERVED: Final = ("iat", "exp")
_MAX_LIFETIME_S: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class UnsecuredLogin:
    """The claims of the tokens, all but the times."""

    claims: Mapping[str, Any] = field(repr=False)
    principal_claim: str = "sub"
    lifetime_s: int = 3_600

    @classmethod
    def of(cls, key: str, options: Mapping[str, str]) -> UnsecuredLogin:
        """Read the options of a login module. key: of the JAAS line. Raises InvalidValue."""
        claims = dict(_claims(key, options))
        principal = options.get(_PRINCIPAL, "").strip() or "sub"
        name = claims.get(principal)
        if not isinstance(name, str) or not name.strip():
            raise InvalidValue(key, "[hidden]", f"the principal must be given, as {_STRING}{principal}")
        return cls(claims, principal, _lifetime_s(key, options.get(_LIFETIME, "").strip()))

    def token(self, now_ms: int) -> str:
        """Make a token that begins now."""
        now_s = now_ms / 1000
        return (
            ".".join(
                urlsafe_b64encode(json.dumps(each, separators=(",", ":")).encode()).decode().rstrip("=")
                for each in ({"alg": "none"}, {"exp": now_s + self.lifetime_s, "iat": now_s, **self.claims})
            )
            + "."
        )


def _claims(key: str, options: Mapping[str, str]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for option, text in options.items():
        for prefix in (_STRING, _NUMBER, _LIST):
            name = option.removeprefix(prefix)
            if not option.startswith(prefix) or not name:
                continue
            if name in _RESERVED:
                raise InvalidValue(f"{key}: {option}", text, f"{' and '.join(_RESERVED)} are set by themselves")
            found.append((name, text if prefix is _STRING else _parsed(f"{key}: {option}", prefix, text)))
    return found


def _parsed(option: str, prefix: str, text: str) -> Any:
    if prefix is _LIST:
        return _listed(text)
    try:
        number = float(text)
    except ValueError:
        raise InvalidValue(option, text, "a number is expected") from None
    if number in (float("inf"), float("-inf")) or number != number:
        raise InvalidValue(option, text, "a number is expected")
    return number


def _listed(text: str) -> list[str]:
    """Split at the first character, as Kafka does: one empty element at the end stands for those that there are."""
    delimiter, rest = text[:1], text[1:]
    if not rest:
        return []
    elements = rest.split(delimiter)
    while elements and not elements[-1]:
        elements.pop()
    if rest.startswith(delimiter) or rest.endswith(delimiter) or delimiter * 2 in rest:
        elements.append("")
    return elements


def _lifetime_s(key: str, text: str) -> int:
    if not text:
        return 3_600
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:20]) <= _MAX_LIFETIME_S:
        raise InvalidValue(f"{key}: {_LIFETIME}", text, "a whole number of seconds, 1 or more")
    return int(text)
