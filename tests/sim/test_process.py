"""A process that is stopped and goes on, by itself and as a whole node."""

from __future__ import annotations

import random
from typing import cast

import pytest
import trio

from pykbroker.protocol.messages.api_versions import ApiVersionsRequest
from pykbroker.sim.clock import SimulatedClock
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.network import SimulatedTransport
from pykbroker.sim.process import SimulatedProcess

from .whole_node import PORT, World, run_world


class Ticking:
    """Ticks once a second, in a child of the process's first task."""

    def __init__(self) -> None:
        self.process = SimulatedProcess()
        self.ticks: list[float] = []

    async def run(self) -> None:
        self.process.begin()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._tick)

    async def _tick(self) -> None:
        while True:
            await trio.sleep(1)
            self.ticks.append(trio.current_time())


def test_nothing_of_a_paused_process_runs_and_its_timers_run_out_when_it_goes_on() -> None:
    async def main() -> None:
        paused, running = Ticking(), Ticking()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(paused.run)
            nursery.start_soon(running.run)
            await trio.sleep(2.5)
            paused.process.pause()
            await trio.sleep(10)
            assert (len(paused.ticks), len(running.ticks)) == (2, 12)
            paused.process.resume()
            await trio.sleep(0.1)
            assert len(paused.ticks) == 3
            assert paused.ticks[2] == pytest.approx(trio.current_time() - 0.1)
            await trio.sleep(2)
            assert len(paused.ticks) == 5
            nursery.cancel_scope.cancel()

    run_deterministic(main, seed=1)


def test_two_processes_are_paused_at_a_time_and_each_goes_on_by_itself() -> None:
    async def main() -> None:
        both = [Ticking(), Ticking()]
        async with trio.open_nursery() as nursery:
            for ticking in both:
                nursery.start_soon(ticking.run)
            await trio.sleep(1.5)
            for ticking in both:
                ticking.process.pause()
            await trio.sleep(2)
            both[1].process.resume()
            await trio.sleep(1.5)
            assert [len(ticking.ticks) for ticking in both] == [1, 3]
            both[0].process.resume()
            nursery.cancel_scope.cancel()

    run_deterministic(main, seed=1)


def test_a_paused_node_accepts_connections_and_answers_when_it_goes_on() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        world.node.pause()
        await trio.lowlevel.checkpoint()
        late = await world.connect()
        with trio.move_on_after(60) as asking:
            await late.ask(ApiVersionsRequest(), 0)
        assert asking.cancelled_caught
        assert world.node.is_paused
        world.node.resume()
        await late.receive(18, 0)
        assert await world.produce(client, [b"after"]) == 0
        client.transport.close()
        late.transport.close()

    run_world(scenario, seed=1)


def test_a_paused_node_can_be_killed() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        await world.produce(client, [b"before"])
        world.node.pause()
        await trio.sleep(1)
        await world.node.kill()
        assert await client.is_closed()
        await world.start()
        assert await world.read_all(await world.connect()) == [b"before"]

    run_world(scenario, seed=1)


def test_a_run_may_end_while_a_node_is_paused() -> None:
    async def scenario(world: World) -> None:
        world.node.pause()
        await trio.sleep(1)

    run_world(scenario, seed=1)


def test_a_node_that_loses_its_power_silently_leaves_its_clients_waiting() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        await world.node.crash(silently=True)
        with trio.move_on_after(60) as waiting:
            await client.is_closed()
        assert waiting.cancelled_caught
        await world.start()
        with pytest.raises(trio.BrokenResourceError):
            await client.ask(ApiVersionsRequest(), 0)
        again = await world.network.connect("127.0.0.1", PORT)
        cast(SimulatedTransport, again).close()

    run_world(scenario, seed=1)


def test_a_clock_may_run_at_a_rate_of_its_own() -> None:
    async def main() -> None:
        true, slow = SimulatedClock(), SimulatedClock(5_000, rate=0.9)
        start = true.monotonic_ms(), slow.monotonic_ms()
        await trio.sleep(100)
        assert true.monotonic_ms() - start[0] == 100_000
        assert slow.monotonic_ms() - start[1] == 90_000
        assert slow.now_ms() == slow.monotonic_ms() + 5_000

    run_deterministic(main, seed=1)


def test_one_seed_gives_one_order_with_pauses() -> None:
    async def main() -> list[tuple[float, int]]:
        rng = random.Random(1)
        order: list[tuple[float, int]] = []

        async def note(number: int, process: SimulatedProcess) -> None:
            process.begin()
            for _ in range(5):
                await trio.sleep(0.5)
                order.append((trio.current_time(), number))

        async with trio.open_nursery() as nursery:
            processes = [SimulatedProcess() for _ in range(6)]
            for number, process in enumerate(processes):
                nursery.start_soon(note, number, process)
            for _ in range(3):
                await trio.sleep(rng.uniform(0, 1))
                for process in processes[::2]:
                    process.pause()
                await trio.sleep(rng.uniform(0, 1))
                for process in processes:
                    process.resume()
        return order

    assert run_deterministic(main, seed=5) == run_deterministic(main, seed=5)
    assert run_deterministic(main, seed=5) != run_deterministic(main, seed=6)
