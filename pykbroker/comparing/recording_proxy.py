"""A proxy between clients and the brokers of one cluster, which records answers.

Every broker that an answer names gets a port of the proxy's own, and the answer names that port, so that clients stay
behind the proxy. Requests go through as they come; of answers, those with addresses are written anew. Clients come
without TLS; brokers are asked with it where `open_stream` does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import trio

from pykbroker.client.cluster import Open, open_in_time, open_tcp
from pykbroker.protocol.api_keys import ApiKey, response_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ErrorCode, MalformedMessage
from pykbroker.protocol.framing import (
    FrameSplitter,
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_response,
)
from pykbroker.protocol.schema import Message, Struct

from .recording import Exchange, Recording

Address = tuple[str, int]

LARGEST_FRAME_BYTES: Final = 128 * 1024 * 1024
MOST_BROKERS: Final = 100
MOST_PENDING: Final = 10_000
_CHUNK_BYTES: Final = 256 * 1024
_LOOPBACK: Final = "127.0.0.1"
_UNSUPPORTED: Final = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")


class RecordingProxy:
    """The proxy of one cluster, for one run. nursery: its listeners and connections live there. open_stream: the way to
    brokers.
    """

    def __init__(self, nursery: trio.Nursery, recording: Recording, open_stream: Open = open_tcp) -> None:
        self._nursery = nursery
        self._recording = recording
        self._open_stream = open_stream
        self._ports: dict[Address, int] = {}
        self._opening = trio.Lock()

    async def stand_for(self, broker: Address) -> Address:
        """Return the address at which the proxy stands for a broker."""
        async with self._opening:
            if broker not in self._ports:
                if len(self._ports) >= MOST_BROKERS:
                    return broker
                (listener,) = await trio.open_tcp_listeners(0, host=_LOOPBACK)
                self._ports[broker] = listener.socket.getsockname()[1]
                serve: Callable[[trio.SocketStream], Awaitable[None]] = partial(self._serve, broker)
                self._nursery.start_soon(trio.serve_listeners, serve, [listener])
        return _LOOPBACK, self._ports[broker]

    async def _serve(self, broker: Address, client: trio.SocketStream) -> None:
        try:
            upstream = await open_in_time(self._open_stream, *broker)
        except OSError:
            await trio.aclose_forcefully(client)
            return
        async with client, upstream:
            await _Conversation(client, upstream, self._recording, self.stand_for).run()


class _Conversation:
    """One connection of a client, and the one to the broker that belongs to it."""

    def __init__(
        self,
        client: trio.SocketStream,
        upstream: trio.abc.Stream,
        recording: Recording,
        stand_for: Callable[[Address], Awaitable[Address]],
    ) -> None:
        self._client = client
        self._upstream = upstream
        self._recording = recording
        self._stand_for = stand_for
        self._pending: dict[int, RequestHeader] = {}
        self._client_left = False

    async def run(self) -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._until_end, nursery.cancel_scope, self._requests)
                nursery.start_soon(self._until_end, nursery.cancel_scope, self._responses)
        finally:
            if not self._client_left:
                for header in self._pending.values():
                    if header.api_key != ApiKey.PRODUCE:  # which may have been one without an answer
                        self._keep(header, None, 0)

    async def _until_end(self, scope: trio.CancelScope, pump: Callable[[], Awaitable[None]]) -> None:
        try:
            await pump()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        scope.cancel()

    async def _requests(self) -> None:
        await _each_frame(self._client, self._request)
        self._client_left = True

    async def _request(self, frame: bytes) -> None:
        try:
            header, _ = decode_request_header(frame)
        except MalformedMessage:
            pass  # a bare token of SASL, perhaps
        else:
            self._expect(header)
        await self._upstream.send_all(len(frame).to_bytes(4, "big") + frame)

    def _expect(self, header: RequestHeader) -> None:
        """Produce with acks=0 gets no answer, however many there are: the oldest gives way to what is asked now."""
        if len(self._pending) >= MOST_PENDING:
            del self._pending[next(iter(self._pending))]
        self._pending.pop(header.correlation_id, None)
        self._pending[header.correlation_id] = header

    async def _responses(self) -> None:
        await _each_frame(self._upstream, self._response)

    async def _response(self, frame: bytes) -> None:
        header = self._pending.pop(int.from_bytes(frame[:4], "big", signed=True), None)
        if header is not None:
            frame = await self._answered(header, frame)
        await self._client.send_all(len(frame).to_bytes(4, "big") + frame)

    async def _answered(self, header: RequestHeader, frame: bytes) -> bytes:
        """The frame that the client gets."""
        version = header.api_version
        if header.api_key == ApiKey.API_VERSIONS and frame[4:6] == _UNSUPPORTED:
            version = 0
        try:
            type_ = response_type(header.api_key)
            correlation_id, start = decode_response_header(frame, header.api_key, version)
            answer, end = decode(type_, version, frame, start)
        except (MalformedMessage, KeyError):
            self._recording.unread[header.api_key, header.api_version] += 1
            return frame
        if end != len(frame):
            self._recording.unread[header.api_key, header.api_version] += 1
            return frame
        self._keep(header, answer, len(frame))
        endpoints = list(_endpoints(answer))
        if not endpoints:
            return frame
        originals = [(each, each.host, each.port) for each in endpoints]
        for endpoint in endpoints:
            endpoint.host, endpoint.port = await self._stand_for((endpoint.host, endpoint.port))
        parts = encode_response(correlation_id, answer, version)
        for endpoint, host, port in originals:
            endpoint.host, endpoint.port = host, port
        return b"".join(part for part in parts if isinstance(part, (bytes, bytearray, memoryview)))[4:]

    def _keep(self, header: RequestHeader, answer: Message | None, size: int) -> None:
        exchange = Exchange(header.client_id or "", header.api_key, header.api_version, answer)
        self._recording.keep(exchange, size)


async def _each_frame(stream: trio.abc.ReceiveStream, take: Callable[[bytes], Awaitable[None]]) -> None:
    """Call `take` with each frame without its size, until the stream ends, or has a size that no frame has."""
    frames = FrameSplitter(LARGEST_FRAME_BYTES)
    with suppress(MalformedMessage):
        while data := await stream.receive_some(_CHUNK_BYTES):
            for frame in frames.feed(data):
                await take(frame)


def _endpoints(message: Any) -> Any:
    """Every struct in an answer that has a host and a port of a broker."""
    names = [each.name for each in type(message).__schema__.fields]
    if "host" in names and "port" in names and message.host and message.port > 0:
        yield message
    for name in names:
        value = getattr(message, name)
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, (Struct, Message)):
                yield from _endpoints(each)
