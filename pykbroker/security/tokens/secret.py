"""The secret key of delegation tokens (`delegation.token.secret.key`): all nodes of a cluster have the same one."""

from __future__ import annotations

import hmac
from base64 import b64encode
from typing import Final

from pykbroker.config import BrokerConfig

_HASH: Final = "sha512"


class TokenSecret:
    """The secret makes the HMAC of a token from its id. It is shown by nothing."""

    __slots__ = ("_key",)

    def __init__(self, text: str) -> None:
        self._key = text.encode(errors="replace")

    def hmac(self, token_id: str) -> bytes:
        """Return what proves that somebody has the token."""
        return hmac.digest(self._key, token_id.encode(), _HASH)

    def password(self, token_id: str) -> str:
        """Return the HMAC as a client writes it into its JAAS line, in base64."""
        return b64encode(self.hmac(token_id)).decode("ascii")


def token_secret(config: BrokerConfig) -> TokenSecret | None:
    """The secret of a node; None where delegation tokens are turned off, by no key or an empty one."""
    text = config.optional_str("delegation.token.secret.key")
    return TokenSecret(text) if text else None
