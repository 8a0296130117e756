"""Bytes at a TLS port that are no handshake, or none that ends: the connection is closed, and the broker serves on."""

from __future__ import annotations

import itertools
import socket
import struct
import subprocess
from collections.abc import Iterator

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.cases import CLOSED, SILENT
from compat_tests.hostile.framing_cases import HELLO

from .identities import Identities
from .listeners import SecuredBroker
from .reasons import SERVED
from .tls_clients import CLIENTS, Connection

ANSWER_DEADLINE_S = 20.0
LARGEST_BYTES = 64 << 20
"""Of what no peer may send on without being stopped."""
HANDSHAKE, APPLICATION_DATA, ALERT = 22, 23, 21
CLIENT_HELLO = 1


def record(kind: int, content: bytes, version: int = 0x0301) -> bytes:
    return struct.pack(">BHH", kind, version, len(content)) + content


def endless_hello() -> Iterator[bytes]:
    """A ClientHello that says to be as long as one can be, and more of it than that."""
    yield record(HANDSHAKE, struct.pack(">I", CLIENT_HELLO << 24 | 0xFFFFFF) + bytes(16_000))
    yield from itertools.repeat(record(HANDSHAKE, bytes(16_384)), LARGEST_BYTES // 16_384)


def hello_in_pieces_of_one_byte() -> Iterator[bytes]:
    """Each byte of an endless hello in a record of its own."""
    announced = struct.pack(">I", CLIENT_HELLO << 24 | 0xFFFFFF)
    yield b"".join(record(HANDSHAKE, bytes([each])) for each in announced)
    yield from itertools.repeat(record(HANDSHAKE, b"\0") * 10_000, LARGEST_BYTES // 60_000)


CASES: dict[str, list[bytes] | Iterator[bytes]] = {
    "garbage": [b"\x80\x00\xff" * 1000],
    "zeros": [bytes(5000)],
    "an HTTP request": [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"],
    "a broken ClientHello": [HELLO],
    "a ClientHello of SSL 2": [bytes.fromhex("802e0103010015000000100000") + bytes(40)],
    "records of data": [record(APPLICATION_DATA, bytes(100), 0x0303)],
    "an alert": [record(ALERT, b"\x02\x28", 0x0303)],
    "a record of 65,535 bytes": [record(HANDSHAKE, bytes(65_535))],
    "a handshake message of an unknown type": [record(HANDSHAKE, b"\x63\0\0\x04abcd")],
}
ENDLESS = {
    "a ClientHello without end": endless_hello,
    "a ClientHello without end, a byte a record": hello_in_pieces_of_one_byte,
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_handshake_ends_the_connection(
    name: str, secured: SecuredBroker, identities: Identities, answers: TestAnswers
) -> None:
    answers.same(name, what_becomes_of(secured.address("TLS"), CASES[name]))
    assert_served(secured, identities)


@pytest.mark.parametrize("name", ENDLESS)
def test_a_handshake_without_end_is_stopped(
    name: str, secured: SecuredBroker, identities: Identities, answers: TestAnswers
) -> None:
    answers.same(name, what_becomes_of(secured.address("TLS"), ENDLESS[name]()))
    assert_served(secured, identities)


@pytest.mark.openssl
def test_nobody_renegotiates(secured: SecuredBroker, identities: Identities) -> None:
    host, port = secured.address("TLS12")
    command = ["openssl", "s_client", "-connect", f"{host}:{port}", "-tls1_2", "-CAfile"]
    command.append(str(identities.trust("the authority")))
    asked = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert asked.stdin is not None
    assert asked.stdout is not None
    with asked:
        said = []
        for line in asked.stdout:
            said.append(line.decode(errors="replace"))
            if "Extended master secret" in said[-1]:  # the last line about the handshake
                asked.stdin.write(b"R\n")
                asked.stdin.flush()
            if "RENEGOTIATING" in said[-1]:
                break
        rest, _ = asked.communicate(timeout=60)
    assert "RENEGOTIATING" in said[-1], said
    assert b"verify return" not in rest
    assert_served(secured, identities)


def what_becomes_of(address: tuple[str, int], pieces: list[bytes] | Iterator[bytes]) -> str:
    """Of a connection that these bytes are sent on, and nothing more. Whatever is answered is read."""
    with socket.create_connection(address, timeout=ANSWER_DEADLINE_S) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
            while connection.recv(65_536):
                pass
        except TimeoutError:
            return SILENT
        except (ConnectionResetError, BrokenPipeError):
            pass
        return CLOSED


def assert_served(secured: SecuredBroker, identities: Identities) -> None:
    connection = Connection(secured.bootstrap("TLS"), trust=identities.trust("the authority"))
    assert CLIENTS["librdkafka"].attempt(connection) == SERVED
