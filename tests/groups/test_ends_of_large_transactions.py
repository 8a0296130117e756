"""A transaction that ends with very many pending offsets: all of them count at once, and move some at a time."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

from pykbroker.groups.common.records import offset_commit_record
from pykbroker.groups.common.requests import FetchAllOffsets
from pykbroker.groups.offsets import pending_offsets
from pykbroker.groups.offsets.all_offsets import AllOffsets
from pykbroker.groups.offsets.committed_offsets import CommittedOffsets
from pykbroker.groups.offsets.pending_offsets import MOST_MOVED, PendingOffsets
from pykbroker.groups.shard import GroupShard
from pykbroker.long_work import whole
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pykbroker.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from pykbroker.replication.partition import ACKS_ALL
from pykbroker.server.coordinators.coordinator_log import encode_batches
from pykbroker.state_machine import CoordinatorContext
from pykbroker.storage.log.log import AppendOrigin
from tests.server.work_per_step import WorkPerStep

from .conversation import GROUP
from .test_driver import in_world
from .world import World, marker

PRODUCER = 7
MANY = 5 * MOST_MOVED

GROUPS, TOPICS, PARTITIONS, PRODUCERS = ("g", "h"), ("t", "u"), (0, 1), (1, 2)
PLACES = [(group, topic, partition) for group in GROUPS for topic in TOPICS for partition in PARTITIONS]


class Table:
    """What a shard knows of offsets. What has ended moves `most_moved` offsets at a time."""

    def __init__(self, most_moved: int) -> None:
        self.offsets = CommittedOffsets()
        with patch.object(pending_offsets, "MOST_MOVED", most_moved):
            self.pending = PendingOffsets(self.offsets)

    def do(self, what: str, place: tuple[str, str, int], producer: int, offset: int) -> None:
        group, topic, partition = place
        key, value = OffsetCommitKey(group=group, topic=topic, partition=partition), OffsetCommitValue(offset=offset)
        match what:
            case "write":
                self.pending.add(producer, key, value)
            case "commit" | "abort":
                self.pending.end(producer, is_commit=what == "commit")
            case "put":
                self.offsets.replay(key, value)
            case "delete":
                self.offsets.replay(key, None)
                self.pending.drop(*place)
            case "move":
                self.pending.move_some()

    def seen(self) -> Any:
        """By all who read: one offset, and all of a group."""
        return [self._seen_at(place) for place in PLACES], [self.all_of(group) for group in GROUPS]

    def _seen_at(self, place: tuple[str, str, int]) -> Any:
        return (
            self.pending.committed_offset(*place),
            self.pending.is_pending(*place),
            list(self.pending.offsets_at(*place)),
        )

    def all_of(self, group: str) -> Any:
        table = {name: dict(offsets) for name, offsets in self.offsets.of_group(group)}
        found = AllOffsets(ErrorCode.NONE, table, self.pending.as_of_now(group))
        pending = [(topic, each) for topic in TOPICS for each in PARTITIONS if found.is_pending(topic, each)]
        return whole(found.by_topic()), pending

    @property
    def index(self) -> Any:
        """Where offsets of deleted topics are looked for."""
        return {topic: sorted(self.offsets.groups_by_topic.groups_of(topic)) for topic in TOPICS}


OPERATIONS = st.tuples(
    st.sampled_from(["write", "write", "write", "commit", "abort", "put", "delete", "move"]),
    st.sampled_from(PLACES),
    st.sampled_from(PRODUCERS),
    st.integers(0, 9),
)


WRITTEN_WHILE_ANOTHER_TOPIC_MOVES = [
    ("write", ("h", "t", 0), 1, 0),
    ("write", ("g", "t", 0), 1, 0),
    ("commit", ("g", "t", 0), 1, 0),
    ("put", ("g", "u", 0), 1, 0),
]
DELETED_WHILE_A_TOPIC_MOVES = [
    ("write", ("g", "t", 0), 2, 0),
    ("write", ("g", "u", 0), 2, 0),
    ("write", ("g", "t", 1), 2, 0),
    ("commit", ("g", "t", 0), 2, 0),
    ("delete", ("g", "t", 0), 1, 0),
]


@example(WRITTEN_WHILE_ANOTHER_TOPIC_MOVES)
@example(DELETED_WHILE_A_TOPIC_MOVES)
@given(st.lists(OPERATIONS, max_size=40))
def test_nobody_sees_a_difference_while_offsets_of_transactions_move(operations: list[Any]) -> None:
    at_once, in_parts = Table(1000), Table(1)
    for operation in operations:
        at_once.do(*operation)
        in_parts.do(*operation)
        assert in_parts.seen() == at_once.seen()
    while in_parts.pending.move_some():
        pass
    assert in_parts.seen() == at_once.seen()
    assert in_parts.index == at_once.index
    # Topics of a group stand in the order in which they came into the table, which moves change, and nobody asks for.
    assert dict(in_parts.offsets.of_group("g")) == dict(at_once.offsets.of_group("g"))
    assert [place for place in PLACES if in_parts.pending.is_moving(*place)] == [
        place for place in PLACES if at_once.pending.is_pending(*place)
    ]


@given(st.lists(OPERATIONS, max_size=20), st.lists(OPERATIONS, max_size=20))
def test_all_offsets_of_a_group_stay_as_they_were_when_they_were_asked_for(before: list[Any], after: list[Any]) -> None:
    table = Table(1)
    for operation in before:
        table.do(*operation)
    expected = table.all_of("g")
    offsets = {name: dict(offsets) for name, offsets in table.offsets.of_group("g")}
    found = AllOffsets(ErrorCode.NONE, offsets, table.pending.as_of_now("g"))
    for operation in after:
        table.do(*operation)
    pending = [(topic, each) for topic in TOPICS for each in PARTITIONS if found.is_pending(topic, each)]
    assert (whole(found.by_topic()), pending) == expected


def with_many_pending(shard: GroupShard) -> None:
    for partition in range(MANY):
        record = offset_commit_record(GROUP, "events", partition, OffsetCommitValue(offset=partition))
        shard.replay_pending(PRODUCER, record.key, record.value)


def shard_of(world: World) -> GroupShard:
    shard = world.driver.shard(0)
    assert shard is not None
    return shard


async def told(world: World, request: Any) -> Any:
    return await world.driver.submit(GROUP, request, CoordinatorContext(api_version=9))


@pytest.mark.parametrize("is_commit", [True, False])
def test_the_end_of_a_large_transaction_shares_the_loop(monkeypatch: pytest.MonkeyPatch, is_commit: bool) -> None:
    work = WorkPerStep(monkeypatch, at_least=MANY, most=2 * MOST_MOVED)
    work.count(PendingOffsets, "_remove")

    async def main(world: World) -> None:
        shard = shard_of(world)
        with_many_pending(shard)
        with work.watching():
            world.driver.complete_transaction(0, marker(coordinator_epoch=0, is_commit=is_commit))
            while GROUP in shard.offsets.pending:
                await trio.lowlevel.checkpoint()
        assert shard.offsets.committed.count(GROUP) == (MANY if is_commit else 0)

    in_world(main)


def test_whoever_asks_right_behind_the_end_of_a_large_transaction_sees_all_of_it() -> None:
    async def main(world: World) -> None:
        shard = shard_of(world)
        with_many_pending(shard)
        world.driver.complete_transaction(0, marker(coordinator_epoch=0, is_commit=True))
        assert shard.offsets.committed.count(GROUP) < MANY
        found: AllOffsets = await told(world, FetchAllOffsets(group_id=GROUP))
        offsets = whole(found.by_topic())["events"]
        assert [offsets[each].offset for each in range(MANY)] == list(range(MANY))
        topics = [OffsetFetchRequestTopics(name="events", partition_indexes=list(range(MANY)))]
        groups = [OffsetFetchRequestGroup(group_id=GROUP, topics=topics)]
        (group,) = (await told(world, OffsetFetchRequest(groups=groups, require_stable=True))).groups
        assert [each.committed_offset for each in group.topics[0].partitions] == list(range(MANY))

    in_world(main)


def test_what_is_moved_while_a_log_is_loaded_shares_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard that is loaded has nothing left to do."""
    work = WorkPerStep(monkeypatch, at_least=MANY, most=3 * MOST_MOVED)
    work.count(PendingOffsets, "_remove")

    async def main(world: World) -> None:
        records = [offset_commit_record(GROUP, "events", each, OffsetCommitValue(offset=each)) for each in range(MANY)]
        for batch in encode_batches([records], 1, 100_000, producer=(PRODUCER, 0)):
            world.partitions[0].append_as_leader(batch, 1, ACKS_ALL, AppendOrigin.COORDINATOR)
        world.driver.complete_transaction(0, marker(coordinator_epoch=0, is_commit=True))
        with work.watching():
            world.elect(0)
            assert await world.driver.wait_until_active(0)
        assert GROUP not in shard_of(world).offsets.pending
        assert shard_of(world).offsets.committed.count(GROUP) == MANY

    in_world(main)
