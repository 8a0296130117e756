"""`/metrics` as an ASGI application, whose nursery is that of its server."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import trio

from pykbroker.web.answers import answer_text, header
from pykbroker.web.site import page

from .scrape import Exposition, ScrapeFailed, Scrapes

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from pykbroker.server.node.node import Node
    from pykbroker.server.runtime.loop_monitor import LoopMonitor

_AT_ONCE: Final = 8
"""Answers on their way; a scraper that does not read keeps one for some seconds."""
_PORTION_BYTES: Final = 256 * 1024


def metrics_page(node: Node, monitor: Callable[[], LoopMonitor | None], nursery: trio.Nursery) -> ASGIApp:
    """Return the application. monitor: tells the monitor of the loop, None before it watches."""
    scrapes = Scrapes(node, monitor, nursery)
    at_once = trio.CapacityLimiter(_AT_ONCE)

    async def metrics(scope: Scope, receive: Receive, send: Send) -> None:
        accept, encodings = header(scope, b"accept") or "", header(scope, b"accept-encoding") or ""
        async with at_once:
            try:
                exposition = await scrapes.exposition(accept, encodings)
            except ScrapeFailed:
                await answer_text(send, 500, "the metrics cannot be read: the log of the node says why")
            else:
                await _send(send, exposition)

    return page(metrics)


async def _send(send: Send, exposition: Exposition) -> None:
    body, headers = exposition.body, [(b"content-type", exposition.content_type.encode())]
    headers.append((b"content-length", b"%d" % len(body)))
    headers.append((b"vary", b"accept, accept-encoding"))
    headers += [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
    if exposition.is_compressed:
        headers.append((b"content-encoding", b"gzip"))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for start in range(0, len(body), _PORTION_BYTES):
        part = body[start : start + _PORTION_BYTES]
        await send({"type": "http.response.body", "body": part, "more_body": start + len(part) < len(body)})
