"""Tokens and keys of an authorization server, right ones and wrong ones. Signatures are `cryptography`'s own, so that
no test asks `joserfc` whether `joserfc` is right.
"""

from __future__ import annotations

import functools
import hmac
import json
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

ISSUER = "https://issuer.example.org/"
AUDIENCE = "kafka"
NOW_MS = 1_900_000_000_000
NOW_S = NOW_MS // 1000

_HASHES: dict[str, hashes.HashAlgorithm] = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}


def base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def part(value: Any) -> str:
    """A part of a token: bytes as they are, and all else as JSON."""
    return base64url(value if isinstance(value, bytes) else json.dumps(value).encode())


def claims(now_s: float = NOW_S, **changes: Any) -> dict[str, Any]:
    """The claims of a good token, with changes; None takes a claim away."""
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": now_s - 10, "exp": now_s + 600}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def unsecured(now_s: float = NOW_S, header: Any = None, **changes: Any) -> str:
    return f"{part(header or {'alg': 'none'})}.{part(claims(now_s, **changes))}."


def signed(key: PrivateKey | bytes, header: dict[str, Any], payload: Any) -> str:
    """A token with the signature that its header promises, by a key that need not fit."""
    text = f"{part(header)}.{part(payload)}"
    return f"{text}.{base64url(signature(key, header['alg'], text.encode()))}"


def signature(key: PrivateKey | bytes, algorithm: str, data: bytes) -> bytes:
    match key:
        case bytes():
            return hmac.digest(key, data, sha256)
        case rsa.RSAPrivateKey():
            hash_ = _HASHES[algorithm[2:]]
            if algorithm.startswith("PS"):
                return key.sign(data, padding.PSS(padding.MGF1(hash_), hash_.digest_size), hash_)
            return key.sign(data, padding.PKCS1v15(), hash_)
        case ec.EllipticCurvePrivateKey():
            r, s = decode_dss_signature(key.sign(data, ec.ECDSA(_HASHES[algorithm[2:]])))
            size = (key.curve.key_size + 7) // 8
            return r.to_bytes(size, "big") + s.to_bytes(size, "big")
        case ed25519.Ed25519PrivateKey():
            return key.sign(data)


def jwk(key: PrivateKey, kid: str | None = None, **more: Any) -> dict[str, Any]:
    """The public key as an entry of a JWKS document."""
    named = {} if kid is None else {"kid": kid}
    public = key.public_key()
    match public:
        case rsa.RSAPublicKey():
            numbers = public.public_numbers()
            values = {"kty": "RSA", "n": _number(numbers.n), "e": _number(numbers.e)}
        case ec.EllipticCurvePublicKey():
            point, size = public.public_numbers(), (public.curve.key_size + 7) // 8
            curve = {256: "P-256", 384: "P-384", 521: "P-521"}[public.curve.key_size]
            coordinates = {"x": base64url(point.x.to_bytes(size, "big")), "y": base64url(point.y.to_bytes(size, "big"))}
            values = {"kty": "EC", "crv": curve, **coordinates}
        case _:
            raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
            values = {"kty": "OKP", "crv": "Ed25519", "x": base64url(raw)}
    return {**values, **named, **more}


def _number(value: int) -> str:
    return base64url(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def jwks(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()


@functools.cache
def rsa_key(bits: int = 2_048) -> rsa.RSAPrivateKey:
    """Return the run's key of so many bits."""
    return rsa.generate_private_key(65_537, bits)


@functools.cache
def other_rsa_key() -> rsa.RSAPrivateKey:
    """Return a key that no document has."""
    return rsa.generate_private_key(65_537, 2_048)


def public_pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
