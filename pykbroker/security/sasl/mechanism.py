"""A SASL mechanism is a small machine that takes the other side's bytes and gives the next ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

GSSAPI: Final = "GSSAPI"
OAUTHBEARER: Final = "OAUTHBEARER"
PLAIN: Final = "PLAIN"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"


class AuthenticationFailed(Exception):
    """The exchange has failed. `str(error)` is for this side's log, and holds no secret.

    told: what the other side is told. None is the masked text, which says nothing but that the credentials are invalid
    (`SaslServerAuthenticator`): whatever would tell that a user exists has None.
    """

    def __init__(self, reason: str, *, told: str | None = None) -> None:
        super().__init__(reason)
        self.told = told


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity is who has authenticated.

    expires_at_ms: when the credential ends, in milliseconds of the wall clock; None where it does not.
    by_token: whether a delegation token was shown, whose owner `name` is (KIP-48).
    """

    name: str
    expires_at_ms: int | None = None
    by_token: bool = False


class ServerMechanism(Protocol):
    """The server's side of one exchange."""

    @property
    def identity(self) -> Identity | None:
        """The identity of the client; None until the exchange is complete."""
        ...

    def step(self, response: bytes, now_ms: int) -> bytes:
        """Take the client's bytes and return the challenge, or the final answer. Raises AuthenticationFailed.

        now_ms: the wall clock, for credentials that expire.
        """
        ...


class ClientMechanism(Protocol):
    """The client's side of one exchange."""

    @property
    def is_complete(self) -> bool:
        """Tell whether the client has nothing more to send, and has seen what it must see of the server."""
        ...

    def step(self, challenge: bytes) -> bytes:
        """Take the server's bytes, none at first, and return the response. Raises AuthenticationFailed."""
        ...
