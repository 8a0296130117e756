"""Appends to the partitions that this node leads: any append of the node, and the appends of one Produce request.

Kafka's counterparts are `ReplicaManager.appendRecordsToLeader` and `ReplicaManager.handleProduceAppend`. What an append
waits for once it is in the leader's log is said by `delayed_produce`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.records.batch import RecordBatchHeader
from pykbroker.protocol.records.checking import CheckBudget
from pykbroker.replication.partition import Partition
from pykbroker.storage.files.errors import FileError
from pykbroker.storage.files.steps import Job
from pykbroker.storage.log.log import AppendOrigin, AppendResult, LogConfig
from pykbroker.storage.segments.validation import CheckedBatch, CheckSteps, check_at_once, client_batch_steps

from ..logs.full_directories import FullDirectories
from ..logs.log_upkeep import LogUpkeep
from ..logs.record_checks import RecordChecks, proceed
from ..network.large_requests import Admission
from ..runtime.clock import Clock
from ..runtime.fair_queue import FairShare
from .storage_failures import StorageFailures

# To get a member from its enumeration takes Python 3.11 as long as a call.
_NONE: Final = ErrorCode.NONE
_CLIENT: Final = AppendOrigin.CLIENT


class RecordAppends:
    """The appends of one node, be the records a client's or a coordinator's."""

    def __init__(self, failures: StorageFailures, upkeep: LogUpkeep, full: FullDirectories) -> None:
        self._failures = failures
        self._upkeep = upkeep
        self._full = full

    def append(
        self,
        partition: Partition,
        records: bytes | memoryview,
        now_ms: int,
        required_acks: int,
        origin: AppendOrigin = _CLIENT,
        checked: CheckedBatch | None = None,
    ) -> AppendResult:
        """The records are in the leader's log when this returns. checked: what a check found. Raises `ApiError`."""
        try:
            result = partition.append_as_leader(records, now_ms, required_acks, origin, checked)
        except FileError as failure:
            self._failures.in_log(partition.log, failure)
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR) from failure
        if not result.first_offset:
            self._upkeep.begun(partition.log)
        if self._full:
            self._failures.written(partition.log)
        if partition.high_watermark <= result.last_offset and partition.lacks_flush:
            self.flush_what_readers_lack(partition)  # even if the caller waits for nothing, or leaves
        return result

    def flush_what_readers_lack(self, partition: Partition) -> None:
        """A leader's high watermark waits for the disk, and perhaps nobody else will ask for a flush."""
        if partition.is_leader and partition.lacks_flush:
            self._upkeep.flush_soon(partition.log)


class ProducingClient(Protocol):
    """The client of a Produce request; `ConnectionState` is one."""

    has_left: bool
    fair_share: FairShare


class TransactionCheck(Protocol):
    """A request with a transactional id is checked in front of each append."""

    def check(self, partition: Partition, records: bytes | memoryview) -> RecordBatchHeader | None:
        """The batch's header, where it was decoded before. Raises `ApiError` where the partition is not verified."""
        ...


class LongCheck(NamedTuple):
    """A check that takes longer than a turn, with its next step, and the partition and config that it is made for."""

    steps: CheckSteps
    step: Job | None
    partition: Partition
    config: LogConfig


class ProduceAppends:
    """The appends of one Produce request, which share the time and the budget of their checks.

    transaction: set for a request with a transactional id. admission: of a large request.
    """

    __slots__ = (
        "_admission",
        "_append",
        "_budget",
        "_checks",
        "_client",
        "_clock",
        "_now_ms",
        "_required_acks",
        "transaction",
    )

    def __init__(
        self,
        appends: RecordAppends,
        checks: RecordChecks,
        clock: Clock,
        required_acks: int,
        budget: CheckBudget,
        client: ProducingClient,
        admission: Admission | None,
    ) -> None:
        self._append = appends.append
        self._checks = checks
        self._clock = clock
        self._now_ms = clock.now_ms()
        self._required_acks = required_acks
        self._budget = budget
        self._client = client
        self.transaction: TransactionCheck | None = None
        self._admission = admission

    def append(self, partition: Partition, records: bytes | memoryview) -> AppendResult | LongCheck:
        """Append the batch, or return a check that takes longer and is to `finish`. Raises `ApiError`."""
        refusal = partition.append_refusal(self._required_acks)
        if refusal is not _NONE:
            raise ApiError(refusal)
        transaction = self.transaction
        header = None if transaction is None else transaction.check(partition, records)
        config, budget = partition.log.config, self._budget
        if budget.left <= 0:
            return LongCheck(client_batch_steps(records, config, self._now_ms, budget, header), None, partition, config)
        found = check_at_once(records, config, self._now_ms, budget, header)
        if isinstance(found, CheckedBatch):
            return self._append(partition, records, self._now_ms, self._required_acks, _CLIENT, found)
        if found is not None:
            return LongCheck(found, None, partition, config)
        steps = client_batch_steps(records, config, self._now_ms, budget, header)
        begun: Job | CheckedBatch | None = proceed(steps.__next__)
        if isinstance(begun, CheckedBatch):
            return self._append(partition, records, self._now_ms, self._required_acks, _CLIENT, begun)
        return LongCheck(steps, begun, partition, config)

    async def finish(
        self, check: LongCheck, records: bytes | memoryview, find: Callable[[], Partition | ErrorCode]
    ) -> AppendResult | None:
        """Return None where the batch is to be checked anew, because it was checked for what is no more.

        Raises `ApiError`, and `NobodyWaits` where the client has left meanwhile.
        """
        checked = await self._finish_check(check)
        partition = check.partition
        if find() is not partition or partition.log.config is not check.config:
            return None
        if self.transaction is not None:
            self.transaction.check(partition, records)
        return self._append(partition, records, self._now_ms, self._required_acks, _CLIENT, checked)

    async def _finish_check(self, check: LongCheck) -> CheckedBatch:
        if self._admission is not None:
            self._admission.leave()
        client, acks = self._client, self._required_acks

        def is_wanted() -> bool:
            """Tell whether the check goes on: a client that wants no answer may leave when everything is sent."""
            return not (client.has_left and acks)

        checked = await self._checks.finish(check.step, check.steps, self._budget, client.fair_share, is_wanted)
        self._now_ms = self._clock.now_ms()
        return checked
