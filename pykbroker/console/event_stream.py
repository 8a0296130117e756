"""Live events to one browser (Server-Sent Events): they end at once when it leaves, and their number is bounded."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import trio
from starlette.types import Receive, Scope, Send

from pykbroker.client.errors import ClientError

from .checks import HEADERS
from .endpoint import Events, Json
from .failures import failure, of_error
from .json_texts import encoded

_log = logging.getLogger(__name__)

SIGN_OF_LIFE_S: Final = 10.0
LONGEST_S: Final = 3600.0
"""A stream ends after an hour; a browser that still listens opens another one."""


class EventStream:
    """An ASGI answer, whose events come from `work`. over: set when the session ends."""

    def __init__(self, work: Callable[[Events], Awaitable[None]], over: trio.Event) -> None:
        self._work = work
        self._over = over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {"content-type": "text/event-stream", "cache-control": "no-store", **HEADERS}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        events = _Sender(send)
        async with trio.open_nursery() as nursery:
            nursery.cancel_scope.deadline = trio.current_time() + LONGEST_S
            nursery.start_soon(_until_gone, receive, nursery.cancel_scope)
            nursery.start_soon(_until_over, self._over, nursery.cancel_scope)
            nursery.start_soon(events.show_life)
            await self._run(events)
            nursery.cancel_scope.cancel()
        with trio.move_on_after(1):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _run(self, events: _Sender) -> None:
        try:
            await self._work(events)
            await events.send("end", {})
        except ClientError as error:
            await events.send("failure", of_error(error)[1])
        except Exception:
            _log.exception("a live stream of the console has failed")
            await events.send("failure", failure("UNKNOWN_SERVER_ERROR", "the broker's log says what has failed"))


class _Sender:
    """The events of one stream, one after the other."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._lock = trio.Lock()

    async def send(self, event: str, value: Json) -> None:
        await self._write(b"event: " + event.encode() + b"\ndata: " + encoded(value) + b"\n\n")

    async def show_life(self) -> None:
        """Write a comment every few seconds: a browser that is not there any more is noticed."""
        while True:
            await self._write(b": \n\n")
            await trio.sleep(SIGN_OF_LIFE_S)

    async def _write(self, body: bytes) -> None:
        async with self._lock:
            await self._send({"type": "http.response.body", "body": body, "more_body": True})


async def _until_gone(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _until_over(over: trio.Event, scope: trio.CancelScope) -> None:
    await over.wait()
    scope.cancel()
