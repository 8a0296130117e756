"""Control over HTTP: who may ask, what is refused, and how long and large things may be."""

from __future__ import annotations

import http.client
import io
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import Any

import pytest
import trio

from compat_tests.waiting import until
from pykbroker.control.control import Control
from pykbroker.control.http.application import AT_ONCE, MOST_BODY_BYTES
from pykbroker.control.http.asking import ControlClient, ControlFailed
from pykbroker.control.http.operation import BadRequest, Kind, Operation, Parameter, Stream
from pykbroker.control.http.server import HOST, ControlServer
from pykbroker.server.runtime.startup_error import StartupError
from pykbroker.testing.loop_thread import LoopThread

HERE = __name__
TOKEN = "0123456789abcdef"
PARTS = 200
PART = b"x" * 10_000

_waiting: list[trio.Event] = []


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
OPERATIONS = [ECHO, ASK, REFUSE, WAIT, STREAM]

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


def test_the_root_tells_all_operations(address: str) -> None:
    status, answer = ask(address, "/")
    assert status == 200
    assert [each["path"] for each in answer["operations"]] == [each.path for each in OPERATIONS]


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
    ],
)
def test_a_bad_request_gets_one_line(address: str, body: bytes, message: str) -> None:
    status, answer = post(address, "/echo/here", body)
    assert status == 400
    assert answer["error"].startswith(message)


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


def test_a_stream_comes_in_parts_and_who_leaves_ends_it(address: str) -> None:
    file = io.BytesIO()
    ControlClient(address).save(STREAM, {}, file)
    assert file.getvalue() == PART * PARTS
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


def test_a_port_that_is_taken_is_said() -> None:
    with closing(socket.socket()) as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StartupError, match=f"--ctl-port {port}: Address already in use"):
            ControlServer(Control(), OPERATIONS, port)


def test_a_client_says_that_nobody_answers() -> None:
    with closing(socket.socket()) as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    with pytest.raises(ControlFailed, match=r"no control answers at .*refused"):
        ControlClient(f"{HOST}:{port}").ask(ASK, {})
    with pytest.raises(ControlFailed, match="is no HOST:PORT"):
        ControlClient("nowhere:port").ask(ASK, {})


def _pair(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
