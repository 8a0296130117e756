"""A gate holds whom it is closed to, breaks no connection, and lets everything through when it opens."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
import trio
import trio.testing

from pykbroker.control.nodes.gate import Gate, Side
from pykbroker.control.nodes.gated_network import GatedNetwork, Peers
from pykbroker.server.network.socket_transport import SocketNetwork, SocketOptions
from pykbroker.server.network.transport import Acceptor, Network, Transport
from pykbroker.server.runtime.threads import WorkerThreads

OpenedT = TypeVar("OpenedT", bound=Acceptor | Transport)

QUIET_S = 0.1


def request_of(client_id: str) -> bytes:
    frame = struct.pack(">hhih", 18, 0, 1, len(client_id)) + client_id.encode()
    return struct.pack(">i", len(frame)) + frame


class World:
    """A node behind its gate, and others that connect to it without one."""

    def __init__(self) -> None:
        self.gate, self.peers = Gate(), Peers()
        self.outside = SocketNetwork(SocketOptions(), WorkerThreads())
        self.network = GatedNetwork(self.outside, self.gate, self.peers)
        self._opened: list[Acceptor | Transport] = []

    def keep(self, opened: OpenedT) -> OpenedT:
        self._opened.append(opened)
        return opened

    async def listen(self) -> Acceptor:
        return self.keep(await self.network.listen("127.0.0.1", 0))

    async def accept(self, acceptor: Acceptor) -> Transport:
        return self.keep(await acceptor.accept())

    async def connect(self, acceptor: Acceptor, network: Network | None = None) -> Transport:
        return self.keep(await (network or self.outside).connect("127.0.0.1", acceptor.address.port))

    def close(self) -> None:
        self.gate.close_to(frozenset())
        for each in self._opened:
            each.close()


def scenario(story: Callable[[World], Awaitable[None]]) -> None:
    async def in_time() -> None:
        world = World()
        try:
            with trio.fail_after(10):
                await story(world)
        finally:
            world.close()

    trio.run(in_time)


async def received(transport: Transport) -> bytes | None:
    """What has arrived; None where nothing comes."""
    view = memoryview(bytearray(1000))
    with trio.move_on_after(QUIET_S):
        count = await transport.receive_into(view)
        return bytes(view[:count])
    return None


@pytest.mark.parametrize(
    ("first_bytes", "side"),
    [
        (request_of("broker-7"), Side.NODES),
        (request_of("broker-7-fetcher-0"), Side.NODES),
        (request_of("raft-client-3000"), Side.NODES),
        (request_of("broker-x"), Side.CLIENTS),
        (request_of("my-broker-1"), Side.CLIENTS),
        (request_of(""), Side.CLIENTS),
        (struct.pack(">ihhih", 10, 18, 0, 1, -1), Side.CLIENTS),
        (request_of("x" * 300), Side.CLIENTS),
        (b"\x16\x03\x01\x02\x00", Side.CLIENTS),
    ],
)
def test_who_it_is_is_known_by_the_first_request(first_bytes: bytes, side: Side) -> None:
    async def story(world: World) -> None:
        acceptor = await world.listen()
        for closed_to in Side:
            world.gate.close_to(frozenset({closed_to}))
            client = await world.connect(acceptor)
            node = await world.accept(acceptor)
            assert await received(node) is None
            await client.send([first_bytes])
            assert await received(node) == (None if closed_to is side else first_bytes)
            world.gate.close_to(frozenset())
            if closed_to is side:
                assert await received(node) == first_bytes

    scenario(story)


def test_who_is_known_while_the_gate_is_open_is_known_later() -> None:
    async def story(world: World) -> None:
        acceptor = await world.listen()
        client = await world.connect(acceptor)
        node = await world.accept(acceptor)
        await client.send([request_of("broker-1")])
        assert await received(node) == request_of("broker-1")
        world.gate.close_to(frozenset({Side.CLIENTS}))
        await client.send([b"more"])
        assert await received(node) == b"more"
        world.gate.close_to(frozenset({Side.NODES}))
        await client.send([b"held"])
        assert await received(node) is None
        assert node.peek(1) is None
        assert node.send_now(b"held, too") == 0

    scenario(story)


def test_another_node_of_this_process_is_known_by_its_address() -> None:
    async def story(world: World) -> None:
        other = GatedNetwork(world.outside, Gate(), world.peers)
        acceptor = await world.listen()
        client = await world.connect(acceptor, other)
        node = await world.accept(acceptor)
        world.gate.close_to(frozenset({Side.NODES}))
        await client.send([b"\x16 as by TLS"])
        assert await received(node) is None
        client.close()
        assert not world.peers.addresses

    scenario(story)


def test_a_connection_that_is_closed_behind_the_gate_stays_for_its_peer() -> None:
    async def story(world: World) -> None:
        acceptor = await world.listen()
        client = await world.connect(acceptor)
        node = await world.accept(acceptor)
        await client.send([request_of("app")])
        assert await received(node) == request_of("app")
        world.gate.close_to(frozenset(Side))
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                with pytest.raises(trio.ClosedResourceError):
                    await node.receive_into(memoryview(bytearray(1)))

            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            node.close()
        assert await received(client) is None
        world.gate.close_to(frozenset())
        assert await received(client) == b""

    scenario(story)


def test_a_gate_that_is_closed_in_the_middle_of_an_answer_holds_the_rest() -> None:
    size = 32 << 20  # more than the system has room for

    async def story(world: World) -> None:
        acceptor = await world.listen()
        client = await world.connect(acceptor)
        node = await world.accept(acceptor)
        view, got, is_quiet = memoryview(bytearray(1 << 20)), 0, False

        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.send, [bytes(size)])
            await trio.testing.wait_all_tasks_blocked()
            world.gate.close_to(frozenset(Side))
            while not is_quiet:
                with trio.move_on_after(QUIET_S) as waiting:
                    got += await client.receive_into(view)
                is_quiet = waiting.cancelled_caught or got == size
            assert got < size
            world.gate.close_to(frozenset())
            while got < size:
                got += await client.receive_into(view)

    scenario(story)


def test_a_closed_gate_holds_what_goes_out_and_who_is_looked_for() -> None:
    async def story(world: World) -> None:
        acceptor = await world.listen()
        client = await world.connect(acceptor)
        node = await world.accept(acceptor)
        world.gate.close_to(frozenset(Side))
        later = await world.connect(acceptor)
        assert acceptor.accept_now() is None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.send, [b"answer"])
            nursery.start_soon(world.connect, acceptor, world.network)
            await later.send([request_of("late")])
            assert await received(client) is None
            assert not node.has_peer_left()
            world.gate.close_to(frozenset())
            assert await received(client) == b"answer"
            heard = {await received(await world.accept(acceptor)) for _ in range(2)}
            assert request_of("late") in heard

    scenario(story)
