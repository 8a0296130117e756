"""The loopback address, by whose names alone a broker's control is asked."""

from __future__ import annotations

from typing import Final

from pykbroker.web.callers import LOOPBACK

_MOST_PORT: Final = 65535


class BadAddress(ValueError):
    """An address where no control can be; the message is one line."""


def checked(address: str) -> str:
    """Return `HOST:PORT`, of this machine; it may be given as a URL. Raises BadAddress."""
    place = address.removeprefix("http://").removesuffix("/")
    host, _, port = place.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port[:6]) <= _MOST_PORT:
        raise BadAddress(f"'{address}' is no HOST:PORT")
    if host.strip("[]") not in LOOPBACK:
        raise BadAddress(f"control is on 127.0.0.1 alone, not on '{host}': ask it on its own machine")
    return place
