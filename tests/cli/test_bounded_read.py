"""Reads that end where a partition ended when they began, against a scripted log."""

import pytest
import trio

from pykbroker.cli.command import CommandFailed
from pykbroker.cli.records.bounded import BoundedRead
from pykbroker.cli.records.failing import FailingPartitions
from pykbroker.cli.records.places import spans_of
from pykbroker.client.consumer import Consumer
from pykbroker.client.errors import ClientError
from pykbroker.client.offsets import READ_UNCOMMITTED
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from pykbroker.protocol.records.control import ControlRecordType
from tests.client.fake_broker import FakeBroker, with_broker
from tests.client.scripted_log import T0, Log, batch, marker


def bounded(broker: FakeBroker, start: int, end: int, *, is_of_now: bool = True) -> BoundedRead:
    cluster = broker.cluster()
    consumer = Consumer(cluster, resets_to_nearest=True)
    consumer.assign({T0: start})
    failing = FailingPartitions(cluster, READ_UNCOMMITTED)
    return BoundedRead(consumer, {T0: end}, failing=failing, is_of_now=is_of_now)


async def offsets(read: BoundedRead, most: int = 5_000) -> list[int]:
    """Every offset up to the end, by as many polls as that takes."""
    found = []
    while not read.is_finished:
        records = await read.poll(most)
        found += [record.offset for record in records]
        if not records:
            await trio.sleep(0.5)  # which a broker would have waited, in virtual time
    return found


def test_records_behind_the_end_are_left_out() -> None:
    async def scenario(broker: FakeBroker) -> None:
        Log(broker, (4, batch(0, b"a", b"b", b"c", b"d")))
        for most in (1, 2, 100):
            read = bounded(broker, 0, 3)
            assert await offsets(read, most) == [0, 1, 2]
            assert read.offsets_read == read.offsets_in_all == 3

    with_broker(scenario)


def test_a_read_that_has_nothing_to_read_asks_for_nothing() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker)
        for start, end in ((0, 0), (7, 3)):
            read = bounded(broker, start, end)
            assert read.is_finished
            assert (read.offsets_read, read.offsets_in_all) == (0, 0)
        assert log.fetched_from == []

    with_broker(scenario)


def test_a_marker_at_the_end_is_passed() -> None:
    async def scenario(broker: FakeBroker) -> None:
        Log(broker, (1, batch(0, b"a")), (2, marker(1, 5, ControlRecordType.COMMIT)))
        assert await offsets(bounded(broker, 0, 2)) == [0]

    with_broker(scenario)


def test_a_hole_at_the_end_is_passed() -> None:
    async def scenario(broker: FakeBroker) -> None:
        Log(broker, (1, batch(0, b"a")), (9, batch(8, b"z")))
        assert await offsets(bounded(broker, 0, 6)) == [0]

    with_broker(scenario)


def test_a_moved_leader_is_asked_again() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker, (2, batch(0, b"a", b"b")))
        log.errors = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE]
        log.latest = 2
        assert await offsets(bounded(broker, 0, 2)) == [0, 1]

    with_broker(scenario)


def test_an_end_that_is_gone_is_not_waited_for() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker, (2, batch(0, b"a", b"b")))
        log.latest = 2
        assert await offsets(bounded(broker, 0, 9)) == [0, 1]
        log.errors = [ErrorCode.OFFSET_OUT_OF_RANGE]
        assert await offsets(bounded(broker, 5, 9)) == []

    with_broker(scenario)


def test_an_end_that_is_still_to_come_is_waited_for() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker, (2, batch(0, b"a", b"b")))
        log.latest = 2
        read = bounded(broker, 0, 9, is_of_now=False)
        for _ in range(20):
            await read.poll(100)
            await trio.sleep(0.5)
        assert not read.is_finished

    with_broker(scenario)


def test_a_partition_that_fails_is_told_once_and_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker)
        log.errors, log.latest = [ErrorCode.KAFKA_STORAGE_ERROR] * 10_000, 3
        began = trio.current_time()
        with pytest.raises(ClientError, match="Partition t-0: The log directory of the partition has failed"):
            await offsets(bounded(broker, 0, 3))
        assert trio.current_time() - began < 40

    with_broker(scenario)
    assert capsys.readouterr().err == (
        "WARN: Partition t-0: KAFKA_STORAGE_ERROR: The log directory of the partition has failed; trying again, "
        "for 30 s at most\n"
    )


def test_a_partition_whose_ends_nobody_tells_is_told_once_and_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario(broker: FakeBroker) -> None:
        broker.serve_topics(t=1)
        row = ListOffsetsPartitionResponse(partition_index=0, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        answer = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[row])])
        broker.serve(ListOffsetsRequest, lambda request, version: answer)
        cluster = broker.cluster()
        await cluster.topic("t")
        began = trio.current_time()
        with pytest.raises(CommandFailed, match=r"t-0: KAFKA_STORAGE_ERROR: .* it has been so for 30 s"):
            async with FailingPartitions(cluster, READ_UNCOMMITTED).watched([T0]):
                await spans_of(cluster, [T0], READ_UNCOMMITTED)
        assert trio.current_time() - began < 40

    with_broker(scenario)
    assert capsys.readouterr().err.count("\n") == 1
