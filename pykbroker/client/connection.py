"""One connection to a broker: frames, correlation ids, and the versions that both sides know.

There is no reader task. Whoever waits for an answer reads frames until its own arrives and keeps those of others for
them, so requests may be pipelined by starting several of them at once. `send_raw` and `receive_frame` are for tests
that speak to a broker in broken ways; they and `request` do not mix on one connection.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar, TypeVarTuple, Unpack, runtime_checkable

import trio

from pykbroker import __version__
from pykbroker.protocol import framing
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.compile import OBJECTS_LIMIT, decode
from pykbroker.protocol.errors import ErrorCode, MalformedMessage, TooManyElements
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.schema import Message, Versions

from .errors import BadInput, ConnectionLost, NotKafka, TimedOut, UnsupportedByBroker, check

ResponseT = TypeVar("ResponseT", bound=Message)
T = TypeVar("T")
Ts = TypeVarTuple("Ts")
ReceivedT = TypeVar("ReceivedT", bound="bytes | bytearray | int")

DEFAULT_REQUEST_TIMEOUT_MS = 30_000
LARGEST_FRAME_BYTES = 256 * 1024 * 1024
"""An answer that announces more than this does not come from a Kafka broker."""

_FEW_ENTRIES = 1000
"""Of an answer: so many are unpacked on the event loop where there are threads for more."""
_SMALL_FRAME_BYTES = 4096

_SIZE = struct.Struct(">i")
_UNSUPPORTED_VERSION = struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)
_RECEIVE_BYTES = 256 * 1024
_LIFETIME_USED = 0.85
"""Of a session, as Kafka's clients begin to authenticate again behind 85 to 95 percent of it."""
_SOFTWARE_NAME = "pykbroker"


@runtime_checkable
class FillingStream(Protocol):
    """A stream that receives into what it is given: a frame of megabytes need not be copied together."""

    async def receive_into(self, view: memoryview) -> int:
        """The count of bytes, 0 at the end of the stream."""
        ...


class UnpackingThreads(Protocol):
    """`pykbroker.server.runtime.threads.Threads`, as far as it is needed here."""

    async def run(self, fn: Callable[[Unpack[Ts]], T], *args: *Ts) -> T: ...


