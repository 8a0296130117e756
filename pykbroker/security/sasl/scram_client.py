"""The client's side of SCRAM. The model is Kafka's `ScramSaslClient`, with an upper bound on the iterations.

A server that names fewer iterations than Kafka allows would learn too much from the proof, and one that names more
than Kafka allows would only have the client compute. What was derived from the password is kept with the password, for
the next connection to the same server.
"""

from __future__ import annotations

from collections.abc import Mapping
from hmac import compare_digest

from .mechanism import AuthenticationFailed
from .scram_credential import MAX_ITERATIONS, MIN_ITERATIONS, ScramMechanism
from .scram_messages import ClientFinal, ClientFirst, ServerFirst, auth_message, read_server_final
from .scram_server import xor


class ScramPassword:
    """A user's name and password, with the salted password that was derived last."""

    __slots__ = ("_derived", "_password", "name")

    def __init__(self, name: str, password: str) -> None:
        self.name = name
        self._password = password
        self._derived: tuple[tuple[str, bytes, int], bytes] | None = None

    def salted(self, mechanism: ScramMechanism, salt: bytes, iterations: int) -> bytes:
        """Derive it by PBKDF2, some 20 ms at most, unless the server said the same as the last time."""
        key = mechanism.name, salt, iterations
        if self._derived is None or self._derived[0] != key:
            self._derived = key, mechanism.salted_password(self._password, salt, iterations)
        return self._derived[1]


class ScramClient:
    """One exchange. nonce: a fresh one, of `new_nonce`. extensions: such as `tokenauth=true`, for delegation tokens."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        password: ScramPassword,
        nonce: str,
        extensions: Mapping[str, str] | None = None,
    ) -> None:
        self._mechanism = mechanism
        self._password = password
        self._first = ClientFirst.of(password.name, nonce, dict(extensions or {}))
        self._is_begun = False
        self._expected_signature: bytes | None = None
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        return self._is_complete

    def step(self, challenge: bytes) -> bytes:
        """Answer the server; behind its last message there is nothing to send. Raises AuthenticationFailed."""
        if self._is_complete:
            raise AuthenticationFailed("the server goes on behind the end of a SCRAM exchange")
        if not self._is_begun:
            self._is_begun = True
            return self._first.to_bytes()
        if self._expected_signature is None:
            return self._prove(ServerFirst.read(challenge))
        if not compare_digest(read_server_final(challenge), self._expected_signature):
            raise AuthenticationFailed("the server does not know the password: its signature is wrong")
        self._is_complete = True
        return b""

    def _prove(self, message: ServerFirst) -> bytes:
        nonce = self._first.nonce
        if not message.nonce.startswith(nonce) or message.nonce == nonce:
            raise AuthenticationFailed("the server's nonce is not the client's and one of its own")
        if not MIN_ITERATIONS <= message.iterations <= MAX_ITERATIONS:
            raise AuthenticationFailed(
                f"the server asks for {message.iterations} iterations, {MIN_ITERATIONS} to {MAX_ITERATIONS} are allowed"
            )
        mechanism = self._mechanism
        final = ClientFinal.of(message.nonce)
        salted = self._password.salted(mechanism, message.salt, message.iterations)
        client_key = mechanism.client_key(salted)
        signed = auth_message(self._first, message, final)
        self._expected_signature = mechanism.hmac(mechanism.server_key(salted), signed)
        return final.to_bytes(xor(client_key, mechanism.hmac(mechanism.hash(client_key), signed)))
