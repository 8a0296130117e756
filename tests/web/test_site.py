"""Sites: which path belongs to whom, and what is refused before that."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import Any

import pytest
import trio
import trio.testing

from pykbroker.web.answers import answer_text
from pykbroker.web.body import LONGEST_S, BodyTooLarge, ClientGone, read_body
from pykbroker.web.callers import KnownNames
from pykbroker.web.site import Site, page

from .conftest import Serve, ask, connect


async def greeting(scope: Any, receive: Any, send: Any) -> None:
    await answer_text(send, 200, f"hello {scope['path']}")


async def measure(scope: Any, receive: Any, send: Any) -> None:
    try:
        await answer_text(send, 200, str(len(await read_body(receive, 100_000))))
    except BodyTooLarge:
        await answer_text(send, 413, "too large")


def test_a_page_has_its_path_and_other_paths_belong_to_another(serve: Serve) -> None:
    server = serve(Site(KnownNames([]), {"/page": page(greeting)}, greeting))
    assert ask(server, "/page") == (200, b"hello /page\n")
    assert ask(server, "/other?x=1") == (200, b"hello /other\n")
    assert ask(server, "/page", "DELETE") == (405, b"this path takes GET, HEAD alone\n")


def test_without_another_the_pages_that_are_there_are_told(serve: Serve) -> None:
    server = serve(Site(KnownNames([]), {"/a": greeting, "/b": greeting}))
    assert ask(server, "/c%1b%5b2J" + "x" * 500) == (404, b"there is /a, /b here, and no /c?[2J" + b"x" * 94 + b"\n")


def test_another_name_is_refused_before_anything_else(serve: Serve) -> None:
    server = serve(Site(KnownNames(["here"]), {"/a": greeting}, greeting))
    for path in ("/a", "/x"):
        assert ask(server, path, headers={"Host": "evil.example"})[0] == 403
        assert ask(server, path, headers={"Host": "here:1"})[0] == 200


def test_a_body_has_a_bound_however_it_comes(serve: Serve) -> None:
    server = serve(measure)
    assert ask(server, "/", "POST", body=b"x" * 100_000) == (200, b"100000\n")
    assert ask(server, "/", "POST", body=b"x" * 100_001)[0] == 413
    with closing(connect(server)) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(1_000):
                client.sendall(b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n")
        except ConnectionError:
            pass  # it is told before all is sent
        assert _first_line(client) in (b"HTTP/1.1 413 ", b"")
    assert ask(server, "/", "POST", body=b"x") == (200, b"1\n")


def test_a_body_that_comes_a_byte_at_a_time_is_given_up() -> None:
    async def main() -> None:
        async def receive() -> Any:
            await trio.sleep(LONGEST_S / 3)
            return {"type": "http.request", "body": b"x", "more_body": True}

        began_s = trio.current_time()
        with pytest.raises(ClientGone):
            await read_body(receive, 100_000)
        assert trio.current_time() - began_s == pytest.approx(LONGEST_S)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_a_websocket_is_refused(serve: Serve) -> None:
    server = serve(Site(KnownNames([]), {"/a": greeting}))
    with closing(connect(server)) as client:
        client.sendall(
            b"GET /a HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        assert _first_line(client).split()[1] == b"403"
    assert ask(server, "/a")[0] == 200


def _first_line(client: socket.socket) -> bytes:
    try:
        return client.makefile("rb").readline().rstrip(b"\r\n")
    except ConnectionError:
        return b""
