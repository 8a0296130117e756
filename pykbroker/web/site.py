"""A site: the ASGI application of one listener, which leads each path to whom it belongs.

A site answers those alone who call the node by one of its names (`callers`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from .answers import answer_text, header, refuses_method
from .callers import KnownNames, host_name

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_LONGEST_SHOWN: Final = 100


class Site:
    """An application. pages: by path, which they have alone. otherwise: has all other paths; None for nobody."""

    def __init__(self, names: KnownNames, pages: Mapping[str, ASGIApp], otherwise: ASGIApp | None = None) -> None:
        self._names = names
        self._pages = pages
        self._otherwise = otherwise or self._nothing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        if scope["type"] != "http":
            return
        host = header(scope, b"host")
        if not self._names.has(host):
            await answer_text(send, 403, f"this node has no name {_shown(host_name(host or ''))}: see console.hosts")
            return
        await self._pages.get(scope["path"], self._otherwise)(scope, receive, send)

    async def _nothing(self, scope: Scope, receive: Receive, send: Send) -> None:
        await answer_text(send, 404, f"there is {', '.join(self._pages)} here, and no {_shown(scope['path'])}")


def page(methods_of: ASGIApp) -> ASGIApp:
    """Return an application that refuses all methods but GET and HEAD."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if not await refuses_method(scope, send, ("GET", "HEAD")):
            await methods_of(scope, receive, send)

    return checked


def _shown(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text[:_LONGEST_SHOWN])
