"""SCRAM's keys (RFC 5802, RFC 7677): what a server keeps of a user, and how it follows from a password.

The model is Kafka's `ScramMechanism`, `ScramFormatter` and `ScramCredential`. As there, a password is taken as its
UTF-8 bytes, without SASLprep.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from .mechanism import SCRAM_SHA_256, SCRAM_SHA_512

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
"""Kafka's bounds. The upper one also bounds what a server can make a client compute, about 20 ms."""

_NONCE_BITS: Final = 130
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"

RandomBits = Callable[[int], int]
"""So many random bits as a number: `secrets.randbits`, or one that a test knows."""


@dataclass(frozen=True, slots=True)
class ScramMechanism:
    """One of the two mechanisms. type: its number in requests and records (KIP-554)."""

    name: str
    type: int
    hash_name: str

    def hash(self, data: bytes) -> bytes:
        return hashlib.new(self.hash_name, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self.hash_name)

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        return hashlib.pbkdf2_hmac(self.hash_name, password.encode(), salt, iterations)

    def client_key(self, salted_password: bytes) -> bytes:
        return self.hmac(salted_password, b"Client Key")

    def server_key(self, salted_password: bytes) -> bytes:
        return self.hmac(salted_password, b"Server Key")

    def credential(self, salted_password: bytes, salt: bytes, iterations: int) -> ScramCredential:
        """Return what the server keeps: the password cannot be had from it, nor what a client needs to log in."""
        stored_key = self.hash(self.client_key(salted_password))
        return ScramCredential(salt, stored_key, self.server_key(salted_password), iterations)


MECHANISMS: Final = {
    each.name: each for each in (ScramMechanism(SCRAM_SHA_256, 1, "sha256"), ScramMechanism(SCRAM_SHA_512, 2, "sha512"))
}
MECHANISMS_BY_TYPE: Final = {each.type: each for each in MECHANISMS.values()}


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """The credential of one user for one mechanism. Its `repr` shows no key."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def new_nonce(random_bits: RandomBits) -> str:
    """A nonce, or a salt as text: 130 random bits to the base 36, as Kafka writes it."""
    number, digits = random_bits(_NONCE_BITS), ""
    while number or not digits:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits
