"""Links that are cut, slow or lossy, hosts without power, and what each end of a connection learns of it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import pytest
import trio

from pykbroker.server.network.transport import Transport
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.network import SimulatedNetwork

PORT = 9092

Scenario = Callable[["Pair"], Awaitable[None]]


class Pair:
    """Two hosts and a connection between them."""

    def __init__(self, network: SimulatedNetwork) -> None:
        self.network = network
        self.a, self.b = network.of("a"), network.of("b")

    async def connect(self) -> None:
        self.acceptor = await self.b.listen("b", PORT)
        self.here: Transport = await self.a.connect("b", PORT)
        self.there: Transport = await self.acceptor.accept()


def run(scenario: Scenario) -> None:
    async def main(seed: int) -> None:
        pair = Pair(SimulatedNetwork(random.Random(seed)))
        await pair.connect()
        await scenario(pair)

    for seed in range(5):
        run_deterministic(main, seed, seed=seed)


async def receive(transport: Transport, size: int) -> bytes:
    data = bytearray(size)
    view = memoryview(data)
    while len(view):
        count = await transport.receive_into(view)
        assert count, "the end of the stream"
        view = view[count:]
    return bytes(data)


async def nothing_arrives(transport: Transport, *, for_s: float = 20.0) -> None:
    with trio.move_on_after(for_s) as waiting:
        count = await transport.receive_into(memoryview(bytearray(1)))
        pytest.fail(f"{count} bytes")
    assert waiting.cancelled_caught


def test_what_is_sent_over_a_cut_link_arrives_after_it_is_mended() -> None:
    async def scenario(pair: Pair) -> None:
        await pair.here.send([b"before"])
        pair.network.cut("a", "b")
        await pair.here.send([b" while it was cut"])
        await nothing_arrives(pair.there)
        pair.network.heal()
        assert await receive(pair.there, 23) == b"before while it was cut"
        await pair.there.send([b"answer"])
        assert await receive(pair.here, 6) == b"answer"

    run(scenario)


def test_what_has_arrived_is_read_although_the_link_is_cut() -> None:
    async def scenario(pair: Pair) -> None:
        await pair.here.send([b"bytes"])
        await trio.sleep(1)
        pair.network.cut("a", "b")
        assert await receive(pair.there, 5) == b"bytes"

    run(scenario)


def test_a_cut_in_one_direction_leaves_the_other() -> None:
    async def scenario(pair: Pair) -> None:
        pair.network.cut_one_way("a", "b")
        await pair.there.send([b"to a"])
        assert await receive(pair.here, 4) == b"to a"
        await pair.here.send([b"to b"])
        await nothing_arrives(pair.there)

    run(scenario)


def test_a_writer_whose_bytes_are_not_acknowledged_waits_when_its_buffer_is_full() -> None:
    async def scenario(pair: Pair) -> None:
        pair.network.cut_one_way("a", "b")

        async def read() -> None:
            await receive(pair.here, 200_000)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            with trio.move_on_after(60) as sending:
                await pair.there.send([bytes(200_000)])
            assert sending.cancelled_caught
            nursery.cancel_scope.cancel()

    run(scenario)


def test_bytes_that_were_read_over_a_cut_are_acknowledged_when_it_is_mended() -> None:
    async def scenario(pair: Pair) -> None:
        pair.network.cut_one_way("a", "b")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive, pair.here, 200_000)
            nursery.start_soon(pair.there.send, [bytes(200_000)])
            await trio.sleep(10)
            pair.network.heal()

    run(scenario)


def test_a_host_that_is_cut_off_lets_whoever_connects_wait() -> None:
    async def scenario(pair: Pair) -> None:
        for cut in (pair.network.cut, pair.network.cut_one_way):
            cut("a", "b")
            with trio.move_on_after(60) as connecting:
                await pair.a.connect("b", PORT)
            assert connecting.cancelled_caught
            with pytest.raises(TimeoutError):
                await pair.a.connect("b", PORT)
            pair.network.heal()
            (await pair.a.connect("b", PORT)).close()

    run(scenario)


def test_a_connection_is_made_when_the_cut_is_mended_soon() -> None:
    async def scenario(pair: Pair) -> None:
        pair.network.cut("a", "b")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pair.a.connect, "b", PORT)
            await trio.sleep(5)
            pair.network.heal()

    run(scenario)


def test_a_process_that_dies_resets_its_connections_and_its_port_refuses() -> None:
    async def scenario(pair: Pair) -> None:
        pair.b.die()
        with pytest.raises(trio.BrokenResourceError):
            await pair.here.receive_into(memoryview(bytearray(1)))
        with pytest.raises(trio.BrokenResourceError):
            await pair.here.send([b"x"])
        with pytest.raises(ConnectionRefusedError):
            await pair.a.connect("b", PORT)

    run(scenario)


def test_of_a_process_that_dies_behind_a_cut_nobody_hears_before_it_is_mended() -> None:
    async def scenario(pair: Pair) -> None:
        pair.network.cut("a", "b")
        pair.b.die()
        await nothing_arrives(pair.here)
        await pair.here.send([b"x"])
        pair.network.heal()
        with pytest.raises(trio.BrokenResourceError):
            await pair.here.receive_into(memoryview(bytearray(1)))

    run(scenario)


def test_an_end_of_a_stream_waits_for_the_link() -> None:
    async def scenario(pair: Pair) -> None:
        pair.network.cut("a", "b")
        pair.there.close()
        await nothing_arrives(pair.here)
        pair.network.heal()
        assert await pair.here.receive_into(memoryview(bytearray(1))) == 0

    run(scenario)


def test_of_a_machine_without_power_nobody_hears_before_it_runs_again_and_is_sent_something() -> None:
    async def scenario(pair: Pair) -> None:
        pair.b.lose_power()
        await nothing_arrives(pair.here)
        with trio.move_on_after(60) as connecting:
            await pair.a.connect("b", PORT)
        assert connecting.cancelled_caught
        pair.b.gain_power()
        await nothing_arrives(pair.here)
        with pytest.raises(trio.BrokenResourceError):
            await pair.here.send([b"x"])
        with pytest.raises(trio.BrokenResourceError):
            await pair.here.receive_into(memoryview(bytearray(1)))
        with pytest.raises(ConnectionRefusedError):
            await pair.a.connect("b", PORT)

    run(scenario)


def test_what_was_sent_to_a_machine_without_power_brings_the_reset_when_it_runs_again() -> None:
    async def scenario(pair: Pair) -> None:
        pair.b.lose_power()
        await pair.here.send([b"x"])
        pair.b.gain_power()
        with pytest.raises(trio.BrokenResourceError):
            await pair.here.receive_into(memoryview(bytearray(1)))

    run(scenario)


def test_loss_is_a_delay_and_bytes_keep_their_order() -> None:
    async def scenario(pair: Pair) -> None:
        pair.network.slow("a", "b", loss=0.3)
        data = bytes(i % 251 for i in range(100_000))
        start = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_send_in_pieces, pair.here, data)
            assert await receive(pair.there, len(data)) == data
        assert trio.current_time() - start > 0.2

    run(scenario)


async def _send_in_pieces(transport: Transport, data: bytes) -> None:
    for i in range(0, len(data), 1000):
        await transport.send([data[i : i + 1000]])


def test_a_slow_link_takes_its_time_in_one_direction() -> None:
    async def scenario(pair: Pair) -> None:
        pair.network.slow("a", "b", delay_ms=500)
        start = trio.current_time()
        await pair.here.send([b"x"])
        await receive(pair.there, 1)
        assert 0.5 <= trio.current_time() - start < 0.6
        await pair.there.send([b"x"])
        await receive(pair.here, 1)
        assert trio.current_time() - start < 0.7

    run(scenario)


def test_a_bridge_reaches_both_sides_which_do_not_reach_each_other() -> None:
    network = SimulatedNetwork(random.Random(1))

    async def scenario() -> None:
        network.split(["a", "bridge"], ["bridge", "c"])
        cut = {(one, other) for one in ("a", "bridge", "c") for other in ("a", "bridge", "c")}
        assert {pair for pair in cut if network.is_cut(*pair)} == {("a", "c"), ("c", "a")}
        network.heal()
        assert not any(network.is_cut(*pair) for pair in cut)

    run_deterministic(scenario, seed=1)
