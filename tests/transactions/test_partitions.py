"""The partitions of a transaction: who may add some, and what brokers are told that ask."""

from __future__ import annotations

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.transactions.config import TransactionConfig

from .world import TransactionWorld

ORDERS_0, ORDERS_1, EVENTS_0 = TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("events", 0)


def test_the_first_partition_begins_the_transaction_and_further_ones_join_it() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer, ORDERS_0)
    began_ms = world.timestamp_ms
    world.pass_time(5)
    world.add(producer, ORDERS_1, EVENTS_0)
    described = world.describe()
    assert (described.transaction_state, described.transaction_start_time_ms) == ("Ongoing", began_ms)
    assert {topic.topic: topic.partitions for topic in described.topics} == {"orders": [0, 1], "events": [0]}
    world.assert_log_is_complete()


def test_partitions_that_are_there_already_cost_no_record() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer, ORDERS_0, ORDERS_1)
    length = len(world.log)
    assert world.add(producer, ORDERS_1).errors == {ORDERS_1: ErrorCode.NONE}
    assert len(world.log) == length


def test_the_next_transaction_begins_with_no_partition_of_the_last_one() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer, ORDERS_0)
    world.end(producer, commit=True, version=4)
    world.write_markers()
    world.pass_time(7)
    world.add(producer, ORDERS_1)
    described = world.describe()
    assert [topic.partitions for topic in described.topics] == [[1]]
    assert described.transaction_start_time_ms == world.timestamp_ms


def test_every_partition_of_a_refused_request_has_the_same_error() -> None:
    world = TransactionWorld()
    answer = world.add((1, 0), ORDERS_0, EVENTS_0)
    assert answer.errors == dict.fromkeys((ORDERS_0, EVENTS_0), ErrorCode.INVALID_PRODUCER_ID_MAPPING)


@pytest.mark.parametrize("verify_only", [False, True])
def test_producers_that_may_not_write_are_refused(verify_only: bool) -> None:
    world = TransactionWorld()
    producer_id, epoch = world.producer()

    def errors(id_: int, epoch: int, transactional_id: str = "t") -> ErrorCode:
        answer = world.add(
            (id_, epoch), ORDERS_0, version=5, verify_only=verify_only, transactional_id=transactional_id
        )
        return answer.errors[ORDERS_0]

    assert errors(producer_id, epoch, "") is ErrorCode.INVALID_REQUEST
    assert errors(producer_id, epoch, "other") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert errors(producer_id + 1, epoch) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert errors(producer_id, epoch + 1) is ErrorCode.PRODUCER_FENCED
    world.producer()
    assert errors(producer_id, epoch) is ErrorCode.PRODUCER_FENCED


def test_old_clients_are_told_that_their_epoch_is_invalid() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.producer()
    assert world.add(producer, ORDERS_0, version=1).errors[ORDERS_0] is ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.add(producer, ORDERS_0, version=2).errors[ORDERS_0] is ErrorCode.PRODUCER_FENCED


def test_a_broker_learns_of_each_partition_whether_it_is_in_the_transaction() -> None:
    world = TransactionWorld()
    producer = world.producer()
    assert world.verify(producer, ORDERS_0).errors == {ORDERS_0: ErrorCode.TRANSACTION_ABORTABLE}
    world.add(producer, ORDERS_0)
    length = len(world.log)
    errors = world.verify(producer, ORDERS_0, EVENTS_0).errors
    assert errors == {ORDERS_0: ErrorCode.NONE, EVENTS_0: ErrorCode.TRANSACTION_ABORTABLE}
    assert len(world.log) == length


@pytest.mark.parametrize("verify_only", [False, True])
def test_while_markers_are_written_nothing_is_added(verify_only: bool) -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer, ORDERS_0)
    world.end(producer, commit=True, version=4)
    answer = world.add(producer, ORDERS_0, version=5, verify_only=verify_only)
    assert answer.errors == {ORDERS_0: ErrorCode.CONCURRENT_TRANSACTIONS}
    world.write_markers()
    expected = ErrorCode.TRANSACTION_ABORTABLE if verify_only else ErrorCode.NONE
    assert world.add(producer, ORDERS_0, version=5, verify_only=verify_only).errors == {ORDERS_0: expected}


def test_a_transaction_that_no_record_could_hold_is_refused_before_it_grows() -> None:
    world = TransactionWorld(TransactionConfig(max_record_bytes=20_000))
    producer = world.producer()
    fitting = [TopicPartition(f"{'x' * 200}-{number}", 0) for number in range(80)]
    assert set(world.add(producer, *fitting).errors.values()) == {ErrorCode.NONE}
    too_much = [TopicPartition(f"{'y' * 200}-{number}", 0) for number in range(20)]
    assert set(world.add(producer, *too_much).errors.values()) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert len(world.describe().topics) == 80
    assert all(len(value or b"") < 20_000 for _, value in world.log)
