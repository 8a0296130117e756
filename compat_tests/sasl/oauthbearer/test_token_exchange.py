"""Exchanges of OAUTHBEARER in bytes: each token, each answer, and where the connection is closed."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.sasl.test_sasl_exchange import METADATA, exchange, outcomes
from compat_tests.sasl.test_sasl_exchange import token as request
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.sasl import SaslHandshakeRequest
from pykbroker.protocol.schema import Message
from pykbroker.security.sasl.oauthbearer.client_first import ClientFirst
from tests.security.sasl.tokens import (
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

from .bearers import KID, Bearers, good_document, token, unsecured

HANDSHAKE = (SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
GIVE_UP = request(b"\x01")
SIGNED = {"alg": "RS256", "kid": KID}


def first(text: str, authorization_id: str = "", **extensions: str) -> tuple[Message, int]:
    return request(ClientFirst(text, authorization_id, extensions).to_bytes())


def shown(found: list[Any]) -> list[Any]:
    """Answers without the lifetimes of sessions, which are those of tokens and so of the clock."""
    return [each[:3] if isinstance(each, tuple) and len(each) == 4 else each for each in found]


def log_in(bearers: Bearers, listener: str, text: str, *more: tuple[Message, int]) -> list[Any]:
    """The answers to a token, to CTRL-A if there is a challenge, and to a request of a client that is served."""
    with Wire(bearers.address(listener)) as wire:
        found = outcomes(wire, HANDSHAKE, first(text))
        if found[-1] != "closed" and found[-1][2]:
            found += outcomes(wire, GIVE_UP)
        return shown([*found, *outcomes(wire, *(more or [(METADATA, 5)]))])


def test_what_a_clients_message_may_be(bearers: Bearers, answers: TestAnswers) -> None:
    good = unsecured(scope="read")
    messages = {
        "right": f"n,,\x01auth=Bearer {good}\x01\x01",
        "with itself": f"n,a=alice,\x01auth=Bearer {good}\x01\x01",
        "as somebody else": f"n,a=bob,\x01auth=Bearer {good}\x01\x01",
        "with extensions": f"n,,\x01auth=Bearer {good}\x01traceId=a b\tc~\x01other=1=2\x01\x01",
        "extensions in front": f"n,,\x01traceId=1\x01auth=bearer   {good}\x01\x01",
        "auth twice": f"n,,\x01auth=Bearer x\x01auth=Bearer {good}\x01\x01",
        "an extension with a digit": f"n,,\x01auth=Bearer {good}\x01a1=x\x01\x01",
        "an empty extension": f"n,,\x01auth=Bearer {good}\x01a=\x01\x01",
        "an extension beyond ASCII": f"n,,\x01auth=Bearer {good}\x01a=ä\x01\x01",
        "no auth": "n,,\x01traceId=1\x01\x01",
        "no token": "n,,\x01auth=Bearer \x01\x01",
        "no end": f"n,,\x01auth=Bearer {good}\x01",
        "more behind the end": f"n,,\x01auth=Bearer {good}\x01\x01x",
        "channel binding": f"p=tls-unique,,\x01auth=Bearer {good}\x01\x01",
        "nothing": "",
        "CTRL-A at once": "\x01",
        "a bad token": "n,,\x01auth=Bearer x.y.\x01\x01",
        "bytes of no text": "n,,\x01auth=Bearer \x00\x01\x01",
    }
    address = bearers.address("UNSECURED")
    answers.all_same(
        {
            name: shown(exchange(address, HANDSHAKE, request(text.encode()), (METADATA, 5)))
            for name, text in messages.items()
        }
    )


def test_a_challenge_is_answered_with_a_sign(bearers: Bearers, answers: TestAnswers) -> None:
    bad = first(unsecured(-60, scope="read"))
    address = bearers.address("UNSECURED")
    answers.same("the sign", exchange(address, HANDSHAKE, bad, GIVE_UP, (METADATA, 5)))
    answers.same("another request", exchange(address, HANDSHAKE, bad, (METADATA, 5)))
    answers.same("another handshake", exchange(address, HANDSHAKE, bad, HANDSHAKE))
    for version in (0, 1):
        old = bad[0], version
        answers.same(f"version {version}", exchange(address, HANDSHAKE, old, (GIVE_UP[0], version), (METADATA, 5)))


def test_kafka_takes_another_token_where_this_broker_is_done(bearers: Bearers, answers: TestAnswers) -> None:
    """A difference on the safe side: each refusal waits for `connection.failed.authentication.delay.ms`."""
    bad, good = first(unsecured(-60, scope="read")), first(unsecured(scope="read"))
    found = shown(exchange(bearers.address("UNSECURED"), HANDSHAKE, bad, good, (METADATA, 5)))
    refused = [(58, '{"status":"invalid_token"}', 0), "closed"]
    kafkas = [(0, "", 0), ("MetadataResponse", 0)]
    answers.expect("another token", found[2:], kafkas if bearers.broker.kind == "apache-kafka" else refused)


def test_unsecured_tokens(bearers: Bearers, answers: TestAnswers) -> None:
    now = time.time()
    none = part({"alg": "none"})
    good = unsecured(scope="read").split(".")[1]
    given = {
        "right": unsecured(scope="read"),
        "a list of scopes": unsecured(scope=["write", " read "]),
        "another scope": unsecured(scope="write"),
        "scopes in one text": unsecured(scope="read write"),
        "no scope": unsecured(),
        "a scope that is a number": unsecured(scope=1),
        "expired": unsecured(-60, scope="read"),
        "expired within the skew": unsecured(-3, scope="read", iat=None),
        "no expiry": unsecured(scope="read", exp=None),
        "an expiry that is a text": unsecured(scope="read", exp=str(int(now) + 60)),
        "not issued": unsecured(scope="read", iat=None),
        "issued in the future": unsecured(scope="read", iat=now + 60),
        "issued within the skew": unsecured(scope="read", iat=now + 3),
        "expires before it was issued": unsecured(-2, scope="read", iat=now),
        "no subject": unsecured(scope="read", sub=None),
        "a blank subject": unsecured(scope="read", sub=" "),
        "a subject that is a number": unsecured(scope="read", sub=5),
        "a subject that is true": unsecured(scope="read", sub=True),
        "a subject that is a list": unsecured(scope="read", sub=["a"]),
        "not yet valid, which nobody looks at": unsecured(scope="read", nbf=now + 600),
        "an algorithm": f"{part({'alg': 'RS256'})}.{good}.",
        "a signature": f"{none}.{good}.c2ln",
        "with a signature that is right": token(),
        "two parts": f"{none}.{good}",
        "four parts": f"{none}.{good}.a.",
        "two dots": f"{none}..",
        "no Base64": f"{none}.a+b.",
        "no JSON": f"{none}.{base64url(b'{')}.",
        "deep JSON": f"{none}.{base64url(b'[' * 5_000)}.",
        "no object": f"{none}.{part([1])}.",
    }
    answers.all_same({name: log_in(bearers, "UNSECURED", text) for name, text in given.items()})


def test_kafka_closes_without_a_word_where_it_meets_an_error_of_its_own(bearers: Bearers, answers: TestAnswers) -> None:
    good = unsecured(scope="read").split(".")[1]
    refused = [(0, "", 26), (58, '{"status":"invalid_token"}', 0), "closed"]
    served = [(0, "", 0), ("MetadataResponse", 0)]
    here = {
        "an expiry beyond all clocks": (unsecured(scope="read", exp=1e300), served),
        "a header that is no object": (f"{part([1])}.{good}.", refused),
        "no algorithm": (f"{part({'typ': 'JWT'})}.{good}.", refused),
    }
    for name, (text, expected) in here.items():
        found = log_in(bearers, "UNSECURED", text)[1:]
        answers.expect(name, found, ["closed", "closed"] if bearers.broker.kind == "apache-kafka" else expected)


@pytest.mark.parametrize("listener", ["SIGNED", "FROMFILE"])
def test_signed_tokens(bearers: Bearers, answers: TestAnswers, listener: str) -> None:
    now = int(time.time())
    good = claims(now, scope="read")
    head, payload, sign = token().split(".")
    unsigned = f"{part({'alg': 'none', 'kid': KID})}.{part(good)}."
    given = {
        "right": token(),
        "many audiences": token(aud=["a", "kafka"]),
        "many scopes": token(scope=["a", "b"]),
        "no scope": token(scope=None),
        "expired": token(-60),
        "expired within the skew": token(-5, iat=now - 60),
        "no expiry": token(exp=None),
        "an expiry that is a text": token(exp=str(now + 60)),
        "a negative expiry": token(exp=-5),
        "not issued": token(iat=None),
        "issued in the future": token(iat=now + 300),
        "expires before it was issued": token(iat=now + 900),
        "not yet valid": token(nbf=now + 300),
        "not yet valid within the skew": token(nbf=now + 10),
        "no issuer": token(iss=None),
        "another issuer": token(iss="https://mallory.example/"),
        "no audience": token(aud=None),
        "another audience": token(aud="other"),
        "no subject": token(sub=None),
        "a subject that is a number": token(sub=5),
        "a blank subject": token(sub=" "),
        "a scope twice": token(scope=["a", "a"]),
        "a blank scope": token(scope=" "),
        "wrong signature": token(key=other_rsa_key()),
        "no signature": f"{head}.{payload}.",
        "another payload": f"{head}.{part(claims(now, sub='admin'))}.{sign}",
        "another algorithm of the key": signed(rsa_key(), {"alg": "RS512", "kid": KID}, good)[:-4],
        "alg none": unsigned,
        "alg None": f"{part({'alg': 'None', 'kid': KID})}.{part(good)}.{sign}",
        "no alg": f"{part({'kid': KID})}.{part(good)}.{sign}",
        "HS256 with the public key": signed(public_pem(rsa_key()), {"alg": "HS256", "kid": KID}, good),
        "HS256 with nothing": signed(b"", {"alg": "HS256", "kid": KID}, good),
        "unknown key": token(kid="nobody's"),
        "a key with a long name": token(kid="k" * 1_001),
        "crit": signed(rsa_key(), SIGNED | {"crit": ["x"], "x": 1}, good),
        "a key in the header": signed(other_rsa_key(), SIGNED | {"jwk": jwk(other_rsa_key(), KID)}, good),
        "duplicated claims": _with_payload(b'{"sub":"alice","sub":"admin",' + part_of(good)),
        "no JSON": _with_payload(b"{"),
        "deep JSON": _with_payload(b"[" * 5_000),
        "no UTF-8": _with_payload(b'{"sub":"\xff"}'),
        "no object": _with_payload(b"[1]"),
        "two parts": f"{head}.{payload}",
        "four parts": f"{head}.{payload}.{sign}.x",
        "five parts": f"{head}.{payload}.{sign}.x.y",
    }
    answers.all_same({name: log_in(bearers, listener, text) for name, text in given.items()})


def part_of(good: dict[str, Any]) -> bytes:
    """The rest of a JSON object."""
    return json.dumps(good).encode()[1:]


def _with_payload(payload: bytes) -> str:
    text = f"{part(SIGNED)}.{base64url(payload)}"
    return f"{text}.{base64url(signature(rsa_key(), 'RS256', text.encode()))}"


def test_a_session_ends_with_its_token(bearers: Bearers, answers: TestAnswers) -> None:
    def lifetime(listener: str, text: str) -> bool:
        with Wire(bearers.address(listener)) as wire:
            (_, last) = outcomes(wire, HANDSHAKE, first(text))
        return 550_000 < last[3] <= 600_000

    answers.same("unsecured", lifetime("UNSECURED", unsecured(600, scope="read")))
    answers.same("signed", lifetime("SIGNED", token(600)))
    with Wire(bearers.address("SIGNED")) as careful, Wire(bearers.address("SIGNED")) as forgetful:
        for wire in (careful, forgetful):
            outcomes(wire, HANDSHAKE, first(token(3)))
        time.sleep(1.5)  # no client may authenticate anew within a second
        answers.same("again", shown(outcomes(careful, HANDSHAKE, first(token()), (METADATA, 5))))
        time.sleep(2.5)
        answers.same("careful", outcomes(careful, (METADATA, 5)))
        answers.same("forgetful", outcomes(forgetful, (METADATA, 5)))
    with Wire(bearers.address("SIGNED")) as wire:
        outcomes(wire, HANDSHAKE, first(token()))
        answers.same("as another user", outcomes(wire, HANDSHAKE, first(token(sub="bob")), (METADATA, 5)))
    with Wire(bearers.address("SIGNED")) as wire:
        outcomes(wire, HANDSHAKE, first(token()))
        answers.same("with a bad token", outcomes(wire, HANDSHAKE, first(token(-60)), GIVE_UP, (METADATA, 5)))


def test_a_new_key_is_found_soon(bearers: Bearers, answers: TestAnswers) -> None:
    """The keys are fetched once an hour, and when a token names one that is not known; that token is refused."""
    new = token(kid="new", key=other_rsa_key())
    asked = len(bearers.issuer.asked)
    answers.same("before", log_in(bearers, "SIGNED", new))
    until(lambda: len(bearers.issuer.asked) > asked, "the broker asks for keys")
    bearers.issuer.document = jwks(jwk(rsa_key(), KID), jwk(other_rsa_key(), "newer"))
    newer = token(kid="newer", key=other_rsa_key())
    try:
        until(lambda: log_in(bearers, "SIGNED", newer)[-1] != "closed", "the key is known")
    finally:
        bearers.issuer.document = good_document()
    answers.same("the key of before", log_in(bearers, "SIGNED", token()))


def test_an_authorization_server_that_fails_is_no_matter_for_known_keys(bearers: Bearers, answers: TestAnswers) -> None:
    asked = len(bearers.issuer.asked)
    bearers.issuer.answer = 500, {}, b"broken"
    try:
        answers.same("an unknown key", log_in(bearers, "SIGNED", token(kid="lost")))
        until(lambda: len(bearers.issuer.asked) > asked, "the broker asks for keys")
        answers.same("a known key", log_in(bearers, "SIGNED", token()))
    finally:
        bearers.issuer.answer = None
