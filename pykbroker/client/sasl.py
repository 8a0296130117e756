"""Authentication of one connection over SASL (KIP-43, KIP-152), right behind its negotiation of versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from pykbroker.security.sasl.mechanism import AuthenticationFailed, ClientMechanism

from .connection import Connection
from .errors import AuthenticationRefused, MechanismNotOffered, check

if TYPE_CHECKING:
    from pykbroker.security.sasl.credentials import Credentials


async def authenticate(connection: Connection, credentials: Credentials) -> int:
    """Return the lifetime of the session in milliseconds, 0 where it has no end (KIP-368).

    Raises AuthenticationRefused, also where the peer cannot show that it knows the credentials; ClientError.
    """
    await _shake_hands(connection, credentials.mechanism)
    try:
        exchange = await _new_exchange(credentials)
        token = exchange.step(b"")
        while True:
            response = await connection.request(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
            if response.error_code != ErrorCode.NONE:
                raise AuthenticationRefused(f"{connection.peer}: {response.error_message or 'authentication failed'}")
            token = exchange.step(response.auth_bytes)
            if exchange.is_complete:
                return response.session_lifetime_ms
    except AuthenticationFailed as error:
        raise AuthenticationRefused(f"{connection.peer}: {error}") from None


async def _new_exchange(credentials: Credentials) -> ClientMechanism:
    """Begin an exchange; where a token must be fetched first, a thread does that. Raises AuthenticationFailed."""
    if credentials.is_blocking:
        return await trio.to_thread.run_sync(credentials.new_exchange, abandon_on_cancel=True)
    return credentials.new_exchange()


async def _shake_hands(connection: Connection, mechanism: str) -> None:
    response = await connection.request(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse)
    if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(response.mechanisms)
        raise MechanismNotOffered(f"{connection.peer} does not offer the SASL mechanism {mechanism}, only {offered}")
    if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise MechanismNotOffered(f"{connection.peer} asks for no authentication there: the listener has no SASL")
    check(response.error_code)
