"""One partition on this node: who leads it, how far it is replicated, and what may be read of it.

Pure: a `Partition` holds a log and knows no Trio, no clock and no other partition. The rules follow Kafka's
`cluster.Partition`: the high watermark is the least log end of the in-sync replicas, with one replica as with many.
Who those are is kept in `isr`; what a follower fetches, and does with the answer, is said by `follower`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.records.checking import CheckBudget
from pykbroker.storage.files.errors import OffsetOutOfRange
from pykbroker.storage.files.steps import Steps, run_steps
from pykbroker.storage.log.log import AppendOrigin, AppendResult, Log, TimestampAndOffset
from pykbroker.storage.log.truncation import Truncation
from pykbroker.storage.segments.validation import CheckedBatch
from pykbroker.storage.segments.verification import NotVerified

from .isr import NO_BROKER_EPOCH, Brokers, CommittedIsr, InSyncReplicas, IsrChange, Replica
from .reads import (
    NO_EPOCH,
    NO_OFFSET,
    DeletedRecords,
    EpochEndOffset,
    FetchIsolation,
    FetchPartitionData,
    ListedOffset,
    OffsetSpec,
)
from .traffic import TopicTraffic

NO_LEADER = -1
ACKS_ALL = -1
UP_TO_HIGH_WATERMARK = -1
"""The offset of a DeleteRecords request that deletes all that may be deleted."""

# To get a member from its enumeration takes Python 3.11 as long as a call.
_NONE: Final = ErrorCode.NONE
_LATEST: Final = OffsetSpec.LATEST
_EARLIEST: Final = OffsetSpec.EARLIEST
_LOG_END: Final = FetchIsolation.LOG_END
_HIGH_WATERMARK: Final = FetchIsolation.HIGH_WATERMARK
_TXN_COMMITTED: Final = FetchIsolation.TXN_COMMITTED


class LeaderAndIsr(Protocol):
    """The controller decided this about one partition; `metadata.partition_state.PartitionState` is one."""

    @property
    def leader(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def partition_epoch(self) -> int: ...
    @property
    def replicas(self) -> Sequence[int]: ...
    @property
    def isr(self) -> Sequence[int]: ...
    @property
    def adding_replicas(self) -> Sequence[int]: ...


class PartitionWatcher(Protocol):
    def partition_changed(self, partition: Partition) -> None:
        """More can be read or less, or the partition changed its leader, or it is gone. Called synchronously."""
        ...


@dataclass(frozen=True, slots=True)
class IsrRules:
    """The partitions of a node share these. `propose` asks the controller for a change of the ISR;
    `Partition.isr_change_answered` is told the outcome.

    A follower's fetch may propose that the ISR grows, `Partition.maybe_shrink_isr` that it shrinks.
    """

    brokers: Brokers
    lag_time_max_ms: int
    propose: Callable[[Partition, IsrChange], None]


class Partition:
    """A replica of one partition. Each state comes from `apply_state`; until the first one nobody leads.

    Times are those of a monotonic clock, but for `append_as_leader`, which writes its time down.
    """

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        log: Log,
        local_id: int,
        isr_rules: IsrRules,
        *,
        high_watermark: int = 0,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.local_id = local_id
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.leader_epoch_start_offset = NO_OFFSET
        self._led_since_epoch = NO_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.adding_replicas: tuple[int, ...] = ()
        self.in_sync = InSyncReplicas(local_id, isr_rules.brokers, isr_rules.lag_time_max_ms)
        self._isr_rules = isr_rules
        self.high_watermark = max(log.log_start_offset, min(high_watermark, log.log_end_offset))
        self.traffic = TopicTraffic()
        """Of the topic: whoever hosts partitions has one for all of a topic."""
        self.watchers: dict[PartitionWatcher, None] = {}
        """The watchers are in order of their arrival, so that they wake in that order."""

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index} leader={self.leader} epoch={self.leader_epoch}>"

    @property
    def is_leader(self) -> bool:
        return self.leader == self.local_id

    @property
    def isr(self) -> tuple[int, ...]:
        return self.in_sync.committed

    @property
    def last_stable_offset(self) -> int:
        high_watermark = self.high_watermark
        unstable = self.log.first_undecided_offset(high_watermark)
        return high_watermark if unstable is None else min(unstable, high_watermark)

    # Roles

    def apply_state(self, state: LeaderAndIsr, now_ms: int) -> bool:
        """Take over the controller's decision; False where a later one is known already."""
        if state.partition_epoch < self.partition_epoch:
            return False
        new_epoch = state.leader_epoch > self.leader_epoch
        if not self.is_leader:
            self._led_since_epoch = state.leader_epoch
        self.leader = state.leader
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.replicas = tuple(state.replicas)
        self.adding_replicas = tuple(state.adding_replicas)
        if self.is_leader:
            if new_epoch:
                self._start_leader_epoch()
            self.in_sync.begin(self.replicas, state.isr, state.partition_epoch, now_ms, is_new_epoch=new_epoch)
            self._maybe_increment_high_watermark()
        else:
            self.in_sync.end(state.isr)
        self.notify()
        return True

    def resign(self) -> None:
        """This node has the partition no longer; whoever still holds it is refused."""
        self.leader = NO_LEADER
        self.notify()

    def _start_leader_epoch(self) -> None:
        """A new leader's log is the truth: followers truncate what they have beyond this offset of older epochs."""
        self.leader_epoch_start_offset = self.log.log_end_offset
        if self._isr_rules.brokers.knows_this_process():
            self.log.assign_epoch_start_offset(self.leader_epoch, self.leader_epoch_start_offset)

    def lead(self) -> None:
        """Lead what is led here: the metadata knows this process now.

        Before, the partition may be led by somebody else, in an epoch that began in a part of the log that a power cut
        has taken.
        """
        if self.is_leader:
            self._start_leader_epoch()
            self.maybe_increment_high_watermark()

    def notify(self) -> None:
        for watcher in tuple(self.watchers):
            watcher.partition_changed(self)

    # Appending

    def append_as_leader(
        self,
        records: bytes | memoryview,
        now_ms: int,
        required_acks: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        checked: CheckedBatch | None = None,
    ) -> AppendResult:
        """The leader appends a client's batch or a coordinator's batches. Raises `ApiError`, `FileError`.

        checked: what a check of the client's batch found for the log's present config.
        """
        if self.leader != self.local_id or (required_acks == ACKS_ALL and self.is_under_min_isr):
            raise ApiError(self.append_refusal(required_acks))
        result = self.log.append_as_leader(records, self.leader_epoch, now_ms, origin=origin, checked=checked)
        traffic = self.traffic
        traffic.produce_requests += 1
        traffic.bytes_in += len(records)
        traffic.messages_in += result.last_offset - result.first_offset + 1
        self._maybe_increment_high_watermark()
        if self.watchers:
            self.notify()
        return result

    def append_refusal(self, required_acks: int) -> ErrorCode:
        """Return why nobody may append here now, whatever the records are; NONE where records may be appended."""
        if self.leader != self.local_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if required_acks == ACKS_ALL and self.is_under_min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        return _NONE

    def has_led_since(self, leader_epoch: int) -> bool:
        """This replica leads, and was never demoted since it led in that epoch: it has truncated nothing."""
        return self.leader == self.local_id and self._led_since_epoch <= leader_epoch

    @property
    def has_min_isr(self) -> bool:
        """The ISR is large enough for acks=all, once a pending change is made."""
        in_sync = len(self.in_sync.maximal)
        return in_sync >= len(self.replicas) or in_sync >= self.log.config.min_insync_replicas

    @property
    def is_under_min_isr(self) -> bool:
        in_sync = len(self.in_sync.committed)
        return in_sync < len(self.replicas) and in_sync < self.log.config.min_insync_replicas

    @property
    def is_at_min_isr(self) -> bool:
        """Return whether just as many are in sync as acks=all wants: all of them, where there are no more."""
        return len(self.in_sync.committed) == min(len(self.replicas), self.log.config.min_insync_replicas)

    @property
    def is_under_replicated(self) -> bool:
        """A replica that is being added is not missed yet."""
        return len(self.in_sync.committed) < len(self.replicas) - len(self.adding_replicas)

    @property
    def lacks_flush(self) -> bool:
        """`flush.messages`: what was appended last is not on the disk as it should be."""
        return self.log.lacks_flush(self.log.log_end_offset)

    def maybe_increment_high_watermark(self) -> None:
        """More of the log is on the disk, perhaps."""
        if self.is_leader and self._maybe_increment_high_watermark():
            self.notify()

    def _maybe_increment_high_watermark(self) -> bool:
        """A leader that the metadata knows from its last process may be deposed, by a larger ISR than it knows of."""
        if not self._isr_rules.brokers.knows_this_process():
            return False
        new = self.log.log_end_offset
        if self.log.lacks_flush(new):  # nobody sees it before, wherever it came from
            new = self.log.recovery_point
        if self.in_sync.followers:
            new = self.in_sync.least_end_offset(new)
        if new <= self.high_watermark or self.is_under_min_isr:
            return False
        self._set_high_watermark(new)
        return True

    def _set_high_watermark(self, offset: int) -> None:
        self.high_watermark = offset
        self.log.producers.forget_replicated(offset)

    # The in-sync replicas

    def maybe_shrink_isr(self, now_ms: int) -> None:
        """A follower that has lagged for too long leaves the ISR. To be called again and again."""
        if not self.is_leader:
            return
        isr = self.in_sync.shrunk(self.log.log_end_offset, now_ms)
        if isr:
            self._propose(isr)
        elif self._maybe_increment_high_watermark():  # who was about to join may be given up
            self.notify()

    def _propose(self, isr: tuple[int, ...]) -> None:
        self._isr_rules.propose(self, self.in_sync.propose(isr, self.leader_epoch, self.partition_epoch))

    def isr_change_answered(self, change: IsrChange, answer: CommittedIsr | ErrorCode) -> bool:
        """The controller has answered; True where the same change is to be asked for again."""
        if self.in_sync.pending is not change:
            return False  # the metadata was faster
        if isinstance(answer, ErrorCode):
            return self.in_sync.refused(answer)
        if answer.leader_epoch != self.leader_epoch or answer.partition_epoch < self.partition_epoch:
            return False
        self.partition_epoch = answer.partition_epoch
        self.in_sync.commit(answer.isr)
        self._maybe_increment_high_watermark()
        self.notify()
        return False

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: FetchIsolation,
        current_leader_epoch: int = NO_EPOCH,
        min_one_batch: bool = False,
        *,
        last_fetched_epoch: int = NO_EPOCH,
        leader_only: bool = True,
    ) -> FetchPartitionData:
        """Read at `offset` whole batches as they lie in the log, at least one with `min_one_batch`.

        Raises `NotVerified` where that was not read since the start, and `CorruptLog`.
        """
        knows_epoch = current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch
        if not knows_epoch or (leader_only and self.leader != self.local_id):
            return FetchPartitionData(self._fetch_error(current_leader_epoch, leader_only))
        log = self.log
        start = log.log_start_offset
        data = FetchPartitionData(_NONE, self.high_watermark, self.last_stable_offset, start)
        if isolation is _HIGH_WATERMARK:
            limit = data.high_watermark
        elif isolation is _TXN_COMMITTED:
            limit = data.last_stable_offset
            data.aborted_transactions = ()
        else:
            limit = log.log_end_offset
        if offset < start:
            return FetchPartitionData(ErrorCode.OFFSET_OUT_OF_RANGE)
        if last_fetched_epoch >= 0:
            diverging = self._diverging_epoch(offset, last_fetched_epoch)
            if isinstance(diverging, ErrorCode):
                return FetchPartitionData(diverging)
            if diverging is not None:
                data.diverging_epoch = diverging
                return data
        if offset > log.log_end_offset:
            return FetchPartitionData(ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset >= limit or (max_bytes <= 0 and not min_one_batch):
            return data
        try:
            records = log.read(offset, max_bytes, max_offset=limit, min_one_batch=min_one_batch, defer_checks=True)
        except OffsetOutOfRange:
            return FetchPartitionData(ErrorCode.OFFSET_OUT_OF_RANGE)
        if records.size:
            data.records = records
            data.records_size = records.size
            if isolation is _TXN_COMMITTED:
                aborted = log.aborted_transactions_of(offset, records)
                data.aborted_transactions = tuple((each.producer_id, each.first_offset) for each in aborted)
        return data

    def _diverging_epoch(self, offset: int, last_fetched_epoch: int) -> tuple[int, int] | ErrorCode | None:
        """KIP-595: the reader names its last record's epoch; where this log's epoch ends before that, it truncates."""
        epoch, end_offset = self.log.end_offset_for_epoch(last_fetched_epoch)
        if epoch < 0 or end_offset < 0:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        return (epoch, end_offset) if epoch < last_fetched_epoch or end_offset < offset else None

    def _access_error(self, current_leader_epoch: int, leader_only: bool) -> ErrorCode:
        if current_leader_epoch not in (NO_EPOCH, self.leader_epoch):
            stale = current_leader_epoch < self.leader_epoch
            return ErrorCode.FENCED_LEADER_EPOCH if stale else ErrorCode.UNKNOWN_LEADER_EPOCH
        if leader_only and self.leader != self.local_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return _NONE

    def _fetch_error(self, current_leader_epoch: int, leader_only: bool) -> ErrorCode:
        """Every negative epoch is none to a Fetch, to other requests -1 alone (Kafka's `optionalEpoch`)."""
        return self._access_error(current_leader_epoch if current_leader_epoch >= 0 else NO_EPOCH, leader_only)

    def refer_to(self, replica_id: int, current_leader_epoch: int = NO_EPOCH) -> FetchPartitionData:
        """A consumer had better read from another replica (KIP-392)."""
        error = self._fetch_error(current_leader_epoch, leader_only=False)
        if error is not _NONE:
            return FetchPartitionData(error)
        return FetchPartitionData(
            _NONE,
            self.high_watermark,
            self.last_stable_offset,
            self.log.log_start_offset,
            preferred_read_replica=replica_id,
        )

    def read_as_replica(
        self,
        replica_id: int,
        offset: int,
        max_bytes: int,
        current_leader_epoch: int = NO_EPOCH,
        min_one_batch: bool = False,
        *,
        last_fetched_epoch: int = NO_EPOCH,
        log_start_offset: int = NO_OFFSET,
        now_ms: int,
        broker_epoch: int = NO_BROKER_EPOCH,
        counts: bool = True,
    ) -> FetchPartitionData:
        """A follower's fetch, up to the log end. Its offset tells that it holds everything from its start to there.

        counts: whether it tells so now. A request counts once, when it comes; what is read again for it later says what
        was true then, and the follower may have said more since, in another request. Raises as `read` does.
        """
        error = self._fetch_error(current_leader_epoch, leader_only=True)
        follower = self.in_sync.followers.get(replica_id)
        if error is _NONE and follower is None:
            # The epochs agree but the replica is not in the set: it may know of a reassignment that we do not know yet.
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER if current_leader_epoch < 0 else ErrorCode.UNKNOWN_LEADER_EPOCH
        if error is _NONE and self.in_sync.is_stale(replica_id, broker_epoch):
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if follower is None or error is not _NONE:
            return FetchPartitionData(error)
        try:
            data = self.read(
                offset,
                max_bytes,
                _LOG_END,
                current_leader_epoch,
                min_one_batch,
                last_fetched_epoch=last_fetched_epoch,
            )
        except NotVerified:  # the offset is good, and what is there can be read a little later
            if counts:
                self._note_fetch(follower, offset, log_start_offset, now_ms, broker_epoch)
            raise
        if (
            counts
            and data.error_code is _NONE
            and data.diverging_epoch is None
            and self._note_fetch(follower, offset, log_start_offset, now_ms, broker_epoch)
        ):
            data.high_watermark = self.high_watermark
            data.last_stable_offset = self.last_stable_offset
        return data

    def _note_fetch(
        self, follower: Replica, offset: int, log_start_offset: int, now_ms: int, broker_epoch: int
    ) -> bool:
        """Return whether the high watermark has moved."""
        has_deleted = log_start_offset > follower.log_start_offset
        self.in_sync.note_fetch(follower, offset, log_start_offset, self.log.log_end_offset, now_ms, broker_epoch)
        isr = self.in_sync.growth(follower, self.high_watermark, self.leader_epoch_start_offset)
        if isr:
            self._propose(isr)
        has_moved = self._maybe_increment_high_watermark()
        if has_moved or has_deleted:
            self.notify()
        return has_moved

    # Following

    def append_as_follower(self, records: bytes | memoryview) -> AppendResult | None:
        """Batches as the leader has them, none from an epoch that is not known here yet; None where none is whole.

        Raises `ApiError`, `FileError`. Who watches is told by `follow_watermarks`.
        """
        result = self.log.append_as_follower(records, max_leader_epoch=self.leader_epoch)
        if result is not None:
            self.traffic.replication_bytes_in += len(records)
        return result

    def follow_watermarks(self, high_watermark: int, log_start_offset: int) -> bool:
        """Take over the leader's watermarks, and return whether they are news: a new leader may know less."""
        new = min(high_watermark, self.log.log_end_offset)
        has_news = new > self.high_watermark
        if has_news:
            self._set_high_watermark(new)
        log_start_offset = min(log_start_offset, self.high_watermark)
        if log_start_offset > self.log.log_start_offset:
            self.log.increment_log_start_offset(log_start_offset)
            has_news = True
        return has_news

    def begin_truncation(self, offset: int) -> Truncation | None:
        """Truncate what is at `offset` and behind, as the leader does not have it. Raises `FileError`."""
        truncation = self.log.begin_truncation(offset)
        self.high_watermark = min(self.high_watermark, offset)
        return truncation

    def truncated(self) -> None:
        """A log ends in front of a batch that the truncation's offset lies in."""
        self.high_watermark = min(self.high_watermark, self.log.log_end_offset)

    def begin_anew(self, offset: int, now_ms: int) -> Truncation:
        """Begin the log anew, as nothing of it is in the leader's; `begun_anew` is to follow. now_ms: the wall clock's.

        Raises `FileError`.
        """
        truncation = self.log.begin_anew(offset, now_ms=now_ms)
        self.high_watermark = 0
        return truncation

    def begun_anew(self) -> None:
        self.high_watermark = self.log.log_start_offset

    # Deleting

    def delete_records(self, offset: int) -> DeletedRecords:
        """Delete everything in front of `offset`: for readers at once, segments go with retention (KIP-107)."""
        log = self.log
        if not self.is_leader:
            return DeletedRecords(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if log.config.compact and not log.config.delete:
            return DeletedRecords(ErrorCode.POLICY_VIOLATION)
        if offset == UP_TO_HIGH_WATERMARK:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            return DeletedRecords(ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset > log.log_start_offset:
            log.increment_log_start_offset(offset)
            self.notify()  # followers learn it
        return DeletedRecords(offset=offset)

    def low_watermark(self, is_alive: Callable[[int], bool]) -> int:
        """The least log start offset of all replicas; a broker that is not there is not waited for."""
        low = self.log.log_start_offset
        for follower in self.in_sync.followers.values():
            if is_alive(follower.replica_id):
                low = min(low, follower.log_start_offset)
        return low

    # Offsets

    def list_offset(
        self,
        timestamp: int,
        isolation: FetchIsolation,
        current_leader_epoch: int = NO_EPOCH,
        *,
        leader_only: bool = True,
    ) -> ListedOffset:
        """Take all steps of `list_offset_steps` at once."""
        return run_steps(
            self.list_offset_steps(
                timestamp, isolation, CheckBudget(), current_leader_epoch=current_leader_epoch, leader_only=leader_only
            )
        )

    def known_offset(
        self,
        timestamp: int,
        isolation: FetchIsolation,
        current_leader_epoch: int = NO_EPOCH,
        *,
        leader_only: bool = True,
    ) -> ListedOffset | None:
        """The answer that needs no look at records: an error, or a special value's; None where they have to be read.

        Spark asks it for the latest and the earliest offset around each poll of its consumers.
        """
        error = self._access_error(current_leader_epoch, leader_only)
        if error is not _NONE:
            return ListedOffset(error)
        if timestamp == _LATEST:
            if self._high_watermark_lags():
                return ListedOffset(ErrorCode.OFFSET_NOT_AVAILABLE)
            return ListedOffset(_NONE, -1, self._fetchable_end(isolation), self.leader_epoch)
        if timestamp == _EARLIEST or timestamp == OffsetSpec.EARLIEST_LOCAL:
            log = self.log
            return ListedOffset(_NONE, -1, log.log_start_offset, log.earliest_epoch)
        if timestamp == OffsetSpec.LATEST_TIERED or timestamp == OffsetSpec.EARLIEST_PENDING_UPLOAD:
            return ListedOffset()
        return None

    def list_offset_steps(
        self,
        timestamp: int,
        isolation: FetchIsolation,
        budget: CheckBudget,
        *,
        current_leader_epoch: int = NO_EPOCH,
        leader_only: bool = True,
    ) -> Steps[ListedOffset]:
        """The first offset with a timestamp of at least `timestamp`, or what a special value (`OffsetSpec`) asks."""
        known = self.known_offset(timestamp, isolation, current_leader_epoch, leader_only=leader_only)
        if known is not None:
            return known
        found = yield from self._timestamp_steps(timestamp, budget)
        # It took its time: somebody else may lead now.
        error = self._access_error(current_leader_epoch, leader_only)
        if error is _NONE and self.log.is_closed:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if error is not _NONE:
            return ListedOffset(error)
        if found is not None and found.offset < self._fetchable_end(isolation):
            epoch = NO_EPOCH if found.leader_epoch is None else found.leader_epoch
            return ListedOffset(_NONE, found.timestamp, found.offset, epoch)
        return ListedOffset(ErrorCode.OFFSET_NOT_AVAILABLE if self._high_watermark_lags() else _NONE)

    def _timestamp_steps(self, timestamp: int, budget: CheckBudget) -> Steps[TimestampAndOffset | None]:
        """Anew, where the log has come to another directory meanwhile."""
        while True:
            log = self.log
            if timestamp == OffsetSpec.MAX_TIMESTAMP:
                found = yield from log.offset_of_max_timestamp_steps(budget)
            else:
                found = yield from log.offset_for_timestamp_steps(timestamp, budget)
            if log is self.log:
                return found

    def _fetchable_end(self, isolation: FetchIsolation) -> int:
        if isolation is _HIGH_WATERMARK:
            return self.high_watermark
        return self.last_stable_offset if isolation is _TXN_COMMITTED else self.log.log_end_offset

    def _high_watermark_lags(self) -> bool:
        """Right after an election the new leader may know a lower high watermark than the old one told clients."""
        return self.is_leader and self.high_watermark < self.leader_epoch_start_offset

    def end_offset_for_epoch(
        self, leader_epoch: int, current_leader_epoch: int = NO_EPOCH, *, leader_only: bool = True
    ) -> EpochEndOffset:
        error = self._access_error(current_leader_epoch, leader_only)
        if error is not _NONE:
            return EpochEndOffset(error)
        epoch, end_offset = self.log.end_offset_for_epoch(leader_epoch)
        return EpochEndOffset(_NONE, epoch, end_offset)
