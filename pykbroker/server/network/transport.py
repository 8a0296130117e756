"""A transport is a seam: what a connection and a listener need of the network, without sockets.

`socket_transport` holds the real one, `pykbroker.sim.network` the simulated one, and `tls_transport` one that encrypts
what another one carries; all pass the same contract test. A
transport raises `trio.BrokenResourceError` where the peer has gone, and `trio.ClosedResourceError` after `close()`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import trio


class Address(NamedTuple):
    """An address is a host and a port; its text is as Kafka's logs show it."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class File(Protocol):
    """A file has bytes that may go out without a copy."""

    @property
    def path(self) -> str: ...

    def fileno(self) -> int | None:
        """The descriptor of a real file; None where there is none, as on a simulated disk."""
        ...


class FileRegion(Protocol):
    """A region is bytes that still lie in a file; `pykbroker.storage.log.log.LogSlice` is one."""

    @property
    def file(self) -> File: ...
    @property
    def position(self) -> int: ...
    @property
    def size(self) -> int: ...
    def read(self) -> bytes: ...


NextTurn: TypeAlias = Callable[[], Awaitable[None]]
"""Returns in a later round of the loop, when it is the caller's turn."""

Part: TypeAlias = bytes | bytearray | memoryview | FileRegion


class Transport(Protocol):
    """A transport is one byte stream to one peer. One task receives, one task sends; they may be the same."""

    @property
    def peer(self) -> Address: ...

    @property
    def local(self) -> Address | None:
        """Return this end of the connection, as the peer has reached it; None where it cannot be told any more."""
        ...

    @property
    def waits_for_peer(self) -> int:
        """Return how often `send` had to wait until the peer took bytes; it tells a slow peer from a stuck one."""
        ...

    def receive_now(self, view: memoryview) -> int | None:
        """Fill `view` from what has arrived: the count, 0 at the end of the stream, None where nothing is there yet."""
        ...

    async def wait_readable(self) -> None:
        """Return once `receive_now` has something to say. It may return early."""
        ...

    def has_peer_left(self) -> bool:
        """Tell whether the peer sends no more, or is not there at all; also where it sent more that nobody has read."""
        ...

    def peek(self, size: int) -> bytes | None:
        """Return up to `size` of the bytes that `receive_now` gives next: b"" at the end of the stream, None where
        nothing is there yet.
        """
        ...

    async def receive_into(self, view: memoryview) -> int:
        """`receive_now`, waiting until there is something; 0 at the end of the stream."""
        ...

    async def send(self, parts: Sequence[Part], next_turn: NextTurn = trio.lowlevel.checkpoint) -> None:
        """Send all parts in their order. Waits as long as the peer does not take them: that is the back-pressure.

        next_turn: is awaited between two pieces of what is large.
        """
        ...

    def send_now(self, data: bytes) -> int:
        """Send what the peer takes without a wait, from the front: the count. Nobody may be in `send` meanwhile."""
        ...

    def close(self) -> None:
        """Close at once; whoever waits on this transport gets `trio.ClosedResourceError`."""
        ...


class Acceptor(Protocol):
    """An acceptor is a port that is listened on."""

    @property
    def address(self) -> Address: ...

    async def accept(self) -> Transport:
        """Raises `OSError` where the process may not open another connection; whoever knocks still waits then."""
        ...

    def accept_now(self) -> Transport | None:
        """`accept` without waiting; None where nobody knocks."""
        ...

    def close(self) -> None: ...


class Network(Protocol):
    """A network listens on ports and connects to those of others."""

    async def listen(self, host: str, port: int) -> Acceptor:
        """An empty host is every interface, port 0 any free port. Raises `OSError`."""
        ...

    async def connect(self, host: str, port: int) -> Transport:
        """Raises `OSError` where nobody answers."""
        ...
