"""The driver: where a group lives, loading, commits, failures, timers, and clients that go away."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from pykbroker.api.offset_fetch import offset_fetch
from pykbroker.groups.classic.classic_group import ClassicGroup
from pykbroker.groups.common.records import CoordinatorRecord, group_metadata_record, offset_commit_record
from pykbroker.groups.offsets import forgotten_topics
from pykbroker.groups.shard import GroupShard
from pykbroker.java_hash import abs_java_hash
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.group_admin import DescribeGroupsRequest, ListGroupsRequest
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from pykbroker.protocol.messages.group_records import GroupMetadataValue, OffsetCommitValue
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.streams_groups import TopologyDescription
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.control import ControlRecordType, EndTransactionMarker, encode_end_transaction_batch
from pykbroker.replication.partition import ACKS_ALL
from pykbroker.server.coordinators.coordinator_log import encode_batches
from pykbroker.server.coordinators.group_coordinator import CONSUMER_OFFSETS, GroupCoordinator
from pykbroker.server.runtime.turns import Turn
from pykbroker.state_machine import CoordinatorContext, Result
from pykbroker.storage.log.log import AppendOrigin

from .scenarios import beat, commit, fetch, forget, join, leave, sync
from .session import Session
from .world import NODE_ID, World, marker, run_simulated

GROUP = "g"
CONFIG = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
OFFSETS = {"events": {0: (5, "five")}}


def in_world(main: Callable[[World], Awaitable[None]], *, partitions: int | None = 1) -> World:
    world = World(CONFIG)

    async def run() -> None:
        world.create_topic("events", 3)
        if partitions is not None:
            world.create_topic(CONSUMER_OFFSETS, partitions)
        async with world.running():
            await world.sleep(100)
            await main(world)

    run_simulated(run)
    return world


async def committed(world: World, group: str = GROUP) -> int:
    response: Any = await world.call("c", fetch(9, [group], {"events": [0]}, {}), 9)
    assert response.groups[0].error_code == ErrorCode.NONE
    offset: int = response.groups[0].topics[0].partitions[0].committed_offset
    return offset


async def code_of_commit(world: World, group: str = GROUP) -> int:
    response: Any = await world.call("c", commit(group, OFFSETS), 9)
    code: int = response.topics[0].partitions[0].error_code
    return code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("polygenelubricants", 0),
        ("ünï", 245821),
        ("\U0001f600", 1772899),
    ],
)
def test_a_groups_hash_is_javas(text: str, expected: int) -> None:
    assert abs_java_hash(text) == expected


def test_groups_live_where_kafka_keeps_them() -> None:
    """Of three partitions, as found in Apache Kafka's logs."""
    kept = {
        "": 0,
        "deleted-connect-offsets": 0,
        "deleted-offsets": 1,
        "deleted-pending": 1,
        "deleted-simple": 0,
        "deleted-stable": 0,
        "deleted-unreadable": 1,
        "first-member": 1,
        "follower-again": 2,
        "full": 0,
        "joining-again": 1,
        "leader-again": 0,
        "leaving": 2,
        "listed-joining": 2,
    }
    assert {group: abs_java_hash(group) % 3 for group in kept} == kept


# Leadership and loading


def test_a_partition_led_elsewhere_is_refused() -> None:
    async def main(world: World) -> None:
        await code_of_commit(world)
        world.resign(0)
        for request, version in [(join(GROUP), 9), (sync(GROUP, 1, "m"), 5), (beat(GROUP, 1, "m"), 4)]:
            response: Any = await world.call("c", request, version)
            assert response.error_code == ErrorCode.NOT_COORDINATOR
        for request in (leave(GROUP, ("m", None)), forget(GROUP, {"events": [0]})):
            response = await world.call("c", request, request.__schema__.versions.high)
            assert response.error_code == ErrorCode.NOT_COORDINATOR
        assert await code_of_commit(world) == ErrorCode.NOT_COORDINATOR
        response = await world.call("c", fetch(1, [GROUP], {"events": [0]}, {}), 1)
        assert response.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
        response = await world.call("c", DescribeGroupsRequest(groups=[GROUP]), 6)
        assert response.groups[0].error_code == ErrorCode.NOT_COORDINATOR
        response = await world.call("c", ListGroupsRequest(), 5)
        assert (response.error_code, response.groups) == (ErrorCode.NONE, [])

    in_world(main)


