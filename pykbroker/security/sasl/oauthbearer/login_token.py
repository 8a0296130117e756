"""A token that a client has fetched for itself, looked at as Kafka's `ClientJwtValidator` does: its signature is the
business of those that it is shown to.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .client_first import is_token
from .compact_token import InvalidToken, milliseconds, number_claim, read_token


@dataclass(frozen=True, slots=True)
class LoginToken:
    """A token, and when it begins and ends in milliseconds of the wall clock; its beginning may be untold."""

    text: str = field(repr=False)
    begins_ms: int | None
    expires_ms: int

    @classmethod
    def read(cls, text: str, principal_claim: str) -> LoginToken:
        """Raises InvalidToken."""
        if not is_token(text):
            raise InvalidToken("it is no token: it is empty, too long, or has signs that no token has")
        claims = read_token(text).claims
        expires_s, issued_s = number_claim(claims, "exp"), number_claim(claims, "iat")
        if expires_s is None:
            raise InvalidToken("it has no claim 'exp'")
        principal = claims.get(principal_claim)
        if not isinstance(principal, str) or not principal.strip():
            raise InvalidToken(f"its claim '{principal_claim}' names no principal")
        return cls(text, None if issued_s is None else milliseconds(issued_s), milliseconds(expires_s))

    def is_fresh(self, now_ms: int, fetched_ms: int, used: float) -> bool:
        """Tell whether less than the given part of its lifetime is over (`sasl.login.refresh.window.factor`)."""
        begins_ms = min(fetched_ms, self.expires_ms) if self.begins_ms is None else self.begins_ms
        return now_ms < begins_ms + (self.expires_ms - begins_ms) * used
