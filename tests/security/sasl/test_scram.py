"""SCRAM: the vectors of the RFCs, and each rule that Kafka adds."""

import secrets
from base64 import b64decode, b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykbroker.security.sasl.mechanism import AuthenticationFailed, Identity
from pykbroker.security.sasl.scram_client import ScramClient, ScramPassword
from pykbroker.security.sasl.scram_credential import MECHANISMS, ScramCredential, ScramMechanism, new_nonce
from pykbroker.security.sasl.scram_messages import ClientFinal, ClientFirst, ServerFirst, auth_message
from pykbroker.security.sasl.scram_server import ScramAccount, ScramServer, xor

SHA_1 = ScramMechanism("SCRAM-SHA-1", 0, "sha1")
SHA_256 = MECHANISMS["SCRAM-SHA-256"]


def credential(
    mechanism: ScramMechanism, password: str, salt: bytes = b"salt", iterations: int = 4096
) -> ScramCredential:
    return mechanism.credential(mechanism.salted_password(password, salt, iterations), salt, iterations)


class Accounts:
    """The accounts of a server: users' by name, tokens' by id."""

    def __init__(self, **passwords: str) -> None:
        self.mechanism = SHA_256
        self.passwords = passwords
        self.iterations = 4096
        self.asked: list[tuple[str, bool]] = []

    def find(self, name: str, by_token: bool) -> ScramAccount | None:
        self.asked.append((name, by_token))
        if name not in self.passwords:
            return None
        found = credential(self.mechanism, self.passwords[name], iterations=self.iterations)
        return ScramAccount(found, Identity("owner", 99, by_token=True) if by_token else Identity(name))

    def server(self) -> ScramServer:
        return ScramServer(self.mechanism, self.find, new_nonce(secrets.randbits))


def client(name: str, password: str, **extensions: str) -> ScramClient:
    return ScramClient(SHA_256, ScramPassword(name, password), new_nonce(secrets.randbits), extensions)


def converse(one: ScramClient, other: ScramServer) -> Identity | None:
    challenge = b""
    while not one.is_complete:
        response = one.step(challenge)
        if not one.is_complete:
            challenge = other.step(response, 0)
    return other.identity


@pytest.mark.parametrize(
    ("mechanism", "nonces", "salt", "proof", "signature"),
    [
        pytest.param(
            SHA_1,
            ("fyko+d2lbbFgONRv9qkxdawL", "3rfcNHYJY1ZVvWVs7j"),
            "QSXCR+Q6sek8bf92",
            "v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            "rmF9pqV8S7suAoZWja4dJRkFsKQ=",
            id="RFC 5802, section 5",
        ),
        pytest.param(
            SHA_256,
            ("rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"),
            "W22ZaJ0SNY7soEsUEjb6gQ==",
            "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
            id="RFC 7677, section 3",
        ),
    ],
)
def test_the_exchange_of_the_rfc_is_spoken_word_for_word(
    mechanism: ScramMechanism, nonces: tuple[str, str], salt: str, proof: str, signature: str
) -> None:
    account = ScramAccount(credential(mechanism, "pencil", b64decode(salt)), Identity("user"))
    mine = ScramClient(mechanism, ScramPassword("user", "pencil"), nonces[0])
    server = ScramServer(mechanism, lambda name, by_token: account if name == "user" else None, nonces[1])
    first = mine.step(b"")
    assert first == f"n,,n=user,r={nonces[0]}".encode()
    challenge = server.step(first, 0)
    assert challenge == f"r={nonces[0]}{nonces[1]},s={salt},i=4096".encode()
    final = mine.step(challenge)
    assert final == f"c=biws,r={nonces[0]}{nonces[1]},p={proof}".encode()
    assert server.identity is None
    verdict = server.step(final, 0)
    assert verdict == f"v={signature}".encode()
    assert mine.step(verdict) == b""
    assert mine.is_complete
    assert server.identity == Identity("user")


