"""How long it takes until every member of a large group has its part of a new assignment, by either protocol."""

from __future__ import annotations

import itertools
import statistics
import time
from uuid import uuid4

import trio

from benchmarks.bench import Bench, Figures, Measure
from benchmarks.classic_members import ClassicMember, connections, run_together, settle
from benchmarks.consumer_members import ConsumerMember

MEMBERS = 50
TOPIC_PARTITIONS = 200
ROUNDS = 20
CONSUMER_ROUNDS = 3
DEADLINE_S = 120
PROPERTIES = {
    # A first member need not wait for others: what is measured is the work, not the patience.
    "group.initial.rebalance.delay.ms": "0",
    # A member of the consumer protocol learns of a change by its next heartbeat.
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
}

_numbers = itertools.count(1)


def classic_rebalance(bench: Bench) -> Figures:
    """All members of a stable group join again, each with another subscription; until each has its assignment."""
    return _run(bench, _classic, rounds=ROUNDS)


def consumer_rebalance(bench: Bench) -> Figures:
    """All members join a new group at once, by KIP-848; until each owns its part and no more, in the same epoch."""
    return _run(bench, _consumer, rounds=CONSUMER_ROUNDS)


def _run(bench: Bench, work: object, rounds: int) -> Figures:
    topic = f"rebalances-{next(_numbers)}"
    bench.create_topic(topic, TOPIC_PARTITIONS)
    count = max(int(rounds * bench.scale), 1)
    return bench.with_cpu(lambda: {"ms": 1000 * statistics.median(trio.run(work, bench, topic, count))})


async def _classic(bench: Bench, topic: str, rounds: int) -> list[float]:
    group_id = f"group-{uuid4()}"
    times = []
    with trio.fail_after(DEADLINE_S):
        async with connections(bench.broker.address, group_id, MEMBERS) as opened:
            members = [ClassicMember(connection, group_id, topic, TOPIC_PARTITIONS) for connection in opened]
            await settle(members)
            for _ in range(rounds):
                started = time.perf_counter()
                await run_together([member.rebalance for member in members])
                times.append(time.perf_counter() - started)
                assert len({member.generation_id for member in members}) == 1, "the members came together"
                assert sorted(_owned(members)) == list(range(TOPIC_PARTITIONS))
    return times


async def _consumer(bench: Bench, topic: str, rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        group_id = f"group-{uuid4()}"
        with trio.fail_after(DEADLINE_S):
            async with connections(bench.broker.address, group_id, MEMBERS) as opened:
                members = [ConsumerMember(connection, group_id, topic) for connection in opened]
                started = time.perf_counter()
                async with trio.open_nursery() as nursery:
                    changed = trio.Condition()
                    for member in members:
                        nursery.start_soon(member.live, changed)
                    async with changed:
                        while not _is_settled(members):
                            await changed.wait()
                    times.append(time.perf_counter() - started)
                    nursery.cancel_scope.cancel()
                await run_together([member.leave for member in members])
    return times


def _is_settled(members: list[ConsumerMember]) -> bool:
    share = TOPIC_PARTITIONS // MEMBERS
    return (
        len({member.epoch for member in members}) == 1
        and all(len(member.partitions) == share for member in members)
        and sorted(_owned(members)) == list(range(TOPIC_PARTITIONS))
    )


def _owned(members: list[ClassicMember] | list[ConsumerMember]) -> list[int]:
    return [partition for member in members for partition in member.partitions]


REBALANCES: dict[str, Measure] = {
    "rebalance, classic protocol": classic_rebalance,
    "rebalance, consumer protocol": consumer_rebalance,
}
