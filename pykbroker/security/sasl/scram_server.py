"""The server's side of SCRAM: two messages of the client, two answers. The model is Kafka's `ScramSaslServer`.

An unknown user fails at the first message, with the masked text. With the extension `tokenauth=true` the name is the id
of a delegation token (KIP-48), and who has authenticated is the token's owner. An expired token fails at once, too:
Kafka lets it in as long as nobody has swept it away, and closes the connection at the next request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final

from .mechanism import AuthenticationFailed, Identity
from .plain import DIFFERENT_AUTHORIZATION_ID
from .scram_credential import MIN_ITERATIONS, ScramCredential, ScramMechanism
from .scram_messages import ClientFinal, ClientFirst, ServerFirst, auth_message, server_final

_TOKEN_AUTH: Final = "tokenauth"  # noqa: S105 - no password


@dataclass(frozen=True, slots=True)
class ScramAccount:
    """An account is a credential and its owner, with the end of the credential."""

    credential: ScramCredential
    owner: Identity


FindAccount = Callable[[str, bool], ScramAccount | None]
"""The account of a user's name, or with True of a delegation token's id; None where there is none."""


class ScramServer:
    """One exchange. find: is asked once, when the client has told its name. nonce: a fresh one, of `new_nonce`."""

    def __init__(self, mechanism: ScramMechanism, find: FindAccount, nonce: str) -> None:
        self._mechanism = mechanism
        self._find = find
        self._nonce = nonce
        self._begun: tuple[ClientFirst, ServerFirst, ScramAccount] | None = None
        self._is_over = False
        self._identity: Identity | None = None

    @property
    def identity(self) -> Identity | None:
        return self._identity

    def step(self, response: bytes, now_ms: int) -> bytes:
        """Answer the next message of the client. Raises AuthenticationFailed, and at every later call, too."""
        if self._is_over:
            raise AuthenticationFailed("a message behind the end of a SCRAM exchange")
        begun, self._begun = self._begun, None
        if begun is None:
            try:
                return self._first(ClientFirst.read(response), now_ms)
            except AuthenticationFailed:
                self._is_over = True
                raise
        self._is_over = True
        return self._final(ClientFinal.read(response), *begun)

    def _first(self, message: ClientFirst, now_ms: int) -> bytes:
        account = self._find(message.name, message.extensions.get(_TOKEN_AUTH, "").lower() == "true")
        if account is None:
            raise AuthenticationFailed("no such user or delegation token")
        expires_at_ms = account.owner.expires_at_ms
        if expires_at_ms is not None and expires_at_ms < now_ms:
            raise AuthenticationFailed("an expired delegation token")
        if message.authorization_id and message.authorization_id != message.name:
            raise AuthenticationFailed("another authorization id", told=DIFFERENT_AUTHORIZATION_ID)
        credential = account.credential
        if credential.iterations < MIN_ITERATIONS:
            raise AuthenticationFailed(
                f"a credential of {credential.iterations} iterations, fewer than {MIN_ITERATIONS}"
            )
        answer = ServerFirst.of(message.nonce + self._nonce, credential.salt, credential.iterations)
        self._begun = message, answer, account
        return answer.text.encode()

    def _final(
        self, message: ClientFinal, client_first: ClientFirst, server_first: ServerFirst, account: ScramAccount
    ) -> bytes:
        mechanism, credential = self._mechanism, account.credential
        if not compare_digest(message.nonce.encode(), server_first.nonce.encode()):
            raise AuthenticationFailed("the final message has another nonce")
        signed = auth_message(client_first, server_first, message)
        signature = mechanism.hmac(credential.stored_key, signed)
        if len(message.proof) != len(signature):
            raise AuthenticationFailed("the proof has another length")
        client_key = xor(signature, message.proof)
        if not compare_digest(mechanism.hash(client_key), credential.stored_key):
            raise AuthenticationFailed("wrong password")
        self._identity = account.owner
        return server_final(mechanism.hmac(credential.server_key, signed))


def xor(one: bytes, other: bytes) -> bytes:
    """Combine two texts of one length bit by bit."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