def test_what_was_committed_is_there_after_an_election() -> None:
    async def main(world: World) -> None:
        member_id = await _stable(world)
        await world.call("a", commit(GROUP, OFFSETS, generation=1, member_id=member_id), 9)
        world.resign(0)
        world.elect(0)
        assert await code_of_commit(world) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        response: Any = await world.call("x", ListGroupsRequest(), 5)
        assert response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert await world.driver.wait_until_active(0)
        assert await committed(world) == 5
        response = await world.call("a", beat(GROUP, 1, member_id), 4)
        assert response.error_code == ErrorCode.NONE
        assert await code_of_commit(world) == ErrorCode.UNKNOWN_MEMBER_ID

    in_world(main)


def test_a_coordinator_is_found_as_soon_as_the_metadata_have_its_leader() -> None:
    async def main(world: World) -> None:
        world.resign(0)
        world.not_told_of.append(0)
        response: Any = await world.call("a", FindCoordinatorRequest(key=GROUP), 3)
        assert (response.error_code, response.node_id) == (ErrorCode.NONE, NODE_ID)

    in_world(main)


def test_what_nobody_has_yet_is_a_part_of_what_its_leader_loads() -> None:
    """It is in the leader's log, and is committed as soon as the others have it."""

    async def main(world: World) -> None:
        world.elect(0, isr=(1, 2))
        assert await world.driver.wait_until_active(0)
        world.start("a", commit(GROUP, OFFSETS), 9)
        await world.sleep(10)
        partition = world.elect(0, isr=(1, 2))
        assert await world.driver.wait_until_active(0)
        assert (partition.high_watermark, partition.log.log_end_offset) == (0, 1)
        partition.read_as_replica(2, 1, 1000, partition.leader_epoch, False, now_ms=0)
        assert await committed(world) == 5

    in_world(main)


@pytest.mark.parametrize("is_resigned", [False, True])
def test_a_log_that_is_led_anew_while_it_is_read_is_loaded_once(
    caplog: pytest.LogCaptureFixture, is_resigned: bool
) -> None:
    async def main(world: World) -> None:
        await code_of_commit(world)
        caplog.clear()
        world.elect(0)
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        assert world.driver.loading_partitions == [0]
        if is_resigned:
            world.resign(0)
        world.elect(0)
        assert await world.driver.wait_until_active(0)
        await world.sleep(1000)
        assert await committed(world) == 5

    with caplog.at_level(logging.DEBUG):
        in_world(main)
    assert sum("loaded from" in record.getMessage() for record in caplog.records) == 1


def test_waiting_requests_learn_at_once_that_another_leader_epoch_began() -> None:
    async def main(world: World) -> None:
        world.elect(0, isr=(1, 2))
        assert await world.driver.wait_until_active(0)
        parked = world.start("a", commit(GROUP, OFFSETS), 9)
        await world.sleep(10)
        world.elect(0, isr=(1, 2))
        with trio.fail_after(0.1):
            response: Any = await parked
        assert response.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR

    in_world(main)


def test_waiting_requests_learn_that_the_partition_is_led_elsewhere() -> None:
    async def main(world: World) -> None:
        await _stable(world)
        parked = world.start("b", join(GROUP), 3)
        await world.sleep(10)
        world.resign(0)
        response: Any = await parked
        assert response.error_code == ErrorCode.NOT_COORDINATOR

    in_world(main)


