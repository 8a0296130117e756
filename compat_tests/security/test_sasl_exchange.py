"""SASL exchanges in bytes: each answer, each text, and where the connection is closed."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.wire import Closed, Wire
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest
from pykbroker.protocol.messages.metadata import MetadataRequest
from pykbroker.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from pykbroker.protocol.schema import Message
from pykbroker.security.sasl.mechanism import AuthenticationFailed
from pykbroker.security.sasl.scram_client import ScramClient, ScramPassword
from pykbroker.security.sasl.scram_credential import MECHANISMS

from .secured import PASSWORDS, REAUTHENTICATION_MS, Secured

ALICE = b"\0alice\0alice-secret"
HANDSHAKE = SaslHandshakeRequest(mechanism="PLAIN")
METADATA = MetadataRequest(topics=[])
VERSIONS = ApiVersionsRequest(client_software_name="compat", client_software_version="1")


def shown(answer: Message) -> Any:
    """An answer without what differs from broker to broker."""
    match answer:
        case SaslHandshakeResponse():
            return answer.error_code, sorted(answer.mechanisms)
        case SaslAuthenticateResponse():
            return answer.error_code, answer.error_message, len(answer.auth_bytes), answer.session_lifetime_ms
        case _:
            return type(answer).__name__, getattr(answer, "error_code", None)


def outcomes(wire: Wire, *requests: tuple[Message, int]) -> list[Any]:
    """The answer to each request, as far as the connection lives."""
    found: list[Any] = []
    for request, version in requests:
        try:
            found.append(shown(wire.call(request, version)))
        except Closed:
            return [*found, "closed"]
    return found


def exchange(address: tuple[str, int], *requests: tuple[Message, int]) -> list[Any]:
    with Wire(address) as wire:
        return outcomes(wire, *requests)


def token(data: bytes, version: int = 2) -> tuple[Message, int]:
    return SaslAuthenticateRequest(auth_bytes=data), version


@pytest.mark.parametrize("version", [0, 1, 2])
def test_plain(secured: Secured, answers: TestAnswers, version: int) -> None:
    tokens = {
        "right": ALICE,
        "with authorization id": b"alice\0alice\0alice-secret",
        "as somebody else": b"bob\0alice\0alice-secret",
        "wrong password": b"\0alice\0alice-secre",
        "unknown user": b"\0mallory\0alice-secret",
        "no password": b"\0alice\0",
        "no user": b"\0\0alice-secret",
        "nothing": b"",
        "two fields": b"alice\0alice-secret",
        "four fields": b"\0alice\0alice-secret\0more",
        "five fields": b"\0alice\0alice-secret\0and\0more",
        "no text": b"\xff\0alice\xff\0\xfe",
        "a comma and an equals sign": f"\0bob\0{PASSWORDS['bob']}".encode(),
    }
    answers.all_same(
        {
            name: exchange(secured.sasl, (HANDSHAKE, 1), token(data, version), (METADATA, 5))
            for name, data in tokens.items()
        }
    )


def test_what_comes_out_of_order(secured: Secured, answers: TestAnswers) -> None:
    unknown, gssapi = SaslHandshakeRequest(mechanism="NONE"), SaslHandshakeRequest(mechanism="GSSAPI")
    orders: dict[str, list[tuple[Message, int]]] = {
        "metadata at once": [(METADATA, 5)],
        "a token at once": [token(ALICE)],
        "versions": [(VERSIONS, 3), (HANDSHAKE, 1), token(ALICE), (METADATA, 5)],
        "versions twice": [(VERSIONS, 3), (VERSIONS, 3)],
        "bad versions, and again": [(ApiVersionsRequest(), 3), (VERSIONS, 3), (HANDSHAKE, 1), token(ALICE)],
        "metadata behind versions": [(VERSIONS, 3), (METADATA, 5)],
        "unknown mechanism": [(unknown, 1), (HANDSHAKE, 1)],
        "unknown mechanism in version 0": [(unknown, 0)],
        "kerberos": [(gssapi, 1)],
        "handshake twice": [(HANDSHAKE, 1), (HANDSHAKE, 1)],
        "versions during authentication": [(HANDSHAKE, 1), (VERSIONS, 3)],
        "handshake behind authentication": [(HANDSHAKE, 1), token(ALICE), (HANDSHAKE, 1), (METADATA, 5)],
        "a token behind authentication": [(HANDSHAKE, 1), token(ALICE), token(ALICE), (METADATA, 5)],
        "versions behind authentication": [(HANDSHAKE, 1), token(ALICE), (VERSIONS, 3)],
        "again behind a failure": [(HANDSHAKE, 1), token(b"\0alice\0x"), (HANDSHAKE, 1)],
    }
    answers.all_same({name: exchange(secured.sasl, *requests) for name, requests in orders.items()})


def test_a_listener_without_sasl_knows_no_time_for_it(secured: Secured, answers: TestAnswers) -> None:
    asked = [(HANDSHAKE, 0), (HANDSHAKE, 1), *(token(ALICE, version) for version in range(3)), (METADATA, 5)]
    answers.same("PLAINTEXT", exchange(secured.broker.address, *asked))
    answers.same("CONTROLLER", exchange(("127.0.0.1", secured.broker.controller_port), *asked[:-1]))


def bare(wire: Wire, data: bytes) -> Any:
    """The answer to a token without a request around it."""
    try:
        wire.send_frame(data)
        return len(wire.receive())
    except Closed:
        return "closed"


def test_bare_tokens_follow_the_old_handshake(secured: Secured, answers: TestAnswers) -> None:
    def with_tokens(mechanism: str, *tokens: bytes) -> list[Any]:
        with Wire(secured.sasl) as wire:
            begun = outcomes(wire, (SaslHandshakeRequest(mechanism=mechanism), 0))
            found = [bare(wire, each) for each in tokens]
            return [*begun, *found, *(outcomes(wire, (METADATA, 5)) if found[-1] != "closed" else [])]

    answers.same("plain", with_tokens("PLAIN", ALICE))
    answers.same("a wrong password", with_tokens("PLAIN", b"\0alice\0x"))
    answers.same("no such user of SCRAM", with_tokens("SCRAM-SHA-256", b"n,,n=mallory,r=x"))
    with Wire(secured.sasl) as wire:
        begun = outcomes(wire, (SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 0))
        client = scram("SCRAM-SHA-512")
        challenge = b""
        while not client.is_complete:
            response = client.step(challenge)
            if response:
                wire.send_frame(response)
                challenge = wire.receive()
        answers.same("scram", [*begun, *outcomes(wire, (METADATA, 5))])


def scram(mechanism: str, name: str = "alice", password: str = "alice-secret", **extensions: str) -> ScramClient:
    return ScramClient(MECHANISMS[mechanism], ScramPassword(name, password), "client-nonce", extensions)


def converse(wire: Wire, client: ScramClient) -> Iterator[Any]:
    challenge = b""
    while not client.is_complete:
        response = client.step(challenge)
        if client.is_complete:
            return
        answer = wire.call(SaslAuthenticateRequest(auth_bytes=response), 2)
        assert isinstance(answer, SaslAuthenticateResponse)
        yield answer.error_code, answer.error_message, answer.session_lifetime_ms
        if answer.error_code:
            return
        challenge = answer.auth_bytes


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_scram(secured: Secured, answers: TestAnswers, mechanism: str) -> None:
    clients = {
        "right": scram(mechanism),
        "wrong password": scram(mechanism, password="x"),
        "unknown user": scram(mechanism, "mallory"),
        "a name with signs": scram(mechanism, "a=b,c"),
        "a user of PLAIN alone": scram(mechanism, "bob", PASSWORDS["bob"]),
        "a delegation token": scram(mechanism, "token", tokenauth="true"),
        "no delegation token": scram(mechanism, tokenauth="false"),
        "another extension": scram(mechanism, color="blue"),
    }
    for name, client in clients.items():
        with Wire(secured.sasl) as wire:
            begun = outcomes(wire, (SaslHandshakeRequest(mechanism=mechanism), 1))
            steps = list(converse(wire, client))
            answers.same(name, [*begun, *steps, *outcomes(wire, (METADATA, 5))])


def test_scram_messages_that_are_none(secured: Secured, answers: TestAnswers) -> None:
    handshake = SaslHandshakeRequest(mechanism="SCRAM-SHA-256")
    messages = {
        "nothing": b"",
        "another order": b"n,,r=x,n=alice",
        "channel binding": b"p=tls-unique,,n=alice,r=x",
        "channel binding, if you have it": b"y,,n=alice,r=x",
        "no nonce": b"n,,n=alice,r=",
        "as somebody else": b"n,a=bob,n=alice,r=x",
        "as oneself": b"n,a=alice,n=alice,r=x",
        "reserved": b"n,,m=x,n=alice,r=x",
        "a sign that is none": b"n,,n=al=ice,r=x",
        "not ascii": "n,,n=älice,r=x".encode(),
        "many extensions": b"n,,n=alice,r=x" + b",a=b" * 100,
    }

    def first(message: bytes) -> list[Any]:
        with Wire(secured.sasl) as wire:
            outcomes(wire, (handshake, 1))
            answer = wire.call(SaslAuthenticateRequest(auth_bytes=message), 2)
            assert isinstance(answer, SaslAuthenticateResponse)
            return [answer.error_code, answer.error_message, bool(answer.auth_bytes)]

    answers.all_same({name: first(message) for name, message in messages.items()})
    finals = {"nothing": b"", "another nonce": b"c=biws,r=other,p=AAAA", "no proof": b"c=biws,r=other"}
    for name, final in finals.items():
        begin = token(b"n,,n=alice,r=x")
        answers.same(f"final: {name}", exchange(secured.sasl, (handshake, 1), begin, token(final), (METADATA, 5))[2:])


def test_a_frame_that_is_too_large_before_authentication_ends_it(secured: Secured, answers: TestAnswers) -> None:
    def ends(size: int, *before: tuple[Message, int]) -> Any:
        with Wire(secured.sasl) as wire:
            outcomes(wire, *before)
            wire.send_raw(struct.pack(">i", size))
            try:
                return len(wire.receive())
            except Closed:
                return "closed"

    answers.same("at once", ends(524_289))
    answers.same("for a token", ends(1 << 30, (HANDSHAKE, 1)))
    answers.same("negative", ends(-1))


def test_sessions_end_and_are_renewed(secured: Secured, answers: TestAnswers) -> None:
    address = secured.expiring
    log_in = [(HANDSHAKE, 1), token(ALICE)]
    answers.same("lifetime", exchange(address, *log_in, (METADATA, 5)))
    answers.same("lifetime in version 0", exchange(address, (HANDSHAKE, 1), token(ALICE, 0), (METADATA, 5)))
    answers.same("again at once", exchange(address, *log_in, *log_in, (METADATA, 5)))
    answers.same("again, and again within a second", exchange(address, *log_in, *log_in, (HANDSHAKE, 1)))
    bob = token(f"\0bob\0{PASSWORDS['bob']}".encode())
    answers.same("another user", exchange(address, *log_in, (HANDSHAKE, 1), bob, (METADATA, 5)))
    wrong = token(b"\0alice\0x")
    answers.same("a wrong password", exchange(address, *log_in, (HANDSHAKE, 1), wrong, (METADATA, 5)))
    empty = token(b"")
    answers.same("a token that is none", exchange(address, *log_in, (HANDSHAKE, 1), empty, (METADATA, 5)))
    other = SaslHandshakeRequest(mechanism="SCRAM-SHA-256")
    answers.same("another mechanism", exchange(address, *log_in, (other, 1), token(ALICE), (METADATA, 5)))
    with Wire(address) as wire:
        first = [*outcomes(wire, (other, 1)), *converse(wire, scram("SCRAM-SHA-256"))]
        answers.same("a masked failure", [*first, *outcomes(wire, (other, 1), empty, (METADATA, 5))])
    unknown = SaslHandshakeRequest(mechanism="NONE")
    answers.same("an unknown mechanism", exchange(address, *log_in, (unknown, 1), (METADATA, 5)))
    answers.same("metadata in between", exchange(address, *log_in, (HANDSHAKE, 1), (METADATA, 5)))


def test_who_does_not_renew_a_session_is_closed(secured: Secured, answers: TestAnswers) -> None:
    with Wire(secured.expiring) as careful, Wire(secured.expiring) as forgetful, Wire(secured.expiring) as late:
        for wire in (careful, forgetful, late):
            outcomes(wire, (HANDSHAKE, 1), token(ALICE))
        time.sleep(REAUTHENTICATION_MS / 1000 * 0.7)
        outcomes(careful, (HANDSHAKE, 1), token(ALICE))
        time.sleep(REAUTHENTICATION_MS / 1000 * 0.6)
        answers.same("careful", outcomes(careful, (METADATA, 5)))
        answers.same("forgetful", outcomes(forgetful, (METADATA, 5)))
        answers.same("late", outcomes(late, (HANDSHAKE, 1), token(ALICE), (METADATA, 5)))


def test_a_client_knows_a_broker_that_does_not_know_the_password() -> None:
    client = scram("SCRAM-SHA-256")
    client.step(b"")
    client.step(b"r=client-nonceserver,s=c2FsdA==,i=4096")
    with pytest.raises(AuthenticationFailed):
        client.step(b"v=" + b"A" * 43 + b"=")
