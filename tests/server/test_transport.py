"""One contract for transports, real and simulated."""

from __future__ import annotations

import errno
import os
import random
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.control.nodes.gate import Gate
from pykbroker.control.nodes.gated_network import GatedNetwork, GatedTransport, Peers
from pykbroker.server.network.socket_transport import SocketNetwork, SocketOptions, SocketTransport
from pykbroker.server.network.tls_transport import TlsTransport
from pykbroker.server.network.transport import Network, Transport
from pykbroker.server.runtime.threads import WorkerThreads
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.network import SimulatedNetwork, SimulatedTransport
from pykbroker.storage.files.errors import DiskFailed
from tests.server.encrypted_network import EncryptedNetwork
from tests.server.serving import eventually

Scenario = Callable[[Network], Awaitable[None]]


async def on_sockets(scenario: Scenario) -> None:
    with trio.fail_after(5):
        await scenario(SocketNetwork(SocketOptions(), WorkerThreads()))


async def behind_a_gate(scenario: Scenario) -> None:
    with trio.fail_after(5):
        await scenario(GatedNetwork(SocketNetwork(SocketOptions(), WorkerThreads()), Gate(), Peers()))


@pytest.fixture(params=["sockets", "simulated", "TLS on sockets", "TLS simulated", "gate", "TLS on gate"])
def run(request: pytest.FixtureRequest) -> Callable[[Scenario], None]:
    has_tls = request.param.startswith("TLS")

    async def encrypted(scenario: Scenario, network: Network) -> None:
        await scenario(EncryptedNetwork(network) if has_tls else network)

    def run_on_sockets(scenario: Scenario) -> None:
        trio.run(on_sockets, partial(encrypted, scenario))

    def run_behind_a_gate(scenario: Scenario) -> None:
        trio.run(behind_a_gate, partial(encrypted, scenario))

    def run_simulated(scenario: Scenario) -> None:
        for seed in range(5):
            run_deterministic(encrypted, scenario, SimulatedNetwork(random.Random(seed)), seed=seed)

    if request.param.endswith("gate"):
        return run_behind_a_gate
    return run_on_sockets if request.param.endswith("sockets") else run_simulated


async def pair(network: Network) -> tuple[Transport, Transport]:
    acceptor = await network.listen("127.0.0.1", 0)
    client = await network.connect("127.0.0.1", acceptor.address.port)
    server = await acceptor.accept()
    acceptor.close()
    return await network.pair(client, server) if isinstance(network, EncryptedNetwork) else (client, server)


async def receive_exactly(transport: Transport, size: int) -> bytes:
    data = bytearray(size)
    view = memoryview(data)
    while len(view):
        count = await transport.receive_into(view)
        assert count, "the stream ended early"
        view = view[count:]
    return bytes(data)


async def send_until_it_fails(transport: Transport) -> None:
    for _ in range(1000):
        await transport.send([bytes(100_000)])


@dataclass
class OpenFile:
    path: str
    descriptor: int | None

    def fileno(self) -> int | None:
        return self.descriptor


@dataclass
class Slice:
    """A region of a real file, or of none."""

    path: Path
    descriptor: int | None
    position: int
    size: int

    @property
    def file(self) -> OpenFile:
        return OpenFile(str(self.path), self.descriptor)

    def read(self) -> bytes:
        return self.path.read_bytes()[self.position : self.position + self.size]


def test_bytes_arrive_in_order_in_both_directions(run: Callable[[Scenario], None]) -> None:
    payload = random.Random(1).randbytes(300_000)

    async def scenario(network: Network) -> None:
        client, server = await pair(network)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send, [payload[:1], b"", payload[1:100_000], bytearray(payload[100_000:])])
            nursery.start_soon(server.send, [memoryview(payload)])
            assert await receive_exactly(server, len(payload)) == payload
            assert await receive_exactly(client, len(payload)) == payload
        client.close()
        assert await server.receive_into(memoryview(bytearray(10))) == 0
        server.close()

    run(scenario)


def test_each_end_is_the_others_peer(run: Callable[[Scenario], None]) -> None:
    async def scenario(network: Network) -> None:
        client, server = await pair(network)
        assert server.local == client.peer
        assert client.local == server.peer
        for each in (client, server):
            each.close()

    run(scenario)


