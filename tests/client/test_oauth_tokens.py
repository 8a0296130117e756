"""Tokens that a client fetches, over https and from files: bounds, trust, errors, and when they are fetched anew."""

from __future__ import annotations

import json
import logging
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from cryptography.hazmat.primitives.serialization import Encoding

from compat_tests.authorization_server import AuthorizationServer, running
from compat_tests.certificates import OTHER_HOSTS, Authority, Credential
from compat_tests.key_stores import write_pem, write_pem_trust
from pykbroker.client.https import MAX_BYTES, FetchFailed, fetch
from pykbroker.client.oauth_tokens import BearerCredentials
from pykbroker.client.sasl import _new_exchange
from pykbroker.security.sasl.mechanism import AuthenticationFailed
from pykbroker.security.sasl.oauthbearer.client_first import ClientFirst
from pykbroker.security.sasl.oauthbearer.login_settings import EndpointLogin, FileLogin, Login
from pykbroker.security.sasl.oauthbearer.unsecured_login import UnsecuredLogin
from pykbroker.security.sasl.oauthbearer.validator_settings import JwksAddress
from pykbroker.security.tls.settings import TlsSettings
from pykbroker.server.network.jwks_refresh import read_document
from tests.security.sasl.tokens import NOW_MS, NOW_S, claims, rsa_key, signed


