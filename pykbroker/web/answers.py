"""Short answers in text, and the checks of a request that need no framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import Scope, Send

_TEXT: Final = "text/plain; charset=utf-8"


async def answer(
    send: Send, status: int, body: bytes, content_type: str, more: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """Send a whole answer. more: further headers."""
    headers = [(b"content-type", content_type.encode()), (b"content-length", b"%d" % len(body)), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def answer_text(send: Send, status: int, text: str, more: Sequence[tuple[bytes, bytes]] = ()) -> None:
    """Send one line of text."""
    headers = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"), *more]
    await answer(send, status, f"{text}\n".encode(), _TEXT, headers)


def header(scope: Scope, name: bytes) -> str | None:
    """Return the value of a request's header, whose name is in lower case; None where it has none."""
    headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
    return next((value.decode("latin-1") for key, value in headers if key.lower() == name), None)


async def refuses_method(scope: Scope, send: Send, methods: Sequence[str]) -> bool:
    """Answer a request whose method is not among these, and tell whether that was done."""
    if scope["method"] in methods:
        return False
    allowed = ", ".join(methods)
    await answer_text(send, 405, f"this path takes {allowed} alone", [(b"allow", allowed.encode())])
    return True
