"""The mechanism PLAIN, with each of Kafka's answers."""

import pytest

from pykbroker.security.sasl.mechanism import AuthenticationFailed, Identity
from pykbroker.security.sasl.plain import PlainClient, PlainServer, plain_users

USERS = {"alice": "alice-secret", "bob": "пароль"}
WRONG = "Authentication failed: Invalid username or password"


@pytest.mark.parametrize(("name", "password"), USERS.items())
def test_the_right_password_authenticates(name: str, password: str) -> None:
    client, server = PlainClient(name, password), PlainServer(USERS)
    assert server.step(client.step(b""), 0) == b""
    assert server.identity == Identity(name)
    assert client.step(b"") == b""
    assert client.is_complete


def test_an_authorization_id_must_be_the_user() -> None:
    server = PlainServer(USERS)
    assert server.step(b"alice\0alice\0alice-secret", 0) == b""
    with pytest.raises(AuthenticationFailed) as failure:
        PlainServer(USERS).step(b"bob\0alice\0alice-secret", 0)
    assert failure.value.told is not None
    assert "different from username" in failure.value.told


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (b"\0alice\0bob-secret", WRONG),
        (b"\0mallory\0alice-secret", WRONG),
        (b"\0alice\0alice-secret ", WRONG),
        (b"\0Alice\0alice-secret", WRONG),
        (b"bob\0mallory\0x", WRONG),
        (b"\0alice\0\xff", WRONG),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0\0alice-secret", "Authentication failed: username not specified"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0alice-secret\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    ],
)
def test_anything_else_is_refused(message: bytes, told: str) -> None:
    server = PlainServer(USERS)
    with pytest.raises(AuthenticationFailed) as failure:
        server.step(message, 0)
    assert failure.value.told == told
    assert server.identity is None
    assert "alice" not in str(failure.value)


def test_users_are_the_options_that_begin_so() -> None:
    options = {"username": "admin", "password": "x", "user_admin": "x", "user_a_b": "y", "user_": "z"}
    assert plain_users(options) == {"admin": "x", "a_b": "y", "": "z"}
