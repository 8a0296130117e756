"""Ports of this machine that are kept for nodes which may be down for a while."""

from __future__ import annotations

import socket
import sys


class ReservedPort:
    """A port that nobody else is given for as long as it is reserved, whether or not a node listens on it.

    The socket is bound and does not listen, so that a client is refused while the node is down. Raises OSError.
    """

    def __init__(self, host: str, port: int = 0) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._socket.bind((host, port))
            # Behind `bind`, which would otherwise share the port with another one that is reserved.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.port: int = self._socket.getsockname()[1]
        except BaseException:
            self._socket.close()
            raise

    def lend(self) -> None:
        """Make way for the node that is about to listen. Linux lets it bind beside; others do not."""
        if sys.platform != "linux":
            self._socket.close()

    def close(self) -> None:
        self._socket.close()
