"""The web server: connections have bounds, and nothing that a client sends or leaves undone reaches the node."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
from contextlib import ExitStack, closing, suppress
from typing import Any

import pytest
import trio
import trio.testing

from pykbroker.testing.loop_thread import LoopThread
from pykbroker.web.address import WebAddress
from pykbroker.web.answers import answer_text
from pykbroker.web.bounded_stream import VANISHED_LIMIT_S, BoundedStream
from pykbroker.web.http import MOST_HEAD_BYTES
from pykbroker.web.server import WebServer
from pykbroker.web.sockets import listen, listen_at_first_free

from .conftest import Serve, ask, connect


async def greeting(scope: Any, receive: Any, send: Any) -> None:
    await answer_text(send, 200, "hello")


async def flood(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})


async def beginning(scope: Any, receive: Any, send: Any) -> None:
    """Begin an answer that ends with its client."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"begun", "more_body": True})
    while (await receive())["type"] != "http.disconnect":
        pass


async def fault(scope: Any, receive: Any, send: Any) -> None:
    raise KeyError("a fault of its own")


def test_what_speaks_http_is_imported_at_the_first_connection(loop: LoopThread) -> None:
    made: list[str] = []

    def application(nursery: trio.Nursery) -> Any:
        made.append("application")
        return greeting

    server = WebServer(listen(WebAddress("127.0.0.1", 0)), application)

    async def run() -> None:
        await loop.nursery.start(server.run)

    loop.call(run)
    assert made == []
    assert ask(server, "/") == (200, b"hello\n")
    assert ask(server, "/") == (200, b"hello\n")
    assert made == ["application"]


def test_a_package_that_cannot_be_imported_ends_the_connection_alone(
    loop: LoopThread, caplog: pytest.LogCaptureFixture
) -> None:
    server = WebServer(listen(WebAddress("127.0.0.1", 0)), lambda nursery: greeting, ["pykbroker.no_such_module"])

    async def run() -> None:
        await loop.nursery.start(server.run)

    loop.call(run)
    for _ in range(2):
        with closing(connect(server)) as client:
            assert client.recv(100) == b""
    assert "pykbroker.no_such_module" in caplog.text


def test_an_application_that_cannot_be_made_ends_the_connection_alone(
    loop: LoopThread, caplog: pytest.LogCaptureFixture
) -> None:
    def application(nursery: trio.Nursery) -> Any:
        raise KeyError("a fault in making it")

    server = WebServer(listen(WebAddress("127.0.0.1", 0)), application)

    async def run() -> None:
        await loop.nursery.start(server.run)

    loop.call(run)
    for _ in range(2):
        with closing(connect(server)) as client:
            assert client.recv(100) == b""
    assert "a fault in making it" in caplog.text


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GARBAGE\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400"),
        (b"GET /" + b"x" * 10 * MOST_HEAD_BYTES + b" HTTP/1.1\r\nHost: a\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 10 * MOST_HEAD_BYTES + b"\r\n\r\n", b"431"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0", b"505"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
    ],
    ids=["garbage", "no host", "two hosts", "long path", "long header", "tls", "HTTP/2", "two lengths"],
)
def test_a_malformed_request_ends_its_connection_alone(serve: Serve, sent: bytes, status: bytes) -> None:
    server = serve(greeting)
    with closing(connect(server)) as client:
        with suppress(OSError):  # the answer comes before all is read, and with it the end
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
        answer = _all(client)
        found = answer.partition(b"\r\n")[0].split()[1:2]
        # What the server has not read resets the connection, and perhaps the client does not get the answer.
        assert found == [status] or (found == [] and len(sent) > MOST_HEAD_BYTES)
    assert ask(server, "/") == (200, b"hello\n")


