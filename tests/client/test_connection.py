"""One connection: negotiation, answers that find their requests, and peers that misbehave."""

import struct
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from pykbroker.client.connection import Connection
from pykbroker.client.errors import ConnectionLost, NotKafka, TimedOut, UnsupportedByBroker
from pykbroker.protocol import framing
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.protocol.messages.metadata import MetadataRequest
from pykbroker.protocol.schema import Versions

HEARTBEAT_VERSION = 4


def with_pair(
    scenario: Callable[[Connection, trio.abc.Stream], Awaitable[None]],
    new_pair: Callable[[], tuple[trio.abc.Stream, trio.abc.Stream]] = trio.testing.memory_stream_pair,
) -> None:
    """new_pair: with `lockstep_stream_pair` a send waits until the peer has read all of it."""

    async def main() -> None:
        near, far = new_pair()
        connection = Connection(near, peer="peer", request_timeout_ms=1_000)
        connection.versions = {12: Versions(0, HEARTBEAT_VERSION)}
        with trio.fail_after(60):  # of the mock clock
            await scenario(connection, far)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def answer(correlation_id: int, error_code: int = 0) -> bytes:
    response = HeartbeatResponse(error_code=error_code)
    parts = framing.encode_response(correlation_id, response, HEARTBEAT_VERSION)
    return b"".join(part for part in parts if isinstance(part, bytes))


async def request_ids(peer: trio.abc.Stream, count: int) -> list[int]:
    """Waits for so many requests and tells their correlation ids."""
    frames = framing.FrameSplitter(10_000)
    found: list[int] = []
    while len(found) < count:
        for frame in frames.feed(await peer.receive_some()):
            found.append(framing.decode_request_header(frame)[0].correlation_id)
    return found


async def heartbeat(connection: Connection) -> int:
    return (await connection.request(HeartbeatRequest(group_id="g", member_id="m"), HeartbeatResponse)).error_code


