"""Knocks at peers that are no Kafka, or no peers at all."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

import pytest
import trio

from pykbroker.doctor import knocking, streams
from pykbroker.doctor.access import Access
from pykbroker.doctor.knocking import knock
from pykbroker.doctor.knocks import Knock, Outcome

PLAIN = Access("PLAINTEXT", None, None)

Serve = Callable[[trio.SocketStream], Awaitable[None]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that stays silent is given up soon."""
    for module in (knocking, streams):
        monkeypatch.setattr(module, "STEP_S", 0.3)


def knock_at(serve: Serve, access: Access = PLAIN) -> Knock:
    async def run() -> Knock:
        async with trio.open_nursery() as nursery:
            [listener] = await nursery.start(lambda task_status: _listen(serve, task_status))
            found = await knock("127.0.0.1", listener.socket.getsockname()[1], access)
            nursery.cancel_scope.cancel()
        return found

    with_deadline: Knock = trio.run(run)
    return with_deadline


async def _listen(serve: Serve, task_status: trio.TaskStatus[list[trio.SocketListener]]) -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    await trio.serve_listeners(serve, listeners, task_status=task_status)


async def _http(stream: trio.SocketStream) -> None:
    """Answers a line, as HTTP servers do, and is silent until it has one."""
    received = b""
    while b"\n" not in received:
        received += (more := await stream.receive_some())
        if not more:
            return
    await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def _closes(stream: trio.SocketStream) -> None:
    await stream.aclose()


async def _silent(stream: trio.SocketStream) -> None:
    await trio.sleep_forever()


async def _ssh(stream: trio.SocketStream) -> None:
    await stream.send_all(b"SSH-2.0-OpenSSH_9.7\r\n")
    await trio.sleep_forever()


@pytest.mark.parametrize(
    ("serve", "outcome", "detail"),
    [
        (_http, Outcome.NOT_KAFKA, "an HTTP server answers: HTTP/1.1 400 Bad Request"),
        (_closes, Outcome.CLOSED, ""),
        (_silent, Outcome.SILENT, ""),
        (_ssh, Outcome.NOT_KAFKA, "it answers: SSH-2.0-OpenSSH_9.7"),
    ],
)
def test_what_is_no_broker(serve: Serve, outcome: Outcome, detail: str) -> None:
    found = knock_at(serve)
    assert (found.outcome, found.detail) == (outcome, detail)


def test_nobody_listens() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        found = trio.run(knock, "127.0.0.1", held.getsockname()[1], PLAIN)
    assert (found.outcome, found.detail) == (Outcome.REFUSED, "Connection refused")


@pytest.mark.parametrize("host", ["broker.invalid", "a..b", "x" * 300])
def test_a_name_without_an_address(host: str) -> None:
    assert trio.run(knock, host, 9092, PLAIN).outcome is Outcome.UNRESOLVED
