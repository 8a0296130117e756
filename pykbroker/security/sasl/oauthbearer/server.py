"""The server's side of OAUTHBEARER. The model is Kafka's `OAuthBearerSaslServer`.

A token that is refused is answered with a challenge in JSON, which the client answers with CTRL-A; then the exchange
fails, and the client is told the JSON again. Kafka takes another token in the place of that CTRL-A, as often as the
client likes; here it is the end, too, so that each refusal is delayed.
"""

from __future__ import annotations

import json
from typing import Protocol

from ..mechanism import AuthenticationFailed, Identity
from .client_first import ClientFirst
from .compact_token import InvalidToken


class TokenValidator(Protocol):
    """A validator says whose a token is."""

    def validate(self, token: str, now_ms: int) -> Identity:
        """Return who shows the token. Raises InvalidToken. now_ms: the wall clock."""
        ...


class OAuthBearerServer:
    """One exchange."""

    def __init__(self, validator: TokenValidator) -> None:
        self._validator = validator
        self._identity: Identity | None = None
        self._refusal: AuthenticationFailed | None = None

    @property
    def identity(self) -> Identity | None:
        return self._identity

    def step(self, response: bytes, now_ms: int) -> bytes:
        """Check the client's token; nothing looks at its extensions. Raises AuthenticationFailed."""
        if self._refusal is not None:
            raise self._refusal
        message = ClientFirst.read(response)
        try:
            identity = self._validator.validate(message.token, now_ms)
        except InvalidToken as error:
            told = _challenge(error)
            self._refusal = AuthenticationFailed(f"the token is refused: {error}", told=told)
            return told.encode()
        if message.authorization_id and message.authorization_id != identity.name:
            raise AuthenticationFailed(
                "another authorization id",
                told="Authentication failed: Client requested an authorization id "
                f"({message.authorization_id}) that is different from the token's principal name ({identity.name})",
            )
        self._identity = identity
        return b""


def _challenge(error: InvalidToken) -> str:
    """The text that Kafka writes, with its blanks (RFC 7628, section 3.2.2)."""
    if error.scope is None:
        return '{"status":"invalid_token"}'
    return f'{{"status":"insufficient_scope", "scope":{json.dumps(error.scope)}}}'
