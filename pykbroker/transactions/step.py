"""The transactional ids of a shard, and what one step of it gathers.

Every change of a transaction goes through `TransactionStep.changed`, so that what is in memory, what is in the log and
which transactions are open stay one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pykbroker.kept_entries import KeptEntries
from pykbroker.protocol.messages.transaction_records import TransactionLogKey, TransactionLogValue
from pykbroker.state_machine import Cause, CauseKind, Completion, Result, Token

from .effects import WriteMarkers
from .records import TransactionRecord
from .transaction import Transaction, TransactionState


class TransactionTable:
    """The transactions of a shard.

    by_id: every transactional id. ongoing: those with a transaction that is not decided, the oldest first.
    """

    def __init__(self) -> None:
        self.by_id: dict[str, Transaction] = {}
        self.ongoing: dict[str, Transaction] = {}
        self._kept = KeptEntries(self.by_id.get, Transaction.copy)

    def find(self, transactional_id: str) -> Transaction | None:
        """Return a transaction that the caller may change."""
        self.keep(transactional_id)
        return self.by_id.get(transactional_id)

    def keep(self, transactional_id: str) -> None:
        """Keep a transaction as it is, before it changes, so that a trial can be taken back."""
        self._kept.keep(transactional_id)

    def put(self, transaction: Transaction) -> None:
        self.by_id[transaction.transactional_id] = transaction
        if transaction.state is TransactionState.ONGOING:
            self.ongoing[transaction.transactional_id] = transaction
        else:
            self.ongoing.pop(transaction.transactional_id, None)

    def begin_trial(self) -> None:
        """Begin a trial: `end_trial` may take back what changes from here on."""
        self._kept.begin()

    def end_trial(self, *, is_kept: bool) -> None:
        kept = self._kept.end()
        for transactional_id, transaction in kept.items() if not is_kept else ():
            if transaction is not None:
                self.put(transaction)
            else:
                self.remove(transactional_id)

    def remove(self, transactional_id: str) -> None:
        self.keep(transactional_id)
        self.by_id.pop(transactional_id, None)
        self.ongoing.pop(transactional_id, None)

    def replay(self, key: TransactionLogKey, value: TransactionLogValue | None) -> None:
        """Raises BadRecord, and is then as it was before."""
        if value is None:
            self.remove(key.transactional_id)
        else:
            self.put(Transaction.from_record(key, value))


@dataclass(slots=True)
class TransactionStep:
    """One step of the shard, and what it brought about so far.

    now_ms: monotonic, for deadlines. timestamp_ms: wall clock, for what is written down and for timeouts of
    transactions, which go on while no coordinator is there. transaction_version: the level of the cluster.
    """

    table: TransactionTable
    now_ms: int
    timestamp_ms: int
    transaction_version: int
    records: list[TransactionRecord] = field(default_factory=list)
    completed: list[Completion] = field(default_factory=list)
    effects: list[WriteMarkers] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    is_unfinished: bool = False
    """The step did a part of what there is to do, and is to be made again."""

    @property
    def can_log_second_protocol(self) -> bool:
        """Records of version 0 have no field for what it needs; Kafka refuses it for that reason alone."""
        return self.transaction_version > 0

    def changed(self, transaction: Transaction, cause: str) -> None:
        self.table.put(transaction)
        self.records.append(transaction.record(self.transaction_version))
        self.causes.append(Cause(transaction.transactional_id, cause))

    def removed(self, transaction: Transaction, cause: str) -> None:
        self.table.remove(transaction.transactional_id)
        self.records.append(TransactionRecord(TransactionLogKey(transactional_id=transaction.transactional_id), None))
        self.causes.append(Cause(transaction.transactional_id, cause, CauseKind.END))

    def answer(self, token: Token, response: object) -> None:
        self.completed.append(Completion(token, response))

    def result(self) -> Result[TransactionRecord]:
        return Result(
            tuple(self.records),
            tuple(self.completed),
            "; ".join(f"{cause.key}: {cause.words}" for cause in self.causes),
            tuple(self.effects),
            is_unfinished=self.is_unfinished,
            causes=self.causes,
        )
