"""Decryption by a password as PKCS#12 files have it: PBES2 (RFC 8018), and the older schemes of RFC 7292."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from . import rc2
from .der import OCTET_STRING, Element, MalformedDer
from .store_contents import WRONG_PASSWORD, PasswordRefused, UnreadableStore

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherAlgorithm

_PBES2, _PBKDF2 = "1.2.840.113549.1.5.13", "1.2.840.113549.1.5.12"
_PSEUDO_RANDOM_FUNCTIONS = {
    "1.2.840.113549.2.7": "sha1",
    "1.2.840.113549.2.8": "sha224",
    "1.2.840.113549.2.9": "sha256",
    "1.2.840.113549.2.10": "sha384",
    "1.2.840.113549.2.11": "sha512",
}
_AES_KEY_SIZES = {"2.16.840.1.101.3.4.1.2": 16, "2.16.840.1.101.3.4.1.22": 24, "2.16.840.1.101.3.4.1.42": 32}
_TRIPLE_DES = "1.2.840.113549.3.7"
_PKCS12_SCHEMES = {
    "1.2.840.113549.1.12.1.3": ("3DES", 24),
    "1.2.840.113549.1.12.1.4": ("3DES", 16),
    "1.2.840.113549.1.12.1.5": ("RC2", 16),
    "1.2.840.113549.1.12.1.6": ("RC2", 5),
}
_KEY, _IV = 1, 2
MAC_KEY = 3
_MOST_ITERATIONS = 5_000_000
"""As in Java."""


def decrypt(algorithm: Element, data: bytes, password: str) -> bytes:
    """Return the text without its padding. Raises UnreadableStore, MalformedDer."""
    oid, *parameters = algorithm.children
    if not parameters or not data:
        raise MalformedDer("an encryption without parameters or text")
    if oid.oid == _PBES2:
        padded = _pbes2(parameters[0], data, password)
    elif oid.oid in _PKCS12_SCHEMES:
        padded = _pkcs12_scheme(*_PKCS12_SCHEMES[oid.oid], parameters[0], data, password)
    else:
        raise UnreadableStore(f"it is encrypted by {oid.oid}, which is not supported")
    padding = padded[-1] if padded else 0
    if not 1 <= padding <= 16 or padded[-padding:] != bytes([padding]) * padding:
        raise PasswordRefused(WRONG_PASSWORD)
    return padded[:-padding]


def derive(password: str, salt: bytes, iterations: int, purpose: int, size: int, digest: str) -> bytes:
    """Return `size` bytes for a purpose, key, vector or MAC, as in appendix B of RFC 7292. Raises UnreadableStore."""
    check_iterations(iterations)
    hashed = getattr(hashlib, digest)
    block_size = hashed().block_size
    secret = f"{password}\0".encode("utf-16-be")
    inputs = _stretched(salt, block_size) + _stretched(secret, block_size)
    derived = b""
    while len(derived) < size:
        block = bytes([purpose]) * block_size + inputs
        for _ in range(iterations):
            block = hashed(block).digest()
        derived += block
        addend = int.from_bytes(_stretched(block, block_size)[:block_size], "big") + 1
        inputs = b"".join(
            (int.from_bytes(inputs[at : at + block_size], "big") + addend).to_bytes(block_size + 1, "big")[1:]
            for at in range(0, len(inputs), block_size)
        )
    return derived[:size]


def check_iterations(iterations: int) -> None:
    """Raises UnreadableStore."""
    if not 1 <= iterations <= _MOST_ITERATIONS:
        raise UnreadableStore(f"its password goes through {iterations} rounds, at most {_MOST_ITERATIONS} are made")


def _stretched(data: bytes, block_size: int) -> bytes:
    """Return the data again and again until it fills whole blocks."""
    size = -(-len(data) // block_size) * block_size
    return (data * (size // len(data) + 1))[:size] if data else b""


def _pkcs12_scheme(cipher: str, key_size: int, parameters: Element, data: bytes, password: str) -> bytes:
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES

    salt, iterations = parameters.children[0].octets, parameters.children[1].integer
    key = derive(password, salt, iterations, _KEY, key_size, "sha1")
    iv = derive(password, salt, iterations, _IV, 8, "sha1")
    _check_blocks(data, 8)
    if cipher == "RC2":
        return rc2.decrypt_cbc(key, iv, data)
    return _cbc(TripleDES(key if key_size == 24 else key + key[:8]), iv, data)


def _pbes2(parameters: Element, data: bytes, password: str) -> bytes:
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
    from cryptography.hazmat.primitives.ciphers.algorithms import AES

    derivation, scheme = parameters.children
    oid, iv = scheme.children[0].oid, scheme.children[1].octets
    if oid == _TRIPLE_DES:
        _check_blocks(data, 8)
        return _cbc(TripleDES(_pbkdf2(derivation, password, 24)), iv, data)
    if oid not in _AES_KEY_SIZES:
        raise UnreadableStore(f"it is encrypted by {oid}, which is not supported")
    _check_blocks(data, 16)
    return _cbc(AES(_pbkdf2(derivation, password, _AES_KEY_SIZES[oid])), iv, data)


def _pbkdf2(derivation: Element, password: str, size: int) -> bytes:
    oid, parameters = derivation.children
    if oid.oid != _PBKDF2:
        raise UnreadableStore(f"its key is derived by {oid.oid}, which is not supported")
    salt, iterations, *others = parameters.children
    if salt.tag != OCTET_STRING:
        raise UnreadableStore("its key is derived without a salt")
    check_iterations(iterations.integer)
    function = others[-1].children[0].oid if others and others[-1].tag == 0x30 else "1.2.840.113549.2.7"
    if function not in _PSEUDO_RANDOM_FUNCTIONS:
        raise UnreadableStore(f"its key is derived by {function}, which is not supported")
    digest = _PSEUDO_RANDOM_FUNCTIONS[function]
    return hashlib.pbkdf2_hmac(digest, password.encode(), salt.octets, iterations.integer, size)


def _cbc(algorithm: CipherAlgorithm, iv: bytes, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.modes import CBC

    decryptor = Cipher(algorithm, CBC(iv)).decryptor()
    return decryptor.update(data) + decryptor.finalize()


def _check_blocks(data: bytes, size: int) -> None:
    if len(data) % size:
        raise MalformedDer("encrypted text that is not made of whole blocks")
