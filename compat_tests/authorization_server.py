"""An authorization server on the loopback: it publishes its keys, and gives tokens to whoever knows a client's secret.

It speaks TLS with a certificate of a test's own authority. What it answers may be changed while it runs, and it counts
what it is asked.
"""

from __future__ import annotations

import json
import ssl
import threading
import urllib.parse
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from compat_tests.certificates import Authority
from compat_tests.key_stores import write_pem

KEYS_PATH = "/keys"
TOKEN_PATH = "/token"


@dataclass(slots=True)
class AuthorizationServer:
    """Its answers. document: at `/keys`. clients: names and secrets of those that get tokens.

    token: makes one for the name of a client. answer: stands for all others where it is set: status, headers, body.
    """

    document: bytes
    clients: dict[str, str] = field(default_factory=dict)
    token: Callable[[str], str] = lambda name: ""
    answer: tuple[int, dict[str, str], bytes] | None = None
    asked: list[str] = field(default_factory=list)
    forms: list[dict[str, list[str]]] = field(default_factory=list)
    port: int = 0

    @property
    def keys_url(self) -> str:
        return f"https://localhost:{self.port}{KEYS_PATH}"

    @property
    def token_url(self) -> str:
        return f"https://localhost:{self.port}{TOKEN_PATH}"

    def reply(self, path: str, authorization: str, form: bytes) -> tuple[int, dict[str, str], bytes]:
        self.asked.append(path)
        if self.answer is not None:
            return self.answer
        if path == KEYS_PATH:
            return 200, {"Content-Type": "application/json"}, self.document
        if path != TOKEN_PATH:
            return 404, {}, b""
        given = urllib.parse.parse_qs(form.decode())
        self.forms.append(given)
        name, _, secret = b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if given.get("grant_type") != ["client_credentials"]:
            return 400, {}, json.dumps({"error": "unsupported_grant_type"}).encode()
        if not name or self.clients.get(name) != secret:
            return 401, {}, json.dumps({"error": "invalid_client", "error_description": secret}).encode()
        return 200, {}, json.dumps({"access_token": self.token(name), "token_type": "Bearer"}).encode()


@contextmanager
def running(server: AuthorizationServer, authority: Authority, directory: Path) -> Iterator[AuthorizationServer]:
    """Serve until the end of the body."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(write_pem(directory / "authorization-server.pem", authority.server()))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply(b"")

        def do_POST(self) -> None:
            self._reply(self.rfile.read(int(self.headers["Content-Length"])))

        def _reply(self, form: bytes) -> None:
            status, headers, body = server.reply(self.path, self.headers.get("Authorization", ""), form)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nobody reads it."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Clients that go away, or do not trust the certificate, are what tests are about."""

        def finish_request(self, request: Any, client_address: Any) -> None:
            with context.wrap_socket(request, server_side=True) as secured:
                super().finish_request(secured, client_address)

    with Server(("127.0.0.1", 0), Handler) as listening:
        server.port = listening.server_address[1]
        thread = threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()
