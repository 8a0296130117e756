"""Share groups through handlers and driver: state is created and deleted once what was decided is committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import trio

from pykbroker.groups.share.state_changes import ShareInitialization
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_admin import DeleteGroupsRequest, ListGroupsRequest
from pykbroker.protocol.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from pykbroker.server.coordinators.group_coordinator import CONSUMER_OFFSETS
from pykbroker.sharing.persister import Initialization, Outcome, SharePartitionKey
from tests.sharing.memory_persister import MemoryPersister, MemoryShareState

from .world import World, run_simulated

GROUP = "g"


class _Persister(MemoryPersister):
    """gate: initializations and deletions wait for it. asked: what was asked of it, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.gate: trio.Event | None = None
        self.asked: list[str] = []

    async def initialize(self, initializations: Sequence[Initialization]) -> list[Outcome]:
        self.asked.append("initialize")
        if self.gate is not None:
            await self.gate.wait()
        return await super().initialize(initializations)

    async def delete(self, keys: Sequence[SharePartitionKey]) -> list[Outcome]:
        self.asked.append("delete")
        if self.gate is not None:
            await self.gate.wait()
        return await super().delete(keys)


class _Node:
    def __init__(self, **config: str) -> None:
        self.world = World({"group.share.assignment.interval.ms": "0", **config})
        self.world.create_topic(CONSUMER_OFFSETS, 1)
        self.world.create_topic("events", 3)
        self.persister = _Persister()
        self.world.driver.share_states.persister = self.persister

    @property
    def events(self) -> bytes:
        return self.world.topic_ids["events"]

    async def beat(self, member_id: str, epoch: int = 0, *topics: str) -> Any:
        names = list(topics) if topics else (["events"] if not epoch else None)
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP, member_id=member_id, member_epoch=epoch, subscribed_topic_names=names
        )
        return await self.world.call(member_id, request, 1)

    async def joined(self, member_id: str) -> int:
        """Join, and go on until the member has partitions."""
        response = await self.beat(member_id)
        while response.error_code or response.assignment is None or not response.assignment.topic_partitions:
            assert not response.error_code
            await trio.sleep(1)
            response = await self.beat(member_id, response.member_epoch)
        epoch: int = response.member_epoch
        return epoch

    async def offsets(self) -> dict[int, tuple[int, int]]:
        """Start offset and lag by partition."""
        request = DescribeShareGroupOffsetsRequest(
            groups=[DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)]
        )
        (group,) = (await self.call(request, 1)).groups
        assert not group.error_code
        return {
            each.partition_index: (each.start_offset, each.lag) for topic in group.topics for each in topic.partitions
        }

    async def call(self, request: Any, version: int = 0) -> Any:
        return await self.world.call("admin", request, version)

    async def alter(self, **offsets: int) -> Any:
        partitions = [
            AlterShareGroupOffsetsRequestPartition(partition_index=int(name[1:]), start_offset=offset)
            for name, offset in offsets.items()
        ]
        topic = AlterShareGroupOffsetsRequestTopic(topic_name="events", partitions=partitions)
        return await self.call(AlterShareGroupOffsetsRequest(group_id=GROUP, topics=[topic]))

    async def delete(self) -> int:
        (result,) = (await self.call(DeleteGroupsRequest(groups_names=[GROUP]), 2)).results
        error_code: int = result.error_code
        return error_code

    def has_state(self, partition: int = 0) -> bool:
        return SharePartitionKey(GROUP, self.events, partition) in self.persister.state.shard.states


def _run(scenario: Callable[[_Node], Any], **config: str) -> None:
    async def main() -> None:
        node = _Node(**config)
        async with node.world.running():
            await node.world.driver.wait_until_active(0)
            await scenario(node)

    run_simulated(main)


def test_a_member_has_partitions_when_their_state_is_there() -> None:
    async def scenario(node: _Node) -> None:
        await node.joined("a")
        assert all(map(node.has_state, range(3)))
        assert await node.offsets() == dict.fromkeys(range(3), (-1, -1))

    _run(scenario)


