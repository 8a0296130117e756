"""The mechanism PLAIN (RFC 4616): name and password in clear. The model is Kafka's `PlainSaslServer`."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from .mechanism import AuthenticationFailed, Identity

_USER: Final = "user_"
_FIELDS: Final = 3
_WRONG: Final = "Authentication failed: Invalid username or password"
DIFFERENT_AUTHORIZATION_ID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


def plain_users(options: Mapping[str, str]) -> dict[str, str]:
    """The passwords of a login module's users, which are its options `user_NAME`."""
    return {name.removeprefix(_USER): password for name, password in options.items() if name.startswith(_USER)}


class PlainServer:
    """The server's side. passwords: of all users, by name."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self._identity: Identity | None = None

    @property
    def identity(self) -> Identity | None:
        return self._identity

    def step(self, response: bytes, now_ms: int) -> bytes:
        """Check the one message of the client; the answer is empty. Raises AuthenticationFailed."""
        fields = response.decode("utf-8", "replace").split("\0", _FIELDS)
        if len(fields) != _FIELDS:
            raise _malformed(f"Invalid SASL/PLAIN response: expected {_FIELDS} tokens, got {len(fields)}")
        authorization_id, name, password = fields
        if not name:
            raise _malformed("Authentication failed: username not specified")
        if not password:
            raise _malformed("Authentication failed: password not specified")
        expected = self._passwords.get(name)
        is_right = _equal(password, expected or "")
        if expected is None or not is_right:
            raise AuthenticationFailed("wrong user name or password", told=_WRONG)
        if authorization_id and authorization_id != name:
            raise AuthenticationFailed("another authorization id", told=DIFFERENT_AUTHORIZATION_ID)
        self._identity = Identity(name)
        return b""


class PlainClient:
    """The client's side."""

    def __init__(self, name: str, password: str) -> None:
        self._message = f"\0{name}\0{password}".encode()
        self._is_sent = self._is_complete = False

    @property
    def is_complete(self) -> bool:
        return self._is_complete

    def step(self, challenge: bytes) -> bytes:
        self._is_complete = self._is_sent
        self._is_sent = True
        return b"" if self._is_complete else self._message


def _malformed(reason: str) -> AuthenticationFailed:
    return AuthenticationFailed(reason, told=reason)


def _equal(given: str, expected: str) -> bool:
    """Compare digests, which have one length: the time tells nothing about the password, nor about its length."""
    return compare_digest(sha256(given.encode()).digest(), sha256(expected.encode()).digest())
