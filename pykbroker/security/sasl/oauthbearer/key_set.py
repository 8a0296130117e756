"""The keys of a JWKS document (RFC 7517). What is a key, and whether a signature is right, is `joserfc`'s part.

Public keys alone are taken, RSA of 2,048 bits or more, EC, and Ed25519: a document has no use for secrets, and a secret
among the keys is how a token with HS256 could pass for one that was signed.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, OKPKey, RSAKey

ALGORITHMS: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""The algorithms of signatures, and the types of their keys."""

_CURVES: Final = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "EdDSA": "Ed25519"}
_MIN_RSA_BITS: Final = 2_048


class UnusableKeys(Exception):
    """A JWKS document without a key that can be used. Its text is one line."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """One key. curve: of its type, where that has curves."""

    kid: str | None
    type: str
    curve: str | None
    algorithm: str | None
    _key: RSAKey | ECKey | OKPKey

    def fits(self, algorithm: str) -> bool:
        """Tell whether signatures of this algorithm are verified with such a key."""
        return (
            ALGORITHMS[algorithm] == self.type
            and _CURVES.get(algorithm) == self.curve
            and self.algorithm in (None, algorithm)
        )

    def verifies(self, algorithm: str, signed: bytes, signature: bytes) -> bool:
        """Tell whether the signature is that of this key; False, too, where the two do not fit."""
        from joserfc.errors import JoseError
        from joserfc.jws import JWSRegistry

        model = JWSRegistry.algorithms[algorithm]
        try:
            model.check_key(self._key)
            return bool(model.verify(signed, signature, self._key))
        except (JoseError, ValueError):
            return False


class KeySet:
    """The keys of one document. unusable: a few words on each key that is left out."""

    def __init__(self, keys: list[VerificationKey], unusable: list[str]) -> None:
        self.unusable = tuple(unusable)
        self._keys = keys
        self._by_kid = {each.kid: each for each in reversed(keys) if each.kid is not None}

    def __len__(self) -> int:
        return len(self._keys)

    def has(self, kid: str) -> bool:
        return kid in self._by_kid

    @classmethod
    def read(cls, document: bytes) -> KeySet:
        """Raises UnusableKeys. It takes milliseconds, and belongs into a thread."""
        try:
            entries = json.loads(document.decode())["keys"]
        except (ValueError, RecursionError, TypeError, KeyError):
            raise UnusableKeys("it is no JWKS document: a JSON object with the list 'keys' is expected") from None
        if not isinstance(entries, list):
            raise UnusableKeys("it is no JWKS document: 'keys' is not a list")
        keys: list[VerificationKey] = []
        unusable: list[str] = []
        for number, entry in enumerate(entries, 1):
            key = _key(entry)
            if isinstance(key, VerificationKey):
                keys.append(key)
            else:
                unusable.append(f"key {number}: {key}")
        if not keys:
            told = "; ".join(unusable[:3]) or "the list is empty"
            raise UnusableKeys(f"it has no public key that verifies signatures: {told}")
        return cls(keys, unusable)

    def select(self, header: Mapping[str, Any]) -> VerificationKey | None:
        """The key for a token with this header, as jose4j's `VerificationJwkSelector` has it: a key without `kid` fits
        any, and without one in the header the first that has the right type does.
        """
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS or not isinstance(kid, str | None):
            return None
        if kid is not None and (named := self._by_kid.get(kid)) is not None:
            return named if named.fits(algorithm) else None
        return next((each for each in self._keys if (kid is None or each.kid is None) and each.fits(algorithm)), None)


def _key(entry: Any) -> VerificationKey | str:
    """The key, or why it is left out."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    if not isinstance(entry, dict):
        return "it is no JSON object"
    types: dict[object, type[RSAKey | ECKey | OKPKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
    type_ = entry.get("kty")
    if not isinstance(type_, str) or type_ not in types:
        return "its type 'kty' is none of RSA, EC and OKP"
    if entry.get("use", "sig") != "sig":
        return "its use is not to verify signatures"
    operations = entry.get("key_ops", ["verify"])
    if not isinstance(operations, list) or "verify" not in operations:
        return "its operations 'key_ops' are without 'verify'"
    kid = entry.get("kid")
    if not isinstance(kid, str | None):
        return "its 'kid' is not a text"
    algorithm = entry.get("alg")
    if algorithm is not None and (not isinstance(algorithm, str) or ALGORITHMS.get(algorithm) != type_):
        return f"its algorithm 'alg' is none of those of type {type_}"
    try:
        bits = _rsa_bits(entry) if type_ == "RSA" else _MIN_RSA_BITS
        if bits < _MIN_RSA_BITS:
            return f"it has {bits} bits, fewer than {_MIN_RSA_BITS}"
        key = types[type_].import_key(entry)
    except (JoseError, UnsupportedAlgorithm, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return "it is malformed"
    curve = None if type_ == "RSA" else str(entry.get("crv"))
    if curve is not None and curve not in _CURVES.values():
        return "its curve 'crv' is none of P-256, P-384, P-521 and Ed25519"
    return VerificationKey(kid, type_, curve, algorithm, key)


def _rsa_bits(entry: Mapping[str, Any]) -> int:
    """The size of the modulus; the library takes short ones, too. Raises KeyError, TypeError, ValueError."""
    modulus = entry["n"]
    return int.from_bytes(b64decode(modulus + "=" * (-len(modulus) % 4), b"-_", validate=True), "big").bit_length()