def test_nothing_is_assigned_while_no_state_can_be_created() -> None:
    async def scenario(node: _Node) -> None:
        node.persister.errors.extend([ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3)
        response = await node.beat("a")
        for _ in range(3):
            await trio.sleep(1)
            response = await node.beat("a", response.member_epoch)
            assert response.assignment is None
        await trio.sleep(1)
        response = await node.beat("a", response.member_epoch)
        assert response.assignment is not None
        assert node.persister.asked == ["initialize"] * 4

    _run(scenario)


def test_a_node_without_a_persister_asks_again() -> None:
    async def scenario(node: _Node) -> None:
        node.world.driver.share_states.persister = None
        response = await node.beat("a")
        await trio.sleep(1)
        node.world.driver.share_states.persister = node.persister
        response = await node.beat("a", response.member_epoch)
        await trio.sleep(1)
        assert (await node.beat("a", response.member_epoch)).assignment is not None

    _run(scenario)


def test_the_next_coordinator_initializes_what_was_begun() -> None:
    async def scenario(node: _Node) -> None:
        node.persister.gate = trio.Event()
        epoch = (await node.beat("a")).member_epoch
        await trio.sleep(1)
        node.world.resign(0)
        node.persister.gate.set()
        await trio.sleep(1)
        node.world.elect(0)
        await node.world.driver.wait_until_active(0)
        assert (await node.beat("a", epoch)).assignment is None
        await trio.sleep(1)
        assert (await node.beat("a", epoch)).assignment is not None

    _run(scenario)


def test_an_append_that_is_refused_asks_nobody_for_anything() -> None:
    async def scenario(node: _Node) -> None:
        node.world.replicas.failure = ErrorCode.NOT_ENOUGH_REPLICAS
        assert (await node.beat("a")).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        await trio.sleep(1)
        assert node.persister.asked == []
        node.world.replicas.failure = None
        await node.world.driver.wait_until_active(0)
        await node.joined("a")

    _run(scenario)


def test_a_group_is_deleted_with_its_state() -> None:
    async def scenario(node: _Node) -> None:
        await node.joined("a")
        assert await node.delete() == ErrorCode.NON_EMPTY_GROUP
        assert node.has_state()
        await node.beat("a", -1)
        assert await node.delete() == ErrorCode.NONE
        assert not any(map(node.has_state, range(3)))
        assert (await node.call(ListGroupsRequest(), 5)).groups == []
        assert await node.delete() == ErrorCode.GROUP_ID_NOT_FOUND

    _run(scenario)


def test_a_group_is_deleted_whose_topic_was_deleted_while_nobody_coordinated_it() -> None:
    async def scenario(node: _Node) -> None:
        await node.world.make_topic("letters", 1)
        image = node.world.image
        node.persister.state = MemoryShareState(
            partition_count=lambda topic_id: (
                0 if (found := image.topic_by_id(topic_id)) is None else len(found.partitions)
            )
        )
        response = await node.beat("a", 0, "events", "letters")
        await trio.sleep(1)
        response = await node.beat("a", response.member_epoch)
        await trio.sleep(1)
        await node.beat("a", -1)
        letters = SharePartitionKey(GROUP, node.world.topic_ids["letters"], 0)
        assert node.has_state()
        assert letters in node.persister.state.shard.states
        node.world.resign(0)
        node.world.delete_topic("letters")
        node.world.elect(0)
        await node.world.driver.wait_until_active(0)
        assert await node.delete() == ErrorCode.NONE
        assert not node.has_state()

    _run(scenario)


def test_a_group_whose_state_cannot_be_deleted_stays_and_can_be_deleted_again() -> None:
    async def scenario(node: _Node) -> None:
        await node.joined("a")
        await node.beat("a", -1)
        node.persister.errors.append(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert await node.delete() == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert node.has_state()
        assert len((await node.call(ListGroupsRequest(), 5)).groups) == 1
        assert await node.delete() == ErrorCode.NONE
        assert not node.has_state()

    _run(scenario)


def test_a_deletion_waits_for_an_initialization_and_takes_its_state_along() -> None:
    async def scenario(node: _Node) -> None:
        node.persister.gate = trio.Event()
        await node.beat("a")
        await node.beat("a", -1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.delete)
            await trio.sleep(1)
            assert node.persister.asked == ["initialize"]
            node.persister.gate.set()
        assert node.persister.asked == ["initialize", "delete"]
        assert not any(map(node.has_state, range(3)))
        assert (await node.call(ListGroupsRequest(), 5)).groups == []

    _run(scenario)


def test_a_client_that_leaves_while_its_group_is_deleted_can_ask_again() -> None:
    async def scenario(node: _Node) -> None:
        node.persister.gate = trio.Event()
        await node.beat("a")
        await node.beat("a", -1)
        with trio.move_on_after(1):
            await node.delete()
        node.persister.gate.set()
        await trio.sleep(1)
        assert node.world.driver.share_states._turns == {}
        assert await node.delete() == ErrorCode.NONE
        assert not node.has_state()

    _run(scenario)


def test_a_deletion_ends_with_the_coordinator_that_began_with_it() -> None:
    """The next coordinator may create the state again, which an old deletion that is tried again would take away."""

    async def scenario(node: _Node) -> None:
        await node.beat("a", await node.joined("a"))
        await node.beat("a", -1)
        node.persister.gate = trio.Event()
        answers: list[int] = []

        async def delete() -> None:
            answers.append(await node.delete())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(delete)
            await trio.sleep(1)
            node.world.resign(0)
            await trio.sleep(1)
            assert answers == [ErrorCode.NOT_COORDINATOR]
            node.world.elect(0)
            await node.world.driver.wait_until_active(0)
            joining = await node.beat("a")
            assert not joining.error_code
            await trio.sleep(1)
            node.persister.gate.set()
            await node.joined("a")
        await trio.sleep(60)
        assert all(map(node.has_state, range(3)))

    _run(scenario)


def test_an_initialization_that_is_about_to_begin_may_be_given_up() -> None:
    async def scenario(node: _Node) -> None:
        states = node.world.driver.share_states
        node.persister.gate = trio.Event()
        await node.beat("a")
        await trio.sleep(1)
        assert node.persister.asked == ["initialize"]
        states.begin(ShareInitialization(GROUP, 2, {node.events: frozenset({0})}))
        node.world.resign(0)
        await trio.sleep(1)
        assert not states._turns
        assert not states._wanted

    _run(scenario)


def test_offsets_are_altered_and_a_member_begins_there() -> None:
    async def scenario(node: _Node) -> None:
        altered = await node.alter(p0=7, p2=0, p9=1)
        assert altered.error_code == ErrorCode.NONE
        (topic,) = altered.responses
        assert topic.topic_id == node.events
        assert {each.partition_index: each.error_code for each in topic.partitions} == {
            0: ErrorCode.NONE,
            2: ErrorCode.NONE,
            9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        await node.joined("a")
        await trio.sleep(1)
        assert await node.offsets() == {0: (7, -7), 1: (-1, -1), 2: (0, 0)}
        refused = await node.alter(p0=1)
        assert (refused.error_code, refused.responses) == (ErrorCode.NON_EMPTY_GROUP, [])

    _run(scenario)


def test_an_alteration_that_the_share_coordinator_refuses_is_told_by_partition() -> None:
    async def scenario(node: _Node) -> None:
        node.persister.errors.append(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        (topic,) = (await node.alter(p0=7)).responses
        assert [each.error_code for each in topic.partitions] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        assert await node.offsets() == {}

    _run(scenario)


def test_offsets_are_deleted() -> None:
    async def scenario(node: _Node) -> None:
        await node.joined("a")
        topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in ("events", "missing")]
        request = DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=topics)
        assert (await node.call(request)).error_code == ErrorCode.NON_EMPTY_GROUP
        await node.beat("a", -1)
        deleted = await node.call(request)
        assert {topic.topic_name: topic.error_code for topic in deleted.responses} == {
            "events": ErrorCode.NONE,
            "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert not node.has_state()
        assert await node.offsets() == {}
        (topic,) = (await node.call(DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=topics[:1]))).responses
        assert topic.error_message == "There is no offset information to delete."

    _run(scenario)


def test_offsets_of_topics_that_are_not_there_are_no_errors() -> None:
    async def scenario(node: _Node) -> None:
        topics = [
            DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0]) for name in ("events", "missing")
        ]
        asked = [
            DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=topics),
            DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=[]),
        ]
        some, none = (await node.call(DescribeShareGroupOffsetsRequest(groups=asked), 1)).groups
        assert none.topics == []
        assert not none.error_code
        found = {topic.topic_name: topic.partitions[0] for topic in some.topics}
        assert {name: (each.start_offset, each.lag, each.error_code) for name, each in found.items()} == {
            "events": (-1, -1, 0),
            "missing": (-1, -1, 0),
        }

    _run(scenario)


def test_member_ids_have_a_length() -> None:
    async def scenario(node: _Node) -> None:
        for member_id in ("", "m" * 37):
            refused = await node.beat(member_id)
            assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, None)
        assert not (await node.beat("m" * 36)).error_code

    _run(scenario)


def test_a_group_has_settings_of_its_own() -> None:
    async def scenario(node: _Node) -> None:
        assert (await node.beat("a")).heartbeat_interval_ms == 7_000
        request = ShareGroupDescribeRequest(group_ids=[GROUP, ""])
        described, unnamed = (await node.call(request, 1)).groups
        assert (described.group_state, len(described.members)) == ("Stable", 1)
        assert unnamed.error_code == ErrorCode.INVALID_GROUP_ID

    _run(scenario, **{"group.share.heartbeat.interval.ms": "7000"})
