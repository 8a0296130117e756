"""Loading: what the log says comes back, and what makes no sense is left out."""

from __future__ import annotations

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.state_machine import BadRecord
from pykbroker.transactions.transaction import TransactionState

from .world import TransactionWorld

KEY = TransactionLogKey(transactional_id="t")
ORDERS = TopicPartition("orders", 0)


def value(**fields: object) -> TransactionLogValue:
    built = TransactionLogValue(producer_id=1, producer_epoch=0, transaction_status=1, transaction_partitions=[])
    for name, content in fields.items():
        setattr(built, name, content)
    return built


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"transaction_status": 9}, "unknown transaction status 9"),
        ({"transaction_status": TransactionState.DEAD}, "DEAD is no status that is written"),
        ({"transaction_status": TransactionState.PREPARE_EPOCH_FENCE}, "no status that is written"),
        ({"producer_id": -1}, "impossible producer -1"),
        ({"producer_epoch": -1}, "with epoch -1"),
        ({"transaction_partitions": None}, "ONGOING without partitions"),
        (
            {"transaction_status": TransactionState.EMPTY, "unknown_tagged_fields": {20357: b"\0"}},
            "the last producer epoch has 1 bytes",
        ),
        ({"client_transaction_version": 3}, "unknown transaction version 3"),
    ],
)
def test_a_record_that_makes_no_sense_is_bad_and_changes_nothing(fields: dict[str, object], words: str) -> None:
    world = TransactionWorld()
    world.shard.replay(KEY, value())
    before = dict(world.shard.transactions)
    with pytest.raises(BadRecord, match=words):
        world.shard.replay(KEY, value(**fields))
    assert dict(world.shard.transactions) == before


def test_an_idle_id_needs_no_list_of_partitions() -> None:
    world = TransactionWorld()
    world.shard.replay(KEY, value(transaction_status=TransactionState.EMPTY, transaction_partitions=None))
    assert world.state() == "Empty"


def test_a_producer_that_begins_anew_has_no_partitions_of_before() -> None:
    """A complete transaction has none, but a log may say so that another broker has written."""
    world = TransactionWorld()
    partitions = [PartitionsSchema(topic="orders", partition_ids=[0])]
    complete = value(transaction_status=TransactionState.COMPLETE_COMMIT, transaction_partitions=partitions)
    world.shard.replay(KEY, complete)
    producer = world.producer()
    world.add(producer, TopicPartition("bills", 0))
    world.end(producer, commit=True, version=4)
    (markers,) = world.markers
    assert markers.partitions == (TopicPartition("bills", 0),)


def test_records_inside_of_a_transaction_do_not_belong_here() -> None:
    world = TransactionWorld()
    with pytest.raises(BadRecord):
        world.shard.replay_pending(1, KEY, value())
    world.shard.end_transaction(1, True)
    assert not world.shard.transactions


def test_a_tombstone_forgets_and_may_come_alone() -> None:
    world = TransactionWorld()
    world.shard.replay(KEY, None)
    world.shard.replay(KEY, value())
    world.shard.replay(KEY, None)
    assert not world.shard.transactions


def test_an_older_level_of_the_cluster_is_written_for_older_brokers() -> None:
    world = TransactionWorld(transaction_version=0)
    producer = world.producer()
    world.transaction_version = 2
    world.add(producer, ORDERS)
    assert [(data or b"")[:2] for _, data in world.log] == [b"\x00\x00", b"\x00\x01"]


def test_the_second_protocol_is_refused_where_the_log_has_no_room_for_it() -> None:
    world = TransactionWorld(transaction_version=0)
    producer = world.producer()
    assert world.add(producer, ORDERS, version=5).errors[ORDERS] is ErrorCode.UNSUPPORTED_VERSION
    world.add(producer, ORDERS, version=3)
    assert world.end(producer, commit=True).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert world.state() == "Ongoing"


def test_what_was_decided_is_completed_even_if_the_cluster_goes_back_meanwhile() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer, ORDERS, version=5)
    world.end(producer, commit=True)
    world.transaction_version = 0
    world.restart()
    world.write_markers()
    assert world.state() == "CompleteCommit"
    assert world.describe().producer_epoch == 1
