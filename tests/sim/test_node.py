"""A whole node in a simulated world: reproducible, and honest about what a crash loses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import trio

from tests.sim.whole_node import World, produce_crash_and_read, run_world

ROOT = Path(__file__).parents[2]


def test_one_seed_gives_one_trace() -> None:
    first = run_world(produce_crash_and_read, seed=3)
    assert run_world(produce_crash_and_read, seed=3) == first
    assert run_world(produce_crash_and_read, seed=4) != first
    assert len(first) > 40


def test_one_seed_gives_one_trace_in_every_process() -> None:
    outputs = set()
    for hash_seed in ("0", "1", "12345"):
        done = subprocess.run(
            [sys.executable, "-m", "tests.sim.whole_node", "5"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_a_crash_loses_only_what_was_not_synced() -> None:
    """What is left is a beginning of what was written, whole and at the same offsets; the topic itself was synced."""
    lost = []

    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        written = [b"value %d" % number for number in range(50)]
        for at in range(0, 50, 5):
            await world.produce(client, written[at : at + 5])
        await world.node.crash()
        client.transport.close()
        await world.start()
        client = await world.connect()
        left = await world.read_all(client)
        assert left == written[: len(left)]
        lost.append(len(written) - len(left))
        assert await world.produce(client, [b"after"]) == len(left)
        client.transport.close()

    for seed in range(20):
        run_world(scenario, seed)
    assert max(lost) > 0, "a crash that never loses anything is none"
    assert min(lost) < 50, "and one that always loses everything is none either"


def test_a_clean_shutdown_loses_nothing() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        written = [b"value %d" % number for number in range(20)]
        await world.produce(client, written)
        client.transport.close()
        await world.node.stop()
        world.node.disk.crash()
        await world.start()
        client = await world.connect()
        assert await world.read_all(client) == written
        client.transport.close()

    for seed in range(10):
        run_world(scenario, seed)


def test_a_node_survives_many_crashes() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        for number in range(10):
            await world.produce(client, [b"before crash %d" % number])
            with trio.move_on_after(world.rng.uniform(0, 0.02)):
                while True:
                    await world.produce(client, [b"more"])
            await world.node.crash()
            client.transport.close()
            await world.start()
            client = await world.connect()
            await world.read_all(client)
        client.transport.close()

    for seed in range(10):
        run_world(scenario, seed)