def test_an_offer_to_change_to_http_2_is_answered_in_http_1(serve: Serve) -> None:
    server = serve(greeting)
    offer = {"Connection": "Upgrade, HTTP2-Settings, close", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABkAAQAAP__"}
    assert ask(server, "/", headers=offer) == (200, b"hello\n")


def _all(client: socket.socket) -> bytes:
    received = bytearray()
    try:
        while part := client.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return bytes(received)


def test_an_application_that_fails_is_an_answer_and_a_line(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    server = serve(fault)
    assert ask(server, "/")[0] == 500
    assert "a fault of its own" in caplog.text
    assert ask(server, "/")[0] == 500


def test_connections_above_the_bound_wait_until_others_end(serve: Serve) -> None:
    server = serve(beginning, most_connections=3)
    with ExitStack() as stack:
        served = [stack.enter_context(closing(connect(server))) for _ in range(3)]
        for each in served:
            each.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert each.recv(1000).startswith(b"HTTP/1.1 200")
        late = stack.enter_context(closing(connect(server)))
        late.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        late.settimeout(0.2)
        with pytest.raises(TimeoutError):
            late.recv(1000)
        served[0].close()
        late.settimeout(20)
        assert late.recv(1000).startswith(b"HTTP/1.1 200")


def test_clients_that_keep_their_connections_do_not_keep_others_out(serve: Serve) -> None:
    server = serve(greeting, most_connections=8)
    with ExitStack() as stack:
        for number in range(20):
            client = stack.enter_context(closing(connect(server)))
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = client.recv(1000)
            assert answer.startswith(b"HTTP/1.1 200")
            assert (b"connection: close" in answer.lower()) == (number >= 6)


def test_two_hundred_connections_are_all_served(serve: Serve) -> None:
    server = serve(greeting)
    with ExitStack() as stack:
        clients = [stack.enter_context(closing(connect(server))) for _ in range(200)]
        for each in clients:
            each.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        for each in clients:
            assert _all(each).endswith(b"hello\n")


def test_the_end_does_not_wait_for_clients_that_do_not_read(serve: Serve, loop: LoopThread) -> None:
    server = serve(flood)
    client = connect(server)
    client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert client.recv(10) == b"HTTP/1.1 2"
    with client:
        loop.stop()
        assert len(_all(client)) > 0


@pytest.mark.parametrize("which", ["send", "silence"])
def test_whoever_does_not_read_or_says_nothing_is_hung_up_on(which: str) -> None:
    async def main() -> None:
        accepted: list[trio.SocketStream] = []
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        client = await trio.open_tcp_stream(*listeners[0].socket.getsockname())
        accepted.append(await listeners[0].accept())
        stream = BoundedStream(accepted[0], send_limit_s=5, silence_limit_s=50)
        waits = stream.send_all(b"x" * 50_000_000) if which == "send" else stream.receive_some(1000)
        with pytest.raises(trio.BrokenResourceError):
            await waits
        assert stream.socket.fileno() == -1
        await client.aclose()
        await listeners[0].aclose()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0.1))


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux has the option")
def test_the_system_ends_connections_whose_clients_vanish() -> None:
    async def main() -> None:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        client = await trio.open_tcp_stream(*listeners[0].socket.getsockname())
        stream = BoundedStream(await listeners[0].accept())
        limit_ms = stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        assert limit_ms == VANISHED_LIMIT_S * 1000
        for each in (stream, client, listeners[0]):
            await each.aclose()

    trio.run(main)


def test_nothing_that_speaks_http_is_imported_by_a_start() -> None:
    program = (
        "import sys, pykbroker.cli.start_web, pykbroker.cli.start_node, pykbroker.web.server, pykbroker.api\n"
        "print([each for each in ('hypercorn', 'h11', 'starlette', 'prometheus_client', 'pykbroker.console')"
        " if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_what_is_sent_now_and_then_is_no_silence() -> None:
    async def main() -> None:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        client = await trio.open_tcp_stream(*listeners[0].socket.getsockname())
        stream = BoundedStream(await listeners[0].accept(), silence_limit_s=50)
        async with trio.open_nursery() as nursery:
            ended = trio.Event()

            async def receive() -> None:
                with pytest.raises(trio.BrokenResourceError):
                    await stream.receive_some(1000)
                ended.set()

            nursery.start_soon(receive)
            for _ in range(5):
                await trio.sleep(40)
                await stream.send_all(b"tick")
                assert not ended.is_set()
            began_s = trio.current_time()
            await ended.wait()
            assert trio.current_time() - began_s == pytest.approx(50, abs=1)
        await client.aclose()
        await listeners[0].aclose()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0.1))


def test_the_first_free_port_of_several_is_taken() -> None:
    with listen(WebAddress("127.0.0.1", 0)) as first:
        port = first.getsockname()[1]
        assert listen_at_first_free("127.0.0.1", range(port, port + 1)) is None
        with pytest.raises(OSError, match="in use"):
            listen(WebAddress("127.0.0.1", port))
        second = listen_at_first_free("127.0.0.1", range(port, port + 20))
        assert second is not None
        with second:
            assert second.getsockname()[1] > port


def test_a_client_that_leaves_frees_its_place(serve: Serve) -> None:
    server = serve(greeting, most_connections=2)
    for _ in range(20):
        connect(server).close()
    assert ask(server, "/") == (200, b"hello\n")


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pykbroker")
