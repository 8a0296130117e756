"""EndTxn in both protocols: commits, aborts, requests that come again, and those that come too late."""

from __future__ import annotations

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.transactions.effects import WriteMarkers
from pykbroker.transactions.requests import MarkersWritten

from .world import NO_PRODUCER, Producer, TransactionWorld, after

ORDERS, EVENTS = TopicPartition("orders", 0), TopicPartition("events", 3)
OUTCOMES = [(True, "Commit"), (False, "Abort")]


def ongoing(version: int = 5) -> tuple[TransactionWorld, Producer]:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer, ORDERS, EVENTS, version=version)
    return world, producer


@pytest.mark.parametrize(("commit", "name"), OUTCOMES)
def test_a_transaction_is_prepared_gets_its_markers_and_is_complete(commit: bool, name: str) -> None:
    world, producer = ongoing()
    response = world.end(producer, commit=commit, version=4)
    assert (response.error_code, after(response)) == (ErrorCode.NONE, NO_PRODUCER)
    assert world.state() == f"Prepare{name}"
    assert world.markers == [
        WriteMarkers(
            transactional_id="t",
            producer_id=producer[0],
            producer_epoch=producer[1],
            is_commit=commit,
            partitions=(ORDERS, EVENTS),
            coordinator_epoch=0,
            transaction_version=0,
        )
    ]
    world.write_markers()
    assert world.state() == f"Complete{name}"
    world.assert_log_is_complete()


@pytest.mark.parametrize(("commit", "name"), OUTCOMES)
def test_the_cause_of_a_step_names_the_decision(commit: bool, name: str) -> None:
    world, producer = ongoing()
    world.end(producer, commit=commit)
    assert world.causes[-1].startswith(f"t: {name.lower()} of ")
    world.write_markers()
    assert world.causes[-1] == "t: complete"


@pytest.mark.parametrize(("commit", "name"), OUTCOMES)
def test_in_the_second_protocol_the_markers_and_the_answer_have_the_next_epoch(commit: bool, name: str) -> None:
    world, producer = ongoing()
    response = world.end(producer, commit=commit)
    assert after(response) == (producer[0], 1)
    (markers,) = world.write_markers()
    assert (markers.producer_epoch, markers.transaction_version) == (1, 2)
    assert world.state() == f"Complete{name}"
    assert world.add(after(response), ORDERS).errors[ORDERS] is ErrorCode.NONE
    world.assert_log_is_complete()


@pytest.mark.parametrize("version", [4, 5])
def test_only_the_last_marker_completes_the_transaction(version: int) -> None:
    world, producer = ongoing()
    world.end(producer, commit=True, version=version)
    (markers,) = world.markers
    world.report(markers, [EVENTS])
    assert [topic.topic for topic in world.describe().topics] == ["orders"]
    world.report(markers, [EVENTS])
    assert world.state() == "PrepareCommit"
    world.report(markers, [ORDERS])
    assert world.state() == "CompleteCommit"


