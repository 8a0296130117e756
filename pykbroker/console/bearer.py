"""A log-in by a token of OAUTHBEARER that the user has: the broker checks it, and nobody can renew it here."""

from __future__ import annotations

from typing import Final

from pykbroker.client.errors import BadInput
from pykbroker.security.sasl.mechanism import OAUTHBEARER
from pykbroker.security.sasl.oauthbearer.client import OAuthBearerClient
from pykbroker.security.sasl.oauthbearer.client_first import is_token
from pykbroker.security.sasl.oauthbearer.compact_token import MAX_TOKEN_CHARS, InvalidToken, read_token

_SUBJECT: Final = "sub"
_LONGEST_SHOWN: Final = 100


class BearerToken:
    """One user's token as credentials. name: whom it says it is for, which nobody has checked. Raises BadInput."""

    def __init__(self, text: str) -> None:
        self.mechanism: Final = OAUTHBEARER
        self.is_blocking: Final = False
        self._text = text.strip()
        if not is_token(self._text):
            raise BadInput(f"a token has letters, digits and -_~+/.= alone, and {MAX_TOKEN_CHARS} of them at most")
        try:
            subject = read_token(self._text).claims.get(_SUBJECT)
        except InvalidToken as error:
            raise BadInput(f"this is no token: {error}") from None
        self.name: Final = subject[:_LONGEST_SHOWN] if isinstance(subject, str) and subject else "token"

    def new_exchange(self) -> OAuthBearerClient:
        """Begin an exchange."""
        return OAuthBearerClient(self._text)
