"""What a log keeps of producers with transactions: for how long, against whom, and through a restart."""

from __future__ import annotations

import pytest

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.records.control import ControlRecordType, EndTransactionMarker, encode_end_transaction_batch
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.log.log import AppendOrigin, Log
from tests.storage.batches import NOW_MS, open_log
from tests.storage.transactions import ABORT, COMMIT, part_of_transaction

PATH = "/data/t-0"
PRODUCER = 7
EXPIRATION_MS = 1000


def end(log: Log, kind: ControlRecordType, *, coordinator_epoch: int = 0, timestamp: int = NOW_MS) -> int:
    """The offset of the marker."""
    marker = encode_end_transaction_batch(
        EndTransactionMarker(kind, coordinator_epoch), producer_id=PRODUCER, producer_epoch=0, timestamp=timestamp
    )
    return log.append_as_leader(marker, 0, NOW_MS, origin=AppendOrigin.COORDINATOR).first_offset


def with_open_transaction(disk: SimulatedDisk) -> Log:
    """It begins at offset 0."""
    log = open_log(disk, PATH, producer_id_expiration_ms=EXPIRATION_MS)
    log.append_as_leader(part_of_transaction(PRODUCER, 0), 0, NOW_MS)
    return log


def test_a_producer_in_a_transaction_is_not_forgotten(disk: SimulatedDisk) -> None:
    """Nobody would end the transaction that readers of committed records wait for."""
    log = with_open_transaction(disk)
    log.remove_expired_producers(NOW_MS + 100 * EXPIRATION_MS)
    assert list(log.producers.producers) == [PRODUCER]
    end(log, COMMIT)
    log.remove_expired_producers(NOW_MS + 100 * EXPIRATION_MS)
    assert not log.producers.producers


def test_a_marker_is_a_sign_of_life_of_its_producer(disk: SimulatedDisk) -> None:
    """With the producer the coordinator's epoch would go, which fences markers of older coordinators (KAFKA-9144)."""
    log = with_open_transaction(disk)
    end(log, COMMIT, coordinator_epoch=5, timestamp=NOW_MS + EXPIRATION_MS)
    log.remove_expired_producers(NOW_MS + EXPIRATION_MS + 1)
    assert log.producers.producers[PRODUCER].coordinator_epoch == 5


@pytest.mark.parametrize("coordinator_epoch", [0, 3, 4])
def test_a_marker_of_a_coordinator_that_was_replaced_is_refused(disk: SimulatedDisk, coordinator_epoch: int) -> None:
    log = with_open_transaction(disk)
    end(log, COMMIT, coordinator_epoch=5)
    log.append_as_leader(part_of_transaction(PRODUCER, 1), 0, NOW_MS)
    with pytest.raises(ApiError) as refused:
        end(log, ABORT, coordinator_epoch=coordinator_epoch)
    assert refused.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    end(log, ABORT, coordinator_epoch=5)


def test_a_transaction_is_undecided_until_its_marker_is_replicated(disk: SimulatedDisk) -> None:
    """A new leader may lack the marker: who has read its records by then has read what is aborted later."""
    log = with_open_transaction(disk)
    marker = end(log, COMMIT)
    assert log.first_undecided_offset(marker) == 0
    assert log.first_undecided_offset(marker + 1) is None


@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_an_open_transaction_is_open_after_a_restart(disk: SimulatedDisk, clean_shutdown: bool) -> None:
    log = with_open_transaction(disk)
    log.roll(NOW_MS)
    log.append_as_leader(part_of_transaction(PRODUCER, 1), 0, NOW_MS)
    log.close()
    again = open_log(disk, PATH, clean_shutdown=clean_shutdown, recovery_point=log.recovery_point)
    assert again.first_unstable_offset == 0
    end(again, ABORT)
    assert [(each.first_offset, each.last_offset) for each in again.aborted_transactions(0, 3)] == [(0, 2)]
