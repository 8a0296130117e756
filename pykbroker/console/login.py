"""Log in to a console: with the name and password, or the token, that Kafka's clients have; the broker checks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from pykbroker.client.errors import AuthenticationRefused, BadInput, ClientError, MechanismNotOffered
from pykbroker.security.sasl.mechanism import (
    OAUTHBEARER,
    PLAIN,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    AuthenticationFailed,
)

from .attempts import Attempts
from .own_broker import OwnBroker
from .sessions import Sessions

if TYPE_CHECKING:
    from pykbroker.security.sasl.credentials import Credentials

MOST_CHARACTERS: Final = 1024
BY_PASSWORD: Final = "password"  # noqa: S105 - the name of a way
BY_TOKEN: Final = "token"  # noqa: S105
_MECHANISMS: Final = (SCRAM_SHA_512, SCRAM_SHA_256, PLAIN)
_ASK_EVERY_S: Final = 10.0
_ASK_LIMIT_S: Final = 5.0


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
        self._asking = trio.Lock()
        self._ways: list[str] = []
        self._asked_s = -_ASK_EVERY_S

    async def ways(self) -> list[str]:
        """Return `password`, `token` or both: what the broker's listener takes now, as far as it says so."""
        async with self._asking:
            if trio.current_time() >= self._asked_s + _ASK_EVERY_S:
                offered = await self._offered()
                self._ways = [BY_PASSWORD] if not offered or offered & set(_MECHANISMS) else []
                self._ways += [BY_TOKEN] if OAUTHBEARER in offered else []
                self._asked_s = trio.current_time()
        return self._ways

    async def _offered(self) -> set[str]:
        from pykbroker.protocol.messages.sasl import SaslHandshakeRequest, SaslHandshakeResponse

        with trio.move_on_after(_ASK_LIMIT_S):
            try:
                async with self._broker.cluster(None) as cluster:
                    connection = await cluster.any_connection()
                    handshake = await connection.request(SaslHandshakeRequest(mechanism=""), SaslHandshakeResponse)
                    return set(handshake.mechanisms)
            except ClientError:
                pass
        return set()

    async def log_in(self, user: str, password: str, address: str) -> str:
        """Return the token of a new session. address: of who asks.

        Raises TooManyAttempts, AuthenticationRefused, ClientError.
        """
        if not user or not password or max(len(user), len(password)) > MOST_CHARACTERS or "\0" in user + password:
            raise BadInput(f"a name and a password of 1 to {MOST_CHARACTERS} characters are needed to log in")
        self._attempt(user, address)
        return await self._open(user, await self._accepted(user, password), address)

    async def log_in_by_token(self, text: str, address: str) -> tuple[str, str]:
        """Return the name in a token of OAUTHBEARER, and the token of a new session. Raises as `log_in`."""
        from .bearer import BearerToken

        credentials = BearerToken(text)
        self._attempt(credentials.name, address)
        if not await self._accepts(credentials):
            raise BadInput(f"the broker's listener does not offer {OAUTHBEARER}")
        return credentials.name, await self._open(credentials.name, credentials, address)

    def _attempt(self, user: str, address: str) -> None:
        """Raises TooManyAttempts."""
        wait_s = self._attempts.wait_s(user, address)
        if wait_s > 0:
            raise TooManyAttempts(max(wait_s, 1.0))
        self._attempts.has_failed(user, address)

    async def _open(self, user: str, credentials: Credentials, address: str) -> str:
        self._attempts.has_succeeded(user, address)
        return await self._sessions.open(
            user, self._broker.cluster(credentials), lambda: self._broker.cluster(credentials)
        )

    async def _accepted(self, user: str, password: str) -> Credentials:
        """Return the credentials with the first mechanism by which the broker takes them."""
        from pykbroker.security.sasl.credentials import ClientCredentials

        refusal: AuthenticationRefused | None = None
        for mechanism in _MECHANISMS:
            try:
                credentials = ClientCredentials(mechanism, user, password)
            except AuthenticationFailed as error:
                raise BadInput(str(error)) from None
            try:
                if await self._accepts(credentials):
                    return credentials
            except AuthenticationRefused as error:
                refusal = error
        raise refusal or BadInput(f"the broker's listener offers none of {', '.join(_MECHANISMS)}")

    async def _accepts(self, credentials: Credentials) -> bool:
        """Tell whether the listener offers the mechanism. Raises AuthenticationRefused, ClientError."""
        try:
            async with self._broker.cluster(credentials) as cluster:
                await cluster.any_connection()
        except MechanismNotOffered:
            return False
        return True
