"""Servers in a thread, whose applications are a few lines of ASGI."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from pykbroker.testing.loop_thread import LoopThread
from pykbroker.web.address import WebAddress
from pykbroker.web.server import MOST_CONNECTIONS, WebServer
from pykbroker.web.sockets import listen

Application = Callable[[Any, Any, Any], Any]
Serve = Callable[..., WebServer]


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    thread = LoopThread("web")
    thread.start()
    yield thread
    thread.stop()


@pytest.fixture
def serve(loop: LoopThread) -> Serve:
    def start(application: Application, *, most_connections: int = MOST_CONNECTIONS) -> WebServer:
        server = WebServer(
            listen(WebAddress("127.0.0.1", 0)), lambda nursery: application, most_connections=most_connections
        )

        async def run() -> None:
            await loop.nursery.start(server.run)

        loop.call(run)
        return server

    return start


def ask(
    server: WebServer,
    path: str,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection(str(server.address), timeout=20)) as connection:
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read()


def connect(server: WebServer) -> socket.socket:
    return socket.create_connection((server.address.host, server.address.port), timeout=20)
