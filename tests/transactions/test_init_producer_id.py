"""InitProducerId: who gets which id and epoch, who is fenced, and who has to come again."""

from __future__ import annotations

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.transactions.config import TransactionConfig

from .world import FIRST_PRODUCER_ID, NO_PRODUCER, TransactionWorld, after

ORDERS = TopicPartition("orders", 0)


def test_a_new_transactional_id_begins_with_a_new_producer_id_and_epoch_0() -> None:
    world = TransactionWorld()
    assert world.producer("a") == (FIRST_PRODUCER_ID, 0)
    assert world.producer("b") == (FIRST_PRODUCER_ID + 1, 0)
    assert world.state("a") == "Empty"


def test_the_same_id_again_has_the_next_epoch_and_fences_the_older_producer() -> None:
    world = TransactionWorld()
    old = world.producer()
    new = world.producer()
    assert new == (old[0], old[1] + 1)
    assert world.add(old, ORDERS).errors == {ORDERS: ErrorCode.PRODUCER_FENCED}
    assert world.add(new, ORDERS).errors == {ORDERS: ErrorCode.NONE}


def test_a_request_that_is_repeated_gets_the_same_epoch() -> None:
    world = TransactionWorld()
    producer = world.producer()
    bumped = world.producer(expected=producer)
    assert bumped == (producer[0], 1)
    assert world.producer(expected=producer) == bumped
    assert world.producer(expected=bumped) == (producer[0], 2)


def test_a_request_is_not_a_repeated_one_when_another_producer_came_in_between() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.producer(expected=producer)
    world.producer()
    assert world.init(expected=producer).error_code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("transaction_version", [1, 2])
def test_after_a_load_a_repeated_request_gets_the_same_epoch(transaction_version: int) -> None:
    """KAFKA-20357: the coordinator fails before its answer arrives, and the next one has only the log.

    Apache Kafka 4.3.1 has no field for the epoch before the newest, and fences the producer.
    """
    world = TransactionWorld(transaction_version=transaction_version)
    producer = world.producer()
    bumped = world.producer(expected=producer)
    world.restart()
    assert world.producer(expected=producer) == bumped == (producer[0], 1)
    world.producer()
    world.restart()
    assert world.init(expected=bumped).error_code == ErrorCode.PRODUCER_FENCED, "another producer came in between"


def test_after_a_load_a_repeated_request_gets_the_same_new_producer_id() -> None:
    """KAFKA-20357: the epochs were used up, and the answer with the new id was lost with the coordinator."""
    world = TransactionWorld()
    producer = world.producer_at(32766)
    new = world.producer(expected=producer)
    world.restart()
    assert world.producer(expected=producer) == new == (producer[0] + 1, 0)


def test_after_a_load_nobody_gets_the_new_producer_id_of_another_producer() -> None:
    """KAFKA-20357: the id and the epoch alone do not tell who asked for the change."""
    world = TransactionWorld()
    producer = world.producer_at(32766)
    assert world.producer() == (producer[0] + 1, 0)
    world.restart()
    assert world.init(expected=producer).error_code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("epoch", [0, 32766])
def test_after_a_load_a_producer_goes_on_after_the_abort_that_fenced_it(epoch: int) -> None:
    """KAFKA-20357: its transaction took too long, and the coordinator failed before or after the markers."""
    world = TransactionWorld()
    producer = world.producer_at(epoch, timeout_ms=1)
    world.add(producer, ORDERS, version=5)
    world.pass_time(20_000)
    world.restart()
    assert world.init(expected=producer).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    world.write_markers()
    world.restart()
    expected = (producer[0] + 1, 0) if epoch else (producer[0], 1)
    assert world.producer(expected=producer) == expected