@pytest.mark.parametrize("real", [True, False])
def test_regions_of_files_arrive_between_the_bytes_around_them(
    run: Callable[[Scenario], None], tmp_path: Path, real: bool
) -> None:
    path = tmp_path / "segment"
    content = random.Random(2).randbytes(3_000_000)
    path.write_bytes(content)

    async def scenario(network: Network) -> None:
        client, server = await pair(network)
        with path.open("rb") as file:
            descriptor = file.fileno() if real else None
            parts = [
                b"one",
                Slice(path, descriptor, 10, 2_500_000),
                b"two",
                Slice(path, descriptor, 0, 0),
                Slice(path, descriptor, 2_999_990, 10),
                b"three",
            ]
            expected = b"one" + content[10:2_500_010] + b"two" + content[-10:] + b"three"
            async with trio.open_nursery() as nursery:
                nursery.start_soon(server.send, parts)
                assert await receive_exactly(client, len(expected)) == expected
        client.close()
        server.close()

    run(scenario)


@dataclass
class CountedSlice(Slice):
    read_regions: list[int]

    def read(self) -> bytes:
        self.read_regions.append(self.position)
        return bytes(self.size)


def test_between_the_pieces_of_what_is_large_others_have_their_turn() -> None:
    """Also where the peer takes everything at once, and whether it is one part or many."""
    payload = random.Random(1).randbytes(3_000_000)
    parts = [payload[:1_500_000], *(payload[first : first + 100] for first in range(1_500_000, 3_000_000, 100))]
    turns = 0

    async def next_turn() -> None:
        nonlocal turns
        turns += 1
        await trio.lowlevel.checkpoint()

    async def scenario(network: Network) -> None:
        client, server = await pair(network)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.send, parts, next_turn)
            assert await receive_exactly(client, len(payload)) == payload
        client.close()
        server.close()

    trio.run(on_sockets, scenario)
    assert turns >= 5 + 15_000 // 512


def test_small_regions_are_read_as_the_peer_takes_them(run: Callable[[Scenario], None], tmp_path: Path) -> None:
    """An answer of thousands of partitions must not be in memory as long as nobody reads it."""
    size, count = 15_000, 1000

    async def scenario(network: Network) -> None:
        client, server = await pair(network)
        read: list[int] = []
        parts = [CountedSlice(tmp_path, None, size * number, size, read) for number in range(count)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.send, parts)
            await wait_all_tasks_blocked(0.05)
            taken_by_the_system = 8 << 20
            assert len(read) * size < taken_by_the_system + 200_000
            assert await receive_exactly(client, size * count) == bytes(size * count)
        client.close()
        server.close()

    run(scenario)


@pytest.mark.parametrize("broken", ["os.sendfile", "pykbroker.server.network.socket_transport.uncached_extent"])
def test_a_file_that_cannot_be_read_is_a_failed_disk_and_no_peer_that_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(100_000))

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(broken, fail)

    async def scenario(network: Network) -> None:
        client, server = await pair(network)
        with path.open("rb") as file, pytest.raises(DiskFailed, match=f"cannot read {path}: Input/output error"):
            await server.send([Slice(path, file.fileno(), 0, 100_000)])
        client.close()
        server.close()

    trio.run(on_sockets, scenario)