def test_negotiation_takes_the_newest_version_that_both_sides_know() -> None:
    async def scenario(connection: Connection, peer: trio.abc.Stream) -> None:
        async def serve() -> None:
            [frame] = framing.FrameSplitter(10_000).feed(await peer.receive_some())
            header, _ = framing.decode_request_header(frame)
            assert header.api_version == ApiVersionsRequest.__schema__.versions.high
            rows = [ApiVersion(api_key=12, min_version=1, max_version=99), ApiVersion(api_key=3, max_version=2)]
            parts = framing.encode_response(
                header.correlation_id, ApiVersionsResponse(api_keys=rows), header.api_version
            )
            await peer.send_all(b"".join(part for part in parts if isinstance(part, bytes)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            await connection.negotiate()
        assert connection.version_of(HeartbeatRequest) == HeartbeatRequest.__schema__.versions.high
        assert connection.version_of(HeartbeatRequest, at_most=2) == 2
        assert connection.version_of(MetadataRequest) == 2

    with_pair(scenario)


def test_negotiation_falls_back_to_what_an_old_broker_names_in_its_refusal() -> None:
    async def scenario(connection: Connection, peer: trio.abc.Stream) -> None:
        asked: list[int] = []

        async def serve() -> None:
            frames = framing.FrameSplitter(10_000)
            while len(asked) < 2:
                for frame in frames.feed(await peer.receive_some()):
                    header, _ = framing.decode_request_header(frame)
                    asked.append(header.api_version)
                    code = ErrorCode.UNSUPPORTED_VERSION if header.api_version > 2 else ErrorCode.NONE
                    response = ApiVersionsResponse(error_code=code, api_keys=[ApiVersion(api_key=18, max_version=2)])
                    version = 0 if code else header.api_version
                    parts = framing.encode_response(header.correlation_id, response, version)
                    await peer.send_all(b"".join(part for part in parts if isinstance(part, bytes)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            await connection.negotiate()
        assert asked == [ApiVersionsRequest.__schema__.versions.high, 2]
        with pytest.raises(UnsupportedByBroker, match="does not serve HEARTBEAT"):
            connection.version_of(HeartbeatRequest)

    with_pair(scenario)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_pipelined_requests_get_their_own_answers_in_whatever_order_they_come(order: list[int]) -> None:
    async def scenario(connection: Connection, peer: trio.abc.Stream) -> None:
        results: dict[int, int] = {}

        async def ask(name: int) -> None:
            results[name] = await heartbeat(connection)

        async with trio.open_nursery() as nursery:
            for name in range(3):
                nursery.start_soon(ask, name)
                await trio.testing.wait_all_tasks_blocked()
            ids = await request_ids(peer, 3)
            for name in order:
                await peer.send_all(answer(ids[name], error_code=name))
        assert results == {0: 0, 1: 1, 2: 2}

    with_pair(scenario)


def test_an_answer_may_arrive_byte_by_byte() -> None:
    async def scenario(connection: Connection, peer: trio.abc.Stream) -> None:
        async def serve() -> None:
            [correlation_id] = await request_ids(peer, 1)
            for byte in answer(correlation_id, error_code=27):
                await peer.send_all(bytes([byte]))
                await trio.testing.wait_all_tasks_blocked()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            assert await heartbeat(connection) == 27

    with_pair(scenario)


def test_the_answer_to_a_cancelled_request_goes_to_nobody_else() -> None:
    async def scenario(connection: Connection, peer: trio.abc.Stream) -> None:
        with trio.move_on_after(0.1) as scope:
            await heartbeat(connection)
        assert scope.cancelled_caught

        async def serve() -> None:
            first, second = await request_ids(peer, 2)
            await peer.send_all(answer(first, error_code=25) + answer(second, error_code=27))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            assert await heartbeat(connection) == 27

    with_pair(scenario)


def test_a_silent_peer_times_out_and_the_connection_is_given_up() -> None:
    async def scenario(connection: Connection, peer: trio.abc.Stream) -> None:
        with pytest.raises(TimedOut, match="peer did not answer HeartbeatRequest within 1000 ms"):
            await heartbeat(connection)
        assert connection.is_closed
        with pytest.raises(ConnectionLost):
            await heartbeat(connection)

    with_pair(scenario)


def test_a_connection_on_which_half_a_request_may_be_out_is_closed_when_nobody_waits() -> None:
    async def scenario(connection: Connection, peer: trio.abc.Stream) -> None:
        with trio.move_on_after(0.1) as scope:
            await heartbeat(connection)
        assert scope.cancelled_caught
        assert connection.is_closed
        await request_ids(peer, 1)
        assert await peer.receive_some() == b""

    with_pair(scenario, trio.testing.lockstep_stream_pair)


def test_whoever_waits_has_the_answer_though_the_next_request_was_given_up_half_sent() -> None:
    async def scenario(connection: Connection, peer: trio.abc.Stream) -> None:
        codes: list[int] = []

        async def ask() -> None:
            codes.append(await heartbeat(connection))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            [first] = await request_ids(peer, 1)
            with trio.move_on_after(0.1) as scope:
                await heartbeat(connection)
            assert scope.cancelled_caught
            with pytest.raises(ConnectionLost):
                await heartbeat(connection)
            await peer.send_all(answer(first, error_code=27))
        assert codes == [27]
        await request_ids(peer, 1)
        assert await peer.receive_some() == b""

    with_pair(scenario, trio.testing.lockstep_stream_pair)


def test_everyone_who_waits_learns_that_the_peer_has_closed() -> None:
    async def scenario(connection: Connection, peer: trio.abc.Stream) -> None:
        lost: list[str] = []

        async def ask() -> None:
            with pytest.raises(ConnectionLost) as caught:
                await heartbeat(connection)
            lost.append(str(caught.value))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            nursery.start_soon(ask)
            await request_ids(peer, 2)
            await peer.aclose()
        assert len(lost) == 2

    with_pair(scenario)


@pytest.mark.parametrize(
    "garbage",
    [b"HTTP/1.1 400 Bad Request\r\n", b"\xff\xff\xff\xff", b"\0\0\0\1x", struct.pack(">ii", 12, 1) + b"\xff" * 8],
)
def test_bytes_that_are_not_kafkas_protocol_are_named_as_such(garbage: bytes) -> None:
    async def scenario(connection: Connection, peer: trio.abc.Stream) -> None:
        async def serve() -> None:
            await request_ids(peer, 1)
            await peer.send_all(garbage)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            with pytest.raises(NotKafka):
                await heartbeat(connection)

    with_pair(scenario)


def test_bytes_behind_an_answer_are_an_error() -> None:
    async def scenario(connection: Connection, peer: trio.abc.Stream) -> None:
        async def serve() -> None:
            [correlation_id] = await request_ids(peer, 1)
            body = answer(correlation_id)[4:] + b"?"
            await peer.send_all(struct.pack(">i", len(body)) + body)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            with pytest.raises(NotKafka, match="1 bytes follow"):
                await heartbeat(connection)

    with_pair(scenario)


def test_raw_bytes_go_out_as_they_are_and_frames_come_back_without_their_size() -> None:
    async def scenario(connection: Connection, peer: trio.abc.Stream) -> None:
        await connection.send_raw(b"\0\0\0\3abc")
        assert await peer.receive_some() == b"\0\0\0\3abc"
        await peer.send_all(b"\0\0\0\4wxyz\0\0\0\5")
        assert await connection.receive_frame() == b"wxyz"
        await peer.aclose()
        with pytest.raises(ConnectionLost):
            await connection.receive_frame()

    with_pair(scenario)


class InPieces(trio.abc.Stream):
    """Gives what it has in pieces of some size, as a socket does, and fills what it is given."""

    def __init__(self, data: bytes, piece: int) -> None:
        self.data = data
        self.piece = piece

    async def receive_into(self, view: memoryview) -> int:
        data = await self.receive_some(min(self.piece, len(view)))
        view[: len(data)] = data
        return len(data)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        size = min(self.piece, max_bytes or self.piece)
        data, self.data = self.data[:size], self.data[size:]
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("piece", [1_000, 65_537, 262_144, 5_000_000])
def test_frames_of_all_sizes_come_through_a_stream_that_fills_buffers(piece: int) -> None:
    frames = [b"small" * 2, b"large" * 200_000, b"tiny", b"L" * 262_145, b"last"]
    sent = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)

    async def main() -> None:
        connection = Connection(InPieces(sent, piece), peer="peer")
        assert [bytes(await connection.receive_frame()) for _ in frames] == frames
        with pytest.raises(ConnectionLost):
            await connection.receive_frame()

    trio.run(main)


def test_a_large_frame_that_ends_early_is_a_lost_connection() -> None:
    async def main() -> None:
        connection = Connection(InPieces(struct.pack(">i", 1_000_000) + b"begin", 3), peer="peer")
        with pytest.raises(ConnectionLost):
            await connection.receive_frame()

    trio.run(main)
