"""The body of a request, up to a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Receive


class BodyTooLarge(Exception):
    """A body has more bytes than it may have."""


class ClientGone(Exception):
    """The client left before its request was whole."""


async def read_body(receive: Receive, most_bytes: int) -> bytes:
    """Raises BodyTooLarge, ClientGone."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        body += message.get("body", b"")
        if len(body) > most_bytes:
            raise BodyTooLarge
        if not message.get("more_body", False):
            return bytes(body)
