"""A peer that forms records of TLS as it likes: what is small costs it turns, and what has no data its connection."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import pytest
import trio

from compat_tests.hostile.load.peers import Peer, connected
from compat_tests.hostile.load.tls_peers import TlsPeer
from pykbroker.server.network.socket_transport import SocketNetwork, SocketOptions
from pykbroker.server.network.tls_transport import Handshakes, TlsTransport
from pykbroker.server.runtime.threads import OnTheLoop, WorkerThreads
from tests.server.encrypted_network import contexts

Scenario = Callable[[TlsPeer, Peer, TlsTransport], Awaitable[None]]


def run(scenario: Scenario) -> None:
    """A scenario has the peer, its connection, and the transport that serves it."""

    async def prepare() -> None:
        with trio.fail_after(10):
            acceptor = await SocketNetwork(SocketOptions(), WorkerThreads()).listen("127.0.0.1", 0)
            async with connected(("127.0.0.1", acceptor.address.port)) as connection:
                served, _ = contexts()
                handshakes = Handshakes(OnTheLoop())
                transport = TlsTransport(await acceptor.accept(), served, handshakes, server_side=True)
                acceptor.close()
                peer = TlsPeer(connection)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(peer.shake_hands)
                    nursery.start_soon(transport.shake_hands)
                await scenario(peer, connection, transport)
                transport.close()

    trio.run(prepare)


def test_key_updates_and_nothing_else_end_the_connection() -> None:
    async def scenario(peer: TlsPeer, _: Peer, transport: TlsTransport) -> None:
        await peer.send(peer.key_updates(1000))
        with pytest.raises(trio.BrokenResourceError, match="without data"):
            await transport.receive_into(memoryview(bytearray(100)))

    run(scenario)


def test_a_few_key_updates_are_answered() -> None:
    async def scenario(peer: TlsPeer, connection: Peer, transport: TlsTransport) -> None:
        await peer.send(peer.key_updates(3))
        await transport.wait_readable()
        assert transport.receive_now(memoryview(bytearray(100))) is None
        assert await connection.receive()

    run(scenario)


def test_between_small_records_others_have_their_turn() -> None:
    async def scenario(peer: TlsPeer, _: Peer, transport: TlsTransport) -> None:
        await peer.send(peer.records(b"%c" % (number % 256) for number in range(1000)))
        received, turns, view = b"", 0, memoryview(bytearray(1000))
        while len(received) < 1000:
            count = transport.receive_now(view)
            if count is None:
                turns += 1
                await transport.wait_readable()
            else:
                assert count <= 100
                received += view[:count]
        assert received == bytes(number % 256 for number in range(1000))
        assert turns >= 10

    run(scenario)


def test_records_arrive_wherever_they_are_cut() -> None:
    rng = random.Random(1)
    pieces = [rng.randbytes(size) for size in (1, 5, 100, 16_384, 16_383, 1, 1, 3000)]

    async def scenario(peer: TlsPeer, _: Peer, transport: TlsTransport) -> None:
        ciphertext = peer.records(pieces)
        received, view = b"", memoryview(bytearray(1000))
        while ciphertext:
            cut = rng.choice((1, 2, 3, 4, 5, 6, 20, 1000, 16_400))
            await peer.send(ciphertext[:cut])
            ciphertext = ciphertext[cut:]
            await transport.wait_readable()
            while count := transport.receive_now(view):
                received += view[:count]
        while len(received) < sum(map(len, pieces)):
            received += view[: await transport.receive_into(view)]
        assert received == b"".join(pieces)

    run(scenario)