def test_markers_of_an_earlier_transaction_complete_nothing() -> None:
    world, producer = ongoing()
    producer = after(world.end(producer, commit=True))
    (old,) = world.write_markers()
    world.add(producer, ORDERS, EVENTS, version=5)
    world.report(old)
    assert world.state() == "Ongoing"
    world.end(producer, commit=False)
    world.report(old)
    assert world.state() == "PrepareAbort"
    stranger = MarkersWritten(transactional_id="stranger", producer_id=1, producer_epoch=1, partitions=(ORDERS,))
    assert world.call(stranger, 0) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("commit", "again", "while_prepared", "when_complete"),
    [
        (True, True, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE),
        (True, False, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (False, False, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE),
        (False, True, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
    ],
)
@pytest.mark.parametrize("version", [4, 5])
def test_a_request_that_comes_again(
    commit: bool, again: bool, while_prepared: ErrorCode, when_complete: ErrorCode, version: int
) -> None:
    world, producer = ongoing()
    first = world.end(producer, commit=commit, version=version)
    assert world.end(producer, commit=again, version=version).error_code == while_prepared
    world.write_markers()
    length = len(world.log)
    second = world.end(producer, commit=again, version=version)
    assert second.error_code == when_complete
    assert after(second) == (NO_PRODUCER if when_complete else after(first))
    is_written_again = version == 4 and when_complete is ErrorCode.NONE
    assert len(world.log) == length + is_written_again


def test_a_coordinator_that_cannot_write_does_not_say_that_a_transaction_of_the_first_protocol_is_complete() -> None:
    """Whole-cluster seed 544207: it was replaced, and has not heard of the next one, which the request is of."""
    world, producer = ongoing()
    world.end(producer, commit=True, version=4)
    world.write_markers()
    before = world.log[-1]
    assert world.end(producer, commit=True, version=4).error_code == ErrorCode.NONE
    assert world.log[-2:] == [before, before], "the answer waits for the replicas, as all that follows an append"


@pytest.mark.parametrize("commit", [True, False])
def test_after_a_load_a_request_that_comes_again_is_recognised_by_its_epoch(commit: bool) -> None:
    world, producer = ongoing()
    first = world.end(producer, commit=commit)
    world.restart()
    assert world.end(producer, commit=commit).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    world.write_markers()
    world.restart()
    assert after(world.end(producer, commit=commit)) == after(first)


def test_a_late_commit_does_not_commit_the_next_transaction() -> None:
    """What the second protocol is for: the first cannot tell the two."""
    world, producer = ongoing()
    next_producer = after(world.end(producer, commit=True))
    world.write_markers()
    world.add(next_producer, ORDERS, version=5)
    assert world.end(producer, commit=True).error_code == ErrorCode.PRODUCER_FENCED
    assert world.state() == "Ongoing"


@pytest.mark.parametrize("prepared", [True, False])
def test_a_zombie_is_not_taken_for_one_who_asks_again_after_a_transaction_of_the_first_protocol(prepared: bool) -> None:
    """Apache Kafka tells it that all is well, and the epoch of its successor, which two producers have then."""
    world = TransactionWorld()
    zombie = world.producer()
    successor = world.producer()
    world.add(successor, ORDERS)
    world.end(successor, commit=False, version=4)
    if not prepared:
        world.write_markers()
    assert world.end(zombie, commit=False).error_code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("commit", [True, False])
def test_in_the_first_protocol_there_has_to_be_something_to_end(commit: bool) -> None:
    world = TransactionWorld()
    producer = world.producer()
    assert world.end(producer, commit=commit, version=4).error_code == ErrorCode.INVALID_TXN_STATE
    assert world.state() == "Empty"


def test_in_the_second_protocol_a_producer_may_abort_what_it_never_began() -> None:
    world = TransactionWorld()
    producer = world.producer()
    assert world.end(producer, commit=True).error_code == ErrorCode.INVALID_TXN_STATE
    second = after(world.end(producer, commit=False))
    assert second == (producer[0], 1)
    assert world.state() == "CompleteAbort"
    assert not world.markers
    assert world.end(second, commit=True).error_code == ErrorCode.INVALID_TXN_STATE
    assert after(world.end(second, commit=False)) == (producer[0], 2)
    world.assert_log_is_complete()


def test_an_abort_after_a_commit_is_a_new_one_where_it_has_the_new_epoch() -> None:
    world, producer = ongoing()
    second = after(world.end(producer, commit=True))
    world.write_markers()
    assert world.end(producer, commit=False).error_code == ErrorCode.INVALID_TXN_STATE
    assert after(world.end(second, commit=False)) == (producer[0], 2)
    assert world.state() == "CompleteAbort"


@pytest.mark.parametrize("commit", [True, False])
def test_an_abort_of_nothing_waits_for_the_markers_of_the_transaction_before(commit: bool) -> None:
    """KAFKA-18464: the producer has its next epoch before all markers are written, and is no zombie."""
    world, producer = ongoing()
    second = after(world.end(producer, commit=commit))
    assert world.state().startswith("Prepare")
    assert world.end(second, commit=False).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    world.write_markers()
    assert after(world.end(second, commit=False)) == (producer[0], 2)


@pytest.mark.parametrize("version", [4, 5])
def test_producers_that_may_not_end_it_are_refused(version: int) -> None:
    world, (producer_id, epoch) = ongoing()
    assert world.end((producer_id + 1, epoch), commit=True, version=version).error_code == (
        ErrorCode.INVALID_PRODUCER_ID_MAPPING
    )
    assert world.end((producer_id, epoch + 1), commit=True, version=version).error_code == ErrorCode.PRODUCER_FENCED
    unknown = world.end((producer_id, epoch), commit=True, version=version, transactional_id="other")
    assert unknown.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    nobody = world.end((producer_id, epoch), commit=True, version=version, transactional_id="")
    assert nobody.error_code == ErrorCode.INVALID_REQUEST
    assert world.state() == "Ongoing"


def test_old_clients_are_told_that_their_epoch_is_invalid() -> None:
    world, (producer_id, epoch) = ongoing()
    stale = (producer_id, epoch + 1)
    assert world.end(stale, commit=True, version=1).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.end(stale, commit=True, version=2).error_code == ErrorCode.PRODUCER_FENCED


def test_with_the_last_epoch_the_producer_goes_on_with_a_new_id() -> None:
    """KAFKA-18660: EndTxn answers with the new id. KAFKA-20310: and so do later coordinators, from their log."""
    world = TransactionWorld()
    producer = world.producer_at(32766)
    world.add(producer, ORDERS, version=5)
    world.out_of_producer_ids = True
    assert world.end(producer, commit=True).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert world.state() == "Ongoing"
    world.out_of_producer_ids = False
    new = after(world.end(producer, commit=True))
    assert new == (producer[0] + 1, 0)
    world.restart()
    (markers,) = world.write_markers()
    assert (markers.producer_id, markers.producer_epoch) == (producer[0], 32767)
    assert after(world.end(producer, commit=True)) == new
    assert world.add(producer, ORDERS).errors[ORDERS] is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.add(new, ORDERS).errors[ORDERS] is ErrorCode.NONE
    assert world.end(producer, commit=True).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_transaction_without_partitions_needs_no_markers() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer)
    assert world.state() == "Ongoing"
    assert not world.end(producer, commit=True, version=4).error_code
    assert world.state() == "CompleteCommit"
    assert not world.markers
    world.assert_log_is_complete()


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(("commit", "name"), OUTCOMES)
def test_the_next_coordinator_writes_the_markers_of_what_was_decided(commit: bool, name: str, version: int) -> None:
    world, producer = ongoing()
    world.end(producer, commit=commit, version=version)
    (wanted,) = world.markers
    world.report(wanted, [ORDERS])
    world.restart()
    (again,) = world.markers
    assert (again.partitions, again.is_commit, again.producer_epoch, again.coordinator_epoch) == (
        wanted.partitions,
        commit,
        wanted.producer_epoch,
        1,
    )
    world.write_markers()
    assert world.state() == f"Complete{name}"


def test_a_transaction_that_is_not_decided_is_still_open_after_a_load() -> None:
    world, producer = ongoing()
    world.restart()
    assert not world.markers
    assert world.state() == "Ongoing"
    assert not world.end(producer, commit=True).error_code