class Clock:
    """The wall clock of a test."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


def token(now_s: float = NOW_S, name: str = "broker") -> str:
    return signed(rsa_key(), {"alg": "RS256"}, claims(now_s, sub=name, exp=now_s + 1_000, iat=now_s))


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.root()


@pytest.fixture
def issuer(authority: Authority, tmp_path: Path) -> Iterator[AuthorizationServer]:
    server = AuthorizationServer(b"{}", {"broker": "hunter2"}, lambda name: token(name=name))
    with running(server, authority, tmp_path) as found:
        yield found


def trusting(authority: Authority, directory: Path) -> TlsSettings:
    path = write_pem_trust(directory / "trusted.pem", authority)
    return TlsSettings.of({"ssl.truststore.location": str(path), "ssl.truststore.type": "PEM"})


def context(authority: Authority) -> ssl.SSLContext:
    trusted = ssl.create_default_context(cadata=authority.certificate.public_bytes(Encoding.PEM).decode())
    trusted.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return trusted


def login(url: str, tls: TlsSettings, **changes: object) -> Login:
    values: dict[str, object] = {
        "client_id": "broker",
        "client_secret": "hunter2",
        "scope": None,
        "is_header_encoded": False,
        "connect_timeout_ms": None,
        "read_timeout_ms": None,
        "backoff_ms": 1,
        "backoff_max_ms": 3,
    }
    return Login(EndpointLogin(url, tls=tls, **{**values, **changes}), {"traceId": "1"})  # type: ignore[arg-type]


def shown(credentials: BearerCredentials) -> str:
    """The token of a new exchange."""
    return ClientFirst.read(credentials.new_exchange().step(b"")).token


def test_a_token_is_asked_for_by_name_and_secret(
    issuer: AuthorizationServer, authority: Authority, tmp_path: Path
) -> None:
    tls = trusting(authority, tmp_path)
    credentials = BearerCredentials(login(issuer.token_url, tls, scope="a b"), Clock())
    message = ClientFirst.read(credentials.new_exchange().step(b""))
    assert (message.token, message.extensions) == (token(), {"traceId": "1"})
    assert issuer.forms == [{"grant_type": ["client_credentials"], "scope": ["a b"]}]
    issuer.clients = {"a%3Ab": "c%2Fd"}
    encoded = login(issuer.token_url, tls, client_id="a:b", client_secret="c/d", is_header_encoded=True)
    assert shown(BearerCredentials(encoded, Clock())) == token(name="a%3Ab")


def test_a_token_is_kept_until_most_of_its_lifetime_is_over(
    issuer: AuthorizationServer, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    issuer.token = lambda name: token(clock.now_ms / 1000, name)
    credentials = BearerCredentials(login(issuer.token_url, trusting(authority, tmp_path)), clock)
    first = shown(credentials)
    clock.now_ms += 799_000
    assert shown(credentials) == first
    assert len(issuer.asked) == 1
    clock.now_ms += 1_000
    second = shown(credentials)
    assert second != first
    clock.now_ms += 999_000
    issuer.answer = 503, {}, b"busy hunter2"
    with caplog.at_level(logging.WARNING):
        assert shown(credentials) == second
    assert "the old one serves" in caplog.text
    assert "hunter2" not in caplog.text
    clock.now_ms += 1_000
    with pytest.raises(AuthenticationFailed, match="status 503"):
        credentials.new_exchange()


def test_a_refusal_is_told_without_secrets_and_not_tried_again(
    issuer: AuthorizationServer, authority: Authority, tmp_path: Path
) -> None:
    tls = trusting(authority, tmp_path)
    with pytest.raises(AuthenticationFailed) as refused:
        BearerCredentials(login(issuer.token_url, tls, client_secret="hunter3"), Clock()).new_exchange()
    assert "status 401, error 'invalid_client'" in str(refused.value)
    assert "hunter" not in str(refused.value)
    assert len(issuer.asked) == 1
    issuer.answer = 500, {}, b""
    with pytest.raises(AuthenticationFailed, match="status 500"):
        BearerCredentials(login(issuer.token_url, tls), Clock()).new_exchange()
    assert len(issuer.asked) == 4  # behind 1 and 2 milliseconds


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "no access_token"),
        (b"[1]", "no access_token"),
        (b"[" * 100_000, "no access_token"),
        (b'{"access_token": " "}', "no access_token"),
        (b'{"access_token": 5}', "no access_token"),
        (json.dumps({"access_token": "a.b"}).encode(), "three parts"),
        (json.dumps({"access_token": "a b"}).encode(), "no token"),
        (json.dumps({"access_token": signed(rsa_key(), {"alg": "RS256"}, claims(exp=None))}).encode(), "'exp'"),
        (json.dumps({"access_token": signed(rsa_key(), {"alg": "RS256"}, claims(sub=None))}).encode(), "'sub'"),
        (b"x" * (MAX_BYTES + 1), "larger than"),
    ],
)
def test_an_answer_without_a_token_is_refused(
    issuer: AuthorizationServer, authority: Authority, tmp_path: Path, body: bytes, reason: str
) -> None:
    issuer.answer = 200, {}, body
    with pytest.raises(AuthenticationFailed, match=reason):
        BearerCredentials(login(issuer.token_url, trusting(authority, tmp_path)), Clock()).new_exchange()


def test_a_certificate_that_is_not_trusted_ends_the_request(issuer: AuthorizationServer, tmp_path: Path) -> None:
    with pytest.raises(AuthenticationFailed, match="certificate is not trusted"):
        BearerCredentials(login(issuer.token_url, trusting(Authority.root(), tmp_path)), Clock()).new_exchange()
    assert issuer.asked == []


class Elsewhere(Authority):
    """Its servers have certificates of another host."""

    def server(self, name: str = "CN=elsewhere", **options: Any) -> Credential:
        return super().server(name, **options, hosts=OTHER_HOSTS)


def test_a_name_that_is_not_in_the_certificate_ends_the_request(authority: Authority, tmp_path: Path) -> None:
    """Also where the check of host names is switched off for brokers."""
    path = write_pem_trust(tmp_path / "trusted.pem", authority)
    given = {"ssl.truststore.location": str(path), "ssl.truststore.type": "PEM"}
    tls = TlsSettings.of({**given, "ssl.endpoint.identification.algorithm": ""})
    elsewhere = Elsewhere(authority.key, authority.certificate)
    with running(AuthorizationServer(b"{}"), elsewhere, tmp_path) as issuer:
        with pytest.raises(AuthenticationFailed, match="certificate is not trusted: Hostname mismatch"):
            BearerCredentials(login(issuer.token_url, tls), Clock()).new_exchange()
        with pytest.raises(FetchFailed, match="certificate is not trusted: Hostname mismatch"):
            read_document(JwksAddress("key", issuer.keys_url, 1, 0, 0, tls))
    assert issuer.asked == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(issuer: AuthorizationServer, authority: Authority, status: int) -> None:
    issuer.answer = status, {"Location": issuer.keys_url}, b""
    with pytest.raises(FetchFailed, match="redirects are not followed"):
        fetch(issuer.keys_url, context(authority))
    assert issuer.asked == ["/keys"]


@contextmanager
def dripping(authority: Authority, directory: Path, first: bytes, *, handshakes: bool = True) -> Iterator[int]:
    """A server that sends the first bytes, and then one more now and again for as long as the client stays."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(write_pem(directory / "dripping.pem", authority.server()))
    gone = threading.Event()

    def serve() -> None:
        accepted, _ = listening.accept()
        try:
            with tls.wrap_socket(accepted, server_side=True) if handshakes else accepted as secured:
                secured.sendall(first)
                while not gone.wait(0.02):
                    secured.sendall(b"x")
        except OSError:
            pass  # the client has gone, as it should
        finally:
            gone.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        assert gone.wait(10), "the client stays"
        thread.join()


