"""The client's side of OAUTHBEARER. The model is Kafka's `OAuthBearerSaslClient`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..mechanism import AuthenticationFailed
from .client_first import SEPARATOR, ClientFirst

_GIVE_UP: Final = SEPARATOR.encode()


class OAuthBearerClient:
    """One exchange. extensions: such as the server looks for."""

    def __init__(self, token: str, extensions: Mapping[str, str] | None = None) -> None:
        self._first: ClientFirst | None = ClientFirst(token, extensions=extensions or {})
        self._is_refused = self._is_complete = False

    @property
    def is_complete(self) -> bool:
        return self._is_complete

    def step(self, challenge: bytes) -> bytes:
        """Send the token; a challenge, which is a refusal, is answered with CTRL-A. Raises AuthenticationFailed."""
        if self._first is not None:
            message, self._first = self._first, None
            return message.to_bytes()
        if self._is_complete or self._is_refused:
            raise AuthenticationFailed("the server goes on behind the end of an OAUTHBEARER exchange")
        if challenge:
            self._is_refused = True
            return _GIVE_UP
        self._is_complete = True
        return b""
