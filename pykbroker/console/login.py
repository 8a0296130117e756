"""Log in to a console: with the name and password that Kafka's clients have, which the broker itself checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pykbroker.client.errors import AuthenticationRefused, BadInput, MechanismNotOffered
from pykbroker.security.sasl.mechanism import PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, AuthenticationFailed

from .attempts import Attempts
from .own_broker import OwnBroker
from .sessions import Sessions

if TYPE_CHECKING:
    from pykbroker.security.sasl.credentials import ClientCredentials

MOST_CHARACTERS: Final = 1024
_MECHANISMS: Final = (SCRAM_SHA_512, SCRAM_SHA_256, PLAIN)


class TooManyAttempts(Exception):
    """An attempt that is not made, since too many have failed. wait_s: after so long there may be another one."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"too many attempts to log in have failed: wait {wait_s:.0f} seconds")
        self.wait_s = wait_s


class Login:
    """The way into a console whose broker has users."""

    def __init__(self, broker: OwnBroker, sessions: Sessions, attempts: Attempts) -> None:
        self._broker = broker
        self._sessions = sessions
        self._attempts = attempts

    async def log_in(self, user: str, password: str) -> str:
        """Return the token of a new session. Raises TooManyAttempts, AuthenticationRefused, ClientError."""
        if not user or not password or max(len(user), len(password)) > MOST_CHARACTERS or "\0" in user + password:
            raise BadInput(f"a name and a password of 1 to {MOST_CHARACTERS} characters are needed to log in")
        wait_s = self._attempts.wait_s(user)
        if wait_s > 0:
            raise TooManyAttempts(max(wait_s, 1.0))
        self._attempts.has_failed(user)
        credentials = await self._accepted(user, password)
        self._attempts.has_succeeded(user)
        return await self._sessions.open(
            user, self._broker.cluster(credentials), lambda: self._broker.cluster(credentials)
        )

    async def _accepted(self, user: str, password: str) -> ClientCredentials:
        """Return the credentials with the first mechanism by which the broker takes them."""
        from pykbroker.security.sasl.credentials import ClientCredentials

        refusal: AuthenticationRefused | None = None
        for mechanism in _MECHANISMS:
            try:
                credentials = ClientCredentials(mechanism, user, password)
            except AuthenticationFailed as error:
                raise BadInput(str(error)) from None
            try:
                async with self._broker.cluster(credentials) as cluster:
                    await cluster.any_connection()
            except MechanismNotOffered:
                continue
            except AuthenticationRefused as error:
                refusal = error
                continue
            return credentials
        raise refusal or BadInput(f"the broker's listener offers none of {', '.join(_MECHANISMS)}")
