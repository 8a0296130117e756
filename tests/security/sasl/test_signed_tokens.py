"""Tokens with a signature: keys, algorithms and claims, as attackers would have them."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from pykbroker.security.sasl.mechanism import Identity
from pykbroker.security.sasl.oauthbearer.compact_token import LAST_MS, InvalidToken
from pykbroker.security.sasl.oauthbearer.key_set import KeySet, UnusableKeys
from pykbroker.security.sasl.oauthbearer.remote_keys import MAX_MISSING, MISSING_MS, RemoteKeys, waits_ms
from pykbroker.security.sasl.oauthbearer.secured import Expectations, SecuredValidator

from .tokens import (
    AUDIENCE,
    ISSUER,
    NOW_MS,
    NOW_S,
    PrivateKey,
    base64url,
    claims,
    jwk,
    jwks,
    other_rsa_key,
    part,
    public_pem,
    rsa_key,
    signature,
    signed,
)

CURVES = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
KEYS: dict[str, PrivateKey] = {name: ec.generate_private_key(curve) for name, curve in CURVES.items()}
KEYS["EdDSA"] = ed25519.Ed25519PrivateKey.generate()
RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
DOCUMENT = jwks(jwk(rsa_key(), "rsa"), *(jwk(key, name) for name, key in KEYS.items()))
EXPECTED = Expectations((AUDIENCE, "other"), ISSUER)


class Clock:
    """Counts how often keys were missed."""

    def __init__(self) -> None:
        self.misses = 0

    def missed(self) -> None:
        self.misses += 1


def validator(expected: Expectations = EXPECTED, document: bytes = DOCUMENT) -> SecuredValidator:
    keys = RemoteKeys(lambda: None)
    keys.take(KeySet.read(document))
    return SecuredValidator(keys, expected)


def token(algorithm: str = "RS256", kid: str | None = "rsa", key: PrivateKey | None = None, **changes: Any) -> str:
    header = {"alg": algorithm, "typ": "JWT"} | ({} if kid is None else {"kid": kid})
    return signed(key or KEYS.get(algorithm) or rsa_key(), header, claims(**changes))


def refused(text: str, expected: Expectations = EXPECTED, document: bytes = DOCUMENT) -> str:
    with pytest.raises(InvalidToken) as error:
        validator(expected, document).validate(text, NOW_MS)
    return str(error.value)


@pytest.mark.parametrize("algorithm", [*RSA, *KEYS])
def test_each_algorithm_is_verified(algorithm: str) -> None:
    kid = algorithm if algorithm in KEYS else "rsa"
    good = token(algorithm, kid)
    assert validator().validate(good, NOW_MS) == Identity("alice", NOW_MS + 600_000)
    head, payload, sign = good.split(".")
    changed = f"{head}.{part(claims(sub='admin'))}.{sign}"
    assert refused(changed) == "its signature is wrong"
    assert refused(f"{head}.{payload}.") == "its signature is wrong"
    broken = bytearray(signature(KEYS.get(algorithm) or rsa_key(), algorithm, f"{head}.{payload}".encode()))
    broken[3] ^= 1
    assert refused(f"{head}.{payload}.{base64url(broken)}") == "its signature is wrong"


def test_a_key_signs_with_no_other_algorithm() -> None:
    """Each of these is signed rightly, for a key that has another type, curve or algorithm."""
    assert "no key" in refused(token("RS256", "ES256"))
    assert "no key" in refused(signed(KEYS["ES384"], {"alg": "ES256", "kid": "ES384"}, claims()))
    assert "no key" in refused(token("EdDSA", "rsa"))
    only_512 = jwks(jwk(rsa_key(), "rsa", alg="RS512"))
    assert "no key" in refused(token("RS256"), document=only_512)
    assert validator(document=only_512).validate(token("RS512"), NOW_MS).name == "alice"


def test_a_key_looks_at_no_signature_of_another_algorithm_whoever_asks_it() -> None:
    """Each of these signatures is right, and `select` would not have handed out the key for it."""
    keys = KeySet.read(jwks(jwk(rsa_key(), "rsa", alg="RS512")))
    key = keys.select({"alg": "RS512", "kid": "rsa"})
    assert key is not None
    assert key.verifies("RS512", b"data", signature(rsa_key(), "RS512", b"data"))
    assert not key.verifies("RS256", b"data", signature(rsa_key(), "RS256", b"data"))
    assert not key.verifies("ES256", b"data", signature(KEYS["ES256"], "ES256", b"data"))


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", None, 0, ["RS256"], "HS256", "RS257"])
def test_an_algorithm_that_proves_nothing_is_refused(algorithm: Any) -> None:
    text = f"{part({'alg': algorithm, 'kid': 'rsa'})}.{part(claims())}."
    assert "algorithm" in refused(text)


def test_the_public_key_is_no_secret() -> None:
    """The confusion of algorithms: a token with HS256 and the public key, which everybody knows, for a secret."""
    for secret in (public_pem(rsa_key()), DOCUMENT, b"", jwk(rsa_key())["n"].encode()):
        assert "algorithm" in refused(signed(secret, {"alg": "HS256", "kid": "rsa"}, claims()))
    with_secret = jwks({"kty": "oct", "kid": "rsa", "k": base64url(b"s" * 32)}, jwk(KEYS["ES256"], "e"))
    assert "algorithm" in refused(signed(b"s" * 32, {"alg": "HS256", "kid": "rsa"}, claims()), document=with_secret)


def test_another_key_than_the_one_that_is_named_is_not_tried() -> None:
    assert refused(token(key=other_rsa_key())) == "its signature is wrong"
    two = jwks(jwk(rsa_key(), "a"), jwk(other_rsa_key(), "b"))
    assert refused(token(kid="b"), document=two) == "its signature is wrong"
    assert validator(document=two).validate(token(kid="a"), NOW_MS).name == "alice"


def test_a_key_may_go_without_a_name() -> None:
    unnamed = jwks(jwk(rsa_key()))
    assert validator(document=unnamed).validate(token(kid=None), NOW_MS).name == "alice"
    assert validator(document=unnamed).validate(token(kid="any"), NOW_MS).name == "alice"
    assert validator().validate(token(kid=None), NOW_MS).name == "alice"


@pytest.mark.parametrize(
    "kid", ["unknown", "", "k" * 1_001, "../../etc/passwd", "' OR 1=1", 7, ["rsa"], {"a": "b"}, True]
)
def test_an_unknown_key_is_refused(kid: Any) -> None:
    assert "no key" in refused(signed(rsa_key(), {"alg": "RS256", "kid": kid}, claims()))


def test_keys_that_a_token_brings_with_it_are_not_looked_at() -> None:
    own = {
        "jwk": jwk(other_rsa_key(), "rsa"),
        "jku": "https://mallory.example/keys",
        "x5c": ["MIIB"],
        "x5u": "https://m/",
    }
    assert refused(signed(other_rsa_key(), {"alg": "RS256", "kid": "rsa", **own}, claims())) == "its signature is wrong"


@pytest.mark.parametrize(
    "header", [{"crit": ["exp"], "exp": 1}, {"crit": []}, {"b64": False, "crit": ["b64"]}, {"b64": False}]
)
def test_what_must_be_understood_is_refused(header: dict[str, Any]) -> None:
    assert "must be understood" in refused(signed(rsa_key(), {"alg": "RS256", "kid": "rsa", **header}, claims()))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": None}, "'exp'"),
        ({"exp": "soon"}, "'exp' is not a number"),
        ({"exp": False}, "'exp' is not a number"),
        ({"exp": -5}, "'exp'"),
        ({"exp": NOW_S - 30}, "expired"),
        ({"iat": None}, "'iat'"),
        ({"iat": -1}, "'iat'"),
        ({"iat": NOW_S + 601}, "before it was issued"),
        ({"nbf": NOW_S + 31}, "not yet valid"),
        ({"nbf": NOW_S + 20, "exp": NOW_S + 10}, "not yet valid"),
        ({"nbf": "now"}, "'nbf' is not a number"),
        ({"sub": None}, "'sub' names no principal"),
        ({"sub": ""}, "'sub' names no principal"),
        ({"sub": 5}, "'sub' is not a text"),
        ({"jti": 5}, "'jti' is not a text"),
        ({"iss": None}, "issuer"),
        ({"iss": "https://issuer.example.org"}, "issuer"),
        ({"iss": [ISSUER]}, "issuer"),
        ({"aud": None}, "audience"),
        ({"aud": []}, "audience"),
        ({"aud": "kafk"}, "audience"),
        ({"aud": ["a", "b"]}, "audience"),
        ({"aud": [AUDIENCE, 5]}, "audience"),
        ({"aud": {AUDIENCE: 1}}, "audience"),
        ({"scope": ["a", " a"]}, "twice"),
        ({"scope": " "}, "no text"),
        ({"scope": ["a", None]}, "no text"),
        ({"scope": ["a", 1]}, "no text"),
    ],
)
def test_what_claims_must_be(changes: dict[str, Any], reason: str) -> None:
    assert reason in refused(token(**changes))


def test_what_claims_may_be() -> None:
    good = validator()
    assert good.validate(token(exp=NOW_S - 29, iat=NOW_S - 60), NOW_MS).expires_at_ms == NOW_MS - 29_000
    assert good.validate(token(nbf=NOW_S + 30), NOW_MS).name == "alice"
    assert good.validate(token(iat=NOW_S + 600), NOW_MS).name == "alice"  # Kafka looks no further
    assert good.validate(token(exp=NOW_S + 9.9), NOW_MS).expires_at_ms == NOW_MS + 9_000
    assert good.validate(token(exp=1e300), NOW_MS).expires_at_ms == LAST_MS // 1000 * 1000
    assert good.validate(token(aud=["x", "other"], scope=["a", "b"]), NOW_MS).name == "alice"
    assert good.validate(token(scope={"a": 1}, sub=" alice "), NOW_MS).name == "alice"
    by_mail = Expectations((AUDIENCE,), ISSUER, clock_skew_s=0, principal_claim="mail")
    assert validator(by_mail).validate(token(mail="a@example.org"), NOW_MS).name == "a@example.org"
    assert "expired" in refused(token(exp=NOW_S - 1, mail="a"), by_mail)
    anything = Expectations(None, None)
    assert validator(anything).validate(token(iss=None, aud=None), NOW_MS).name == "alice"


def test_claims_are_not_looked_at_before_the_signature() -> None:
    assert refused(token(key=other_rsa_key(), exp=1)) == "its signature is wrong"


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"", "no JWKS document"),
        (b"\xff", "no JWKS document"),
        (b"[" * 100_000, "no JWKS document"),
        (b"[]", "no JWKS document"),
        (b'{"keys": {}}', "not a list"),
        (b'{"keys": []}', "the list is empty"),
        (jwks({"kty": "oct", "k": "AAAA"}), "none of RSA, EC and OKP"),
        (jwks(jwk(rsa_key(), use="enc")), "use"),
        (jwks(jwk(rsa_key(), key_ops=["sign"])), "key_ops"),
        (jwks(jwk(rsa_key(), alg="RSA-OAEP")), "alg"),
        (jwks(jwk(rsa_key(), alg="ES256")), "alg"),
        (jwks(jwk(rsa_key(1_024))), "1024 bits"),
        (jwks(jwk(rsa_key()) | {"n": 5}), "malformed"),
        (jwks(jwk(rsa_key()) | {"n": "***"}), "malformed"),
        (jwks(jwk(KEYS["ES256"]) | {"x": "AAAA"}), "malformed"),
        (jwks(jwk(KEYS["ES256"]) | {"crv": "P-1"}), "malformed"),
        (jwks(jwk(KEYS["EdDSA"]) | {"x": "AAAA"}), "malformed"),
        (jwks(jwk(rsa_key()) | {"kid": 5}), "kid"),
    ],
)
def test_a_document_without_a_key_is_refused(document: bytes, reason: str) -> None:
    with pytest.raises(UnusableKeys, match=reason) as error:
        KeySet.read(document)
    assert "\n" not in str(error.value)


def test_what_is_no_key_is_left_out() -> None:
    keys = KeySet.read(jwks({"kty": "oct", "k": "AAAA"}, jwk(rsa_key(), "rsa"), jwk(rsa_key(1_024), "short")))
    assert len(keys) == 1
    assert len(keys.unusable) == 2


def test_a_missing_key_asks_for_others_once_in_a_minute() -> None:
    clock = Clock()
    keys = RemoteKeys(clock.missed)
    header = {"alg": "RS256", "kid": "rsa"}
    assert keys.find(header, NOW_MS) is None
    assert keys.find(header, NOW_MS + MISSING_MS - 1) is None
    assert clock.misses == 1
    assert keys.find(header, NOW_MS + MISSING_MS) is None
    assert clock.misses == 2
    keys.take(KeySet.read(DOCUMENT))
    assert keys.find(header, NOW_MS + MISSING_MS) is not None
    assert clock.misses == 2


def test_names_of_keys_that_somebody_invents_are_forgotten() -> None:
    clock = Clock()
    keys = RemoteKeys(clock.missed)
    keys.take(KeySet.read(DOCUMENT))
    for number in range(1_000):
        assert keys.find({"alg": "RS256", "kid": f"invented-{number}"}, NOW_MS) is None
    assert len(keys._missing) == MAX_MISSING
    before = clock.misses
    for kid in ("k" * 1_001, 5, None, ["a"]):
        keys.find({"alg": "HS256", "kid": kid}, NOW_MS)
    keys.find({"alg": "ES256", "kid": "rsa"}, NOW_MS)  # there is such a key, of another type
    assert clock.misses == before
    keys.find({"alg": "RS256", "kid": "k" * 1_000}, NOW_MS)
    assert clock.misses == before + 1


def test_waits_double_up_to_a_bound() -> None:
    assert list(waits_ms(100, 1_000)) == [100, 200, 400, 300]
    assert list(waits_ms(0, 3)) == [1, 2]
    assert list(waits_ms(100, 0)) == []