async def _stable(world: World) -> str:
    response: Any = await world.call("a", join(GROUP), 3)
    await world.call("a", sync(GROUP, 1, response.member_id, {response.member_id: b"x"}), 3)
    member_id: str = response.member_id
    return member_id


def test_bad_records_are_skipped_and_told(caplog: pytest.LogCaptureFixture) -> None:
    good = offset_commit_record(GROUP, "events", 0, OffsetCommitValue(offset=9, metadata="")).encode()
    junk = [
        (None, b"no key"),
        (b"\xff", b"short key"),
        (b"junk key", b"junk"),
        (b"\x00\x03\x00\x01g", b"\x00\x00another kind of group"),
        (good[0], b"\x00\x63from the future"),
        (good[0], b"\x00\x04cut"),
        group_metadata_record(GROUP, GroupMetadataValue(protocol="p", leader="nobody", members=[])).encode(),
    ]

    async def main(world: World) -> None:
        partition = world.partitions[0]
        records = [Record(key=key, value=value, timestamp=1) for key, value in [*junk, good]]
        for batch in ([records[0]], records[1:]):
            partition.append_as_leader(encode_batch(batch), 1, ACKS_ALL, AppendOrigin.COORDINATOR)
        world.elect(0)
        assert await world.driver.wait_until_active(0)
        assert await committed(world) == 9
        assert await code_of_commit(world) == ErrorCode.NONE

    with caplog.at_level(logging.INFO):
        in_world(main)
    assert sum("skipped offset" in record.getMessage() for record in caplog.records) == 6
    assert "1 groups loaded from 2 records, 6 skipped" in caplog.text


