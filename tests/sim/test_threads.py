"""Simulated threads take turns with the event loop and each other, as real ones do, in an order that the seed draws."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from types import SimpleNamespace

import pytest
import trio
import trio.testing

from pykbroker.server.runtime.threads import Threads, WorkerThreads
from pykbroker.sim.clock import SimulatedClock
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.sim.interleaving import LoopWaits
from pykbroker.sim.process import ProcessDied, SimulatedProcess
from pykbroker.sim.process_disk import ProcessDisk
from pykbroker.sim.threads import SimulatedThreads, cpu_of_threads_s
from pykbroker.storage.files.disk import Turn

from .whole_node import World, run_world

STEPS = 20


class Machine:
    """A disk and the threads that work on it. order: what happened."""

    def __init__(self, seed: int = 1) -> None:
        self.disk = ProcessDisk(SimulatedDisk(random.Random(seed)), self.die)
        self.threads = SimulatedThreads(random.Random(seed))
        self.order: list[str] = []

    def die(self) -> None:
        self.disk.is_dead = True
        self.threads.die()

    def work(self, name: str) -> str:
        for number in range(STEPS):
            self.disk.make_directory(f"/{name}{number}")
            self.order.append(name)
        return name

    async def tick(self) -> None:
        for _ in range(STEPS):
            await trio.lowlevel.checkpoint()
            self.order.append("loop")


def run(main: Callable[[], Awaitable[None]], seed: int = 1) -> None:
    run_deterministic(main, seed=seed)


def order_of(seed: int) -> list[str]:
    machine = Machine(seed)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(machine.threads.run, machine.work, "a")
            nursery.start_soon(machine.threads.run, machine.work, "b")
            while len(machine.order) < 2 * STEPS:
                machine.order.append("loop")
                await trio.sleep(0.0005)

    run(main, seed)
    return machine.order


def test_threads_and_the_loop_take_turns_in_an_order_that_the_seed_draws() -> None:
    order = order_of(1)
    for name in ("a", "b"):
        first = order.index(name)
        last = len(order) - 1 - order[::-1].index(name)
        assert set(order[first:last]) == {"a", "b", "loop"}, f"{name} runs in one piece"
    assert order_of(1) == order
    assert order_of(2) != order


def test_a_change_and_what_follows_it_are_not_one() -> None:
    """What a thread concludes from an operation that has succeeded comes later than that."""
    apart = 0

    async def main() -> None:
        nonlocal apart
        for number in range(50):
            machine = Machine(number)
            done = trio.Event()

            async def work(machine: Machine = machine, done: trio.Event = done) -> None:
                await machine.threads.run(machine.disk.make_directory, "/a")
                done.set()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(work)
                while not done.is_set():
                    apart += machine.disk.disk.exists("/a")
                    await trio.sleep(0.0001)

    run(main)
    assert apart > 10


@pytest.fixture(params=["simulated", "real"])
def run_threads(request: pytest.FixtureRequest) -> Callable[[Callable[[Threads], Awaitable[None]]], None]:
    """Run a test with either kind of threads."""

    def run_with(main: Callable[[Threads], Awaitable[None]]) -> None:
        if request.param == "real":
            trio.run(main, WorkerThreads())
        else:
            run_deterministic(main, SimulatedThreads(random.Random(1)), seed=1)

    return run_with


RunThreads = Callable[[Callable[[Threads], Awaitable[None]]], None]


def test_a_result_and_an_exception_travel(run_threads: RunThreads) -> None:
    async def main(threads: Threads) -> None:
        assert await threads.run(divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await threads.run(divmod, 7, 0)

    run_threads(main)


def test_context_variables_are_a_copy(run_threads: RunThreads) -> None:
    variable = ContextVar("variable", default="unset")

    def change() -> str:
        before = variable.get()
        variable.set("by the thread")
        return before

    async def main(threads: Threads) -> None:
        variable.set("by the task")
        assert await threads.run(change) == "by the task"
        assert variable.get() == "by the task"

    run_threads(main)


def test_trio_is_out_of_reach_of_a_thread(run_threads: RunThreads) -> None:
    async def main(threads: Threads) -> None:
        for step in (trio.current_time, trio.lowlevel.current_task, trio.lowlevel.spawn_system_task):
            arguments = (trio.sleep, 0) if step is trio.lowlevel.spawn_system_task else ()
            with pytest.raises(RuntimeError):
                await threads.run(step, *arguments)

    run_threads(main)


def test_a_function_that_has_begun_runs_to_its_end_whoever_is_cancelled(run_threads: RunThreads) -> None:
    async def main(threads: Threads) -> None:
        with trio.CancelScope() as scope:

            async def cancel_soon() -> None:
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()

            async with trio.open_nursery() as outside:
                outside.start_soon(cancel_soon)
                assert await threads.run(divmod, 7, 2) == (3, 1)

    run_threads(main)


def test_a_thread_reads_the_clock_of_its_node() -> None:
    async def main() -> None:
        clock = SimulatedClock()
        await trio.sleep(5)
        assert await SimulatedThreads(random.Random(1)).run(clock.monotonic_ms) >= 5000

    run(main)


def test_so_many_threads_run_at_a_time_and_no_more() -> None:
    machine = Machine()
    machine.threads = SimulatedThreads(random.Random(1), limit=3)
    running: set[int] = set()
    most = 0

    def work(number: int) -> None:
        nonlocal most
        running.add(number)
        most = max(most, len(running))
        machine.work(f"{number}.")
        running.remove(number)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(machine.threads.run, work, number)

    run(main)
    assert most == 3


def test_a_process_that_dies_in_a_thread_ends_all_threads_where_they_stand() -> None:
    machine = Machine()
    machine.disk.dies_at = 10
    ends: list[float] = []

    async def work(name: str) -> None:
        with pytest.raises(ProcessDied):
            await machine.threads.run(machine.work, name)
        ends.append(trio.current_time())

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for name in "abc":
                nursery.start_soon(work, name)

    run(main)
    assert len(set(ends)) == 1, "nobody stands still for longer than the process lives"
    assert len(machine.order) <= machine.disk.changes == 10
    assert len(machine.disk.disk.list_directory("/")) == 10


def test_a_thread_of_a_dead_process_does_not_begin() -> None:
    machine = Machine()

    async def main() -> None:
        machine.die()
        with pytest.raises(ProcessDied):
            await machine.threads.run(machine.order.append, "begun")

    run(main)
    assert not machine.order


def test_the_threads_of_a_paused_process_stand_still() -> None:
    machine, process = Machine(), SimulatedProcess()

    async def run_process() -> None:
        process.begin()
        await machine.threads.run(machine.work, "a")

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_process)
            while not machine.order:  # noqa: ASYNC110 - nobody tells
                await trio.sleep(0.0001)
            process.pause()
            await trio.sleep(60)
            assert 0 < len(machine.order) < STEPS
            process.resume()
        assert len(machine.order) == STEPS

    run(main)


def hold(turn: Turn, machine: Machine, name: str) -> None:
    with turn:
        machine.work(name)


def test_threads_wait_for_the_turn_of_another_one() -> None:
    machine = Machine()
    turn = machine.disk.turn()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for name in "abc":
                nursery.start_soon(machine.threads.run, hold, turn, machine, name)
            nursery.start_soon(machine.tick)

    run(main)
    turns = [name for name in machine.order if name != "loop"]
    assert sorted(turns[::STEPS]) == ["a", "b", "c"]
    assert turns == [name for name in turns[::STEPS] for _ in range(STEPS)]


def test_an_event_loop_that_waits_for_the_turn_of_a_thread_is_a_fault() -> None:
    machine = Machine()
    turn = machine.disk.turn()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(machine.threads.run, hold, turn, machine, "a")
            while not turn.locked():  # noqa: ASYNC110 - nobody tells
                await trio.sleep(0.0001)
            with pytest.raises(LoopWaits):
                hold(turn, machine, "loop")
        hold(turn, machine, "loop")

    run(main)


def test_the_cpu_of_threads_is_what_passes_within_them(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    now_s = 0.0

    def compute(cpu_s: float) -> None:
        nonlocal now_s
        now_s += cpu_s

    def work() -> None:
        for number in range(STEPS):
            compute(1)
            machine.disk.make_directory(f"/{number}")

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(machine.threads.run, work)
            for _ in range(1000):
                compute(100)
                await trio.lowlevel.checkpoint()

    monkeypatch.setattr("pykbroker.sim.threads.time", SimpleNamespace(thread_time=lambda: now_s))
    before_s = cpu_of_threads_s()
    run(main)
    assert cpu_of_threads_s() - before_s == pytest.approx(STEPS)


def test_a_node_that_is_killed_while_its_threads_stand_still_ends_at_once() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        await world.produce(client, [b"before"])
        start_s = trio.current_time()
        await world.node.kill()
        assert trio.current_time() == start_s
        client.transport.close()
        await world.start()
        client = await world.connect()
        assert await world.read_all(client) == [b"before"]
        client.transport.close()

    for seed in range(5):
        run_world(scenario, seed)
