"""Records of a transaction are appended only where their partition belongs to the transaction (KIP-890).

The first batch of a transaction in a partition waits for the transaction coordinator's word, so that no batch that
comes late, behind its transaction's end, opens one that nobody would ever end. Clients of the second protocol leave
it to the broker to add the partition. Once a transaction is open in a partition nobody is asked any more.

Produce and TxnOffsetCommit call `begin` for each partition, then `ask`, and append under the `guard` where there is no
`refusal`. The log's part is in `ProducerStateManager` (`start_verification`, `check_verified`): a marker that overtakes
the coordinator's answer takes it back.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.replication.partition import Partition
from pykbroker.server.coordinators.transaction_membership import SECOND_PROTOCOL
from pykbroker.server.node.broker import Broker
from pykbroker.storage.producers.transaction_verification import VerificationGuard
from pykbroker.transactions.requests import AddPartitions


class ClientSupport(Enum):
    """The version of a request says what its client supports."""

    FIRST_ERRORS = 0
    """The client does not know TRANSACTION_ABORTABLE."""
    ABORTABLE_ERRORS = 1
    ADDING = 2
    """The client follows the second protocol: the broker adds its partitions."""


class TransactionVerification:
    """One request's records of one producer: `begin` for each partition, `ask`, then append what is not refused."""

    def __init__(
        self, broker: Broker, transactional_id: str, producer_id: int, producer_epoch: int, support: ClientSupport
    ) -> None:
        self._broker = broker
        self._transactional_id = transactional_id
        self._producer_id = producer_id
        self._producer_epoch = producer_epoch
        self._support = support
        self.is_needed = support is ClientSupport.ADDING or is_verification_enabled(broker)
        self._first_sequences: dict[Partition, int] = {}
        self._guards: dict[Partition, VerificationGuard | None] = {}
        self._refused: dict[Partition, ErrorCode] = {}

    def begin(self, partition: Partition, first_sequence: int) -> None:
        entry = partition.log.producers.producers.get(self._producer_id)
        if entry is not None and self._producer_epoch < entry.producer_epoch:
            self._refused[partition] = ErrorCode.INVALID_PRODUCER_EPOCH  # the log knows better: nobody is asked
            return
        self._first_sequences[partition] = first_sequence
        self._guards[partition] = partition.log.producers.start_verification(
            self._producer_id,
            self._producer_epoch,
            first_sequence,
            self._broker.clock.now_ms(),
            supports_epoch_bump=self._support is ClientSupport.ADDING,
        )

    async def ask(self) -> None:
        """The coordinator, about partitions where the transaction is not open. A client of the second protocol begins
        its next transaction before the last one is complete, so that the coordinator is asked again for a moment.
        """
        if not self.is_needed:
            return
        await self._ask_about(self._guards)
        if self._support is not ClientSupport.ADDING:
            return
        for wait_s in self._broker.transactions.membership.retry_waits_s():
            too_early = [each for each in self._guards if self._was_too_early(each)]
            if not too_early:
                return
            await trio.sleep(wait_s)
            for partition in too_early:
                self._refused.pop(partition, None)
                self.begin(partition, self._first_sequences[partition])
            await self._ask_about(too_early)

    def _was_too_early(self, partition: Partition) -> bool:
        """The last transaction was not complete for the coordinator, or its marker has come since `begin`: it took the
        guard back, whatever the coordinator says.
        """
        if partition in self._refused:
            return self._refused[partition] is ErrorCode.CONCURRENT_TRANSACTIONS
        guard, producers = self._guards[partition], partition.log.producers
        if guard is None or producers.has_ongoing_transaction(self._producer_id, self._producer_epoch):
            return False
        return not producers.has_guard(self._producer_id, guard)

    async def _ask_about(self, partitions: Iterable[Partition]) -> None:
        unknown = {
            TopicPartition(each.topic, each.index): each for each in partitions if self._guards[each] is not None
        }
        if not unknown:
            return
        errors = await self._broker.transactions.membership.verify(
            AddPartitions(
                transactional_id=self._transactional_id,
                producer_id=self._producer_id,
                producer_epoch=self._producer_epoch,
                partitions=tuple(unknown),
                verify_only=self._support is not ClientSupport.ADDING,
                client_transaction_version=SECOND_PROTOCOL,
            )
        )
        for at, partition in unknown.items():
            error_code = self._told(errors.get(at, ErrorCode.UNKNOWN_SERVER_ERROR))
            if error_code is not ErrorCode.NONE:
                self._refused[partition] = error_code

    def _told(self, error_code: ErrorCode) -> ErrorCode:
        match error_code:
            case ErrorCode.PRODUCER_FENCED:
                return ErrorCode.INVALID_PRODUCER_EPOCH
            case ErrorCode.TRANSACTION_ABORTABLE if self._support is ClientSupport.FIRST_ERRORS:
                return ErrorCode.INVALID_TXN_STATE
        return error_code

    def refusal(self, partition: Partition) -> ErrorCode:
        """The coordinator's; NONE where it agrees, or nobody had to ask. What was not led here when it was asked has no
        guard, and to be told of its transaction would be to be told to abort it.
        """
        refused = self._refused.get(partition)
        if refused is not None:
            return refused
        return ErrorCode.NONE if partition in self._guards else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def guard(self, partition: Partition) -> VerificationGuard | None:
        return self._guards.get(partition)


def is_verification_enabled(broker: Broker) -> bool:
    dynamic = broker.image.broker_config(broker.node_id)
    return broker.config.text("transaction.partition.verification.enable", dynamic) == "true"
