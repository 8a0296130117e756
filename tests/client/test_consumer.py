"""A consumer against a scripted log: positions, resets, and records that are not shown."""

import pytest

from pykbroker.client.cluster import Cluster
from pykbroker.client.consumer import Consumer
from pykbroker.client.errors import BadInput, KafkaError
from pykbroker.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, READ_COMMITTED
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import AbortedTransaction
from pykbroker.protocol.messages.metadata import MetadataRequest
from pykbroker.protocol.records.control import ControlRecordType
from tests.client.fake_broker import FakeBroker, with_broker
from tests.client.scripted_log import T0, Log, batch, marker


async def values(consumer: Consumer) -> list[bytes | None]:
    return [record.value for record in await consumer.poll()]


@pytest.mark.parametrize("versions", [(4, 18), (4, 12), (4, 4)])
def test_a_position_inside_a_batch_skips_what_stands_before_it(versions: tuple[int, int]) -> None:
    async def scenario(broker: FakeBroker) -> None:
        Log(broker, (13, batch(10, b"a", b"b", b"c")), (14, batch(13, b"d")), versions=versions)
        consumer = Consumer(broker.cluster())
        consumer.assign({T0: 11})
        records = await consumer.poll()
        assert [(record.offset, record.value) for record in records] == [(11, b"b"), (12, b"c"), (13, b"d")]
        assert (records[0].leader_epoch, records[0].timestamp) == (3, 1_000)
        assert consumer.positions == {T0: 14}
        assert consumer.high_watermarks == {T0: 50}

    with_broker(scenario)


def test_the_position_follows_what_poll_gave_not_what_was_fetched() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker, (3, batch(0, b"a", b"b", b"c")))
        consumer = Consumer(broker.cluster())
        consumer.assign({T0: 0})
        assert [record.value for record in await consumer.poll(2)] == [b"a", b"b"]
        assert consumer.positions == {T0: 2}
        assert [record.value for record in await consumer.poll(2)] == [b"c"]
        assert consumer.positions == {T0: 3}
        assert log.fetched_from == [0]

    with_broker(scenario)


def test_a_batch_that_is_cut_off_is_fetched_again() -> None:
    async def scenario(broker: FakeBroker) -> None:
        whole = batch(1, b"b")
        Log(broker, (1, batch(0, b"a")), (2, whole[:-1]))
        consumer = Consumer(broker.cluster())
        consumer.assign({T0: 0})
        assert await values(consumer) == [b"a"]
        assert consumer.positions == {T0: 1}

    with_broker(scenario)


def test_a_damaged_batch_is_an_error() -> None:
    async def scenario(broker: FakeBroker) -> None:
        damaged = bytearray(batch(0, b"a"))
        damaged[-1] ^= 1
        Log(broker, (1, bytes(damaged)))
        consumer = Consumer(broker.cluster())
        consumer.assign({T0: 0})
        with pytest.raises(BadInput, match="t-0 has a batch that cannot be read"):
            await consumer.poll()

    with_broker(scenario)


def test_aborted_transactions_and_markers_are_not_shown_to_read_committed() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(
            broker,
            (1, batch(0, b"aborted", producer_id=7, transactional=True)),
            (2, batch(1, b"committed", producer_id=8, transactional=True)),
            (3, batch(2, b"plain")),
            (4, marker(3, 7, ControlRecordType.ABORT)),
            (5, batch(4, b"next of 7", producer_id=7, transactional=True)),
            (6, marker(5, 8, ControlRecordType.COMMIT)),
            (7, marker(6, 7, ControlRecordType.COMMIT)),
        )
        log.aborted = [AbortedTransaction(producer_id=7, first_offset=0)]
        committed = Consumer(broker.cluster(), isolation_level=READ_COMMITTED)
        committed.assign({T0: 0})
        assert await values(committed) == [b"committed", b"plain", b"next of 7"]
        assert committed.positions == {T0: 7}
        everything = Consumer(broker.cluster())
        everything.assign({T0: 0})
        assert await values(everything) == [b"aborted", b"committed", b"plain", b"next of 7"]

    with_broker(scenario)


def test_an_offset_out_of_range_is_reset_as_told() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker, (8, batch(7, b"a")))
        log.earliest, log.errors = 7, [ErrorCode.OFFSET_OUT_OF_RANGE]
        consumer = Consumer(broker.cluster(), reset_to=EARLIEST_TIMESTAMP)
        consumer.assign({T0: 99})
        assert await values(consumer) == []
        assert await values(consumer) == [b"a"]
        assert log.fetched_from == [99, 7]

    with_broker(scenario)


@pytest.mark.parametrize(("position", "nearest"), [(99, 8), (3, 7)])
def test_an_offset_out_of_range_may_become_the_nearest(position: int, nearest: int) -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker)
        log.earliest, log.latest, log.errors = 7, 8, [ErrorCode.OFFSET_OUT_OF_RANGE]
        consumer = Consumer(broker.cluster(), reset_to=EARLIEST_TIMESTAMP, resets_to_nearest=True)
        consumer.assign({T0: position})
        assert await values(consumer) == []
        assert consumer.positions == {T0: nearest}

    with_broker(scenario)


def test_a_partition_that_is_let_go_is_fetched_no_more() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker, (2, batch(0, b"a", b"b")))
        consumer = Consumer(broker.cluster())
        consumer.assign({T0: 0})
        assert len(await consumer.poll(1)) == 1
        consumer.unassign([T0])
        assert consumer.positions == {}
        assert await values(consumer) == [b"b"]
        assert await values(consumer) == []
        assert log.fetched_from == [0]

    with_broker(scenario)


def test_without_a_reset_an_offset_out_of_range_is_an_error() -> None:
    async def scenario(broker: FakeBroker) -> None:
        Log(broker).errors = [ErrorCode.OFFSET_OUT_OF_RANGE]
        consumer = Consumer(broker.cluster(), reset_to=None)
        consumer.assign({T0: 99})
        with pytest.raises(KafkaError, match="t-0 has no offset 99"):
            await consumer.poll()

    with_broker(scenario)


def test_a_moved_leader_is_looked_up_and_asked_again() -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker, (1, batch(0, b"a")))
        log.errors = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH]
        consumer = Consumer(broker.cluster())
        consumer.assign({T0: 0})
        assert [await values(consumer) for _ in range(3)] == [[], [], [b"a"]]
        assert len(broker.of_type(MetadataRequest)) == 3

    with_broker(scenario)


def test_a_partition_that_keeps_failing_is_reported() -> None:
    async def scenario(broker: FakeBroker) -> None:
        Log(broker).errors = [ErrorCode.KAFKA_STORAGE_ERROR] * 10_000
        consumer = Consumer(broker.cluster())
        consumer.assign({T0: 0})

        async def poll_for_ever() -> None:
            while True:
                await consumer.poll()

        with pytest.raises(KafkaError, match="Partition t-0"):
            await poll_for_ever()

    with_broker(scenario)


@pytest.mark.parametrize(("place", "offset"), [(EARLIEST_TIMESTAMP, 3), (LATEST_TIMESTAMP, 9), (1_700_000_000_000, 9)])
def test_a_place_by_time_is_the_end_where_no_record_is_that_young(place: int, offset: int) -> None:
    async def scenario(broker: FakeBroker) -> None:
        log = Log(broker)
        log.earliest, log.latest = 3, 9
        cluster: Cluster = broker.cluster()
        consumer = Consumer(cluster)
        await consumer.assign_at({T0: place})
        assert consumer.positions == {T0: offset}

    with_broker(scenario)