@pytest.mark.parametrize(("marker", "expected"), [(ControlRecordType.COMMIT, 9), (ControlRecordType.ABORT, -1)])
def test_offsets_of_a_transaction_count_when_it_is_committed(marker: ControlRecordType, expected: int) -> None:
    key, value = offset_commit_record(GROUP, "events", 0, OffsetCommitValue(offset=9, metadata="")).encode()
    batch = encode_batch(
        [Record(key=key, value=value, timestamp=1)],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    end = encode_end_transaction_batch(EndTransactionMarker(marker, 0), producer_id=7, producer_epoch=0, timestamp=1)

    async def main(world: World) -> None:
        partition = world.partitions[0]
        for data in (batch, end):
            partition.append_as_leader(data, 1, ACKS_ALL, AppendOrigin.COORDINATOR)
        world.elect(0)
        assert await world.driver.wait_until_active(0)
        assert await committed(world) == expected

    in_world(main)


@pytest.mark.parametrize(("is_commit", "expected"), [(True, 9), (False, -1)])
def test_a_transaction_that_ends_decides_over_what_the_next_coordinator_reads(is_commit: bool, expected: int) -> None:
    key, value = offset_commit_record(GROUP, "events", 0, OffsetCommitValue(offset=9, metadata="")).encode()
    batch = encode_batch(
        [Record(key=key, value=value, timestamp=1)], producer_id=7, producer_epoch=0, is_transactional=True
    )

    ending = marker(coordinator_epoch=3, is_commit=is_commit)

    async def main(world: World) -> None:
        world.partitions[0].append_as_leader(batch, 1, ACKS_ALL, AppendOrigin.COORDINATOR)
        world.elect(0)
        assert await world.driver.wait_until_active(0)
        assert await committed(world) == -1
        completed = world.driver.complete_transaction(0, ending)
        assert not isinstance(completed, ErrorCode)
        assert (completed.end_offset, completed.settled()) == (2, ErrorCode.NONE)
        assert await committed(world) == expected
        assert world.partitions[0].last_stable_offset == 2
        world.elect(0)
        assert world.driver.complete_transaction(0, ending) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert await world.driver.wait_until_active(0)
        assert await committed(world) == expected

    in_world(main)


def test_a_long_log_is_read_in_pieces() -> None:
    metadata = "x" * 4000

    async def main(world: World) -> None:
        for start in range(0, 1200, 300):
            numbers = {index: (index, metadata) for index in range(start, start + 300)}
            await world.driver.submit(GROUP, commit(GROUP, {"events": numbers}), CoordinatorContext(api_version=9))
        assert world.partitions[0].log.size_bytes > 4 << 20
        world.elect(0)
        assert await world.driver.wait_until_active(0)
        shard = world.driver.shard(0)
        assert shard is not None
        (topic,) = shard.offsets.committed.of_group(GROUP)
        assert [offset.offset for offset in topic[1].values()] == list(range(1200))

    in_world(main)


def test_records_that_do_not_fit_in_one_batch_are_split() -> None:
    records = [offset_commit_record(GROUP, "t", index, None) for index in range(100)]
    (one,) = encode_batches([records], 1, 1_000_000)
    parts = encode_batches([records], 1, 1000)
    assert len(one) > 1000
    assert all(len(part) <= 1000 for part in parts)


# Commits and failures


def test_an_answer_waits_for_the_high_watermark() -> None:
    async def main(world: World) -> None:
        partition = world.elect(0, isr=(1, 2))
        assert await world.driver.wait_until_active(0)
        writing = world.start("a", commit(GROUP, OFFSETS), 9)
        await world.sleep(10)
        reading = world.start("b", fetch(9, [GROUP], {"events": [0]}, {}), 9)
        await world.sleep(1000)
        assert partition.high_watermark == 0
        await _expect_unanswered(reading)
        follower = world.partitions[0]
        follower.read_as_replica(2, follower.log.log_end_offset, 1000, follower.leader_epoch, False, now_ms=0)
        assert partition.high_watermark == 1
        answer: Any = await writing
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE

    in_world(main)


async def _expect_unanswered(parked: Awaitable[Any]) -> None:
    with trio.move_on_after(0.1) as scope:
        await parked
    assert scope.cancelled_caught


def test_what_is_not_committed_in_time_is_given_up() -> None:
    async def main(world: World) -> None:
        world.elect(0, isr=(1, 2))
        assert await world.driver.wait_until_active(0)
        started = trio.current_time()
        assert await code_of_commit(world) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert trio.current_time() - started == pytest.approx(5, abs=0.1)

    in_world(main)


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_could_not_be_appended_did_not_happen(failure: ErrorCode, told: ErrorCode) -> None:
    async def main(world: World) -> None:
        assert await code_of_commit(world) == ErrorCode.NONE
        world.replicas.failure = failure
        answer: Any = await world.call("c", commit(GROUP, {"events": {0: (77, "")}}), 9)
        assert answer.topics[0].partitions[0].error_code == told
        world.replicas.failure = None
        assert await world.driver.wait_until_active(0)
        assert await committed(world) == 5

    in_world(main)


def test_a_client_that_goes_away_loses_its_answer_only() -> None:
    async def main(world: World) -> None:
        first = await _stable(world)
        with trio.move_on_after(1) as scope:
            await world.call("b", join(GROUP), 3)
        assert scope.cancelled_caught
        response: Any = await world.call("a", join(GROUP, first), 3)
        assert len(response.members) == 2

    in_world(main)


def test_a_session_expires_while_nobody_asks() -> None:
    async def main(world: World) -> None:
        await _stable(world)
        await world.sleep(9_990)
        shard = world.driver.shard(0)
        assert shard is not None
        assert shard.groups[GROUP].members
        await world.sleep(20)
        assert not shard.groups[GROUP].members

    world = in_world(main)
    assert len(world.records()) == 3, "created, stable, empty"


def test_a_wall_clock_that_jumps_expires_nobody() -> None:
    async def main(world: World) -> None:
        member_id = await _stable(world)
        world.clock.step_wall_ms(3_600_000)
        await world.sleep(1000)
        response: Any = await world.call("a", beat(GROUP, 1, member_id), 4)
        assert response.error_code == ErrorCode.NONE

    in_world(main)


def test_without_the_topic_nobody_coordinates() -> None:
    async def main(world: World) -> None:
        with pytest.raises(ApiError) as error:
            await world.driver.submit(GROUP, join(GROUP), CoordinatorContext(api_version=9))
        assert error.value.code is ErrorCode.NOT_COORDINATOR
        assert not await world.driver.wait_until_active(0)

    in_world(main, partitions=None)


def test_a_deleted_topic_takes_its_offsets_along() -> None:
    async def main(world: World) -> None:
        await code_of_commit(world)
        world.delete_topic("events")
        world.create_topic("events", 3)
        assert await committed(world) == -1
        await code_of_commit(world)
        assert await committed(world) == 5

    world = in_world(main)
    assert [value is None for _, value in world.records()] == [False, True, False]


def test_a_topic_that_is_deleted_while_the_log_is_read_takes_its_offsets_along() -> None:
    async def main(world: World) -> None:
        await code_of_commit(world)
        world.elect(0)
        world.delete_topic("events")
        world.create_topic("events", 3)
        assert await world.driver.wait_until_active(0)
        assert await committed(world) == -1

    in_world(main)


def test_a_topic_that_very_many_groups_have_read_goes_in_parts_and_a_new_one_keeps_its_offsets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forgotten_topics, "MOST_FORGOTTEN", 2)
    groups = [f"g{number}" for number in range(20)]

    async def main(world: World) -> None:
        for group in groups:
            assert await code_of_commit(world, group) == ErrorCode.NONE
        world.delete_topic("events")
        shards = [world.driver.shard(index) for index in world.driver.active_partitions]
        left = [
            group for group in groups for shard in shards if shard is not None and shard.offsets.committed.count(group)
        ]
        assert len(left) == 18, "the rest waits until others have had their turn"
        world.create_topic("events", 3)
        await code_of_commit(world, groups[-1])
        await world.sleep(1)
        assert [await committed(world, group) for group in groups] == [-1] * 19 + [5]

    in_world(main, partitions=3)


