"""Control over HTTP: who may ask, what is refused, and how long and large things may be."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import Any

import pytest
import trio
import trio.testing

from compat_tests.waiting import until
from pykbroker.control.control import Control
from pykbroker.control.http.application import AT_ONCE, MOST_BODY_BYTES
from pykbroker.control.http.asking import ControlClient, ControlFailed
from pykbroker.control.http.operation import BadRequest, Farewell, Kind, Operation, Parameter, Stream
from pykbroker.control.http.server import HOST, ControlServer
from pykbroker.server.runtime.startup_error import StartupError
from pykbroker.testing.loop_thread import LoopThread

HERE = __name__
TOKEN = "0123456789abcdef"
PARTS = 200
PART = b"x" * 10_000

_waiting: list[trio.Event] = []
_done: list[str] = []


async def echo(control: Control, arguments: Mapping[str, Any]) -> Any:
    return dict(arguments)


async def refuse(control: Control, arguments: Mapping[str, Any]) -> Any:
    raise BadRequest("not today")


async def wait(control: Control, arguments: Mapping[str, Any]) -> Any:
    released = trio.Event()
    _waiting.append(released)
    await released.wait()
    return len(_waiting)


async def stream(control: Control, arguments: Mapping[str, Any]) -> Any:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(PARTS):
            yield PART
            await trio.lowlevel.checkpoint()

    return Stream("application/octet-stream", parts())


async def flood(control: Control, arguments: Mapping[str, Any]) -> Any:
    async def parts() -> AsyncIterator[bytes]:
        while True:
            yield PART

    return Stream("application/octet-stream", parts())


async def leave(control: Control, arguments: Mapping[str, Any]) -> Any:
    """Answer when that is released, whether or not the client is there."""
    with trio.CancelScope(shield=True):
        await wait(control, arguments)
        return Farewell({}, lambda: _done.append("left"))


async def fail(control: Control, arguments: Mapping[str, Any]) -> Any:
    raise TimeoutError("not in time") if arguments.get("count") else KeyError("a fault of the broker's own")


ECHO = Operation(
    "echo",
    "POST",
    "/echo/{place}",
    "Say it again.",
    f"{HERE}:echo",
    [
        Parameter("place", "where", is_required=True),
        Parameter("count", "how many", Kind.WHOLE),
        Parameter("share", "how much", Kind.NUMBER),
        Parameter("loudly", "how", Kind.FLAG),
    ],
)
ASK = Operation("ask", "GET", "/ask", "Ask.", f"{HERE}:echo", ECHO.parameters[1:])
REFUSE = Operation("refuse", "GET", "/refuse", "Refuse.", f"{HERE}:refuse")
WAIT = Operation("wait", "GET", "/wait", "Wait.", f"{HERE}:wait")
STREAM = Operation("stream", "GET", "/stream", "Stream.", f"{HERE}:stream", is_stream=True)
FLOOD = Operation("flood", "GET", "/flood", "Send without an end.", f"{HERE}:flood", is_stream=True)
LEAVE = Operation("leave", "POST", "/leave", "Leave.", f"{HERE}:leave")
FAIL = Operation("fail", "GET", "/fail", "Fail.", f"{HERE}:fail", ECHO.parameters[1:])
OPERATIONS = [ECHO, ASK, REFUSE, WAIT, STREAM, FLOOD, LEAVE, FAIL]

Serve = Callable[[str | None], str]


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    thread = LoopThread("control")
    thread.start()
    yield thread
    thread.stop()


@pytest.fixture
def serve(loop: LoopThread) -> Serve:
    def start(token: str | None) -> str:
        server = ControlServer(Control(), OPERATIONS, 0, token)

        async def run() -> str:
            address: str = await loop.nursery.start(server.run)
            return address

        return loop.call(run)

    return start


@pytest.fixture
def address(serve: Serve) -> str:
    return serve(None)


def ask(
    address: str, path: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, Any]]:
    with closing(http.client.HTTPConnection(address, timeout=20)) as connection:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def post(address: str, path: str, body: bytes, content_type: str = "application/json") -> tuple[int, dict[str, Any]]:
    return ask(address, path, "POST", body, Content_Type=content_type)


def test_an_operation_has_what_path_query_and_body_say(address: str) -> None:
    client = ControlClient(address)
    given = {"place": "a/b c?&", "count": 3, "share": 0.5, "loudly": True}
    assert client.ask(ECHO, given) == given
    assert client.ask(ASK, {"count": 3, "share": 2, "loudly": False}) == {"count": 3, "share": 2.0, "loudly": False}
    assert ControlClient(f"http://{address}/").ask(ASK, {}) == {}


def test_the_root_tells_all_operations(address: str) -> None:
    status, answer = ask(address, "/")
    assert status == 200
    assert [each["path"] for each in answer["operations"]] == [each.path for each in OPERATIONS]
    assert answer["operations"][0]["parameters"][:2] == [
        {"name": "place", "takes": "text", "help": "where", "is_required": True},
        {"name": "count", "takes": "whole number", "help": "how many", "is_required": False},
    ]


def test_a_wrong_path_or_method_gets_one_line(address: str) -> None:
    assert ask(address, "/asc") == (404, {"error": "there is no /asc here; GET / lists all operations"})
    assert ask(address, "/ask/")[0] == 404
    refused = {"error": "/echo/here takes POST alone; GET / lists all operations"}
    assert ask(address, "/echo/here", "DELETE") == (405, refused)


def test_who_fails_says_so(address: str, caplog: pytest.LogCaptureFixture) -> None:
    assert ask(address, "/fail?count=1") == (503, {"error": "not in time"})
    assert ask(address, "/fail") == (500, {"error": "the broker cannot answer: its log says why"})
    until(lambda: "a fault of the broker's own" in caplog.text, "it is logged")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"cuont": 1}', "'cuont' is no parameter of echo; did you mean 'count'?"),
        (b'{"zzz": 1}', "'zzz' is no parameter of echo; there is place, count, share, loudly"),
        (b'{"count": "many"}', "'count' takes a whole number, not 'many'"),
        (b'{"count": 1.5}', "'count' takes a whole number, not 1.5"),
        (b'{"count": true}', "'count' takes a whole number, not True"),
        (b'{"share": []}', "'share' takes a number, not []"),
        (b'{"loudly": 1}', "'loudly' takes true or false, not 1"),
        (b"[1]", "the body is a JSON object of parameters"),
        (b"[" * 100_000, "the body is no JSON: "),
        (b"\xff", "the body is no JSON: "),
        (b'{"place": "there"}', "'place' is given twice"),
        (b'{"count": "\\ud800"}', "the body has text with half a character"),
    ],
)
def test_a_bad_request_gets_one_line(address: str, body: bytes, message: str) -> None:
    status, answer = post(address, "/echo/here", body)
    assert status == 400
    assert answer["error"].startswith(message)


def test_a_parameter_of_a_query_is_given_once(address: str) -> None:
    assert ask(address, "/ask?count=1&count=2") == (400, {"error": "'count' is given twice"})


def test_a_missing_parameter_is_named(address: str) -> None:
    with pytest.raises(BadRequest, match="echo needs 'place': where"):
        ECHO.arguments({})
    with pytest.raises(ControlFailed, match=r"^not today$"):
        ControlClient(address).ask(REFUSE, {})


def test_pages_of_a_browser_may_not_ask(address: str) -> None:
    assert ask(address, "/ask", Origin="http://pages.example")[0] == 403
    assert ask(address, "/ask", Origin="null")[0] == 403
    assert ask(address, "/ask", Host="pages.example")[0] == 403
    assert ask(address, "/ask", Host=f"pages.example:{address.rpartition(':')[2]}")[0] == 403
    assert ask(address, "/ask", Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(address, "/ask", Sec_Fetch_Site="same-site")[0] == 403
    assert ask(address, "/ask", Sec_Fetch_Site="none")[0] == 200
    assert post(address, "/echo/here", b'{"count": 1}', "text/plain")[0] == 415
    assert ask(address, "/ask", Origin=f"http://{address}")[0] == 200
    assert ask(address, "/ask", Host="localhost")[0] == 200


def test_a_token_is_asked_for_where_there_is_one(serve: Serve) -> None:
    address = serve(TOKEN)
    assert ask(address, "/ask")[0] == 401
    assert ask(address, "/")[0] == 401
    assert ask(address, "/ask", Authorization=f"Bearer {TOKEN}x")[0] == 401
    assert ask(address, "/ask", Authorization="Bearer \xe9")[0] == 401
    assert ask(address, "/ask", Authorization=f"Bearer {TOKEN}")[0] == 200
    with pytest.raises(ControlFailed, match="token"):
        ControlClient(address).ask(ASK, {})
    assert ControlClient(address, TOKEN).ask(ASK, {}) == {}


def test_what_is_too_long_is_refused(address: str) -> None:
    status, answer = post(address, "/echo/here", b" " * (MOST_BODY_BYTES + 1))
    assert (status, answer["error"]) == (413, f"a body has {MOST_BODY_BYTES} bytes at most")
    with closing(http.client.HTTPConnection(address, timeout=20)) as connection:
        connection.request("GET", "/ask?" + "x" * 100_000)
        assert connection.getresponse().status == 431
    with pytest.raises(ControlFailed, match=f"a body has {MOST_BODY_BYTES} bytes at most"):
        ControlClient(address).ask(ECHO, {"place": "x" * 10, "count": " " * (40 * MOST_BODY_BYTES)})


def test_a_stream_comes_in_parts_and_who_leaves_ends_it(address: str) -> None:
    assert b"".join(ControlClient(address).parts(STREAM, {})) == PART * PARTS
    with closing(http.client.HTTPConnection(address, timeout=20)) as connection:
        connection.request("GET", "/stream")
        connection.getresponse().read(10)
    assert ask(address, "/ask")[0] == 200


def test_so_many_are_served_at_once_and_who_leaves_makes_room(address: str) -> None:
    _waiting.clear()

    with ExitStack() as stack:
        for _ in range(AT_ONCE + 3):
            connection = stack.enter_context(closing(socket.create_connection(_pair(address), timeout=20)))
            connection.sendall(b"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: len(_waiting) == AT_ONCE, "so many are served")
    assert ask(address, "/ask")[0] == 200  # all of them have gone, whether or not they had their turn
    assert not any(event.is_set() for event in _waiting)


def test_what_follows_an_answer_is_done_though_the_client_has_gone(address: str, loop: LoopThread) -> None:
    async def release() -> None:
        _waiting[0].set()

    _done.clear()
    _waiting.clear()
    with closing(socket.create_connection(_pair(address), timeout=20)) as connection:
        connection.sendall(b"POST /leave HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        until(lambda: _waiting, "it is in hand")
    assert ask(address, "/ask")[0] == 200  # by now it is known that the client has gone
    loop.call(release)
    until(lambda: _done == ["left"], "it is done")


def test_a_client_that_does_not_read_holds_up_no_end() -> None:
    async def leave_late(client: trio.SocketStream) -> None:
        await trio.sleep(10)
        client.socket.close()

    async def main() -> None:
        async with trio.open_nursery() as late:
            async with trio.open_nursery() as nursery:
                address: str = await nursery.start(ControlServer(Control(), OPERATIONS, 0).run)
                client = await trio.open_tcp_stream(*_pair(address))
                await client.send_all(b"GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await trio.testing.wait_all_tasks_blocked(0.05)
                late.start_soon(leave_late, client)
                nursery.cancel_scope.cancel()
            assert client.socket.fileno() >= 0, "it ended when the client had left"
            late.cancel_scope.cancel()
            await client.aclose()

    trio.run(main)


@pytest.mark.parametrize(
    "headers",
    [
        b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: A\r\n",
        b"Upgrade: websocket\r\n",
        b"\xff\r\n",
    ],
    ids=["HTTP/2", "WebSocket", "nothing"],
)
def test_a_request_that_makes_no_sense_ends_its_connection_alone(address: str, headers: bytes) -> None:
    with closing(socket.create_connection(_pair(address), timeout=20)) as connection:
        connection.sendall(b"GET /ask HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + b"\r\n")
        while connection.recv(4096):
            pass
    assert ask(address, "/ask")[0] == 200


def test_a_port_that_is_taken_is_said() -> None:
    with closing(socket.socket()) as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StartupError, match=f"--ctl-port {port}: Address already in use"):
            ControlServer(Control(), OPERATIONS, port)


def test_a_port_is_taken_before_it_is_served() -> None:
    with closing(socket.socket()) as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            first = ControlServer(Control(), OPERATIONS, port)
            with pytest.raises(StartupError, match="Address already in use"):
                ControlServer(Control(), OPERATIONS, port)
            await nursery.start(first.run)
            nursery.cancel_scope.cancel()

    trio.run(main)


def test_a_client_says_that_nobody_answers() -> None:
    with closing(socket.socket()) as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    with pytest.raises(ControlFailed, match=r"no control answers at .*refused"):
        ControlClient(f"{HOST}:{port}").ask(ASK, {})


@pytest.mark.parametrize(
    "address", ["nowhere:port", "127.0.0.1", ":9644", "127.0.0.1:0", "127.0.0.1:99999", "h:1\u0663"]
)
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(ControlFailed, match=f"'{address}' is no HOST:PORT"):
        ControlClient(address)


def test_a_token_is_sent_to_no_other_machine() -> None:
    with pytest.raises(ControlFailed, match=r"control is on 127.0.0.1 alone, not on 'db1.example'"):
        ControlClient("db1.example:9644", TOKEN)


def test_an_answer_that_is_cut_off_is_told_as_such() -> None:
    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with closing(connection):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")

    with closing(socket.create_server((HOST, 0))) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        parts = ControlClient(f"{HOST}:{listener.getsockname()[1]}").parts(STREAM, {})
        with pytest.raises(ControlFailed, match=r"the answer of \S+ was cut off: "):
            assert b"".join(parts) == b"hello"
        thread.join()


def _pair(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