@settings(max_examples=15, deadline=None)
@given(
    name=st.text(st.characters(min_codepoint=1, max_codepoint=126), min_size=1, max_size=20),
    password=st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable()),
)
def test_every_name_and_password_goes_through(name: str, password: str) -> None:
    for mechanism in MECHANISMS.values():
        account = ScramAccount(credential(mechanism, password), Identity(name))
        server = ScramServer(mechanism, lambda asked, _: account if asked == name else None, "server")  # noqa: B023
        assert converse(ScramClient(mechanism, ScramPassword(name, password), "client"), server) == Identity(name)


def test_a_wrong_password_fails_at_the_proof_and_tells_nothing() -> None:
    server = Accounts(alice="right").server()
    with pytest.raises(AuthenticationFailed, match="wrong password") as failure:
        converse(client("alice", "wrong"), server)
    assert failure.value.told is None
    assert server.identity is None


def test_an_unknown_user_fails_at_the_first_message_and_is_not_told_apart() -> None:
    with pytest.raises(AuthenticationFailed) as failure:
        Accounts(alice="right").server().step(client("mallory", "x").step(b""), 0)
    assert failure.value.told is None
    assert "mallory" not in str(failure.value)


def test_a_delegation_token_is_looked_up_as_one_and_speaks_for_its_owner() -> None:
    accounts = Accounts(token_id="hmac")
    assert converse(client("token_id", "hmac", tokenauth="true"), accounts.server()) == Identity("owner", 99, True)
    assert accounts.asked == [("token_id", True)]


def test_an_expired_token_fails_at_the_first_message_and_tells_nothing() -> None:
    accounts = Accounts(token_id="hmac")
    first = client("token_id", "hmac", tokenauth="true").step(b"")
    assert accounts.server().step(first, 99).startswith(b"r=")
    with pytest.raises(AuthenticationFailed, match="an expired delegation token") as failure:
        accounts.server().step(first, 100)
    assert failure.value.told is None


def test_other_extensions_change_nothing() -> None:
    accounts = Accounts(alice="right")
    assert converse(client("alice", "right", tokenauth="false", color="blue"), accounts.server()) == Identity("alice")


def test_a_credential_of_too_few_iterations_is_not_used() -> None:
    accounts = Accounts(alice="right")
    accounts.iterations = 4095
    with pytest.raises(AuthenticationFailed, match="4095 iterations"):
        converse(client("alice", "right"), accounts.server())


def test_an_authorization_id_must_be_the_user() -> None:
    accounts = Accounts(alice="right")
    assert accounts.server().step(b"n,a=alice,n=alice,r=x", 0).startswith(b"r=x")
    with pytest.raises(AuthenticationFailed) as failure:
        accounts.server().step(b"n,a=bob,n=alice,r=x", 0)
    assert failure.value.told is not None
    assert "different from username" in failure.value.told


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,n=alice",
        b"n,,r=x,n=alice",
        b"y,,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"n,,n=al,ice,r=x",
        b"n,,n=al=ice,r=x",
        b"n,,n=,r=x",
        b"n,,n=alice,r=\x00",
        b"n,,n=alice,r=x\n",
        "n,,n=älice,r=x".encode(),
        b"n,,n=alice,r=x,=1",
        b"\xff\xfe",
    ],
)
def test_a_first_message_that_is_none_is_refused(message: bytes) -> None:
    server = Accounts(alice="right").server()
    with pytest.raises(AuthenticationFailed) as failure:
        server.step(message, 0)
    assert failure.value.told is None
    assert "alice" not in str(failure.value)


@pytest.mark.parametrize("final", [b"", b"c=biws,r=other,p=AAAA", b"c=biws,r={nonce},p=AAAA", b"c=biws,r={nonce}"])
def test_a_final_message_that_is_none_ends_the_exchange(final: bytes) -> None:
    server = Accounts(alice="right").server()
    challenge = server.step(b"n,,n=alice,r=x", 0)
    nonce = challenge.split(b",")[0].removeprefix(b"r=")
    with pytest.raises(AuthenticationFailed):
        server.step(final.replace(b"{nonce}", nonce), 0)
    with pytest.raises(AuthenticationFailed, match="behind the end"):
        server.step(b"n,,n=alice,r=x", 0)
    assert server.identity is None


