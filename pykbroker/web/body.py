"""The body of a request, up to a bound in bytes and in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from starlette.types import Receive


LONGEST_S: Final = 30.0
"""A body is whole within this time: whoever sends a byte now and then must not keep a connection."""


class BodyTooLarge(Exception):
    """A body has more bytes than it may have."""


class ClientGone(Exception):
    """The client left before its request was whole, or takes too long to send it."""


async def read_body(receive: Receive, most_bytes: int) -> bytes:
    """Return the whole body. Raises BodyTooLarge, ClientGone."""
    with trio.move_on_after(LONGEST_S):
        return await _read(receive, most_bytes)
    raise ClientGone


async def _read(receive: Receive, most_bytes: int) -> bytes:
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
