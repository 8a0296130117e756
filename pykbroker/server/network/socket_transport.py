"""TCP sockets are behind `Transport`: non-blocking first, then a wait in Trio; log slices go out by `sendfile`.

The module uses plain non-blocking sockets and `trio.lowlevel`: a stream object, a cancel scope or a lock per connection
would cost more memory than the rest of an idle connection.
"""

from __future__ import annotations

import errno
import os
import select
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import trio

from pykbroker.storage.files.errors import DiskFailed

from ..runtime.threads import Threads
from .page_cache import uncached_extent, warm
from .region_reads import read_region
from .transport import Address, FileRegion, NextTurn, Part

_PEER_LEFT: int = getattr(select, "POLLRDHUP", 0)
"""Hang-ups and errors are always told; where the system lacks this flag, a peer that merely closed its end is not."""
_MSG_MORE: int = getattr(socket, "MSG_MORE", 0)
_IOV_MAX = 512
_RESIDENCY_WINDOW_BYTES = 1 << 20
_COPIED_BYTES = 16 * 1024
"""Up to this size a region is copied into the bytes around it: one system call and one packet instead of three."""
_COPIED_AT_ONCE_BYTES = 64 * 1024


_SENT_AT_ONCE_BYTES = 256 * 1024
"""While the peer reads, one call goes on for as long as there is something to send: ten megabytes took 20 ms."""

SEND_BUFFER_BYTES = 640 * 1024
"""Linux takes twice as much, so that the megabyte that a consumer fetches of a partition goes out in one call, and
nobody wakes up for its rest. What it would pick itself takes more; then one side rests while the other one works.
"""


LISTEN_BACKLOG = 1024
"""Kafka's default of 50 overflows while one task accepts and serves; a client that is dropped there tries again after a
second, then after two, and so on."""


@dataclass(frozen=True, slots=True)
class SocketOptions:
    """The options of a listener's sockets. A buffer size of -1 leaves it to the operating system, which then fits it to
    the traffic.
    """

    send_buffer_bytes: int = SEND_BUFFER_BYTES  # socket.send.buffer.bytes
    receive_buffer_bytes: int = -1  # socket.receive.buffer.bytes
    listen_backlog: int = LISTEN_BACKLOG  # socket.listen.backlog.size


