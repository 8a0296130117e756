"""RC2 (RFC 2268), for reading alone: PKCS#12 files of before 2021 have their certificates in RC2 with 40 bits.

No library at hand has that strength of it any more, and for good reason: such certificates are as good as public.
"""

from __future__ import annotations

import struct

_BLOCK = 8
_TABLE = bytes.fromhex(
    "d978f9c419ddb5ed28e9fd794aa0d89dc67e37832b76538e624c6488448bfba2"
    "179a59f587b34f1361456d8d09817d32bd8f40eb86b77b0bf09521225c6b4e82"
    "54d66593ce60b21c7356c014a78cf1dc1275ca1f3bbee4d1423dd430a33cb626"
    "6fbf0eda4669075727f21d9bbc944303f811c7f690ef3ee706c3d52fc8661ed7"
    "08e8eade8052eef784aa72ac354d6a2a961ad2715a1549744b9fd05e0418a4ec"
    "c2e0416e0f51cbcc2491af50a1f47039997c3a8523b8b47afc02365b25559731"
    "2d5dfa98e38a92ae05df2910676cbac9d300e6cfe19ea82c6316013f58e289a9"
    "0d38341bab33ffb0bb480c5fb9b1cd2ec5f3db47e5a59c770aa62068fe7fc1ad"
)
_ROTATIONS = (1, 2, 3, 5)
_MASHED_BEFORE = (5, 11)
"""The rounds that a mash came before when the block was encrypted."""


def decrypt_cbc(key: bytes, iv: bytes, data: bytes) -> bytes:
    """Return the text of whole blocks, with its padding. The effective strength is the key's length."""
    words = _expanded(key)
    plain, previous = bytearray(), iv
    for at in range(0, len(data), _BLOCK):
        block = data[at : at + _BLOCK]
        plain += bytes(one ^ other for one, other in zip(_decrypted(words, block), previous, strict=True))
        previous = block
    return bytes(plain)


def _expanded(key: bytes) -> tuple[int, ...]:
    """Return the 64 words of a key."""
    length = len(key)
    table = bytearray(key)
    for at in range(length, 128):
        table.append(_TABLE[(table[at - 1] + table[at - length]) & 0xFF])
    table[128 - length] = _TABLE[table[128 - length]]
    for at in range(127 - length, -1, -1):
        table[at] = _TABLE[table[at + 1] ^ table[at + length]]
    return struct.unpack("<64H", table)


def _decrypted(words: tuple[int, ...], block: bytes) -> bytes:
    parts = list(struct.unpack("<4H", block))
    for round_ in range(15, -1, -1):
        for at in (3, 2, 1, 0):
            rotation = _ROTATIONS[at]
            value = (parts[at] >> rotation | parts[at] << 16 - rotation) & 0xFFFF
            one, two, three = parts[at - 1], parts[at - 2], parts[at - 3]
            parts[at] = (value - words[4 * round_ + at] - (one & two) - (~one & three)) & 0xFFFF
        if round_ in _MASHED_BEFORE:
            for at in (3, 2, 1, 0):
                parts[at] = (parts[at] - words[parts[at - 1] & 63]) & 0xFFFF
    return struct.pack("<4H", *parts)
