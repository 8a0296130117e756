"""The state of share partitions on a whole node in simulated time: requests of other brokers, its own, and its log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from pykbroker.metadata.topic_names import SHARE_STATE_TOPIC
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages import share_state
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.share_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateRequestPartitionData,
    DeleteStateData,
    ReadShareGroupStateRequest,
    ReadShareGroupStateRequestPartitionData,
    ReadStateData,
    WriteShareGroupStateRequest,
    WriteShareGroupStateRequestPartitionData,
    WriteStateData,
)
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pykbroker.server.node.broker import Broker
from pykbroker.sharing.coordinator_key import coordinator_key
from pykbroker.sharing.persister import (
    Initialization,
    Outcome,
    PartitionState,
    Reading,
    SharePartitionKey,
    StateBatch,
    Writing,
)
from pykbroker.sim.determinism import run_deterministic
from tests.api.api_node import ApiNode, in_virtual_time
from tests.server.serving import Client
from tests.sim.whole_node import World

TOPIC = "orders"
_FEW = {"share.coordinator.state.topic.num.partitions": "3"}
NONE = ErrorCode.NONE


class Sharing:
    """A node with one topic of two partitions, and a client that asks as another broker does."""

    def __init__(self, world: World, client: Client) -> None:
        self.world = world
        self.client = client
        self.topic_id = bytes(16)

    @property
    def broker(self) -> Broker:
        node = self.world.node._node  # type: ignore[reportPrivateUsage]
        assert node is not None
        assert node.parts is not None
        role = node.parts.broker_role
        assert role is not None
        return role.broker

    @property
    def persister(self) -> Any:
        return self.broker.persister

    def key(self, partition: int = 0, group_id: str = "group") -> SharePartitionKey:
        return SharePartitionKey(group_id, self.topic_id, partition)

    async def ask(self, request: Any, version: int) -> Any:
        return await self.client.ask(request, version)

    async def create_topic(self) -> None:
        request = CreateTopicsRequest(topics=[CreatableTopic(name=TOPIC, num_partitions=2, replication_factor=1)])
        (topic,) = (await self.ask(request, 7)).topics
        assert topic.error_code == NONE
        self.topic_id = topic.topic_id

    async def delete_topic(self) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=self.topic_id, name=None)])
        assert (await self.ask(request, 6)).responses[0].error_code == NONE

    async def initialize(self, *keys: SharePartitionKey, state_epoch: int = 1, start_offset: int = 0) -> None:
        outcomes = await self.persister.initialize([Initialization(key, state_epoch, start_offset) for key in keys])
        assert outcomes == [Outcome(key) for key in keys]

    async def write(self, key: SharePartitionKey, *batches: StateBatch) -> Outcome:
        (outcome,) = await self.persister.write([Writing(key, 1, 0, -1, 0, batches)])
        return outcome

    async def batches(self, key: SharePartitionKey) -> tuple[StateBatch, ...]:
        (state,) = await self.persister.read([Reading(key, -1)])
        assert state.error_code is NONE, state
        return state.batches

    async def start_again(self) -> None:
        """Let the process die, and start the node again."""
        await self.world.node.kill()
        await self.world.node.wait_until_ended()
        self.client.transport.close()
        await self.world.start()
        self.client = await self.world.connect()

    @property
    def states(self) -> dict[SharePartitionKey, Any]:
        coordinator = self.broker.share_coordinator
        shards = [coordinator.shard(index) for index in coordinator.active_partitions]
        return {key: state for shard in shards if shard is not None for key, state in shard.states.items()}

    def log_starts(self) -> list[int]:
        partitions = [self.broker.partitions.get_partition(SHARE_STATE_TOPIC, index) for index in range(3)]
        return [each.log.log_start_offset for each in partitions if not isinstance(each, ErrorCode)]


def sharing(main: Callable[[Sharing], Awaitable[None]], **overrides: str) -> None:
    async def run() -> None:
        async with trio.open_nursery() as nursery:
            properties = {name.replace("_", "."): value for name, value in overrides.items()}
            world = World(1, nursery, {**_FEW, **properties})
            await world.start()
            node = Sharing(world, await world.connect())
            await node.create_topic()
            await main(node)
            nursery.cancel_scope.cancel()

    run_deterministic(run, seed=1)


def test_what_the_persister_writes_is_read_also_after_a_crash() -> None:
    async def main(node: Sharing) -> None:
        keys = [node.key(partition, group) for group in ("a", "b") for partition in range(2)]
        await node.initialize(*keys)
        for number, key in enumerate(keys):
            assert await node.write(key, StateBatch(number, number + 5, 2, 1)) == Outcome(key)
        for _ in range(2):
            for number, key in enumerate(keys):
                assert await node.batches(key) == (StateBatch(number, number + 5, 2, 1),)
            await node.start_again()

    sharing(main)


def test_other_brokers_are_answered_as_the_persister() -> None:
    async def main(node: Sharing) -> None:
        await node.initialize(node.key())
        batch = share_state.StateBatch(first_offset=3, last_offset=4, delivery_state=2, delivery_count=1)
        data = WriteShareGroupStateRequestPartitionData(partition=0, state_epoch=1, leader_epoch=0, start_offset=3)
        data.state_batches = [batch]
        topic = WriteStateData(topic_id=node.topic_id, partitions=[data])
        response = await node.ask(WriteShareGroupStateRequest(group_id="group", topics=[topic]), 1)
        (row,) = response.results[0].partitions
        assert (row.partition, row.error_code, row.error_message) == (0, NONE, None)

        rows = [ReadShareGroupStateRequestPartitionData(partition=index, leader_epoch=0) for index in (0, 1)]
        asked = ReadStateData(topic_id=node.topic_id, partitions=rows)
        response = await node.ask(ReadShareGroupStateRequest(group_id="group", topics=[asked]), 0)
        first, second = response.results[0].partitions
        assert (first.error_code, first.state_epoch, first.start_offset) == (NONE, 1, 3)
        assert [each.last_offset for each in first.state_batches] == [4]
        assert second.error_code == ErrorCode.INVALID_REQUEST
        assert second.error_message == "Read operation on uninitialized share partition not allowed."

        gone = DeleteShareGroupStateRequestPartitionData(partition=0)
        deletion = DeleteStateData(topic_id=node.topic_id, partitions=[gone])
        response = await node.ask(DeleteShareGroupStateRequest(group_id="group", topics=[deletion]), 0)
        assert response.results[0].partitions[0].error_code == NONE
        assert not node.states

    sharing(main)


def test_topics_without_partitions_are_passed_over_where_state_begins_and_end_everything_else() -> None:
    async def main(node: Sharing) -> None:
        await node.initialize(node.key(1))
        row = share_state.InitializeShareGroupStateRequestPartitionData(partition=1, state_epoch=2, start_offset=-1)
        topics = [
            share_state.InitializeStateData(topic_id=node.topic_id),
            share_state.InitializeStateData(topic_id=node.topic_id, partitions=[row]),
        ]
        begin = share_state.InitializeShareGroupStateRequest(group_id="group", topics=topics)
        (result,) = (await node.ask(begin, 0)).results
        assert [(each.partition, each.error_code) for each in result.partitions] == [(1, NONE)]
        begin.topics = topics[:1]
        assert (await node.ask(begin, 0)).results == []
        asked = [ReadStateData(topic_id=node.topic_id), ReadStateData(topic_id=node.topic_id)]
        asked[1].partitions = [ReadShareGroupStateRequestPartitionData(partition=1, leader_epoch=0)]
        assert (await node.ask(ReadShareGroupStateRequest(group_id="group", topics=asked), 0)).results == []

    sharing(main)


@pytest.mark.parametrize("group_id", ["group", ""])
def test_request_that_names_nothing_is_answered_with_nothing(group_id: str) -> None:
    async def main(node: Sharing) -> None:
        empty = ReadStateData(topic_id=node.topic_id, partitions=[])
        for topics in ([], [empty]):
            request = ReadShareGroupStateRequest(group_id=group_id, topics=topics)
            assert (await node.ask(request, 0)).results == []

    sharing(main)


def test_coordinator_of_a_share_partition_is_found() -> None:
    async def main(node: Sharing) -> None:
        async def find(keys: Sequence[str], version: int = 6) -> list[tuple[int, int]]:
            request = FindCoordinatorRequest(key_type=2, coordinator_keys=list(keys))
            return [(each.error_code, each.node_id) for each in (await node.ask(request, version)).coordinators]

        good = coordinator_key(node.key())
        refused = (ErrorCode.INVALID_REQUEST, -1)
        assert await find([good, "group", f"{good}x", f":{good}"]) == [(NONE, 1), refused, refused, (NONE, 1)]
        assert await find([good], version=5) == [refused]

    sharing(main)


def test_state_goes_with_its_topic() -> None:
    async def main(node: Sharing) -> None:
        await node.initialize(node.key(0), node.key(1), node.key(0, "other"))
        assert len(node.states) == 3
        await node.delete_topic()
        await trio.sleep(1)
        assert not node.states
        await node.start_again()
        assert not node.states
        (state,) = await node.persister.read_summary([Reading(node.key(), -1)])
        assert state.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    sharing(main)


def test_redundant_records_are_deleted_and_nothing_is_lost() -> None:
    async def main(node: Sharing) -> None:
        keys = [node.key(0), node.key(1)]
        await node.initialize(*keys)
        for offset in range(50):
            for key in keys:
                await node.write(key, StateBatch(2 * offset, 2 * offset, 2, 1))
        await trio.sleep(1.1)
        starts = node.log_starts()
        assert any(start > 10 for start in starts), starts
        await node.start_again()
        assert node.log_starts() == starts
        for key in keys:
            assert len(await node.batches(key)) == 50

    sharing(
        main,
        **{
            "share.coordinator.snapshot.update.records.per.snapshot": "5",
            "share.coordinator.state.topic.prune.interval.ms": "1000",
        },
    )


def test_topic_that_nobody_knows_is_not_asked_for_again_and_again() -> None:
    async def main(node: Sharing) -> None:
        key = SharePartitionKey("group", b"x" * 16, 0)
        await node.initialize(node.key())
        began = trio.current_time()
        (outcome,) = await node.persister.initialize([Initialization(key, 1, 0)])
        assert outcome.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert trio.current_time() - began < 1

    sharing(main)


def test_states_of_many_share_partitions_are_asked_for_at_once() -> None:
    async def main(node: Sharing) -> None:
        keys = [node.key(number % 2, f"group-{number // 2}") for number in range(1000)]
        await node.initialize(*keys)
        outcomes = await node.persister.write([Writing(key, 1, 0, 7, 0, ()) for key in keys])
        assert outcomes == [Outcome(key) for key in keys]
        states = await node.persister.read_summary([Reading(key, -1) for key in keys])
        assert states == [PartitionState(key, 1, 0, 7, 0) for key in keys]
        assert await node.persister.delete(keys) == outcomes
        assert not node.states

    sharing(main)


def test_an_election_while_the_coordinator_ends_begins_nothing(tmp_path: Path) -> None:
    """Shards load, metadata arrive and tasks end in any order: a nursery that closes takes no more tasks."""

    async def run() -> None:
        node = ApiNode(tmp_path)
        node.create_topic(SHARE_STATE_TOPIC, 20, replicas=[1, 2])

        async def elect() -> None:
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    for index in range(20):
                        node.change_partition(SHARE_STATE_TOPIC, index, leader=2)
                        node.change_partition(SHARE_STATE_TOPIC, index, leader=1)
                        await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(elect)
            await nursery.start(node.sharing.run)
            await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        node.close()

    in_virtual_time(run)