def test_a_region_beyond_the_end_of_its_file_breaks_the_connection(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(b"12345")

    async def scenario(network: Network) -> None:
        client, server = await pair(network)
        with path.open("rb") as file, pytest.raises(trio.BrokenResourceError):
            await server.send([Slice(path, file.fileno(), 0, 6)])
        client.close()
        server.close()

    trio.run(on_sockets, scenario)


def half_close(transport: Transport) -> None:
    if isinstance(transport, TlsTransport):
        transport = transport._inner
    if isinstance(transport, GatedTransport):
        transport = transport._inner
    if isinstance(transport, SimulatedTransport):
        transport.half_close()
    else:
        assert isinstance(transport, SocketTransport)
        transport._socket.shutdown(socket.SHUT_WR)


def test_a_peer_that_closed_its_end_is_noticed_behind_what_it_sent(run: Callable[[Scenario], None]) -> None:
    async def scenario(network: Network) -> None:
        client, server = await pair(network)
        assert not server.has_peer_left()
        assert not server.peek(1)
        await client.send([b"x"])
        while server.peek(1) is None:  # it may come in pieces, where more than a byte has to come for it
            await server.wait_readable()
        assert not server.has_peer_left()
        assert server.peek(1) == b"x"
        half_close(client)
        await eventually(server.has_peer_left)
        await server.send([b"an answer"])
        assert await receive_exactly(client, 9) == b"an answer"
        assert await receive_exactly(server, 1) == b"x"
        assert not server.peek(1)
        assert server.receive_now(memoryview(bytearray(1))) == 0
        assert not client.has_peer_left()
        server.close()
        await eventually(client.has_peer_left)
        client.close()

    run(scenario)


def test_nothing_to_receive_is_not_the_end(run: Callable[[Scenario], None]) -> None:
    async def scenario(network: Network) -> None:
        client, server = await pair(network)
        view = memoryview(bytearray(100))
        assert server.receive_now(view) is None
        await client.send([b"x"])
        await server.wait_readable()
        assert await server.receive_into(view) == 1
        assert server.receive_now(view) is None
        client.close()
        server.close()

    run(scenario)


def test_send_waits_for_a_peer_that_does_not_read(run: Callable[[Scenario], None]) -> None:
    async def scenario(network: Network) -> None:
        client, server = await pair(network)
        with trio.move_on_after(0.2) as waited:
            await server.send([bytes(50_000_000)])
        assert waited.cancelled_caught
        client.close()
        server.close()

    run(scenario)


def test_close_wakes_whoever_waits(run: Callable[[Scenario], None]) -> None:
    async def scenario(network: Network) -> None:
        client, server = await pair(network)

        async def receive() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await server.receive_into(memoryview(bytearray(10)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            await trio.testing.wait_all_tasks_blocked()
            server.close()
        with pytest.raises(trio.ClosedResourceError):
            await server.send([b"x"])
        server.close()
        client.close()

    run(scenario)


def test_a_peer_that_has_gone_breaks_send(run: Callable[[Scenario], None]) -> None:
    async def scenario(network: Network) -> None:
        client, server = await pair(network)
        client.close()
        with pytest.raises(trio.BrokenResourceError):
            await send_until_it_fails(server)
        server.close()

    run(scenario)


def test_a_port_in_use_cannot_be_listened_on(run: Callable[[Scenario], None]) -> None:
    async def scenario(network: Network) -> None:
        acceptor = await network.listen("127.0.0.1", 0)
        with pytest.raises(OSError) as refused:
            await network.listen("127.0.0.1", acceptor.address.port)
        assert refused.value.errno == errno.EADDRINUSE
        acceptor.close()
        with pytest.raises(ConnectionRefusedError):
            await network.connect("127.0.0.1", acceptor.address.port)

    run(scenario)


def test_close_ends_accept(run: Callable[[Scenario], None]) -> None:
    async def scenario(network: Network) -> None:
        acceptor = await network.listen("127.0.0.1", 0)

        async def accept() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await acceptor.accept()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept)
            await trio.testing.wait_all_tasks_blocked()
            acceptor.close()

    run(scenario)


def test_pages_on_disk_only_are_read_in_a_thread(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    content = random.Random(3).randbytes(2_000_000)
    path.write_bytes(content)

    class CountingThreads(WorkerThreads):
        calls = 0

        async def run(self, fn, *args):  # type: ignore[no-untyped-def]
            self.calls += 1
            return await super().run(fn, *args)

    async def scenario() -> None:
        threads = CountingThreads()
        client, server = await pair(SocketNetwork(SocketOptions(), threads))
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            try:
                os.preadv(file.fileno(), [bytearray(1)], 1_000_000, os.RWF_NOWAIT)
            except BlockingIOError:
                pass
            else:
                pytest.skip("this file system keeps its pages or does not tell")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(server.send, [Slice(path, file.fileno(), 0, len(content))])
                assert await receive_exactly(client, len(content)) == content
            assert threads.calls
            threads.calls = 0
            async with trio.open_nursery() as nursery:
                nursery.start_soon(server.send, [Slice(path, file.fileno(), 0, len(content))])
                assert await receive_exactly(client, len(content)) == content
            assert not threads.calls, "what is cached needs no thread"
        client.close()
        server.close()

    trio.run(scenario)


def test_small_answers_are_not_delayed() -> None:
    async def scenario(network: Network) -> None:
        client, server = await pair(network)
        for end in (client, server):
            assert end._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)  # type: ignore[attr-defined]
            end.close()

    trio.run(on_sockets, scenario)
