"""Reads that end where a partition ended when they began, against a scripted log."""

import trio

from pykbroker.cli.records.bounded import BoundedRead
from pykbroker.client.consumer import Consumer
from pykbroker.client.offsets import READ_UNCOMMITTED
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.records.control import ControlRecordType
from tests.client.fake_broker import FakeBroker, with_broker
from tests.client.scripted_log import T0, Log, batch, marker


def bounded(broker: FakeBroker, start: int, end: int, *, is_of_now: bool = True) -> BoundedRead:
    cluster = broker.cluster()
    consumer = Consumer(cluster, resets_to_nearest=True)
    consumer.assign({T0: start})
    return BoundedRead(cluster, consumer, {T0: end}, isolation_level=READ_UNCOMMITTED, is_of_now=is_of_now)


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