def test_records_of_version_0_keep_no_epoch_to_recognise_a_repeated_request_by() -> None:
    world = TransactionWorld(transaction_version=0)
    producer = world.producer()
    world.producer(expected=producer)
    world.restart()
    assert world.init(expected=producer).error_code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(("version", "error_code"), [(3, "INVALID_PRODUCER_EPOCH"), (4, "PRODUCER_FENCED")])
def test_fenced_producers_learn_it_in_the_words_of_their_version(version: int, error_code: str) -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.producer()
    response = world.init(expected=producer, version=version)
    assert ErrorCode(response.error_code).name == error_code
    assert (response.producer_id, response.producer_epoch) == NO_PRODUCER


def test_a_producer_with_a_foreign_id_is_fenced() -> None:
    world = TransactionWorld()
    world.producer()
    assert world.init(expected=(17, 0)).error_code == ErrorCode.PRODUCER_FENCED


def test_a_producer_whose_transactional_id_was_forgotten_begins_anew() -> None:
    world = TransactionWorld()
    assert world.producer(expected=(17, 5)) == (FIRST_PRODUCER_ID, 0)


@pytest.mark.parametrize("transaction_version", [0, 1, 2])
def test_an_open_transaction_is_aborted_first_and_the_producer_comes_again(transaction_version: int) -> None:
    """KAFKA-19367: the epoch rises once for the abort, and once for the producer that comes again."""
    world = TransactionWorld(transaction_version=transaction_version)
    old = world.producer()
    world.add(old, ORDERS)
    assert world.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    (markers,) = world.markers
    assert (markers.is_commit, markers.producer_epoch, markers.partitions) == (False, old[1] + 1, (ORDERS,))
    assert world.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    world.write_markers()
    assert world.state() == "CompleteAbort"
    assert world.producer() == (old[0], old[1] + 2)
    world.assert_log_is_complete()


@pytest.mark.parametrize("transaction_version", [1, 2])
def test_an_abort_that_could_not_be_appended_raises_no_epoch(transaction_version: int) -> None:
    """KAFKA-19367, its second part: however often a log without enough replicas refuses it."""
    world = TransactionWorld(transaction_version=transaction_version)
    old = world.producer()
    world.add(old, ORDERS)
    world.refuses_appends = True
    for _ in range(3):
        world.init()
    world.refuses_appends = False
    assert (world.state(), world.describe().producer_epoch) == ("Ongoing", old[1])
    assert world.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    (markers,) = world.write_markers()
    assert markers.producer_epoch == old[1] + 1
    assert world.producer() == (old[0], old[1] + 2)


@pytest.mark.parametrize("commit", [True, False])
def test_the_new_producer_id_may_ask_while_markers_of_the_old_one_are_written(commit: bool) -> None:
    """KAFKA-18660: the answer to EndTxn has named the new id, so its first request is early and not a mistake."""
    world = TransactionWorld()
    producer = world.producer_at(32766)
    world.add(producer, ORDERS, version=5)
    new = after(world.end(producer, commit=commit))
    assert new == (producer[0] + 1, 0)
    early = ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.add(new, ORDERS, version=5).errors == {ORDERS: early}
    assert world.verify(new, ORDERS).errors == {ORDERS: early}
    assert world.end(new, commit=False).error_code == early
    assert world.init(expected=new).error_code == early
    world.write_markers()
    assert world.add(new, ORDERS, version=5).errors == {ORDERS: ErrorCode.NONE}


@pytest.mark.parametrize("commit", [True, False])
def test_while_markers_are_written_nobody_begins(commit: bool) -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer, ORDERS, version=4)
    world.end(producer, commit=commit)
    assert world.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    world.write_markers()
    assert world.producer() == (producer[0], 2)


def test_when_the_epochs_are_used_up_there_is_a_new_producer_id() -> None:
    world = TransactionWorld()
    producer = world.producer_at(32765)
    assert world.producer() == (producer[0], 32766)
    assert world.producer() == (producer[0] + 1, 0)
    world.assert_log_is_complete()


