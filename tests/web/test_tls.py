"""HTTPS of a web server: its certificate, who breaks off a handshake, and a certificate that is renewed."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from compat_tests.certificates import Authority
from compat_tests.key_stores import write_pem, write_pem_trust
from pykbroker.config import ConfigurationError
from pykbroker.testing.loop_thread import LoopThread
from pykbroker.web.address import WebAddress
from pykbroker.web.answers import answer_text
from pykbroker.web.server import MOST_CONNECTIONS, WebServer
from pykbroker.web.sockets import listen
from pykbroker.web.tls import WebTls

from .conftest import connect

Serve = Callable[[WebTls], WebServer]


async def scheme(scope: Any, receive: Any, send: Any) -> None:
    await answer_text(send, 200, scope["scheme"])


async def flood(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.root()


@pytest.fixture
def store(authority: Authority, tmp_path: Path) -> Path:
    return write_pem(tmp_path / "server.pem", authority.server())


@pytest.fixture
def trusting(authority: Authority, tmp_path: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(write_pem_trust(tmp_path / "ca.pem", authority)))


@pytest.fixture
def serve(loop: LoopThread) -> Callable[..., WebServer]:
    def start(tls: WebTls, application: Any = scheme) -> WebServer:
        server = WebServer(listen(WebAddress("127.0.0.1", 0)), lambda nursery: application, tls=tls)

        async def run() -> None:
            await loop.nursery.start(server.run)

        loop.call(run)
        return server

    return start


def tls_of(store: Path, **more: str) -> WebTls:
    return WebTls({"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store), **more}, "console.")


def ask(server: WebServer, trusting: ssl.SSLContext) -> tuple[bytes, int]:
    """What the server answers, and the number of its certificate."""
    address = (server.address.host, server.address.port)
    with closing(http.client.HTTPSConnection(*address, timeout=20, context=trusting)) as connection:
        connection.request("GET", "/")
        assert isinstance(connection.sock, ssl.SSLSocket)
        shown = connection.sock.getpeercert()
        assert shown is not None
        return connection.getresponse().read(), int(str(shown["serialNumber"]), 16)


def test_requests_come_by_https(serve: Serve, store: Path, trusting: ssl.SSLContext) -> None:
    assert ask(serve(tls_of(store)), trusting)[0] == b"https\n"


def test_the_listeners_own_store_wins(
    serve: Serve, authority: Authority, store: Path, tmp_path: Path, trusting: ssl.SSLContext
) -> None:
    own = authority.server("CN=console,O=Example")
    tls = tls_of(store, **{"console.ssl.keystore.location": str(write_pem(tmp_path / "own.pem", own))})
    assert ask(serve(tls), trusting)[1] == own.certificate.serial_number


def test_a_store_that_cannot_be_read_is_one_line_with_its_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^[^\n]*console\.ssl\.keystore\.location[^\n]*$"):
        tls_of(tmp_path / "server.pem", **{"console.ssl.keystore.location": str(tmp_path / "none.pem")})
    with pytest.raises(ConfigurationError, match=r"^[^\n]*has no key store: console\.ssl\.keystore\.location[^\n]*$"):
        WebTls({}, "console.")


def test_browsers_are_asked_for_certificates_by_the_listeners_own_key_alone(
    serve: Serve, authority: Authority, store: Path, tmp_path: Path, trusting: ssl.SSLContext
) -> None:
    trust = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(write_pem_trust(tmp_path / "trust.pem", authority)),
        "ssl.client.auth": "required",
    }
    assert ask(serve(tls_of(store, **trust)), trusting)[0] == b"https\n"
    asking = serve(tls_of(store, **trust, **{"console.ssl.client.auth": "required"}))
    with pytest.raises((ssl.SSLError, OSError, http.client.HTTPException)):
        ask(asking, trusting)
    trusting.load_cert_chain(write_pem(tmp_path / "client.pem", authority.client()))
    assert ask(asking, trusting)[0] == b"https\n"


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01" + b"\0" * 2000, b"\0", b""])
def test_whoever_speaks_no_tls_ends_its_connection_alone(
    serve: Serve, store: Path, trusting: ssl.SSLContext, sent: bytes
) -> None:
    server = serve(tls_of(store))
    with closing(connect(server)) as client, suppress(ConnectionResetError):
        client.sendall(sent)
        client.shutdown(1)
        while client.recv(1000):
            pass
    assert ask(server, trusting)[0] == b"https\n"


def test_a_browser_without_https_is_told_what_to_type(serve: Serve, store: Path) -> None:
    server = serve(tls_of(store))
    with closing(http.client.HTTPConnection(str(server.address), timeout=20)) as connection:
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (400, b"this address speaks HTTPS alone: begin it with https://\n")


def test_the_end_does_not_wait_for_clients_that_do_not_read(
    serve: Callable[..., WebServer], loop: LoopThread, store: Path, trusting: ssl.SSLContext
) -> None:
    server = serve(tls_of(store), flood)
    client = trusting.wrap_socket(connect(server), server_hostname="localhost")
    with client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(10) == b"HTTP/1.1 2"
        loop.stop()


def test_a_certificate_that_is_renewed_is_shown_without_a_start(
    serve: Serve,
    loop: LoopThread,
    authority: Authority,
    store: Path,
    trusting: ssl.SSLContext,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tls = tls_of(store)
    server = serve(tls)
    before = ask(server, trusting)[1]
    store.write_text("no certificate")
    loop.call(tls.look)
    assert "the certificate over HTTPS stays what it was" in caplog.text
    assert ask(server, trusting)[1] == before
    renewed = authority.server()
    write_pem(store, renewed)
    loop.call(tls.look)
    assert ask(server, trusting)[1] == renewed.certificate.serial_number


def test_silent_clients_do_not_keep_others_from_their_handshake(
    serve: Serve, store: Path, trusting: ssl.SSLContext
) -> None:
    server = serve(tls_of(store))
    with ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS - 1):
            stack.enter_context(closing(connect(server)))
        assert ask(server, trusting)[0] == b"https\n"
