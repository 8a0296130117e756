"""A whole node on a disk that is full or reports errors: what clients see, and what is there afterwards."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from pykbroker.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from pykbroker.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from pykbroker.storage.files.errors import DiskFailed
from pykbroker.storage.files.faulty_disk import Fault
from tests.server.serving import Client

from .whole_node import TOPIC, World, run_world

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


async def create(client: Client, name: str) -> ErrorCode:
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=1000
    )
    response = cast(CreateTopicsResponse, await client.ask(request, 7))
    return ErrorCode(response.topics[0].error_code)


async def topics(client: Client) -> list[str]:
    response = cast(MetadataResponse, await client.ask(MetadataRequest(topics=None), 9))
    return [topic.name or "" for topic in response.topics]


async def commit(client: Client, offset: int) -> ErrorCode:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
    )
    response = cast(OffsetCommitResponse, await client.ask(request, 8))
    return ErrorCode(response.topics[0].partitions[0].error_code)


async def committed(client: Client) -> int:
    wanted = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=wanted)])
    response = cast(OffsetFetchResponse, await client.ask(request, 8))
    assert response.groups[0].error_code == 0
    return response.groups[0].topics[0].partitions[0].committed_offset


async def until_the_group_is_served(client: Client) -> None:
    with trio.fail_after(30):
        while True:
            response = cast(
                FindCoordinatorResponse, await client.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
            )
            if response.coordinators[0].error_code == 0:
                return
            await trio.sleep(0.1)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    with trio.fail_after(30):
        while not await condition():  # noqa: ASYNC110 - what is waited for has no event
            await trio.sleep(0.1)


async def new_producer_id(client: Client) -> int:
    request = InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1)
    response = cast(InitProducerIdResponse, await client.ask(request, 4))
    assert response.error_code == 0
    return response.producer_id


async def refused(world: World, client: Client) -> ErrorCode:
    return await world.try_to_produce(client, [bytes(1000)])


# Full


def test_a_full_disk_refuses_writes_serves_the_rest_and_goes_on_when_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        await until_the_group_is_served(client)
        assert await commit(client, 1) is ErrorCode.NONE
        first_id = await new_producer_id(client)
        written = [b"value %d" % number for number in range(5)]
        await world.produce(client, written)

        world.node.disk.free_bytes = 0
        for _ in range(3):
            assert await refused(world, client) is STORAGE_ERROR
            assert await create(client, "more") is STORAGE_ERROR
            assert await commit(client, 2) is not ErrorCode.NONE
            assert await world.read_all(client) == written
            assert sorted(await topics(client)) == ["__consumer_offsets", TOPIC]
            await trio.sleep(30)  # heartbeats, checkpoints, retention
        assert await new_producer_id(client) == first_id + 1

        world.node.disk.free_bytes = None
        written += [b"more"]
        await world.produce(client, written[-1:])
        assert await create(client, "more") is ErrorCode.NONE

        async def commits() -> bool:
            return await commit(client, 3) is ErrorCode.NONE

        await until(commits)
        assert await committed(client) == 3
        await trio.sleep(10)
        await world.node.crash()
        client.transport.close()
        await world.start()
        client = await world.connect()
        found = await world.read_all(client)
        assert found == written[: len(found)]
        assert "more" in await topics(client)
        assert await new_producer_id(client) > first_id + 1
        client.transport.close()
        await world.node.stop()

    caplog.set_level("INFO")
    run_world(scenario, seed=1)
    lines = [record.getMessage() for record in caplog.records]
    assert sum("/data has no room, reading goes on" in line for line in lines) == 1
    assert sum("/data has room again" in line for line in lines) == 1
    assert not [record for record in caplog.records if record.levelname == "ERROR" and "recovery" not in record.name]


def test_a_node_that_shuts_down_without_room_loses_nothing() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        written = [b"value %d" % number for number in range(5)]
        await world.produce(client, written)
        world.node.disk.free_bytes = 0
        client.transport.close()
        await world.node.stop()
        world.node.disk.free_bytes = None
        await world.node.lose_power()
        await world.start()
        client = await world.connect()
        assert await world.read_all(client) == written
        client.transport.close()

    run_world(scenario, seed=1)


def test_a_topic_whose_log_finds_no_room_is_there_when_there_is(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        world.node.faulty_disk.faults = [Fault(errno.ENOSPC, path=f"/data/{TOPIC}-0", times=None)]
        await world.create_topic(client)
        assert await world.try_to_produce(client, [b"a"]) is STORAGE_ERROR
        world.node.faulty_disk.faults = []

        async def produces() -> bool:
            return await world.try_to_produce(client, [b"a"]) is ErrorCode.NONE

        await until(produces)
        assert await world.read_all(client) == [b"a"]
        client.transport.close()

    run_world(scenario, seed=1)


def test_with_a_flush_for_each_message_a_committed_offset_outlives_a_power_cut() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        await until_the_group_is_served(client)
        for offset in range(1, 4):
            assert await commit(client, offset) is ErrorCode.NONE
            await world.produce(client, [b"%d" % offset])
            await world.node.crash()
            client.transport.close()
            await world.start()
            client = await world.connect()
            await until_the_group_is_served(client)
            assert await committed(client) == offset
            assert len(await world.read_all(client)) == offset
        client.transport.close()

    for seed in range(5):
        run_world(scenario, seed=seed, overrides={"log.flush.interval.messages": "1"})


# Errors


async def write_a_little(world: World) -> list[bytes]:
    """Until it does not go on; what was acknowledged after a sync."""
    written: list[bytes] = []
    client = await world.connect()
    try:
        with trio.move_on_after(20):
            await world.create_topic(client)
            for number in range(8):
                value = b"value %d" % number
                if await world.try_to_produce(client, [value]) is not ErrorCode.NONE:
                    break
                written.append(value)
                if number == 3:
                    await create(client, "other")
            await trio.sleep(70)
    except (EOFError, trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # the node has ended
    client.transport.close()
    return written


OVERRIDES = {"log.flush.interval.messages": "1", "log.segment.bytes": "1048576", "auto.create.topics.enable": "true"}


def live_with_fault(number: int | None) -> tuple[int, BaseException | None]:
    """One life with an error at the n-th operation after the start, and the life after it. Returns how many there were,
    and why the first one ended."""
    counted = 0
    ended: list[BaseException] = []

    async def scenario(world: World) -> None:
        nonlocal counted
        disk = world.node.faulty_disk
        start = disk.operations
        if number is not None:
            disk.faults = [Fault(errno.EIO, skip=number)]
        written = await write_a_little(world)
        counted = disk.operations - start
        assert not disk.syncs_after_failure
        disk.restart()
        if number is None:
            await world.node.crash()
        else:
            with trio.fail_after(100):
                await world.node.wait_until_ended()
            assert world.node.failure is not None
            ended.append(world.node.failure)
            await world.node.lose_power()
        await world.start()
        client = await world.connect()
        if TOPIC in await topics(client):
            found = await world.read_all(client)
            assert found[: len(written)] == written
            assert len(found) <= len(written) + 1
        else:
            assert not written
        assert await create(client, "afterwards") is ErrorCode.NONE
        client.transport.close()

    run_world(scenario, seed=3, overrides=OVERRIDES)
    return counted, ended[0] if ended else None


def test_at_whichever_operation_the_only_disk_fails_the_node_ends_and_the_next_one_has_everything() -> None:
    operations, ended = live_with_fault(None)
    assert ended is None
    assert operations >= 40
    for number in range(operations):
        _, ended = live_with_fault(number)
        assert isinstance(ended, DiskFailed), f"operation {number}"


TWO_DIRECTORIES = {**OVERRIDES, "log.dirs": "/data,/more", "num.partitions": "2"}


def live_with_fault_in_one_of_two(number: int | None) -> int:
    """Only the second directory fails, and only what lies there is concerned. Returns how many operations it met."""
    counted = 0

    async def scenario(world: World) -> None:
        nonlocal counted
        disk = world.node.faulty_disk
        client = await world.connect()
        fault = Fault(errno.EIO, path="/more", skip=1 << 30 if number is None else number)
        skip = fault.skip
        disk.faults = [fault]
        await world.create_topic(client)
        index = 0 if disk.exists(f"/data/{TOPIC}-0") else 1
        refused = False
        for step in range(8):
            assert await world.try_to_produce(client, [b"%d" % step], index) is ErrorCode.NONE
            outcome = await world.try_to_produce(client, [b"%d" % step], 1 - index)
            assert outcome is STORAGE_ERROR if refused else outcome in (ErrorCode.NONE, STORAGE_ERROR)
            refused = outcome is STORAGE_ERROR
        await trio.sleep(70)
        counted = skip - fault.skip
        assert await create(client, "other") is ErrorCode.NONE
        assert world.node.failure is None
        assert not disk.syncs_after_failure
        if number is not None:
            assert await world.try_to_produce(client, [b"last"], 1 - index) is STORAGE_ERROR
        client.transport.close()
        await world.node.stop()

    run_world(scenario, seed=3, overrides=TWO_DIRECTORIES)
    return counted


def test_at_whichever_operation_one_of_two_disks_fails_the_other_one_serves() -> None:
    operations = live_with_fault_in_one_of_two(None)
    assert operations > 20
    for number in range(operations):
        live_with_fault_in_one_of_two(number)


@pytest.mark.parametrize(("number", "afterwards"), [(errno.EIO, STORAGE_ERROR), (errno.EMFILE, ErrorCode.NONE)])
def test_a_read_that_fails_ends_no_connection_and_takes_the_directory_offline_if_the_disk_failed(
    number: int, afterwards: ErrorCode
) -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        index = 0 if world.node.disk.exists(f"/more/{TOPIC}-0") else 1
        for partition in (0, 1):
            assert await world.try_to_produce(client, [b"a"], partition) is ErrorCode.NONE
        world.node.faulty_disk.faults = [Fault(number, frozenset(["read"]), path=f"/more/{TOPIC}")]
        wanted = [ListOffsetsPartition(partition_index=partition, timestamp=1) for partition in (index, 1 - index)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=wanted)])
        response = cast(ListOffsetsResponse, await client.ask(request, 7))
        assert [each.error_code for each in response.topics[0].partitions] == [STORAGE_ERROR, ErrorCode.NONE]
        assert await world.try_to_produce(client, [b"a"], index) is afterwards
        assert await world.try_to_produce(client, [b"a"], 1 - index) is ErrorCode.NONE
        client.transport.close()

    run_world(scenario, seed=1, overrides=TWO_DIRECTORIES)


@pytest.mark.parametrize(("number", "afterwards"), [(errno.EIO, STORAGE_ERROR), (errno.EMFILE, ErrorCode.NONE)])
def test_a_record_that_cannot_be_read_takes_the_directory_offline_if_the_disk_failed_and_the_node_goes_on(
    number: int, afterwards: ErrorCode
) -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        in_more = 0 if world.node.disk.exists(f"/more/{TOPIC}-0") else 1
        for partition in (0, 1):
            assert await world.try_to_produce(client, [b"a"], partition) is ErrorCode.NONE
        world.node.faulty_disk.faults = [Fault(number, frozenset(["read"]), path=f"/more/{TOPIC}", times=None)]
        fetch = FetchRequest(
            max_bytes=1000,
            topics=[FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition=in_more, partition_max_bytes=1000)])],
        )
        await client.send(fetch, 11)
        with pytest.raises((EOFError, trio.BrokenResourceError)):
            await client.receive_frame()
        world.node.faulty_disk.faults = []
        client = await world.connect()
        assert await world.try_to_produce(client, [b"a"], in_more) is afterwards
        assert await world.try_to_produce(client, [b"a"], 1 - in_more) is ErrorCode.NONE
        client.transport.close()

    run_world(scenario, seed=1, overrides=TWO_DIRECTORIES)