class SocketTransport:
    """The transport is one TCP connection."""

    __slots__ = ("_fd", "_socket", "_threads", "peer", "waits_for_peer", "when_closing")

    def __init__(self, connected: socket.socket, peer: Address, threads: Threads) -> None:
        self._socket = connected
        self._fd = connected.fileno()
        self._threads = threads
        self.peer = peer
        self.waits_for_peer = 0
        self.when_closing: Callable[[], None] | None = None
        """Is called before the socket is closed (`lane`)."""

    @property
    def descriptor(self) -> int:
        """The socket's; negative where it is closed."""
        return self._socket.fileno()

    @property
    def is_closed(self) -> bool:
        return self._socket.fileno() < 0

    def duplicate(self) -> socket.socket:
        """Return another handle of the connection, which stays for its peer as long as one of them is open."""
        return self._socket.dup()

    @property
    def local(self) -> Address | None:
        try:
            return _address(self._socket.getsockname())
        except OSError:  # closed, or some systems' answer once the peer has gone
            return None

    def receive_now(self, view: memoryview) -> int | None:
        try:
            return self._socket.recv_into(view)
        except BlockingIOError:
            return None
        except OSError as error:
            raise self._gone() from error

    async def wait_readable(self) -> None:
        if self._socket.fileno() < 0:
            raise trio.ClosedResourceError
        await trio.lowlevel.wait_readable(self._socket)

    def has_peer_left(self) -> bool:
        if self._socket.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._fd, _PEER_LEFT)
        return bool(poll.poll(0))

    def peek(self, size: int) -> bytes | None:
        try:
            return self._socket.recv(size, socket.MSG_PEEK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    async def receive_into(self, view: memoryview) -> int:
        while (count := self.receive_now(view)) is None:
            await self.wait_readable()
        return count

    async def send(self, parts: Sequence[Part], next_turn: NextTurn = trio.lowlevel.checkpoint) -> None:
        if len(parts) == 1 and isinstance(only := parts[0], bytes) and len(only) <= _SENT_AT_ONCE_BYTES:
            try:  # most answers, which leave in one call
                sent = self._socket.send(only)
            except BlockingIOError:
                sent = 0
                await self._wait_writable()
            except OSError as error:
                raise self._gone() from error
            if sent < len(only):
                await self._send_at_once([memoryview(only)[sent:]], len(only) - sent, 0)
            return
        pending: list[bytes | bytearray | memoryview] = []
        copied, waits = 0, self.waits_for_peer
        for part in parts:
            if isinstance(part, (bytes, bytearray, memoryview)):
                pending.append(part)
            elif part.size <= _COPIED_BYTES:
                if copied > _COPIED_AT_ONCE_BYTES:  # the peer may take its time, and has nobody's memory for it
                    await self._send_bytes(pending, _MSG_MORE, next_turn)
                    if waits == self.waits_for_peer:  # nor does a peer that takes everything at once starve others
                        await trio.lowlevel.checkpoint()
                    pending, copied, waits = [], 0, self.waits_for_peer
                pending.append(await read_region(part, self._threads))
                copied += part.size
            else:
                if pending:
                    await self._send_bytes(pending, _MSG_MORE, next_turn)
                    pending = []
                await self._send_region(part, next_turn)
        if pending:
            await self._send_bytes(pending, 0, next_turn)

    def send_now(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._gone() from error

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            if self.when_closing is not None:
                self.when_closing()
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()

    async def _send_bytes(self, pieces: list[bytes | bytearray | memoryview], flags: int, next_turn: NextTurn) -> None:
        size = sum(map(len, pieces))
        if size <= _SENT_AT_ONCE_BYTES and len(pieces) <= _IOV_MAX:
            await self._send_at_once(pieces, size, flags)
            return
        for group, group_size in _groups(pieces):
            size -= group_size
            await self._send_at_once(group, group_size, _MSG_MORE if size else flags)
            if size:  # a peer that takes everything at once must not starve others, nor many peers that wake up at once
                await next_turn()

    async def _send_at_once(self, pieces: list[bytes | bytearray | memoryview], size: int, flags: int) -> None:
        while True:
            try:
                sent = self._socket.sendmsg(pieces, (), flags)
            except BlockingIOError:
                await self._wait_writable()
                continue
            except OSError as error:
                raise self._gone() from error
            size -= sent
            if not size:
                return
            pieces = _without_first_bytes(pieces, sent)

    async def _send_region(self, region: FileRegion, next_turn: NextTurn) -> None:
        descriptor = region.file.fileno()
        if descriptor is None:
            await self._send_bytes([region.read()], 0, next_turn)
            return
        position, end = region.position, region.position + region.size
        resident_until = position
        waits = -1
        while position < end:
            if resident_until < end and resident_until - position < _RESIDENCY_WINDOW_BYTES // 2:
                if waits == self.waits_for_peer:  # a peer that takes everything at once must not starve others
                    await trio.lowlevel.checkpoint()
                waits = self.waits_for_peer
                window_end = min(end, resident_until + _RESIDENCY_WINDOW_BYTES)
                try:
                    await self._bring_into_page_cache(descriptor, resident_until, window_end)
                except OSError as error:
                    raise DiskFailed("read", region.file.path, error) from error
                resident_until = window_end
            try:
                sent = os.sendfile(self._fd, descriptor, position, resident_until - position)
            except BlockingIOError:
                await self._wait_writable()
                continue
            except OSError as error:
                if error.errno == errno.EIO:  # the file's, no socket has it
                    raise DiskFailed("read", region.file.path, error) from error
                raise self._gone() from error
            if sent == 0:
                # The header has promised these bytes: nothing but closing keeps the stream honest.
                raise trio.BrokenResourceError(f"the log file ends before {end}")
            position += sent
            if position < resident_until:  # the buffer is full
                await self._wait_writable()

    async def _bring_into_page_cache(self, descriptor: int, position: int, end: int) -> None:
        cold = uncached_extent(descriptor, position, end)
        if cold is not None:
            await self._threads.run(warm, descriptor, *cold)

    async def _wait_writable(self) -> None:
        if self._socket.fileno() < 0:
            raise trio.ClosedResourceError
        await trio.lowlevel.wait_writable(self._socket)
        self.waits_for_peer += 1

    def _gone(self) -> Exception:
        return trio.ClosedResourceError() if self._socket.fileno() < 0 else trio.BrokenResourceError()


def _groups(
    pieces: Sequence[bytes | bytearray | memoryview],
) -> Iterator[tuple[list[bytes | bytearray | memoryview], int]]:
    """The pieces in their order and the bytes of each group, each of them small enough for one call."""
    group: list[bytes | bytearray | memoryview] = []
    size = 0
    for piece in pieces:
        rest = memoryview(piece)
        while len(rest) > _SENT_AT_ONCE_BYTES - size:
            taken = _SENT_AT_ONCE_BYTES - size
            yield [*group, rest[:taken]], _SENT_AT_ONCE_BYTES
            rest, group, size = rest[taken:], [], 0
        group.append(rest)
        size += len(rest)
        if len(group) == _IOV_MAX:
            yield group, size
            group, size = [], 0
    if group:
        yield group, size


def _without_first_bytes(
    pieces: Sequence[bytes | bytearray | memoryview], count: int
) -> list[bytes | bytearray | memoryview]:
    for index, piece in enumerate(pieces):
        if count < len(piece):
            return [memoryview(piece)[count:], *pieces[index + 1 :]]
        count -= len(piece)
    return []


class SocketAcceptor:
    """The acceptor is one listening TCP socket."""

    def __init__(self, listening: socket.socket, options: SocketOptions, threads: Threads) -> None:
        self._socket = listening
        self._options = options
        self._threads = threads
        self.address = _address(listening.getsockname())

    async def accept(self) -> SocketTransport:
        while (accepted := self.accept_now()) is None:
            await trio.lowlevel.wait_readable(self._socket)
        return accepted

    def accept_now(self) -> SocketTransport | None:
        while True:
            try:
                connected, peer = self._socket.accept()
            except BlockingIOError:
                return None
            except ConnectionAbortedError:
                continue  # gone before we came to it
            except OSError as error:
                if self._socket.fileno() < 0:
                    raise trio.ClosedResourceError from error
                raise
            _set_options(connected, self._options)
            return SocketTransport(connected, _address(peer), self._threads)

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()

    def close_of_child(self) -> None:
        """Close what a forked child has inherited, outside of any loop. The parent goes on to listen."""
        self._socket.close()


class SocketNetwork:
    """The network is TCP on this machine's interfaces."""

    def __init__(self, options: SocketOptions, threads: Threads) -> None:
        self._options = options
        self._threads = threads

    async def listen(self, host: str, port: int) -> SocketAcceptor:
        family, address = await _resolve(host, port, passive=True)
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setblocking(False)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6 and not host:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            if self._options.receive_buffer_bytes > 0:  # before listen: it bounds the window that is offered
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._options.receive_buffer_bytes)
            listening.bind(address)
            listening.listen(self._options.listen_backlog)
        except BaseException:
            listening.close()
            raise
        return SocketAcceptor(listening, self._options, self._threads)

    async def connect(self, host: str, port: int) -> SocketTransport:
        family, address = await _resolve(host, port, passive=False)
        connecting = trio.socket.socket(family, socket.SOCK_STREAM)
        try:
            await connecting.connect(address)
        except BaseException:
            connecting.close()
            raise
        connected = socket.socket(fileno=connecting.detach())
        _set_options(connected, self._options)
        return SocketTransport(connected, _address(connected.getpeername()), self._threads)


def _set_options(connected: socket.socket, options: SocketOptions) -> None:
    connected.setblocking(False)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if options.send_buffer_bytes > 0:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.send_buffer_bytes)


async def _resolve(host: str, port: int, *, passive: bool) -> tuple[socket.AddressFamily, tuple[str, int]]:
    if not host:
        return (socket.AF_INET6, ("::", port)) if _has_ipv6() else (socket.AF_INET, ("0.0.0.0", port))  # noqa: S104 - as asked
    flags = socket.AI_PASSIVE if passive else 0
    found = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)  # as Java: IPv4 first
    family, _, _, _, address = found[0]
    return family, address  # type: ignore[return-value]


def _has_ipv6() -> bool:
    if not socket.has_ipv6:
        return False
    try:
        socket.socket(socket.AF_INET6, socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True


def _address(name: tuple[str | int, ...]) -> Address:
    return Address(str(name[0]).removeprefix("::ffff:"), int(name[1]))
