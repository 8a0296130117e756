"""Commands at addresses where no broker answers that they can use: one line says who does."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from pykbroker.cli.secure.authority import broker_certificate, new_authority

from .conftest import Outcome

Call = Callable[..., Outcome]


class Answering(BaseHTTPRequestHandler):
    """Says yes to all questions, and nothing to the log."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        del format, arguments


@pytest.fixture
def web() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_an_http_server_is_told_as_one(call: Call, web: str) -> None:
    done = call(f"topics --list --bootstrap-server {web}")
    assert done == Outcome(1, "", f"Error: No broker can be reached ({web}: an HTTP server answers: HTTP/1.0 200 OK)\n")


def test_a_broker_behind_one_that_is_none_is_found(call: Call, web: str, bootstrap: str) -> None:
    assert call(f"topics --list --bootstrap-server {web},{bootstrap}").code == 0


def test_a_listener_without_tls_is_told_to_a_client_with_it(call: Call, bootstrap: str, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=SSL\n")
    done = call(f"topics --list --command-config {config}")
    assert done.err == (
        f"Error: No broker can be reached ({bootstrap}: the listener speaks no TLS, so security.protocol has to be "
        "PLAINTEXT and not SSL)\n"
    )


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[str]:
    """An address where TLS is spoken, and nothing is said."""
    certified = broker_certificate(new_authority(datetime.now(UTC)), ["127.0.0.1"], datetime.now(UTC))
    (tmp_path / "all.pem").write_bytes(certified.key_pem + certified.certificate_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "all.pem")
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                stream, _ = listening.accept()
            except OSError:
                return
            with stream:
                try:
                    context.wrap_socket(stream, server_side=True).close()
                except OSError:
                    continue

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"127.0.0.1:{listening.getsockname()[1]}"
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()


def test_a_listener_with_tls_is_told_to_a_client_without(call: Call, encrypted: str) -> None:
    done = call(f"topics --list --bootstrap-server {encrypted}")
    assert done.err == (
        f"Error: No broker can be reached ({encrypted}: the listener speaks TLS, so --command-config FILE has to say "
        "security.protocol=SSL, or SASL_SSL)\n"
    )
