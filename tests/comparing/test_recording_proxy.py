"""The proxy between clients and brokers: who is behind it stays there, whatever came before, whatever a broker says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from pykbroker.client import cluster
from pykbroker.client.cluster import Open, open_tcp
from pykbroker.comparing import recording_proxy
from pykbroker.comparing.recording import Recording
from pykbroker.comparing.recording_proxy import RecordingProxy
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.compile import decode
from pykbroker.protocol.framing import (
    FrameSplitter,
    decode_request_header,
    decode_response_header,
    encode_request,
    encode_response,
)
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from pykbroker.protocol.messages.produce import ProduceRequest

VERSION = 9
PRODUCE_VERSION = 7
HERE = ("127.0.0.1", 9092)


async def broker(stream: trio.SocketStream, host: str) -> None:
    """Answers Metadata with one address, and Produce not at all, as with acks=0."""
    frames = FrameSplitter(1 << 20)
    async with stream:
        while data := await stream.receive_some(65536):
            for frame in frames.feed(data):
                header, _ = decode_request_header(frame)
                if header.api_key == ApiKey.METADATA:
                    answer = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host=host, port=HERE[1])])
                    parts = encode_response(header.correlation_id, answer, VERSION)
                    await stream.send_all(b"".join(part for part in parts if isinstance(part, bytes)))


async def told(client: trio.SocketStream) -> tuple[str, int]:
    """Ask Metadata, and return the address in its answer."""
    await client.send_all(encode_request(MetadataRequest(topics=[]), VERSION, 1_000_000, "c"))
    frames = FrameSplitter(1 << 20)
    while data := await client.receive_some(65536):
        for frame in frames.feed(data):
            _, start = decode_response_header(frame, ApiKey.METADATA, VERSION)
            response, _ = decode(MetadataResponse, VERSION, frame, start)
            return response.brokers[0].host, response.brokers[0].port
    raise AssertionError("closed")


def behind_a_proxy(
    host: str, talk: Callable[[trio.SocketStream], Awaitable[None]], open_stream: Open = open_tcp
) -> Recording:
    recording = Recording()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, lambda stream: broker(stream, host), [listener])
            proxy = RecordingProxy(nursery, recording, open_stream)
            address = await proxy.stand_for(listener.socket.getsockname()[:2])
            with trio.fail_after(60):
                async with await trio.open_tcp_stream(*address) as client:
                    await talk(client)
            nursery.cancel_scope.cancel()

    trio.run(main)
    return recording


def test_a_client_stays_behind_however_many_requests_had_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_proxy, "MOST_PENDING", 100)

    async def talk(client: trio.SocketStream) -> None:
        for number in range(1_025):
            await client.send_all(encode_request(ProduceRequest(acks=0, timeout_ms=1), PRODUCE_VERSION, number, "c"))
        host, port = await told(client)
        assert (host, port) != HERE
        assert host == "127.0.0.1"

    recording = behind_a_proxy(HERE[0], talk)
    assert [each.api_key for each in recording.exchanges] == [ApiKey.METADATA]


def test_an_address_that_no_host_has_closes_its_connection_alone() -> None:
    async def talk(client: trio.SocketStream) -> None:
        address = await told(client)
        async with await trio.open_tcp_stream(*address) as other:
            with pytest.raises((AssertionError, trio.BrokenResourceError)):
                await told(other)
        assert await told(client) == address

    behind_a_proxy("a" * 300, talk)


def test_a_broker_that_never_ends_a_handshake_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECTION_SETUP_TIMEOUT_MS", 50)

    async def silence(host: str, port: int) -> trio.abc.Stream:
        await trio.sleep_forever()

    async def talk(client: trio.SocketStream) -> None:
        with pytest.raises((AssertionError, trio.BrokenResourceError)):
            await told(client)

    assert not behind_a_proxy(HERE[0], talk, silence).exchanges


def test_a_size_that_no_frame_has_ends_its_connection_alone() -> None:
    async def talk(client: trio.SocketStream) -> None:
        await client.send_all(b"GET / HTTP/1.1\r\n\r\n")
        with pytest.raises((AssertionError, trio.BrokenResourceError)):
            await told(client)

    behind_a_proxy(HERE[0], talk)
