"""Transactions of several producers in a log, and what a reader of committed records sees of them."""

from random import Random

from pykbroker.client.fetched import AbortedTransactions, read_batches
from pykbroker.protocol.records.batch import Record, encode_batch, iter_records
from pykbroker.protocol.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    encode_end_transaction_batch,
)
from pykbroker.storage.log.log import AppendOrigin, Log
from tests.storage.batches import NOW_MS

COMMIT, ABORT = ControlRecordType.COMMIT, ControlRecordType.ABORT


def part_of_transaction(producer_id: int, sequence: int, count: int = 1, *, epoch: int = 0) -> bytes:
    records = [Record(b"key", b"of %d" % producer_id, (), NOW_MS) for _ in range(count)]
    return encode_batch(
        records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, is_transactional=True
    )


def marker(kind: ControlRecordType, producer_id: int, *, epoch: int = 0) -> bytes:
    return encode_end_transaction_batch(
        EndTransactionMarker(kind, 0), producer_id=producer_id, producer_epoch=epoch, timestamp=NOW_MS
    )


class Transactions:
    """Appends as clients and the coordinator do, and keeps account of what became of each record."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.committed: list[int] = []
        self.aborted: list[int] = []
        self.open: dict[int, list[int]] = {}
        self._sequences: dict[int, int] = {}

    def write(self, producer_id: int, count: int = 1) -> int:
        sequence = self._sequences.get(producer_id, 0)
        self._sequences[producer_id] = sequence + count
        first = self.log.append_as_leader(part_of_transaction(producer_id, sequence, count), 0, NOW_MS).first_offset
        self.open.setdefault(producer_id, []).extend(range(first, first + count))
        return first

    def end(self, producer_id: int, kind: ControlRecordType) -> int:
        result = self.log.append_as_leader(marker(kind, producer_id), 0, NOW_MS, origin=AppendOrigin.COORDINATOR)
        (self.committed if kind is COMMIT else self.aborted).extend(self.open.pop(producer_id, []))
        return result.first_offset

    @property
    def stable_offset(self) -> int:
        return min((offsets[0] for offsets in self.open.values()), default=self.log.log_end_offset)

    @property
    def visible(self) -> list[int]:
        return sorted(offset for offset in self.committed if offset < self.stable_offset)

    def go_on_at_random(self, rng: Random, steps: int) -> None:
        for _ in range(steps):
            producer_id = rng.randrange(1, 6)
            if producer_id not in self.open or rng.random() < 0.5:
                self.write(producer_id, rng.randrange(1, 4))
            else:
                self.end(producer_id, rng.choice((COMMIT, ABORT)))
            if rng.random() < 0.05:
                self.log.roll(NOW_MS)


def read_committed(log: Log, stable_offset: int, *, start: int = 0, max_bytes: int = 500) -> list[int]:
    """The offsets that a consumer sees, fetch by fetch, with the list of aborted transactions of each fetch."""
    found: list[int] = []
    position = start
    while position < stable_offset:
        records = log.read(position, max_bytes, max_offset=stable_offset)
        if not records.size:
            break
        transactions = log.aborted_transactions_of(position, records)
        hidden = AbortedTransactions((each.first_offset, each.producer_id) for each in transactions)
        for batch, is_hidden in read_batches(records.read(), hidden):
            if not is_hidden:
                found += [record.offset for record in iter_records(batch) if record.offset >= position]
            position = max(position, batch.header.next_offset)
    return found
