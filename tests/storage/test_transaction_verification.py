"""What a log asks of the first batch of a transaction, and of the marker that ends it (KIP-890)."""

import pytest

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.records.batch import decode_batch_header
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.log.log import AppendOrigin, Log
from pykbroker.storage.producers.transaction_verification import VerificationGuard
from tests.storage.batches import NOW_MS, open_log
from tests.storage.transactions import COMMIT, marker, part_of_transaction

PRODUCER = 7
NONE = ErrorCode.NONE


class Transacting:
    """One producer's batches and markers in one log; answers are error codes."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def start(
        self, sequence: int = 0, *, epoch: int = 0, supports_epoch_bump: bool = False
    ) -> VerificationGuard | None:
        return self.log.producers.start_verification(
            PRODUCER, epoch, sequence, NOW_MS, supports_epoch_bump=supports_epoch_bump
        )

    def append(self, sequence: int, guard: VerificationGuard | None, *, epoch: int = 0) -> ErrorCode:
        batch = part_of_transaction(PRODUCER, sequence, epoch=epoch)
        try:
            self.log.producers.check_verified_batch(decode_batch_header(batch), guard)
            self.log.append_as_leader(batch, 0, NOW_MS)
        except ApiError as rejected:
            return rejected.code
        return NONE

    def end(self, *, epoch: int = 0, version: int = 0) -> ErrorCode:
        try:
            self.log.producers.check_end_of_transaction(PRODUCER, epoch, version)
            self.log.append_as_leader(marker(COMMIT, PRODUCER, epoch=epoch), 0, NOW_MS, origin=AppendOrigin.COORDINATOR)
        except ApiError as rejected:
            return rejected.code
        return NONE


@pytest.fixture
def transacting(disk: SimulatedDisk) -> Transacting:
    return Transacting(open_log(disk, "/data/t-0"))


def test_a_batch_without_a_question_to_the_coordinator_is_part_of_no_transaction(transacting: Transacting) -> None:
    assert transacting.append(0, None) is ErrorCode.INVALID_TXN_STATE
    assert transacting.append(0, VerificationGuard()) is ErrorCode.INVALID_TXN_STATE
    assert transacting.append(0, transacting.start()) is NONE


def test_nobody_asks_as_long_as_the_transaction_is_open(transacting: Transacting) -> None:
    assert transacting.append(0, transacting.start()) is NONE
    assert transacting.start(1) is None
    assert transacting.append(1, None) is NONE


def test_a_marker_takes_back_an_answer_that_it_overtook(transacting: Transacting) -> None:
    guard = transacting.start()
    assert transacting.end() is NONE
    assert transacting.append(0, guard) is ErrorCode.INVALID_TXN_STATE
    again = transacting.start()
    assert again is not guard
    assert transacting.append(0, again) is NONE


def test_an_answer_is_good_for_all_who_wait_for_it(transacting: Transacting) -> None:
    guard = transacting.start(0)
    assert transacting.start(1) is guard
    assert transacting.append(0, guard) is NONE
    assert transacting.append(1, guard) is NONE, "the transaction is open by now"


def test_a_transaction_begins_with_the_lowest_sequence_that_waits(transacting: Transacting) -> None:
    guard = transacting.start(5)
    transacting.start(3)
    assert transacting.append(5, guard) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert transacting.append(3, guard) is NONE


def test_an_epoch_of_the_second_protocol_begins_at_0(transacting: Transacting) -> None:
    guard = transacting.start(2, supports_epoch_bump=True)
    assert transacting.append(2, guard) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert transacting.append(0, guard) is NONE


def test_a_producer_that_was_fenced_hears_of_its_epoch_first(transacting: Transacting) -> None:
    """KAFKA-19690: INVALID_PRODUCER_EPOCH aborts the transaction, INVALID_TXN_STATE ends the producer."""
    assert transacting.end(epoch=3) is NONE
    assert transacting.append(0, None, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_batch_that_is_there_already_may_come_again(transacting: Transacting) -> None:
    assert transacting.append(0, transacting.start()) is NONE
    assert transacting.end() is NONE
    assert transacting.append(0, None) is NONE
    assert transacting.log.log_end_offset == 2


def test_questions_that_nobody_answers_are_forgotten(transacting: Transacting) -> None:
    guard = transacting.start()
    transacting.log.remove_expired_producers(NOW_MS + 24 * 60 * 60 * 1000)
    assert transacting.append(0, guard) is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(("version", "expected"), [(0, NONE), (1, NONE), (2, ErrorCode.INVALID_PRODUCER_EPOCH)])
def test_a_marker_of_the_second_protocol_has_a_new_epoch(
    transacting: Transacting, version: int, expected: ErrorCode
) -> None:
    """KAFKA-19999: and the same marker may come again when its transaction is over."""
    assert transacting.append(0, transacting.start()) is NONE
    assert transacting.end(version=version) is expected
    assert transacting.end(epoch=1, version=version) is NONE
    assert transacting.end(epoch=1, version=version) is NONE, "it may come again"
    assert transacting.end(epoch=0, version=version) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_coordinators_batch_of_an_old_epoch_is_refused(transacting: Transacting) -> None:
    assert transacting.end(epoch=3) is NONE
    batch = part_of_transaction(PRODUCER, 0, epoch=2)
    with pytest.raises(ApiError) as rejected:
        transacting.log.append_as_leader(batch, 0, NOW_MS, origin=AppendOrigin.COORDINATOR)
    assert rejected.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