class Connection:
    """`versions` holds what the broker serves, by API key; it is empty until `negotiate` has run."""

    def __init__(
        self,
        stream: trio.abc.Stream,
        *,
        peer: str = "",
        client_id: str = "pykbroker",
        request_timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS,
        threads: UnpackingThreads | None = None,
    ) -> None:
        self.peer = peer
        self._threads = threads
        self.versions: dict[int, Versions] = {}
        self.is_closed = False
        self._stream = stream
        self._filling = stream if isinstance(stream, FillingStream) else None
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._correlation_ids = itertools.count(1)
        self._send_lock = trio.Lock()
        self._receive_lock = trio.Lock()
        self._received = bytearray()
        self._waiting: set[int] = set()
        self._arrived: dict[int, bytes | bytearray] = {}
        self._ends_s = math.inf

    def lives_for(self, lifetime_ms: int) -> None:
        """Note the lifetime of an authenticated session (KIP-368), 0 for one without an end."""
        if lifetime_ms:
            self._ends_s = trio.current_time() + lifetime_ms / 1000 * _LIFETIME_USED

    @property
    def is_outlived(self) -> bool:
        """Tell whether another connection should take its place: the session ends soon, and nobody waits here."""
        return trio.current_time() >= self._ends_s and not self._waiting

    async def negotiate(self) -> None:
        """Ask for the broker's versions, as KIP-511 describes: an old broker answers in version 0."""
        offered = ApiVersionsRequest.__schema__.versions.high
        response = await self._ask_versions(offered)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            known = {row.api_key: row.max_version for row in response.api_keys}
            response = await self._ask_versions(min(offered, known.get(ApiKey.API_VERSIONS, 0)))
        check(response.error_code)
        self.versions = {row.api_key: Versions(row.min_version, row.max_version) for row in response.api_keys}

    @property
    def request_timeout_s(self) -> float:
        return self._request_timeout_ms / 1000

    async def ask_versions(self) -> ApiVersionsResponse:
        """Ask again, in the newest version that both sides know, for what `negotiate` does not keep: features."""
        response = await self._ask_versions(self.version_of(ApiVersionsRequest))
        check(response.error_code)
        return response

    async def _ask_versions(self, version: int) -> ApiVersionsResponse:
        request = ApiVersionsRequest(
            client_software_name=_SOFTWARE_NAME if version >= 3 else "",
            client_software_version=__version__ if version >= 3 else "",
        )
        frame = await self._exchange(request, version, self._request_timeout_ms)
        refused = frame[4:6] == _UNSUPPORTED_VERSION
        return _decode(ApiVersionsResponse, frame, 0 if refused else version)

    def version_of(self, request_type: type[Message], at_most: int | None = None) -> int:
        """The newest version that both sides know. Raises UnsupportedByBroker."""
        schema = request_type.__schema__
        assert schema.api_key is not None
        served = self.versions.get(schema.api_key)
        if served is None:
            raise UnsupportedByBroker(f"{self.peer} does not serve {ApiKey(schema.api_key).name}")
        high = min(schema.versions.high, served.high, schema.versions.high if at_most is None else at_most)
        if high < max(schema.versions.low, served.low):
            raise UnsupportedByBroker(
                f"{self.peer} serves {ApiKey(schema.api_key).name} {served}, this client {schema.versions}"
            )
        return high

    async def request(
        self,
        request: Message,
        response_type: type[ResponseT],
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> ResponseT:
        """The answer, in the newest version that both sides know unless one is named.

        Raises ConnectionLost, TimedOut, NotKafka, UnsupportedByBroker; error codes inside the answer are the caller's.
        """
        used = self.version_of(type(request)) if version is None else version
        frame = await self._exchange(request, used, timeout_ms or self._request_timeout_ms)
        if self._threads is None or len(frame) <= _SMALL_FRAME_BYTES:
            return _decode(response_type, frame, used)
        few = _decode_few(response_type, frame, used)
        return await self._threads.run(_decode, response_type, frame, used) if few is None else few

    async def send(self, request: Message, *, version: int | None = None) -> int:
        """Send what gets no answer (a produce with acks=0); returns its correlation id."""
        correlation_id = next(self._correlation_ids)
        used = self.version_of(type(request)) if version is None else version
        await self._send(_encoded(request, used, correlation_id, self._client_id))
        return correlation_id

    async def send_raw(self, data: bytes) -> None:
        """Any bytes, as they are: size prefix, header and all are the caller's."""
        await self._send(data)

    async def receive_frame(self) -> bytes | bytearray:
        """The next frame without its size prefix. Raises ConnectionLost at its end, NotKafka for an absurd size."""
        await self._receive_at_least(_SIZE.size)
        (size,) = _SIZE.unpack_from(self._received)
        if not 4 <= size <= LARGEST_FRAME_BYTES:
            await self.aclose()
            raise NotKafka(f"{self.peer} does not speak Kafka's protocol (a frame of {size} bytes)")
        if self._filling is not None and size > _RECEIVE_BYTES:
            return await self._fill(self._filling, size)
        await self._receive_at_least(_SIZE.size + size)
        frame = bytes(memoryview(self._received)[_SIZE.size : _SIZE.size + size])
        del self._received[: _SIZE.size + size]
        return frame

    async def _fill(self, stream: FillingStream, size: int) -> bytearray:
        """A large frame, of which some may have been received already."""
        frame = bytearray(size)
        view = memoryview(frame)
        have = min(len(self._received) - _SIZE.size, size)
        view[:have] = memoryview(self._received)[_SIZE.size : _SIZE.size + have]
        del self._received[: _SIZE.size + have]
        while have < size:
            count = await self._receiving(stream.receive_into(view[have:]))
            have += count
        return frame

    async def aclose(self) -> None:
        self.is_closed = True
        await trio.aclose_forcefully(self._stream)

    async def _exchange(self, request: Message, version: int, timeout_ms: int) -> bytes | bytearray:
        correlation_id = next(self._correlation_ids)
        with trio.move_on_after(timeout_ms / 1000):
            self._waiting.add(correlation_id)
            try:
                await self._send(_encoded(request, version, correlation_id, self._client_id))
                return await self._answer(correlation_id)
            finally:
                self._waiting.discard(correlation_id)
                await self._close_stream_if_unused()
        await self.aclose()
        raise TimedOut(f"{self.peer} did not answer {type(request).__name__} within {timeout_ms} ms")

    async def _answer(self, correlation_id: int) -> bytes | bytearray:
        async with self._receive_lock:
            while correlation_id not in self._arrived:
                frame = await self.receive_frame()
                (answered,) = _SIZE.unpack_from(frame)
                # The answer to a request whose task was cancelled has nobody left to take it.
                if answered in self._waiting:
                    self._arrived[answered] = frame
            return self._arrived.pop(correlation_id)

    async def _send(self, data: bytes) -> None:
        async with self._send_lock:
            if self.is_closed:
                raise ConnectionLost(f"The connection to {self.peer} is closed")
            try:
                await self._stream.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                await self.aclose()
                raise ConnectionLost(f"{self.peer} closed the connection") from None
            except trio.Cancelled:
                # Half a frame may be out: nothing that follows would be understood. What went before has its answers.
                self.is_closed = True
                await self._close_stream_if_unused()
                raise

    async def _close_stream_if_unused(self) -> None:
        """Close the stream of a connection that is given up, once nobody waits for an answer any more."""
        if self.is_closed and not self._waiting:
            await trio.aclose_forcefully(self._stream)

    async def _receive_at_least(self, count: int) -> None:
        while len(self._received) < count:
            self._received += await self._receiving(self._stream.receive_some(_RECEIVE_BYTES))

    async def _receiving(self, step: Awaitable[ReceivedT]) -> ReceivedT:
        """Return what a step received: bytes, or their count. Raises ConnectionLost at the end of the stream."""
        try:
            received = await step
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            received = None
        if not received:
            await self.aclose()
            raise ConnectionLost(f"{self.peer} closed the connection")
        return received


def _encoded(request: Message, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Raises BadInput for what the protocol cannot carry, such as a name that is not UTF-8."""
    try:
        return framing.encode_request(request, version, correlation_id, client_id)
    except ValueError as error:
        raise BadInput(str(error)) from None


def _decode_few(response_type: type[ResponseT], frame: bytes | bytearray, version: int) -> ResponseT | None:
    """Return None where there are more than a few entries in the answer."""
    try:
        return _decode(response_type, frame, version, _FEW_ENTRIES)
    except TooManyElements:
        return None


def _decode(
    response_type: type[ResponseT], frame: bytes | bytearray, version: int, objects_limit: int = OBJECTS_LIMIT
) -> ResponseT:
    """Raises NotKafka when the frame is not exactly this answer."""
    api_key = response_type.__schema__.api_key
    assert api_key is not None
    try:
        _, start = framing.decode_response_header(frame, api_key, version)
        response, end = decode(response_type, version, frame, start, objects_limit=objects_limit)
    except MalformedMessage as error:
        if objects_limit < OBJECTS_LIMIT and isinstance(error, TooManyElements):
            raise
        raise NotKafka(f"An answer is no {response_type.__name__} of version {version}: {error}") from error
    if end != len(frame):
        raise NotKafka(f"{len(frame) - end} bytes follow a {response_type.__name__} of version {version}")
    return response
