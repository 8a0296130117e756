"""The HTTP of a broker's control: each operation is a route, whose answer is JSON, or a stream.

Who may ask: programs of this machine, since nothing else reaches the loopback address. Pages in a browser may not:
their requests name another origin, or another host where a name was made to lead here (DNS rebinding). Where the broker
knows who its users are, a token is needed as well (`token_file`).
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import trio
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pykbroker.control.control import Control

from .operation import BadRequest, Farewell, Json, Operation, Stream

T = TypeVar("T")

MOST_BODY_BYTES: Final = 1024 * 1024
AT_ONCE: Final = 32
"""Requests in hand; more of them wait."""
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class _Refused(HTTPException):
    pass


class ControlApplication:
    """The ASGI application. token: None where none is asked for."""

    def __init__(self, control: Control, operations: Sequence[Operation], token: str | None = None) -> None:
        self._control = control
        self._operations = operations
        self._token = token
        self._at_once = trio.CapacityLimiter(AT_ONCE)
        self.asgi: Final = Starlette(
            routes=[
                Route("/", self._overview, methods=["GET"]),
                *(Route(_route(each.path), self._endpoint(each), methods=[each.method]) for each in operations),
            ],
            exception_handlers={HTTPException: _refusal, ValueError: _bad_request},
        )

    def _endpoint(self, operation: Operation) -> Any:
        work = operation.work()

        async def endpoint(request: Request) -> Response:
            self._check(request)
            arguments = operation.arguments(await _given(request))

            async def answer() -> Json | Stream | Farewell:
                async with self._at_once:
                    return await work(self._control, arguments)

            result = await _unless_gone(request, answer)
            if isinstance(result, Stream):
                return StreamingResponse(result.parts, media_type=result.content_type)
            if isinstance(result, Farewell):
                return JSONResponse(result.answer, background=BackgroundTask(result.then))
            return JSONResponse(result)

        return endpoint

    async def _overview(self, request: Request) -> Response:
        self._check(request)
        found = [{"method": each.method, "path": each.path, "summary": each.summary} for each in self._operations]
        return JSONResponse({"operations": found})

    def _check(self, request: Request) -> None:
        """Raises HTTPException for who may not ask."""
        host = request.headers.get("host", "")
        if urlsplit(f"//{host}").hostname not in _LOOPBACK:
            raise _Refused(403, "control answers those who call it by a loopback address")
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            raise _Refused(403, "control answers no page of another origin")
        if self._token is not None:
            given = request.headers.get("authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
                raise _Refused(401, "control asks for the token of --ctl-token-file: Authorization: Bearer …")


def _route(path: str) -> str:
    """Return a path as Starlette has it: its parameters may have slashes, as the names of groups do."""
    return path.replace("}", ":path}")


async def _unless_gone(request: Request, work: Callable[[], Awaitable[T]]) -> T:
    """Return what `work` returns; when the client goes, it is given up. Raises HTTPException then, and its errors."""
    found: list[T] = []
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_cancel_when_gone, request, nursery.cancel_scope)
        try:
            found.append(await work())
        except Exception as error:
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if not found:
        raise _Refused(400, "the client has gone")
    return found[0]


async def _cancel_when_gone(request: Request, scope: trio.CancelScope) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _given(request: Request) -> Mapping[str, Any]:
    """Return what a request says by its path, its query and its body. Raises BadRequest, HTTPException."""
    given: dict[str, Any] = {**request.query_params, **request.path_params}
    body = await _body(request)
    if not body:
        return given
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise _Refused(415, "a body is JSON: Content-Type: application/json")
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise BadRequest("the body is a JSON object of parameters")
    return given | fields


async def _body(request: Request) -> bytes:
    body = bytearray()
    try:
        async with aclosing(request.stream()) as parts:
            async for part in parts:
                body += part
                if len(body) > MOST_BODY_BYTES:
                    raise _Refused(413, f"a body has {MOST_BODY_BYTES} bytes at most")
    except ClientDisconnect:
        raise _Refused(400, "the client has gone") from None
    return bytes(body)


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, status_code=error.status_code)


async def _bad_request(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, status_code=400)