def test_a_session_ends_in_time_while_a_step_is_made_in_many_parts() -> None:
    async def main(world: World) -> None:
        answer: Any = await world.call("a", join(GROUP, session=10_000), 4)
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        led = world.driver._shards[0]
        group = led.shard.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        parts = 0

        def one_of_many(shard: GroupShard, now_ms: int, timestamp_ms: int) -> Result[CoordinatorRecord]:
            nonlocal parts
            parts += 1
            return Result(is_unfinished=bool(group.pending_join_members) and parts < 1_000)

        await world.sleep(9_999)
        assert group.pending_join_members
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, trio.testing.MockClock)
        clock.jump(0.002)
        world.driver.postpone(led, one_of_many)
        await world.sleep(1)
        assert not group.pending_join_members
        assert 0 < parts < 10

    in_world(main)


def test_between_the_steps_of_two_shards_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(world: World) -> None:
        happened: list[str] = []

        def make_own_steps(driver: object, led: object, now_ms: int) -> bool:
            happened.append("step")
            return True

        monkeypatch.setattr(GroupCoordinator, "_make_own_steps", make_own_steps)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.driver._expire)
            while happened.count("step") < 4:
                await trio.lowlevel.checkpoint()
                happened.append("other")
        assert "step step step" not in " ".join(happened), "a round of the loop has one, and its order is by chance"

    in_world(main, partitions=4)


# FindCoordinator


def test_the_first_question_creates_the_topic_and_finds_a_coordinator_that_is_ready() -> None:
    async def main(world: World) -> None:
        answer: Any = await world.call("c", FindCoordinatorRequest(key=GROUP), 3)
        assert (answer.error_code, answer.node_id, answer.port) == (ErrorCode.NONE, 1, 9092)
        assert await code_of_commit(world) == ErrorCode.NONE
        await world.call("c", FindCoordinatorRequest(coordinator_keys=[GROUP, "other"]), 6)
        (request,) = world.controller.created
        (topic,) = request.topics
        assert (topic.name, topic.num_partitions, topic.replication_factor) == (CONSUMER_OFFSETS, 1, 1)
        assert {config.name: config.value for config in topic.configs} == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }

    in_world(main, partitions=None)


