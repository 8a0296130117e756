"""Transactions from the first request to what consumers see, on a whole node in simulated time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio

from pykbroker.api import list_transactions
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    TopicRequest,
)
from pykbroker.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from pykbroker.sim.threads import SimulatedThreads
from pykbroker.transactions.administration import ListSomeTransactions, TransactionFilter

from .transacting import TOPIC, TransactionalProducer, Transactions, transacting

NONE = ErrorCode.NONE
both_protocols = pytest.mark.parametrize("second_protocol", [False, True])


async def write(producer: TransactionalProducer, *values: bytes, index: int = 0) -> None:
    if not producer.second_protocol:
        assert await producer.add(index) == {index: NONE}
    assert await producer.send(*values, index=index) is NONE


@both_protocols
def test_what_is_committed_is_seen_and_what_is_aborted_is_not(second_protocol: bool) -> None:
    async def main(node: Transactions) -> None:
        producer = await node.producer(second_protocol=second_protocol)
        await write(producer, b"a", b"b")
        await write(producer, b"c", index=1)
        assert await node.read() == []
        assert (await node.end_offset(), await node.end_offset(committed=False)) == (0, 2)
        assert await producer.end(commit=True) is NONE
        assert (await node.read(), await node.read(1)) == ([b"a", b"b"], [b"c"])
        await write(producer, b"d")
        assert await producer.end(commit=False) is NONE
        await write(producer, b"e")
        assert await producer.end(commit=True) is NONE
        assert await node.read() == [b"a", b"b", b"e"]
        assert await node.read(committed=False) == [b"a", b"b", b"d", b"e"]
        assert await node.end_offset() == await node.end_offset(committed=False) == 7

    transacting(main)


@both_protocols
def test_the_next_producer_fences_this_one_and_aborts_what_it_began(second_protocol: bool) -> None:
    async def main(node: Transactions) -> None:
        first = await node.producer(second_protocol=second_protocol)
        await write(first, b"a")
        second = await node.producer(second_protocol=second_protocol)
        assert second.producer_id == first.producer_id
        assert second.epoch > first.epoch
        assert await first.end(commit=True) in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
        assert await first.send(b"late") is ErrorCode.INVALID_PRODUCER_EPOCH
        await write(second, b"b")
        assert await second.end(commit=True) is NONE
        assert await node.read() == [b"b"]

    transacting(main)


def test_a_transaction_that_takes_too_long_is_aborted() -> None:
    async def main(node: Transactions) -> None:
        producer = await node.producer()
        assert await producer.init(timeout_ms=5_000) is NONE
        await write(producer, b"a")
        await trio.sleep(25)
        assert await node.end_offset() == await node.end_offset(committed=False)
        assert await node.read() == []
        assert await producer.end(commit=True) is ErrorCode.INVALID_TXN_STATE

    transacting(main)


@both_protocols
def test_a_batch_that_comes_after_its_transaction_took_too_long_has_an_old_epoch(second_protocol: bool) -> None:
    """KAFKA-19690: INVALID_PRODUCER_EPOCH aborts the transaction, INVALID_TXN_STATE ends the producer."""

    async def main(node: Transactions) -> None:
        producer = await node.producer(second_protocol=second_protocol)
        assert await producer.init(timeout_ms=5_000) is NONE
        await write(producer, b"a")
        await trio.sleep(25)
        for version in (10, 11, 12):
            assert await producer.send(b"late", version=version) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await node.end_offset() == await node.end_offset(committed=False) == 2

    transacting(main)


def test_a_reader_of_committed_records_is_woken_by_the_end_of_a_transaction() -> None:
    async def main(node: Transactions) -> None:
        producer = await node.producer()
        await write(producer, b"a")
        reader = Transactions(node.world, await node.world.connect())
        seen_at: list[float] = []

        async def read() -> None:
            assert await reader.read(max_wait_ms=60_000) == [b"a"]
            seen_at.append(trio.current_time())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await trio.sleep(1)
            ended_at = trio.current_time()
            assert await producer.end(commit=True) is NONE
        assert ended_at < seen_at[0] < ended_at + 1

    transacting(main)


# Verification (KIP-890)


@pytest.mark.parametrize(
    ("version", "expected"),
    [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE), (12, ErrorCode.NONE)],
)
def test_a_partition_that_was_not_added_is_refused_or_added_as_the_version_says(
    version: int, expected: ErrorCode
) -> None:
    async def main(node: Transactions) -> None:
        producer = await node.producer()
        assert await producer.send(b"a", version=version) is expected
        assert await node.end_offset(committed=False) == (1 if expected is NONE else 0)

    transacting(main)


def test_verification_can_be_switched_off() -> None:
    async def main(node: Transactions) -> None:
        producer = await node.producer(second_protocol=False)
        assert await producer.send(b"a") is NONE

    transacting(main, overrides={"transaction.partition.verification.enable": "false"})


@both_protocols
def test_a_batch_that_comes_after_the_end_of_its_transaction_opens_none(second_protocol: bool) -> None:
    async def main(node: Transactions) -> None:
        producer = await node.producer(second_protocol=second_protocol)
        await write(producer, b"a")
        epoch, sequence = producer.epoch, producer.sequences[0]
        assert await producer.end(commit=False) is NONE
        producer.epoch = epoch
        expected = ErrorCode.INVALID_PRODUCER_EPOCH if second_protocol else ErrorCode.INVALID_TXN_STATE
        assert await producer.send_at(sequence, b"late") is expected
        assert await node.end_offset() == await node.end_offset(committed=False) == 2

    transacting(main)


def test_a_batch_that_is_sent_again_after_the_end_of_its_transaction_is_answered_as_the_first_time() -> None:
    async def main(node: Transactions) -> None:
        producer = await node.producer(second_protocol=False)
        await write(producer, b"a")
        assert await producer.send_at(0, b"a") is NONE
        assert await node.end_offset(committed=False) == 1

    transacting(main)


def test_producers_that_the_coordinator_does_not_know_are_refused() -> None:
    async def main(node: Transactions) -> None:
        producer = await node.producer()
        producer.producer_id += 1
        assert await producer.send(b"a") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert await producer.send(b"a", version=11) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert await node.end_offset(committed=False) == 0

    transacting(main)


# Offsets


@both_protocols
def test_offsets_count_when_their_transaction_is_committed(second_protocol: bool) -> None:
    async def main(node: Transactions) -> None:
        producer = await node.producer(second_protocol=second_protocol)
        for offset, commit, expected in [(3, True, 3), (5, False, 3), (7, True, 7)]:
            if not second_protocol:
                assert await producer.add_offsets("g") is NONE
            else:
                assert await node.find_coordinator("g", key_type=0) is NONE
            before = await node.committed("g")
            assert await producer.commit_offset("g", offset) is NONE
            assert await node.committed("g") == before
            assert await node.committed("g", require_stable=True) is ErrorCode.UNSTABLE_OFFSET_COMMIT
            assert await producer.end(commit=commit) is NONE
            assert await node.committed("g", require_stable=True) == expected

    transacting(main)


@pytest.mark.parametrize(
    ("version", "expected"), [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE), (5, NONE)]
)
def test_a_group_that_was_not_added_is_refused_or_added_as_the_version_says(version: int, expected: ErrorCode) -> None:
    async def main(node: Transactions) -> None:
        producer = await node.producer()
        assert await node.find_coordinator("g", key_type=0) is NONE
        assert await producer.commit_offset("g", 3, version=version) is expected

    transacting(main)


def test_offsets_of_a_producer_that_is_fenced_are_refused() -> None:
    async def main(node: Transactions) -> None:
        zombie = await node.producer()
        assert await node.find_coordinator("g", key_type=0) is NONE
        await node.producer()
        assert await zombie.commit_offset("g", 3) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await node.committed("g") == -1

    transacting(main)


# AddPartitionsToTxn


def test_one_partition_that_does_not_exist_keeps_the_others_out() -> None:
    async def main(node: Transactions) -> None:
        producer = await node.producer(second_protocol=False)
        expected = {0: ErrorCode.OPERATION_NOT_ATTEMPTED, 7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert await producer.add(0, 7) == expected
        assert await producer.send(b"a") is ErrorCode.INVALID_TXN_STATE

    transacting(main)


def test_brokers_ask_for_several_transactions_at_once() -> None:
    async def main(node: Transactions) -> None:
        first, second = await node.producer("one"), await node.producer("two")

        def transaction(producer: TransactionalProducer, *, verify_only: bool) -> AddPartitionsToTxnTransaction:
            return AddPartitionsToTxnTransaction(
                transactional_id=producer.transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                verify_only=verify_only,
                topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
            )

        request = AddPartitionsToTxnRequest(
            transactions=[transaction(first, verify_only=True), transaction(second, verify_only=False)]
        )
        for expected in (ErrorCode.TRANSACTION_ABORTABLE, NONE):
            response = await node.ask(request, 5)
            codes = {
                each.transactional_id: each.topic_results[0].results_by_partition[0].partition_error_code
                for each in response.results_by_transaction
            }
            assert codes == {"one": expected, "two": NONE}
            await write(first, b"a")

    transacting(main)


# Markers


def marker(producer: TransactionalProducer, epoch: int, *indexes: int, coordinator_epoch: int = 0) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=list(indexes))],
        coordinator_epoch=coordinator_epoch,
        transaction_version=2,
    )


async def write_marker(node: Transactions, asked: WritableTxnMarker, version: int = 2) -> list[ErrorCode]:
    response = await node.ask(WriteTxnMarkersRequest(markers=[asked]), version)
    return [ErrorCode(each.error_code) for each in response.markers[0].topics[0].partitions]


def test_a_marker_of_the_second_protocol_has_a_new_epoch() -> None:
    async def main(node: Transactions) -> None:
        producer = await node.producer()
        await write(producer, b"a")
        epoch = producer.epoch
        refused = ErrorCode.INVALID_PRODUCER_EPOCH
        assert await write_marker(node, marker(producer, epoch, 0, 9)) == [
            refused,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert await write_marker(node, marker(producer, epoch + 1, 0)) == [NONE]
        assert await write_marker(node, marker(producer, epoch + 1, 0)) == [NONE], "it may come again"
        assert await write_marker(node, marker(producer, epoch, 0)) == [refused]

    transacting(main)


def test_a_marker_of_an_earlier_coordinator_is_fenced() -> None:
    async def main(node: Transactions) -> None:
        producer = await node.producer()
        await write(producer, b"a")
        epoch = producer.epoch + 1
        assert await write_marker(node, marker(producer, epoch, 0, coordinator_epoch=5)) == [NONE]
        old = marker(producer, epoch, 0, coordinator_epoch=4)
        assert await write_marker(node, old) == [ErrorCode.TRANSACTION_COORDINATOR_FENCED]

    transacting(main)


# Looking at transactions


def test_transactions_are_listed_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_transactions, "_IDS_AT_ONCE", 2)
    asked: list[int] = []
    init = ListSomeTransactions.__init__

    def counted(request: ListSomeTransactions, wanted: TransactionFilter, ids: Sequence[str]) -> None:
        asked.append(len(ids))
        init(request, wanted, ids)

    monkeypatch.setattr(ListSomeTransactions, "__init__", counted)

    async def main(node: Transactions) -> None:
        names = [f"t{number}" for number in range(7)]
        for name in names:
            await node.producer(name)
        listed = (await node.ask(ListTransactionsRequest(), 2)).transaction_states
        assert sorted(each.transactional_id for each in listed) == names
        assert (sum(asked), max(asked)) == (7, 2)

    transacting(main)


def test_ids_are_matched_with_a_pattern_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 32 KiB may take a hundred milliseconds, and there may be any number of them."""
    matched: list[str] = []
    is_in_thread = False
    run = SimulatedThreads.run
    named = TransactionFilter.named

    async def in_thread(threads: SimulatedThreads, fn: Any, *args: Any) -> Any:
        def call() -> Any:
            nonlocal is_in_thread
            is_in_thread = True
            try:
                return fn(*args)
            finally:
                is_in_thread = False

        return await run(threads, call)

    def noted(wanted: TransactionFilter, ids: Sequence[str]) -> Sequence[str]:
        assert is_in_thread
        matched.extend(ids)
        return named(wanted, ids)

    monkeypatch.setattr(SimulatedThreads, "run", in_thread)
    monkeypatch.setattr(TransactionFilter, "named", noted)

    async def main(node: Transactions) -> None:
        for name in ("a1", "a2", "b1"):
            await node.producer(name)
        request = ListTransactionsRequest(transactional_id_pattern="a.*")
        listed = (await node.ask(request, 2)).transaction_states
        assert sorted(each.transactional_id for each in listed) == ["a1", "a2"]
        assert sorted(matched) == ["a1", "a2", "b1"]

    transacting(main)


def test_transactions_and_producers_are_described() -> None:
    async def main(node: Transactions) -> None:
        producer = await node.producer("mine")
        await write(producer, b"a", b"b", index=1)
        listed = (await node.ask(ListTransactionsRequest(), 2)).transaction_states
        assert [(each.transactional_id, each.transaction_state) for each in listed] == [("mine", "Ongoing")]
        request = DescribeTransactionsRequest(transactional_ids=["mine", "other"])
        mine, other = (await node.ask(request, 0)).transaction_states
        assert (mine.producer_id, mine.topics[0].topic, mine.topics[0].partitions) == (producer.producer_id, TOPIC, [1])
        assert other.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        described = DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=[1, 5])])
        known, unknown = (await node.ask(described, 0)).topics[0].partitions
        (state,) = known.active_producers
        assert (state.producer_id, state.producer_epoch, state.last_sequence) == (producer.producer_id, 0, 1)
        assert (state.current_txn_start_offset, state.coordinator_epoch) == (0, -1)
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await producer.end(commit=True) is NONE
        (state,) = (await node.ask(described, 0)).topics[0].partitions[0].active_producers
        assert (state.current_txn_start_offset, state.coordinator_epoch) == (-1, 0)

    transacting(main)