@pytest.mark.parametrize(
    ("first", "handshakes"),
    [
        (b"", True),
        (b"HTTP/1.1 200 OK\r\nX: ", True),
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFF\r\n", True),
        (b"\x16\x03\x03\x40\x00", False),
    ],
    ids=["nothing", "a header", "a body without an end", "a body", "a chunk", "a handshake"],
)
def test_a_server_that_answers_in_drops_has_a_deadline(
    authority: Authority, tmp_path: Path, first: bytes, handshakes: bool
) -> None:
    with (
        dripping(authority, tmp_path, first, handshakes=handshakes) as port,
        pytest.raises(FetchFailed, match=r"within 0\.3 s"),
    ):
        fetch(f"https://localhost:{port}/", context(authority), total_timeout_s=0.3)


@pytest.mark.parametrize(
    "first", [b"SSH-2.0-x\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200]
)
def test_what_is_no_http_is_said(authority: Authority, tmp_path: Path, first: bytes) -> None:
    with dripping(authority, tmp_path, first) as port, pytest.raises(FetchFailed, match="no HTTP"):
        fetch(f"https://localhost:{port}/", context(authority), total_timeout_s=5)


def test_nobody_listens(authority: Authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(FetchFailed, match="cannot be reached: Connection refused"):
        fetch(f"https://localhost:{port}/", context(authority))


def test_a_token_is_read_from_a_file_when_it_is_needed(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "token"
    credentials = BearerCredentials(Login(FileLogin(str(path)), {}), clock)
    with pytest.raises(AuthenticationFailed, match="cannot be read: No such file"):
        credentials.new_exchange()
    path.write_text(f" {token()}\n")
    assert shown(credentials) == token()
    path.write_text(token(NOW_S + 800))
    assert shown(credentials) == token()
    clock.now_ms += 800_000
    assert shown(credentials) == token(NOW_S + 800)


def test_what_is_no_file_with_a_token_is_said(tmp_path: Path) -> None:
    def refused(path: Path) -> str:
        with pytest.raises(AuthenticationFailed) as error:
            BearerCredentials(Login(FileLogin(str(path)), {}), Clock()).new_exchange()
        return str(error.value)

    assert "is not a file" in refused(tmp_path)
    assert "is not a file" in refused(Path("/dev/zero"))
    os.mkfifo(tmp_path / "pipe")
    assert "is not a file" in refused(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * 100_000)
    assert "is larger than" in refused(tmp_path / "large")
    (tmp_path / "bytes").write_bytes(b"\xff.\xff.\xff")
    assert "no token" in refused(tmp_path / "bytes")


def test_tokens_that_are_made_need_no_thread(tmp_path: Path) -> None:
    made = BearerCredentials(Login(UnsecuredLogin({"sub": "a"}), {}), Clock())
    assert not made.is_blocking
    assert shown(made) == shown(made)
    assert BearerCredentials(Login(FileLogin(str(tmp_path)), {}), Clock()).is_blocking


def test_a_fetch_that_hangs_holds_nobody_who_gives_up(authority: Authority, tmp_path: Path) -> None:
    async def give_up(port: int) -> bool:
        slow = login(f"https://localhost:{port}/", trusting(authority, tmp_path), read_timeout_ms=400, backoff_max_ms=0)
        with trio.move_on_after(0.05) as scope:
            await _new_exchange(BearerCredentials(slow, Clock()))
        return scope.cancelled_caught

    with dripping(authority, tmp_path, b"") as port:
        assert trio.run(give_up, port)
