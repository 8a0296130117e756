"""A node whose process dies again and again, or whose machine loses its power, while leaders of share partitions write:
what was acknowledged is in what is read later, and nothing that nobody has written.

Snapshots come often, also of share partitions that nobody writes for a moment, and the log is pruned all the time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import pytest
import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages import share_state as messages
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from pykbroker.sharing.coordinator.redundant_offsets import RedundantOffsets
from pykbroker.sharing.coordinator_key import coordinator_key
from pykbroker.sharing.persister import SharePartitionKey
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.process import ProcessDied
from tests.server.serving import Client
from tests.sim.whole_node import World
from tests.simulations import seed_groups, skip_when_time_is_up

SEEDS = 12
PARTITIONS = 4
_PROPERTIES = {
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.prune.interval.ms": "50",
    "share.coordinator.cold.partition.snapshot.interval.ms": "80",
    "log.flush.interval.messages": "1",
}
_WRITES = 60
_PASSING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)


class Lost(Exception):
    """Nobody knows what became of the request."""


@dataclass(slots=True)
class Written:
    """The offsets of a share partition. sure: acknowledged states. perhaps: states whose writes were not answered."""

    key: SharePartitionKey
    start_offset: int = 0
    perhaps_start_offset: int = 0
    sure: dict[int, tuple[int, int]] = field(default_factory=dict)
    perhaps: dict[int, set[tuple[int, int]]] = field(default_factory=dict)

    def check(self, row: Any) -> None:
        assert row.start_offset in (self.start_offset, self.perhaps_start_offset), row
        found = {
            offset: (batch.delivery_count, batch.delivery_state)
            for batch in row.state_batches
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        for offset, state in self.sure.items():
            if offset >= row.start_offset:
                assert found.get(offset, (0, 0)) >= state, f"{self.key}: offset {offset} of {row} was {state}"
        for offset, state in found.items():
            known = self.perhaps.get(offset, set()) | {self.sure.get(offset)}
            assert state in known, f"{self.key}: nobody wrote {state} of offset {offset}"


class Leaders:
    """The leaders of all share partitions, one write of each at a time."""

    def __init__(self, seed: int, nursery: trio.Nursery) -> None:
        self.rng = random.Random(seed)
        snapshots = {"share.coordinator.snapshot.update.records.per.snapshot": str(self.rng.choice((0, 1, 3, 7)))}
        self.world = World(seed, nursery, {**_PROPERTIES, **snapshots})
        self.written: list[Written] = []
        self.acknowledged = 0

    async def run(self, *, deaths: int) -> None:
        await self.world.start()
        await self._set_up()
        for _ in range(deaths):
            is_power_cut = self.rng.random() < 0.4
            node = self.world.node
            node.die_at(node.process.changes + self.rng.randint(20, 150), is_power_cut=is_power_cut)
            async with trio.open_nursery() as nursery:
                for written in self.written:
                    nursery.start_soon(self._lead, written)
            if not node.has_ended:
                await (node.crash() if is_power_cut else node.kill())
            node.die_at(None)
            await self._start_again()
            await self._read_all()
        async with trio.open_nursery() as nursery:
            for written in self.written:
                nursery.start_soon(self._lead, written)
        await self._read_all()

    async def _start_again(self) -> None:
        await self.world.node.wait_until_ended()
        while True:
            try:
                await self.world.start()
            except ProcessDied:
                continue
            return

    async def _set_up(self) -> None:
        client = await self.world.connect()
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=1)]
        )
        created: Any = await client.ask(request, 7)
        topic_id = created.topics[0].topic_id
        for index in range(PARTITIONS):
            written = Written(SharePartitionKey("group", topic_id, index))
            self.written.append(written)
            row = messages.InitializeShareGroupStateRequestPartitionData(partition=index, state_epoch=1, start_offset=0)
            topic = messages.InitializeStateData(topic_id=topic_id, partitions=[row])
            await self._ask(
                client, written, messages.InitializeShareGroupStateRequest(group_id="group", topics=[topic]), 0
            )

    async def _ask(self, client: Client, written: Written, request: Any, version: int) -> Any:
        """Return the row of the answer; errors that pass are tried again. Raises Lost."""
        try:
            while True:
                answer: Any = await client.ask(request, version)
                row = answer.results[0].partitions[0]
                if row.error_code not in _PASSING:
                    assert row.error_code == ErrorCode.NONE, row
                    return row
                find = FindCoordinatorRequest(key_type=2, coordinator_keys=[coordinator_key(written.key)])
                await client.ask(find, 6)
        except (OSError, EOFError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise Lost from error

    async def _lead(self, written: Written) -> None:
        """Write until that is enough, or the node is gone."""
        try:
            client = await self.world.connect()
        except OSError:
            return
        try:
            for _ in range(_WRITES):
                await self._write(client, written)
                if self.rng.random() < 0.1:
                    await trio.sleep(self.rng.choice((0.01, 0.2)))
        except Lost:
            return
        finally:
            client.transport.close()

    async def _write(self, client: Client, written: Written) -> None:
        first = written.start_offset + self.rng.randrange(20)
        batches = [
            messages.StateBatch(
                first_offset=begin,
                last_offset=begin + self.rng.randrange(4),
                delivery_state=self.rng.choice((0, 2, 3, 4)),
                delivery_count=self.rng.randint(1, 3),
            )
            for begin in (first, first + 5)
        ]
        start_offset = written.start_offset + self.rng.choice((0, 0, 1, 3))
        wanted = {
            offset: (batch.delivery_count, batch.delivery_state)
            for batch in batches
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        for offset, state in wanted.items():
            written.perhaps.setdefault(offset, set()).add(state)
        written.perhaps_start_offset = start_offset
        data = messages.WriteShareGroupStateRequestPartitionData(
            partition=written.key.partition,
            state_epoch=1,
            leader_epoch=0,
            start_offset=start_offset,
            state_batches=batches,
        )
        topic = messages.WriteStateData(topic_id=written.key.topic_id, partitions=[data])
        await self._ask(client, written, messages.WriteShareGroupStateRequest(group_id="group", topics=[topic]), 1)
        written.start_offset = start_offset
        for offset, state in wanted.items():
            written.sure[offset] = max(written.sure.get(offset, (0, 0)), state)
        self.acknowledged += 1

    async def _read_all(self) -> None:
        client = await self.world.connect()
        for written in self.written:
            row = messages.ReadShareGroupStateRequestPartitionData(partition=written.key.partition, leader_epoch=-1)
            topic = messages.ReadStateData(topic_id=written.key.topic_id, partitions=[row])
            request = messages.ReadShareGroupStateRequest(group_id="group", topics=[topic])
            read = await self._ask(client, written, request, 0)
            written.check(read)
            # What is read stays: the next leader goes on from there.
            written.start_offset = written.perhaps_start_offset = read.start_offset
            for batch in read.state_batches:
                for offset in range(batch.first_offset, batch.last_offset + 1):
                    written.sure[offset] = batch.delivery_count, batch.delivery_state
        client.transport.close()


def play(seed: int, *, deaths: int = 3) -> int:
    """Return how many writes were acknowledged."""

    async def main() -> int:
        async with trio.open_nursery() as nursery:
            leaders = Leaders(seed, nursery)
            await leaders.run(deaths=deaths)
            nursery.cancel_scope.cancel()
        return leaders.acknowledged

    return run_deterministic(main, seed=seed)


@seed_groups(SEEDS)
def test_what_is_acknowledged_is_read(seeds: range) -> None:
    acknowledged = 0
    for seed in seeds:
        skip_when_time_is_up()
        acknowledged += play(seed)
    assert acknowledged > 200 * len(seeds)


@contextmanager
def prunes_up_to_the_newest_snapshot() -> Iterator[None]:
    def end_offset(self: RedundantOffsets) -> int | None:
        return max(self._newest.values(), default=None)  # type: ignore[reportPrivateUsage]

    with patch.object(RedundantOffsets, "end_offset", end_offset):
        yield


def test_pruning_too_much_is_found() -> None:
    with prunes_up_to_the_newest_snapshot(), pytest.raises(BaseExceptionGroup) as raised:
        all(play(seed) for seed in range(SEEDS))
    assert raised.group_contains(AssertionError, match="Read operation on uninitialized|offset", depth=None)
