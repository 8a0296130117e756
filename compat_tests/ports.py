"""Ports of the loopback interface that this process takes once and holds until it ends, for brokers that it starts.

A port that is found free and let go may be anybody's before the broker binds it, and while the broker is down between
two starts. A held port is bound and never listened on: the kernel gives it to nobody who asks for any port, neither to
servers nor to outgoing connections. Linux lets a server that sets SO_REUSEADDR, as Python, Trio and Java do, listen on
it all the same, as often as the test starts one; without a server, connections are refused.
"""

from __future__ import annotations

import os
import socket

_held: dict[int, int] = {}
"""By port, the descriptor that holds it."""


def take_ports(count: int) -> list[int]:
    return [_hold() for _ in range(count)]


def take_consecutive_ports(count: int) -> int:
    """The first of `count` ports that follow each other."""
    while True:
        taken = [_hold()]
        try:
            for port in range(taken[0] + 1, taken[0] + count):
                taken.append(_hold(port))
        except (OSError, OverflowError):
            for port in taken:
                os.close(_held.pop(port))
        else:
            return taken[0]


def _hold(port: int = 0) -> int:
    """Raises OSError where somebody has the port. SO_REUSEADDR comes after `bind`, which would otherwise share it."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", port))
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port = int(holder.getsockname()[1])
        _held[port] = holder.detach()
    return port
