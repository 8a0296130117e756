"""The group of Diffie and Hellman for servers with suites of DHE: ffdhe2048 of RFC 7919, which every client knows."""

from __future__ import annotations

import ssl

from .der import INTEGER, SEQUENCE, encoded
from .file_in_memory import file_in_memory
from .pem import armored

_BITS = 2048
_OFFSET = 560316
_GENERATOR = 2
_GUARD_BITS = 64


def load_into(context: ssl.SSLContext) -> None:
    """Give a server the group: OpenSSL has none by itself, and so no suite of DHE."""
    group = encoded(SEQUENCE, encoded(INTEGER, _unsigned(prime())) + encoded(INTEGER, _unsigned(_GENERATOR)))
    with file_in_memory(armored("DH PARAMETERS", group).encode()) as path:
        context.load_dh_params(path)


def prime() -> int:
    """Return the prime that appendix A of the RFC defines by the first bits of e."""
    bits_of_e = _BITS - 130
    return (1 << _BITS) - (1 << _BITS - 64) + (_e(bits_of_e) + _OFFSET << 64) - 1


def _unsigned(number: int) -> bytes:
    """Return a positive number with a bit for its sign."""
    return number.to_bytes(number.bit_length() // 8 + 1, "big")


def _e(bits: int) -> int:
    """Return the whole part of e times 2^bits, by its series."""
    term = total = 1 << bits + _GUARD_BITS
    divisor = 1
    while term:
        term //= divisor
        total += term
        divisor += 1
    return total >> _GUARD_BITS