def test_the_change_to_a_new_producer_id_may_be_repeated() -> None:
    world = TransactionWorld()
    producer = world.producer_at(32766)
    new = world.producer(expected=producer)
    assert new == (producer[0] + 1, 0)
    assert world.producer(expected=producer) == new


@pytest.mark.parametrize("epoch", [0, 1, 32765])
def test_a_zombie_of_the_producer_id_before_is_fenced(epoch: int) -> None:
    """Only the last epoch of that id may ask once more: its answer with the new id may have been lost."""
    world = TransactionWorld()
    producer = world.producer_at(32766)
    new = world.producer(expected=producer)
    assert world.init(expected=(producer[0], epoch)).error_code == ErrorCode.PRODUCER_FENCED
    assert (world.describe().producer_id, world.describe().producer_epoch) == new


def test_the_last_but_one_epoch_may_be_repeated_too() -> None:
    world = TransactionWorld()
    producer = world.producer_at(32765)
    last = world.producer(expected=producer)
    assert world.producer(expected=producer) == last == (producer[0], 32766)
    assert world.init(expected=(producer[0], 32764)).error_code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("transaction_version", [1, 2])
def test_the_last_epoch_fences_and_is_never_given_away(transaction_version: int) -> None:
    """KAFKA-19367: InitProducerId fences and aborts, and the epoch rises once for both, never to below zero."""
    world = TransactionWorld(transaction_version=transaction_version)
    producer = world.producer_at(32766)
    world.add(producer, ORDERS)
    assert world.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    (markers,) = world.write_markers()
    assert (markers.producer_id, markers.producer_epoch) == (producer[0], 32767)
    response = world.init()
    assert response.producer_id == producer[0] + 1
    # In the second protocol the abort itself already went on to the new id.
    assert response.producer_epoch == (1 if transaction_version == 2 else 0)
    world.assert_log_is_complete()


@pytest.mark.parametrize("timeout_ms", [-1, 0, 900_001])
def test_a_timeout_out_of_bounds_is_refused(timeout_ms: int) -> None:
    world = TransactionWorld()
    assert world.init(timeout_ms=timeout_ms).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert not world.log


def test_the_longest_timeout_is_configured() -> None:
    world = TransactionWorld(TransactionConfig(max_timeout_ms=500))
    assert world.init(timeout_ms=501).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    world.producer(timeout_ms=500)
    assert world.describe().transaction_timeout_ms == 500


def test_an_empty_transactional_id_is_an_invalid_request() -> None:
    assert TransactionWorld().init("").error_code == ErrorCode.INVALID_REQUEST


def test_a_two_phase_commit_is_for_those_who_are_allowed_one() -> None:
    world = TransactionWorld()
    refused = world.init(version=6, enable2_pc=True)
    assert refused.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    day_ms = 86_400_000
    world = TransactionWorld(TransactionConfig(two_phase_commit_enabled=True, abort_timed_out_interval_ms=day_ms))
    producer = world.producer(version=6, enable2_pc=True, timeout_ms=0)
    assert world.describe().transaction_timeout_ms == 2**31 - 1
    world.add(producer, ORDERS)
    world.pass_time(50 * day_ms)
    assert world.state() == "Ongoing"


def test_a_prepared_transaction_cannot_be_kept_yet() -> None:
    world = TransactionWorld(TransactionConfig(two_phase_commit_enabled=True))
    assert world.init(version=6, keep_prepared_txn=True).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_without_a_producer_id_to_give_the_client_comes_again() -> None:
    world = TransactionWorld()
    world.out_of_producer_ids = True
    assert world.init().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert not world.log
    world.out_of_producer_ids = False
    assert world.producer()[1] == 0


def test_a_producer_of_the_second_protocol_goes_on_after_a_fence_where_it_knows_its_epoch() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer, ORDERS, version=4)
    ended = after(world.end(producer, commit=True))
    world.write_markers()
    assert world.producer(expected=ended) == (producer[0], 2)
