"""The ASGI application of a console: the pages' files, log-in, and the endpoints of the API.

A request for the API goes this way: another site's page is refused, then one without a session where the broker has
users; then a change where the console is read-only. Its work ends when its time is over or its browser has gone. Every
failure is JSON with Kafka's name of the error and one line.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pykbroker.client.errors import AuthenticationRefused, ClientError, ConnectionLost, NoBrokerReachable
from pykbroker.config import ConfigurationError
from pykbroker.error_groups import first_of
from pykbroker.web.body import ClientGone

from .attempts import Attempts
from .checks import HEADERS, Refused, check_changer, check_reader
from .cookie import clearing, setting, token_of
from .endpoint import MOST_BODY_BYTES, Arguments, Asking, Download, Endpoint, Events, Json, Threads
from .endpoints import ENDPOINTS
from .event_stream import EventStream
from .failures import failure, of_error
from .given import arguments_of, body_of
from .json_texts import encoded
from .login import Login, TooManyAttempts
from .own_broker import OwnBroker
from .sessions import Session, Sessions
from .settings import ConsoleSettings
from .static_files import SHELL, StaticFiles

_log = logging.getLogger(__name__)

AT_ONCE: Final = 16
"""Requests in hand; more of them wait."""
MOST_STREAMS: Final = 32
MOST_STREAMS_OF_ONE: Final = 4
"""Of one browser: it has six connections to a host at the most, and a page that finds none of them free would hang."""
FETCHES_AT_ONCE: Final = 4
"""Each may bring a record of a hundred megabytes."""
MOST_DOWNLOADS: Final = 4
_LONGEST_BROWSER: Final = 64
_CHUNK_BYTES: Final = 256 * 1024


class ConsoleApplication:
    """A console of one broker. `run` must run as long as `asgi` is called."""

    def __init__(
        self, settings: ConsoleSettings, threads: Threads, endpoints: tuple[Endpoint, ...] = ENDPOINTS
    ) -> None:
        self._settings = settings
        self._threads = threads
        self._files = StaticFiles()
        self._broker = OwnBroker(settings, threads)
        self.sessions: Final = Sessions()
        self._login = Login(self._broker, self.sessions, Attempts())
        self._everybody: Session | None = None
        self._at_once = trio.CapacityLimiter(AT_ONCE)
        self._fetches = trio.CapacityLimiter(FETCHES_AT_ONCE)
        self._streams: Counter[str] = Counter()
        """By what browsers call themselves, all with the same name together."""
        self._downloads = 0
        self.asgi: Final[ASGIApp] = self._application(endpoints)

    @property
    def open_streams(self) -> int:
        """The number of live streams."""
        return self._streams.total()

    async def run(self) -> None:
        """End sessions in time, until cancelled."""
        try:
            await self.sessions.run()
        finally:
            if self._everybody is not None:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
                    await self._everybody.cluster.__aexit__(None, None, None)

    def _application(self, endpoints: tuple[Endpoint, ...]) -> Starlette:
        application = Starlette(
            routes=[
                Route("/api/session", _answering(self._tell_session), methods=["GET"]),
                Route("/api/session", _answering(self._log_in), methods=["POST"]),
                Route("/api/session", _answering(self._log_out), methods=["DELETE"]),
                *(Route(f"/api{each.path}", self._endpoint(each), methods=[each.method]) for each in endpoints),
                Route("/static/{path:path}", self._file, methods=["GET"]),
                Route("/favicon.ico", self._icon, methods=["GET"]),
                Route("/{path:path}", self._page, methods=["GET"]),
            ],
            exception_handlers={HTTPException: _no_such_thing},
        )
        application.router.redirect_slashes = False
        return application

    # ---- files

    async def _file(self, request: Request) -> Response:
        path = request.path_params["path"]
        return self._files.answer(request, path) or _failed(404, "NOT_FOUND", f"there is no /static/{path}")

    async def _icon(self, request: Request) -> Response:
        return self._files.answer(request, "icon.svg") or _failed(404, "NOT_FOUND", "there is no icon")

    async def _page(self, request: Request) -> Response:
        path = request.path_params["path"]
        if path == "api" or path.startswith("api/"):
            return _failed(404, "NOT_FOUND", f"there is no /{path}")
        return self._files.answer(request, SHELL) or _failed(500, "UNKNOWN_SERVER_ERROR", "the pages are not installed")

    # ---- sessions

    async def _tell_session(self, request: Request) -> Response:
        check_reader(request)
        session = self._session(request)
        return _json(
            {
                "needs_login": self._settings.needs_login,
                "logs_in_by": [] if session is not None else await self._login.ways(),
                "is_logged_in": session is not None,
                "user": None if session is None else session.user,
                "is_read_only": self._settings.is_read_only,
            }
        )

    async def _log_in(self, request: Request) -> Response:
        check_changer(request)
        if not self._settings.needs_login:
            raise Refused(409, "ILLEGAL_SASL_STATE", "the broker has no users that log in")
        given = Arguments(await body_of(request, MOST_BODY_BYTES))
        address = "" if request.client is None else request.client.host
        try:
            with trio.fail_after(30):
                if given.has("token"):
                    text = given.text("token", longest=MOST_BODY_BYTES)
                    user, token = await self._login.log_in_by_token(text, address)
                else:
                    user = given.text("user")
                    token = await self._login.log_in(user, given.text("password"), address)
        except TooManyAttempts as error:
            headers = {"retry-after": str(int(error.wait_s))}
            raise Refused(429, "TOO_MANY_ATTEMPTS", str(error), headers) from None
        except AuthenticationRefused:
            what = "token" if given.has("token") else "name and password"
            raise Refused(401, "SASL_AUTHENTICATION_FAILED", f"the broker does not take this {what}") from None
        except (NoBrokerReachable, ConnectionLost):
            self._explain()
            raise
        await self.sessions.end(token_of(request))  # of whoever had this browser before
        _log.info("a user logged in to the console: %r", user)
        response = _json({"user": user})
        setting(response, request, token)
        return response

    async def _log_out(self, request: Request) -> Response:
        check_changer(request)
        await self.sessions.end(token_of(request))
        response = _json({})
        clearing(response, request)
        return response

    def _explain(self) -> None:
        """Raises Refused where it is known what keeps the console from its broker."""
        if self._settings.why_unreachable:
            raise Refused(503, "BROKER_NOT_AVAILABLE", self._settings.why_unreachable)

    def _session(self, request: Request) -> Session | None:
        if self._settings.needs_login:
            return self.sessions.find(token_of(request))
        if self._everybody is None:
            cluster = self._broker.cluster(None)
            self._everybody = Session(None, cluster, lambda: self._broker.cluster(None), 0.0, 0.0, 0.0)
        return self._everybody

    # ---- endpoints

    def _endpoint(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            if endpoint.is_change:
                check_changer(request)
            else:
                check_reader(request)
            session = self._session(request)
            if session is None:
                raise Refused(401, "SASL_AUTHENTICATION_FAILED", "log in first")
            if endpoint.is_change and self._settings.is_read_only:
                raise Refused(403, "READ_ONLY", "this console changes nothing: console.read.only is set")
            given = await arguments_of(request, endpoint.most_body_bytes)
            asking = Asking(
                session.user, session.cluster, session.new_cluster, self._settings, self._threads, self._fetches
            )
            if endpoint.is_stream:
                return self._stream(endpoint, session, asking, given)
            try:
                return await self._done(request, endpoint, session, asking, given)
            except AuthenticationRefused:  # the user is gone, or has another password
                await self.sessions.end(token_of(request))
                raise
            except (NoBrokerReachable, ConnectionLost):
                self._explain()
                raise

        return _answering(answer)

    async def _done(
        self, request: Request, endpoint: Endpoint, session: Session, asking: Asking, given: Arguments
    ) -> Response:
        async def work() -> Response:
            with trio.fail_after(endpoint.longest_s):  # the wait for others included
                async with self._at_once:
                    value: Json | Download = await endpoint.work()(asking, given)
                if isinstance(value, Download):
                    return self._download(value)
                return _json_bytes(await self._threads.run(encoded, value))

        return await _unless_gone(request, session.over, work)

    def _download(self, download: Download) -> Response:
        if self._downloads >= MOST_DOWNLOADS:
            raise Refused(429, "TOO_MANY_STREAMS", "too many downloads are under way: try again")
        self._downloads += 1
        return _DownloadResponse(download, self._download_has_ended)

    def _download_has_ended(self) -> None:
        self._downloads -= 1

    def _stream(self, endpoint: Endpoint, session: Session, asking: Asking, given: Arguments) -> Response:
        browser = given.text("browser", "", longest=_LONGEST_BROWSER)
        of_one = session.streams if self._settings.needs_login else self._streams[browser] if browser else 0
        if of_one >= MOST_STREAMS_OF_ONE:
            raise Refused(
                429, "TOO_MANY_STREAMS", f"this browser has {of_one} live pages: close one of them to open another"
            )
        if self.open_streams >= MOST_STREAMS:
            raise Refused(429, "TOO_MANY_STREAMS", "too many live pages are open: close one of them")
        self._streams[browser] += 1
        session.streams += 1

        async def work(events: Events) -> None:
            await endpoint.work()(asking, given, events)

        return _StreamResponse(EventStream(work, session.over), lambda: self._stream_has_ended(session, browser))

    def _stream_has_ended(self, session: Session, browser: str) -> None:
        session.streams -= 1
        self._streams[browser] -= 1
        if not self._streams[browser]:
            del self._streams[browser]


class _StreamResponse(Response):
    def __init__(self, stream: EventStream, ended: Callable[[], None]) -> None:
        super().__init__()
        self._stream = stream
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._stream(scope, receive, send)
        finally:
            self._ended()


class _DownloadResponse(Response):
    """A file, sent in pieces: a browser that is slow, or goes, holds nothing but the file."""

    def __init__(self, download: Download, ended: Callable[[], None]) -> None:
        super().__init__()
        self._file = download
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        content = self._file.content
        headers = {
            "content-type": "application/octet-stream",
            "content-disposition": f'attachment; filename="{self._file.name}"',
            "content-length": str(len(content)),
            "cache-control": "no-store",
            **HEADERS,
        }
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        try:
            await send({"type": "http.response.start", "status": 200, "headers": raw})
            for at in range(0, len(content), _CHUNK_BYTES):
                await send({"type": "http.response.body", "body": content[at : at + _CHUNK_BYTES], "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._ended()


def _answering(work: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint of Starlette whose failures are answers."""

    async def endpoint(request: Request) -> Response:
        try:
            return await work(request)
        except Refused as refused:
            return _failed(refused.status, refused.name, str(refused), refused.headers)
        except ClientError as error:
            status, body = of_error(error)
            return _json(body, status)
        except ConfigurationError as error:
            return _failed(500, "INVALID_CONFIG", str(error))
        except trio.TooSlowError:
            return _failed(504, "REQUEST_TIMED_OUT", "the cluster did not answer in time")
        except ClientGone:
            return Response(status_code=400)
        except Exception as error:  # a bug of ours: the log has it, the page a line
            _log.exception("a request to the console has failed: %s %s", request.method, request.scope["path"][:200])
            return _failed(
                500, "UNKNOWN_SERVER_ERROR", f"the broker's log says what has failed ({type(error).__name__})"
            )

    return endpoint


