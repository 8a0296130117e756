"""Loads of a partition of `__consumer_offsets` that was compacted before, or is compacted meanwhile.

Compaction keeps the latest record of each key in its place, and tombstones for a time. A load that began before sees
the log as it was up to some offset, and what compaction left of it from there on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest

from pykbroker.groups.classic.classic_group import ClassicGroup
from pykbroker.groups.common.config import GroupConfig
from pykbroker.groups.common.records import decode_record
from pykbroker.groups.consumer.consumer_group import ConsumerGroup
from pykbroker.groups.shard import GroupShard
from pykbroker.protocol.messages.group_records import GroupMetadataKey, OffsetCommitKey
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.replication.partition import ACKS_ALL
from pykbroker.server.coordinators import coordinator_loading
from pykbroker.server.coordinators.coordinator_log import DecodedPiece, decode_piece
from pykbroker.server.coordinators.group_coordinator import CONSUMER_OFFSETS
from tests.storage.batches import config
from tests.storage.cleaning import clean
from tests.trials import state_of

from . import (  # noqa: F401 - registers their scenarios
    classic_scenarios,
    consumer_scenarios,
    migration_scenarios,
    share_scenarios,
)
from .compacted_log import Pair, compacted, overtaken
from .consumer_requests import consumer_beat
from .conversation import GROUP, Conversation
from .migration_scenarios import assignment, rejoin
from .scenarios import CONFIG, SCENARIOS, TOPICS, commit, sync
from .session import Session
from .topics import ChangingTopics
from .world import World, run_simulated


def load(log: Sequence[Pair]) -> GroupShard:
    """Raises BadRecord."""
    shard = GroupShard(GroupConfig(), Random(1), ChangingTopics(events=3))
    for key, value in log:
        record = decode_record(key, value)
        shard.replay(record.key, record.value)
    return shard


def content_of(shard: GroupShard) -> Any:
    """Without groups that exist for the sake of offsets that are not there any more, and how many there were."""
    state = state_of(shard)
    del state[1]["last_order"]
    for group_id, group in shard.groups.items():
        if isinstance(group, ClassicGroup) and group.is_simple and not shard.offsets.committed.of_group(group_id):
            del state[0][group_id]
    return state


def logs_of(name: str) -> Iterator[list[Pair]]:
    """The partitions of `__consumer_offsets` after a scenario."""
    world = World(CONFIG)

    async def main() -> None:
        for topic in TOPICS:
            world.create_topic(topic, 3)
        world.create_topic(CONSUMER_OFFSETS, 3)
        async with world.running():
            await world.sleep(1000)
            await SCENARIOS[name](Session(world))

    run_simulated(main)
    for partition in world.partitions.values():
        end_offset = partition.log.log_end_offset
        if end_offset:
            data = partition.log.read(0, 1 << 20, max_offset=end_offset).read()
            records = [record for batch in iter_batches(data) for record in iter_records(batch)]
            yield [(record.key or b"", record.value) for record in records]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_log_means_the_same_wherever_compaction_overtakes_its_load(name: str) -> None:
    """KAFKA-19862: records that took something from a member are missing, and what came of them is not."""
    for log in logs_of(name):
        expected = content_of(load(log))
        assert content_of(load([pair for _, pair in compacted(log, keeps_tombstones=False)])) == expected
        for at in range(len(log) + 1):
            assert content_of(load(overtaken(log, at))) == expected, f"overtaken at {at}"


def upgraded() -> list[Pair]:
    """A classic group that committed offsets, and that the consumer protocol took over."""
    talk = Conversation(ChangingTopics(events=3))
    talk.ask("first", rejoin(GROUP, ""), 3)
    talk.advance(0)
    member_id = talk.answers["first"].member_id
    talk.ask("sync", sync(GROUP, 1, member_id, {member_id: assignment(events=[0, 1, 2])}), 5)
    committed = commit(GROUP, {"events": {0: (5, "")}}, generation=1, member_id=member_id)
    talk.ask("commit", committed, 8)
    talk.ask("join", consumer_beat(GROUP, "new", topics=["events"]), 1)
    return [record.encode() for record in talk.records]


def test_offsets_of_a_classic_group_come_before_the_consumer_group_that_it_became() -> None:
    """KAFKA-20254: compaction has removed the tombstone of the classic group, and the offsets make one anew."""
    log = upgraded()
    left = [decode_record(*pair) for _, pair in compacted(log, keeps_tombstones=False)]
    assert isinstance(left[0].key, OffsetCommitKey)
    assert not any(isinstance(record.key, GroupMetadataKey) for record in left)
    loaded = load([record.encode() for record in left])
    group = loaded.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    assert "new" in group.members
    assert [offset.offset for _, offset in loaded.offsets.committed.offsets_of(GROUP)] == [5]


@pytest.mark.parametrize("pieces", [1, 4])
def test_a_log_is_compacted_while_it_is_loaded(monkeypatch: pytest.MonkeyPatch, pieces: int) -> None:
    """KAFKA-19862: when so many pieces of it are read."""
    world, log, read_at = World({"offsets.topic.num.partitions": "1"}), upgraded(), list[int]()

    def decode_and_clean(data: bytes, offset: int, decode: Any) -> DecodedPiece:
        read_at.append(offset)
        if len(read_at) == pieces:
            clean(world.disk, world.partitions[0].log, now_ms=1)
        return decode_piece(data, offset, decode)

    monkeypatch.setattr(coordinator_loading, "PIECE_BYTES", 1)
    monkeypatch.setattr(coordinator_loading, "decode_piece", decode_and_clean)

    async def main() -> None:
        world.create_topic("events", 3)
        world.create_topic(CONSUMER_OFFSETS, 1)
        async with world.running():
            await world.sleep(100)
            partition = world.partitions[0]
            for key, value in log:
                partition.append_as_leader(encode_batch([Record(key, value, (), 1)]), 1, ACKS_ALL)
            partition.log.roll(1)
            partition.log.update_config(config(cleanup_policy="compact"))
            world.elect(0)
            assert await world.driver.wait_until_active(0)
            shard = world.driver.shard(0)
            assert shard is not None
            assert lasting(shard) == lasting(load(log))
            assert pieces < len(read_at) < len(log), "what was compacted is not read"

    run_simulated(main)


def lasting(shard: GroupShard) -> Any:
    """Without the deadlines of the members' sessions, which begin after a load."""
    return content_of(shard)[:2]
