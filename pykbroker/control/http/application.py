"""The HTTP of a broker's control: each operation is a route, whose answer is JSON, or a stream.

Who may ask: programs of this machine, since nothing else reaches the loopback address. Pages in a browser may not:
their requests name another origin or site, or another host where a name was made to lead here (DNS rebinding). Where
the broker knows who its users are, a token is needed as well (`token_file`).
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, TypeVar

import trio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from pykbroker.control.control import Control
from pykbroker.web.body import BodyTooLarge, ClientGone, read_body
from pykbroker.web.callers import LOOPBACK, host_name, is_of_another_origin, is_of_another_site

from .operation import BadRequest, Farewell, Json, Operation, Parameter, Stream

T = TypeVar("T")

MOST_BODY_BYTES: Final = 1024 * 1024
AT_ONCE: Final = 32
"""Requests in hand; more of them wait."""


class _Refused(HTTPException):
    pass


class _StreamAnswer(StreamingResponse):
    """An answer in parts, whose source is closed when nobody takes more of them."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream.parts, media_type=stream.content_type)
        self._parts = stream.parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._parts):  # type: ignore[type-var]  # each is a generator
            await super().__call__(scope, receive, send)


class _FarewellAnswer(JSONResponse):
    """An answer behind which something is done, whether or not it arrives."""

    def __init__(self, farewell: Farewell) -> None:
        super().__init__(farewell.answer)
        self._then = farewell.then

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._then()


class ControlApplication:
    """The ASGI application. token: None where none is asked for."""

    def __init__(self, control: Control, operations: Sequence[Operation], token: str | None = None) -> None:
        self._control = control
        self._operations = operations
        self._token = token
        self._at_once = trio.CapacityLimiter(AT_ONCE)
        self._routes = [
            Route("/", self._overview, methods=["GET"]),
            *(Route(_route(each.path), self._endpoint(each), methods=[each.method]) for each in operations),
        ]
        self.asgi: Final = Starlette(
            routes=self._routes,
            exception_handlers={
                HTTPException: self._refusal,
                ValueError: _bad_request,
                TimeoutError: _not_done,
                Exception: _own_fault,
            },
        )
        self.asgi.router.redirect_slashes = False

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
                return _StreamAnswer(result)
            if isinstance(result, Farewell):
                return _FarewellAnswer(result)
            return JSONResponse(result)

        return endpoint

    async def _overview(self, request: Request) -> Response:
        self._check(request)
        return JSONResponse({"operations": [_told(each) for each in self._operations]})

    def _check(self, request: Request) -> None:
        """Raises HTTPException for who may not ask."""
        host = request.headers.get("host", "")
        if host_name(host) not in LOOPBACK:
            raise _Refused(403, "control answers those who call it by a loopback address")
        origin = request.headers.get("origin")
        if is_of_another_origin(origin, host):
            raise _Refused(403, "control answers no page of another origin")
        if is_of_another_site(request.headers.get("sec-fetch-site")):
            raise _Refused(403, "control answers no page of another site")
        if self._token is not None:
            given = request.headers.get("authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
                raise _Refused(401, "control asks for the token of --ctl-token-file: Authorization: Bearer …")

    async def _refusal(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if isinstance(error, _Refused):
            return JSONResponse({"error": error.detail}, status_code=error.status_code)
        path = request.url.path
        methods = sorted(set().union(*(each.methods or () for each in self._routes if each.path_regex.match(path))))
        what = f"{path[:100]} takes {', '.join(methods)} alone" if methods else f"there is no {path[:100]} here"
        headers = {"Allow": ", ".join(methods)} if methods else None
        answer = {"error": f"{what}; GET / lists all operations"}
        return JSONResponse(answer, status_code=error.status_code, headers=headers)


def _route(path: str) -> str:
    """Return a path as Starlette has it: its parameters may have slashes, as the names of groups do."""
    return path.replace("}", ":path}")


def _told(operation: Operation) -> Json:
    """Return what the overview tells of an operation."""
    return {
        "method": operation.method,
        "path": operation.path,
        "summary": operation.summary,
        "parameters": [_told_of_parameter(each) for each in operation.parameters],
    }


def _told_of_parameter(parameter: Parameter) -> Json:
    return {
        "name": parameter.name,
        "takes": parameter.kind.value,
        "help": parameter.help,
        "is_required": parameter.is_required,
    }


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
    given: dict[str, Any] = {}
    for name, value in (*request.path_params.items(), *request.query_params.multi_items()):
        _give(given, name, value)
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
    for name, value in fields.items():
        _give(given, name, value)
    _check_text(fields)
    return given


def _give(given: dict[str, Any], name: str, value: Json) -> None:
    if name in given:
        raise BadRequest(f"'{name}' is given twice")
    given[name] = value


def _check_text(fields: Mapping[str, Json]) -> None:
    """Raises BadRequest for halves of characters, which JSON can escape, and which nobody can write."""
    try:
        json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadRequest("the body has text with half a character (a lone surrogate)") from None


async def _body(request: Request) -> bytes:
    try:
        return await read_body(request.receive, MOST_BODY_BYTES)
    except BodyTooLarge:
        raise _Refused(413, f"a body has {MOST_BODY_BYTES} bytes at most") from None
    except ClientGone:
        raise _Refused(400, "the client has gone") from None


async def _bad_request(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, status_code=400)


async def _not_done(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, status_code=503)


async def _own_fault(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "the broker cannot answer: its log says why"}, status_code=500)