async def _unless_gone(request: Request, over: trio.Event, work: Callable[[], Awaitable[Response]]) -> Response:
    """Return what `work` returns; when the browser goes, or its session ends, the work is given up.

    Raises ClientGone, Refused, and the work's errors.
    """
    found: list[Response] = []
    failures: list[Exception] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_cancel_when_gone, request, nursery.cancel_scope)
        nursery.start_soon(_cancel_when_over, over, nursery.cancel_scope)
        try:
            found.append(await work())
        except* Exception as group:
            failures.append(first_of(group))
        nursery.cancel_scope.cancel()
    if failures:
        raise failures[0]
    if not found and over.is_set():
        raise Refused(401, "SASL_AUTHENTICATION_FAILED", "the session has ended: log in again")
    if not found:
        raise ClientGone
    return found[0]


async def _cancel_when_gone(request: Request, scope: trio.CancelScope) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _cancel_when_over(over: trio.Event, scope: trio.CancelScope) -> None:
    await over.wait()
    scope.cancel()


def _json(value: Json, status: int = 200) -> Response:
    return _json_bytes(encoded(value), status)


def _json_bytes(body: bytes, status: int = 200) -> Response:
    return Response(body, status, {"cache-control": "no-store", **HEADERS}, "application/json")


def _failed(status: int, name: str, message: str, headers: dict[str, str] | None = None) -> Response:
    response = _json(failure(name, message), status)
    response.headers.update(headers or {})
    return response


async def _no_such_thing(request: Request, error: Any) -> Response:
    what = "takes other methods alone" if error.status_code == 405 else "is not there"
    return _failed(error.status_code, "NOT_FOUND", f"{request.scope['path'][:100]} {what}")