@pytest.mark.parametrize(("ending", "is_right"), [("", True), ("x", False)])
def test_a_final_message_has_the_nonce_of_the_server_however_right_its_proof_is(ending: str, is_right: bool) -> None:
    server = Accounts(alice="secret").server()
    first = ClientFirst.of("alice", "mine", {})
    challenge = ServerFirst.read(server.step(first.to_bytes(), 0))
    final = ClientFinal.of(challenge.nonce + ending)
    client_key = SHA_256.client_key(SHA_256.salted_password("secret", challenge.salt, challenge.iterations))
    signature = SHA_256.hmac(SHA_256.hash(client_key), auth_message(first, challenge, final))
    message = final.to_bytes(xor(client_key, signature))
    if is_right:
        server.step(message, 0)
    else:
        with pytest.raises(AuthenticationFailed, match="another nonce"):
            server.step(message, 0)
    assert server.identity == (Identity("alice") if is_right else None)


def test_no_message_comes_behind_the_last() -> None:
    accounts = Accounts(alice="right")
    mine, server = client("alice", "right"), accounts.server()
    assert converse(mine, server) == Identity("alice")
    with pytest.raises(AuthenticationFailed, match="behind the end"):
        server.step(b"n,,n=alice,r=x", 0)
    with pytest.raises(AuthenticationFailed, match="behind the end"):
        mine.step(b"v=AAAA")


@pytest.mark.parametrize("iterations", ["0", "1", "4095", "16385", "2147483648", "9999999999"])
def test_a_client_computes_neither_too_little_nor_too_much(iterations: str) -> None:
    mine = ScramClient(SHA_256, ScramPassword("alice", "right"), "mine")
    mine.step(b"")
    with pytest.raises(AuthenticationFailed, match="iterations, 4096 to 16384 are allowed"):
        mine.step(f"r=mineyours,s=c2FsdA==,i={iterations}".encode())


@pytest.mark.parametrize(
    "challenge",
    [b"", b"r=other,s=c2FsdA==,i=4096", b"r=mine,s=c2FsdA==,i=4096", b"r=mineyours,s=c,i=4096", b"r=mineyours,s=,i=x"],
)
def test_a_client_refuses_a_server_that_speaks_otherwise(challenge: bytes) -> None:
    mine = ScramClient(SHA_256, ScramPassword("alice", "right"), "mine")
    mine.step(b"")
    with pytest.raises(AuthenticationFailed):
        mine.step(challenge)


def test_a_client_refuses_a_server_that_does_not_know_the_password() -> None:
    mine, server = client("alice", "right"), Accounts(alice="right").server()
    final = mine.step(server.step(mine.step(b""), 0))
    server.step(final, 0)
    with pytest.raises(AuthenticationFailed, match="signature is wrong"):
        mine.step(b"v=" + b64encode(bytes(32)))
    assert not mine.is_complete


def test_a_client_tells_the_servers_error() -> None:
    mine, server = client("alice", "right"), Accounts(alice="right").server()
    mine.step(server.step(mine.step(b""), 0))
    with pytest.raises(AuthenticationFailed, match="error other-error"):
        mine.step(b"e=other-error")


def test_a_password_is_derived_once_for_the_same_salt() -> None:
    password = ScramPassword("alice", "right")
    first = password.salted(SHA_256, b"salt", 4096)
    assert password.salted(SHA_256, b"salt", 4096) is first
    assert password.salted(SHA_256, b"pepper", 4096) != first


def test_nothing_shows_a_key() -> None:
    shown = repr(credential(SHA_256, "right"))
    assert shown == "ScramCredential(iterations=4096)"


def test_a_nonce_is_of_130_bits() -> None:
    assert int(new_nonce(lambda bits: (1 << bits) - 1), 36) == 2**130 - 1
    assert new_nonce(lambda bits: 0) == "0"