@pytest.mark.parametrize("key_type", [3, 42])
@pytest.mark.parametrize("version", [1, 6])
def test_other_coordinators_are_refused_in_words(key_type: int, version: int) -> None:
    async def main(world: World) -> None:
        keys = {"coordinator_keys": [GROUP]} if version >= 4 else {"key": GROUP}
        answer: Any = await world.call("c", FindCoordinatorRequest(key_type=key_type, **keys), version)  # type: ignore[arg-type]
        found = answer.coordinators[0] if version >= 4 else answer
        assert found.error_code == ErrorCode.INVALID_REQUEST
        assert "this broker" in found.error_message
        assert (found.node_id, found.host, found.port) == (-1, "", -1)

    in_world(main)


def test_a_partition_without_a_leader_has_no_coordinator() -> None:
    async def main(world: World) -> None:
        world.driver.on_resignation(0)
        answer: Any = await world.call("c", FindCoordinatorRequest(key=GROUP), 3)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    in_world(main)


def test_a_transcript_is_the_same_whenever_it_is_made() -> None:
    def once() -> list[str]:
        lines: list[str] = []

        async def main(world: World) -> None:
            session = Session(world)
            await session.call("a", join(GROUP), 9)
            session.tell_records()
            lines.extend(session.lines)

        in_world(main)
        return lines

    assert once() == once()


@pytest.mark.parametrize("is_loading", [False, True])
def test_descriptions_of_topologies_go_with_the_groups_that_are_coordinated_elsewhere(is_loading: bool) -> None:
    world = World(CONFIG | {"group.streams.topology.description.plugin.class": "memory"})

    async def run() -> None:
        world.create_topic("events", 3)
        world.create_topic(CONSUMER_OFFSETS, 2)
        async with world.running():
            await world.sleep(100)
            index = world.driver.partition_for(GROUP)
            assert index is not None
            other = next(name for name in "abcdef" if world.driver.partition_for(name) == 1 - index)
            partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
            topics = [OffsetCommitRequestTopic(name="events", partitions=[partition])]
            await world.call("c", OffsetCommitRequest(group_id=GROUP, topics=topics), 8)
            store = world.driver._topology_descriptions()
            assert store is not None
            for group_id in (GROUP, other):
                store.put(group_id, 0, TopologyDescription())
            world.elect(index)
            if not is_loading:
                await world.sleep(100)
            assert store.get(GROUP, 0) is not None, "another epoch of the same leader"
            world.resign(index)
            assert store.get(GROUP, 0) is None
            assert store.get(other, 0) is not None

    run_simulated(run)


def test_no_offsets_are_told_of_a_partition_that_is_led_here_since_the_request_was_begun() -> None:
    class Slow(Turn):
        async def took(self, steps: int = 1) -> None:
            await trio.sleep(0.01)

    async def main(world: World) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        topics = [OffsetCommitRequestTopic(name="events", partitions=[partition])]
        await world.call("c", OffsetCommitRequest(group_id=GROUP, topics=topics), 8)
        world.resign(0)
        groups = [OffsetFetchRequestGroup(group_id=group_id) for group_id in ("a", "b", "c", GROUP)]
        context = world.context("c", OffsetFetchRequest, 9)
        context.turn = Slow()
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def lead_again() -> None:
                await trio.sleep(0.045)  # each group was looked at, to see who leads
                world.elect(0)

            response: Any = await offset_fetch(context, OffsetFetchRequest(groups=groups))
        assert world.driver.active_partitions == [0]
        assert {group.error_code for group in response.groups} == {ErrorCode.NOT_COORDINATOR}
        assert not any(group.topics for group in response.groups)

    in_world(main)
