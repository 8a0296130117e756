"""Sockets that listen: one at a given address, or at the first free port of several."""

from __future__ import annotations

import errno
import socket
from typing import Final

from .address import WebAddress

BACKLOG: Final = 1_000


def listen(address: WebAddress) -> socket.socket:
    """Return a socket that listens; who connects waits until it is served. Raises OSError."""
    found = socket.getaddrinfo(
        address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
    )
    # A name that has both, as `localhost` has, is meant for IPv4.
    family, type_, protocol, _, where = next((each for each in found if each[0] == socket.AF_INET), found[0])
    listening = socket.socket(family, type_, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if not address.host else 1)
        listening.bind(where)
        listening.listen(BACKLOG)  # a port that is bound alone may be taken by somebody else, who listens first
    except BaseException:
        listening.close()
        raise
    return listening


def listen_at_first_free(host: str, ports: range) -> socket.socket | None:
    """Return a socket that listens at the first port that nobody has; None where there is none. Raises OSError."""
    for port in ports:
        try:
            return listen(WebAddress(host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    return None


def address_of(listening: socket.socket) -> WebAddress:
    """Return where a socket listens, with the port that it got."""
    host, port = listening.getsockname()[:2]
    return WebAddress(host, port)
