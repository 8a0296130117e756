"""A transaction coordinator with its log, its clock and the markers it wants written: no broker, no waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transaction_admin import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from pykbroker.protocol.messages.transactions import (
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.state_machine import CoordinatorContext, Result, Token
from pykbroker.transactions.administration import ListSomeTransactions, TransactionFilter
from pykbroker.transactions.config import TransactionConfig
from pykbroker.transactions.effects import WriteMarkers
from pykbroker.transactions.records import TransactionRecord, decode_record
from pykbroker.transactions.requests import AddPartitions, MarkersWritten, PartitionsAdded
from pykbroker.transactions.shard import TransactionRequest, TransactionShard
from pykbroker.transactions.transaction import (
    EPOCH_BUMP_VERSION,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    TransactionState,
)
from tests.trials import Trials

START_MS = 1_700_000_000_000
FIRST_PRODUCER_ID = 1000
Producer = tuple[int, int]
NO_PRODUCER: Producer = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class TransactionWorld:
    """log: keys and values as they stand in the topic. markers: what is wanted and not done yet. causes: of all steps,
    as the node's log has them.

    out_of_producer_ids: there is none to be had now. refuses_appends: the log takes no records now.
    """

    def __init__(self, config: TransactionConfig | None = None, transaction_version: int = 2) -> None:
        self.config = config or TransactionConfig()
        self.transaction_version = transaction_version
        self.now_ms = 0
        self.coordinator_epoch = 0
        self.log: list[tuple[bytes, bytes | None]] = []
        self.markers: list[WriteMarkers] = []
        self.causes: list[str] = []
        self.out_of_producer_ids = False
        self.refuses_appends = False
        self._next_producer_id = FIRST_PRODUCER_ID
        self.shard = self._new_shard()
        self._trials = Trials(lambda: self._next_producer_id, self._give_out_again)

    @property
    def timestamp_ms(self) -> int:
        return START_MS + self.now_ms

    def _new_shard(self) -> TransactionShard:
        return TransactionShard(
            self.config,
            coordinator_epoch=self.coordinator_epoch,
            transaction_version=lambda: self.transaction_version,
            take_producer_id=self._take_producer_id,
        )

    def _take_producer_id(self) -> int | None:
        if self.out_of_producer_ids:
            return None
        self._next_producer_id += 1
        return self._next_producer_id - 1

    def _give_out_again(self, next_producer_id: int) -> None:
        self._next_producer_id = next_producer_id

    # Steps

    def call(self, request: TransactionRequest, api_version: int) -> Any:
        result = self._handle(request, Token(1), api_version)
        self._take(result)
        (completion,) = result.completed
        return completion.response

    def _handle(self, request: TransactionRequest, token: Token, api_version: int) -> Result[TransactionRecord]:
        context = CoordinatorContext(api_version=api_version)

        def step() -> Result[TransactionRecord]:
            return self.shard.handle(request, token, self.now_ms, context, self.timestamp_ms)

        return self._taken_back(step) if self.refuses_appends else self._trials.make(self.shard, step)

    def _taken_back(self, step: Callable[[], Result[TransactionRecord]]) -> Result[TransactionRecord]:
        """As its driver does with a step whose records the log refuses."""
        self.shard.begin_trial()
        result = step()
        self.shard.end_trial(is_kept=not result.records)
        return Result((), result.completed)

    def _take(self, result: Result[TransactionRecord]) -> None:
        self.log += [record.encode() for record in result.records]
        self.causes.append(result.cause)
        for effect in result.effects:
            assert isinstance(effect, WriteMarkers)
            self.markers.append(effect)

    def pass_time(self, ms: int) -> None:
        """Timers that become due meanwhile go off at their time."""
        end_ms = self.now_ms + ms
        while (deadline_ms := self.shard.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.expire()
        self.now_ms = end_ms

    def expire(self) -> None:
        """One step of what is due now."""
        self._take(self._trials.make(self.shard, lambda: self.shard.expire(self.now_ms, self.timestamp_ms)))

    def write_markers(self) -> list[WriteMarkers]:
        """All that are wanted; what was wanted is returned."""
        written, self.markers = self.markers, []
        for markers in written:
            self.report(markers)
        return written

    def report(self, markers: WriteMarkers, partitions: Sequence[TopicPartition] | None = None) -> None:
        """These markers are written, or those for some of the partitions."""
        self.call(
            MarkersWritten(
                transactional_id=markers.transactional_id,
                producer_id=markers.producer_id,
                producer_epoch=markers.producer_epoch,
                partitions=markers.partitions if partitions is None else tuple(partitions),
            ),
            0,
        )

    def restart(self, *, log_end: int | None = None) -> None:
        """The next coordinator knows what the log says, up to its end; what was not done is forgotten."""
        self.log = self.log[:log_end]
        self.coordinator_epoch += 1
        self.markers = []
        self.shard = self.loaded()
        self._take(self._trials.make(self.shard, lambda: self.shard.start_timers(self.now_ms, self.timestamp_ms)))

    def loaded(self) -> TransactionShard:
        """A coordinator that knows what the log says."""
        shard = self._new_shard()
        for key, value in self.log:
            record = decode_record(key, value)
            shard.replay(record.key, record.value)
        return shard

    def assert_log_is_complete(self) -> None:
        """What is in memory and should not be lost is in the log."""
        assert self._lasting(self.shard) == self._lasting(self.shadow())

    def shadow(self) -> TransactionShard:
        """To compare with."""
        return self.loaded()

    def _lasting(self, shard: TransactionShard) -> dict[str, Transaction]:
        """Without what a record has no field for, and without the count of markers."""
        lasting = {}
        for transactional_id, transaction in shard.transactions.items():
            lasting[transactional_id] = replace(transaction)
            if not self._keeps_last_epoch(transaction):
                lasting[transactional_id].last_producer_epoch = NO_PRODUCER_EPOCH
            if transaction.state.is_prepared:
                lasting[transactional_id].partitions = {}
            if self.transaction_version == 0:
                lasting[transactional_id].previous_producer_id = NO_PRODUCER_ID
        return lasting

    def _keeps_last_epoch(self, transaction: Transaction) -> bool:
        """Where an InitProducerId could still be repeated: a record of version 0 has no room for it."""
        if transaction.state is TransactionState.EMPTY:
            return self.transaction_version > 0
        is_bumped = transaction.client_transaction_version >= EPOCH_BUMP_VERSION
        return is_bumped and transaction.state is not TransactionState.ONGOING

    # Requests

    def init(
        self, transactional_id: str | None = "t", expected: Producer = NO_PRODUCER, *, version: int = 5, **fields: Any
    ) -> InitProducerIdResponse:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=fields.pop("timeout_ms", 60_000),
            producer_id=expected[0],
            producer_epoch=expected[1],
            **fields,
        )
        response = self.call(request, version)
        assert isinstance(response, InitProducerIdResponse)
        return response

    def producer(self, transactional_id: str = "t", **fields: Any) -> Producer:
        """A producer that may begin now."""
        response = self.init(transactional_id, **fields)
        assert not response.error_code, response
        return response.producer_id, response.producer_epoch

    def producer_at(self, epoch: int, transactional_id: str = "t", **fields: Any) -> Producer:
        """A producer that has come to this epoch, as the log tells it."""
        self.producer(transactional_id, **fields)
        transaction = replace(self.shard.transactions[transactional_id], producer_epoch=epoch)
        record = transaction.record(self.transaction_version)
        self.log.append(record.encode())
        self.shard.replay(record.key, record.value)
        return transaction.producer_id, epoch

    def add(self, producer: Producer, *partitions: TopicPartition, version: int = 3, **fields: Any) -> PartitionsAdded:
        request = AddPartitions(
            transactional_id=fields.pop("transactional_id", "t"),
            producer_id=producer[0],
            producer_epoch=producer[1],
            partitions=partitions,
            client_transaction_version=2 if version > 3 else 0,
            **fields,
        )
        response = self.call(request, version)
        assert isinstance(response, PartitionsAdded)
        return response

    def verify(self, producer: Producer, *partitions: TopicPartition, **fields: Any) -> PartitionsAdded:
        return self.add(producer, *partitions, version=5, verify_only=True, **fields)

    def end(self, producer: Producer, *, commit: bool, version: int = 5, transactional_id: str = "t") -> EndTxnResponse:
        request = EndTxnRequest(
            transactional_id=transactional_id, producer_id=producer[0], producer_epoch=producer[1], committed=commit
        )
        response = self.call(request, version)
        assert isinstance(response, EndTxnResponse)
        return response

    def describe(self, transactional_id: str = "t") -> DescribeTransactionsResponseTransactionState:
        response = self.call(DescribeTransactionsRequest(transactional_ids=[transactional_id]), 0)
        assert isinstance(response, DescribeTransactionsResponse)
        (described,) = response.transaction_states
        return described

    def state(self, transactional_id: str = "t") -> str:
        return self.describe(transactional_id).transaction_state

    def list(self, **filters: Any) -> ListTransactionsResponse:
        return self.list_as_asked(ListTransactionsRequest(**filters))

    def list_as_asked(self, request: ListTransactionsRequest) -> ListTransactionsResponse:
        """As its handler does it."""
        try:
            wanted = TransactionFilter(request)
        except ValueError:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
        response = self.call(ListSomeTransactions(wanted, wanted.named(list(self.shard.transactions))), 2)
        assert isinstance(response, ListTransactionsResponse)
        response.unknown_state_filters = wanted.unknown_states
        return response

    def listed(self, **filters: Any) -> list[str]:
        return [each.transactional_id for each in self.list(**filters).transaction_states]


def after(response: EndTxnResponse) -> Producer:
    """The producer that an EndTxn of the second protocol gives back."""
    return response.producer_id, response.producer_epoch
