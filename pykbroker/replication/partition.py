"""One partition on this node: who leads it, how far it is replicated, and what may be read of it.

Pure: a `Partition` holds a log and knows no Trio, no clock and no other partition. The rules follow Kafka's
`cluster.Partition`: the high watermark is the least log end of the in-sync replicas, with one replica as with many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pykbroker.protocol.errors import ErrorCode
from pykbroker.storage.errors import OffsetOutOfRange
from pykbroker.storage.log import AppendOrigin, AppendResult, Log

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

NO_LEADER = -1
ACKS_ALL = -1
UP_TO_HIGH_WATERMARK = -1
"""The offset of a DeleteRecords request that deletes all that may be deleted."""


class LeaderAndIsr(Protocol):
    """What the controller decided about one partition; `metadata.partition_state.PartitionState` is one."""

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


@dataclass(slots=True)
class FollowerState:
    """What the leader knows of one other replica."""

    replica_id: int
    log_end_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET


class PartitionWatcher(Protocol):
    def partition_changed(self, partition: Partition) -> None:
        """More can be read, or the partition changed its leader, or it is gone. Called synchronously."""
        ...


class Partition:
    """A replica of one partition. Each state comes from `apply_state`; until the first one nobody leads."""

    def __init__(self, topic: str, topic_id: bytes, index: int, log: Log, local_id: int, *, high_watermark: int = 0):
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.local_id = local_id
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.leader_epoch_start_offset = NO_OFFSET
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.high_watermark = max(log.log_start_offset, min(high_watermark, log.log_end_offset))
        self.watchers: dict[PartitionWatcher, None] = {}
        """In order of their arrival, so that they wake in that order."""
        self._followers: dict[int, FollowerState] = {}
        self._isr_followers: tuple[FollowerState, ...] = ()

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index} leader={self.leader} epoch={self.leader_epoch}>"

    @property
    def is_leader(self) -> bool:
        return self.leader == self.local_id

    @property
    def last_stable_offset(self) -> int:
        unstable = self.log.first_unstable_offset
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    # Roles

    def apply_state(self, state: LeaderAndIsr) -> bool:
        """Take over the controller's decision; False where a later one is known already."""
        if state.partition_epoch < self.partition_epoch:
            return False
        new_epoch = state.leader_epoch > self.leader_epoch
        self.leader = state.leader
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.replicas = tuple(state.replicas)
        self.isr = tuple(state.isr)
        if self.is_leader:
            if new_epoch:
                self._start_leader_epoch()
            self._set_followers(new_epoch)
            self._maybe_increment_high_watermark()
        else:
            self._followers = {}
            self._isr_followers = ()
        self.notify()
        return True

    def resign(self) -> None:
        """This node has the partition no longer; whoever still holds it is refused."""
        self.leader = NO_LEADER
        self.notify()

    def _start_leader_epoch(self) -> None:
        """From here on this log is the truth: what followers have beyond this offset of older epochs goes."""
        self.leader_epoch_start_offset = self.log.log_end_offset
        self.log.assign_epoch_start_offset(self.leader_epoch, self.leader_epoch_start_offset)

    def _set_followers(self, new_epoch: bool) -> None:
        known = {} if new_epoch else self._followers
        others = [replica_id for replica_id in self.replicas if replica_id != self.local_id]
        self._followers = {replica_id: known.get(replica_id) or FollowerState(replica_id) for replica_id in others}
        self._isr_followers = tuple(self._followers[replica_id] for replica_id in self.isr if replica_id in others)

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
    ) -> AppendResult | ErrorCode:
        """Append a client's batch or a coordinator's batches. Raises `RecordsRejected`, `DiskFailed`."""
        if self.leader != self.local_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if required_acks == ACKS_ALL and self._under_min_isr():
            return ErrorCode.NOT_ENOUGH_REPLICAS
        result = self.log.append_as_leader(records, self.leader_epoch, now_ms, origin=origin)
        self._maybe_increment_high_watermark()
        if self.watchers:
            self.notify()
        return result

    def check_replicated(self, end_offset: int) -> ErrorCode | None:
        """Whether everything below `end_offset` is on every in-sync replica: None as long as that is open."""
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.high_watermark < end_offset:
            return None
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if self._under_min_isr() else ErrorCode.NONE

    def _under_min_isr(self) -> bool:
        return len(self.isr) < min(self.log.config.min_insync_replicas, len(self.replicas))

    def _maybe_increment_high_watermark(self) -> bool:
        new = self.log.log_end_offset
        for follower in self._isr_followers:
            new = min(new, follower.log_end_offset)
        if new <= self.high_watermark or self._under_min_isr():
            return False
        self.high_watermark = new
        return True

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
        """What can be read at `offset`: whole batches as they lie in the log, at least one with `min_one_batch`."""
        error = self._access_error(current_leader_epoch, leader_only)
        if error is not ErrorCode.NONE:
            return FetchPartitionData(error)
        log = self.log
        start = log.log_start_offset
        data = FetchPartitionData(ErrorCode.NONE, self.high_watermark, self.last_stable_offset, start)
        if isolation is FetchIsolation.HIGH_WATERMARK:
            limit = data.high_watermark
        elif isolation is FetchIsolation.TXN_COMMITTED:
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
            records = log.read(offset, max_bytes, max_offset=limit, min_one_batch=min_one_batch)
        except OffsetOutOfRange:
            return FetchPartitionData(ErrorCode.OFFSET_OUT_OF_RANGE)
        if records.size:
            data.records = records
            data.records_size = records.size
        return data

    def _diverging_epoch(self, offset: int, last_fetched_epoch: int) -> tuple[int, int] | ErrorCode | None:
        """KIP-595: the reader names its last record's epoch; where this log's epoch ends before that, it truncates."""
        epoch, end_offset = self.log.end_offset_for_epoch(last_fetched_epoch)
        if epoch < 0 or end_offset < 0:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        return (epoch, end_offset) if epoch < last_fetched_epoch or end_offset < offset else None

    def _access_error(self, current_leader_epoch: int, leader_only: bool) -> ErrorCode:
        if current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:
            stale = current_leader_epoch < self.leader_epoch
            return ErrorCode.FENCED_LEADER_EPOCH if stale else ErrorCode.UNKNOWN_LEADER_EPOCH
        if leader_only and self.leader != self.local_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

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
    ) -> FetchPartitionData:
        """A follower's fetch, up to the log end. Its offset tells that it holds everything from its start to there."""
        error = self._access_error(current_leader_epoch, leader_only=True)
        follower = self._followers.get(replica_id)
        if error is ErrorCode.NONE and follower is None:
            # The epochs agree but the replica is not in the set: it may know of a reassignment that we do not know yet.
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER if current_leader_epoch < 0 else ErrorCode.UNKNOWN_LEADER_EPOCH
        if follower is None or error is not ErrorCode.NONE:
            return FetchPartitionData(error)
        data = self.read(
            offset,
            max_bytes,
            FetchIsolation.LOG_END,
            current_leader_epoch,
            min_one_batch,
            last_fetched_epoch=last_fetched_epoch,
        )
        if data.error_code is ErrorCode.NONE and data.diverging_epoch is None:
            follower.log_end_offset = offset
            has_deleted = log_start_offset > follower.log_start_offset
            follower.log_start_offset = log_start_offset
            if self._maybe_increment_high_watermark() or has_deleted:
                self.notify()
        return data

    # Deleting

    def delete_records(self, offset: int) -> DeletedRecords:
        """Everything in front of `offset` is gone for readers at once; its segments go with retention (KIP-107)."""
        log = self.log
        if not self.is_leader:
            return DeletedRecords(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if log.config.compact and not log.config.delete:
            return DeletedRecords(ErrorCode.POLICY_VIOLATION)
        if offset == UP_TO_HIGH_WATERMARK:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            return DeletedRecords(ErrorCode.OFFSET_OUT_OF_RANGE)
        log.increment_log_start_offset(offset)
        return DeletedRecords(offset=offset)

    def low_watermark(self, is_alive: Callable[[int], bool]) -> int:
        """The least log start offset of all replicas; a broker that is not there is not waited for."""
        low = self.log.log_start_offset
        for follower in self._followers.values():
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
        """The first offset with a timestamp of at least `timestamp`, or what a special value (`OffsetSpec`) asks."""
        error = self._access_error(current_leader_epoch, leader_only)
        if error is not ErrorCode.NONE:
            return ListedOffset(error)
        log = self.log
        match timestamp:
            case OffsetSpec.EARLIEST | OffsetSpec.EARLIEST_LOCAL:
                return ListedOffset(offset=log.log_start_offset, leader_epoch=log.earliest_epoch)
            case OffsetSpec.LATEST_TIERED | OffsetSpec.EARLIEST_PENDING_UPLOAD:
                return ListedOffset()
            case OffsetSpec.LATEST:
                if self._high_watermark_lags():
                    return ListedOffset(ErrorCode.OFFSET_NOT_AVAILABLE)
                return ListedOffset(offset=self._fetchable_end(isolation), leader_epoch=self.leader_epoch)
        if timestamp == OffsetSpec.MAX_TIMESTAMP:
            found = log.find_offset_of_max_timestamp()
        else:
            found = log.find_offset_for_timestamp(timestamp)
        if found is not None and found.offset < self._fetchable_end(isolation):
            epoch = NO_EPOCH if found.leader_epoch is None else found.leader_epoch
            return ListedOffset(ErrorCode.NONE, found.timestamp, found.offset, epoch)
        return ListedOffset(ErrorCode.OFFSET_NOT_AVAILABLE if self._high_watermark_lags() else ErrorCode.NONE)

    def _fetchable_end(self, isolation: FetchIsolation) -> int:
        match isolation:
            case FetchIsolation.LOG_END:
                return self.log.log_end_offset
            case FetchIsolation.HIGH_WATERMARK:
                return self.high_watermark
            case FetchIsolation.TXN_COMMITTED:
                return self.last_stable_offset

    def _high_watermark_lags(self) -> bool:
        """Right after an election the new leader may know a lower high watermark than the old one told clients."""
        return self.is_leader and self.high_watermark < self.leader_epoch_start_offset

    def end_offset_for_epoch(
        self, leader_epoch: int, current_leader_epoch: int = NO_EPOCH, *, leader_only: bool = True
    ) -> EpochEndOffset:
        error = self._access_error(current_leader_epoch, leader_only)
        if error is not ErrorCode.NONE:
            return EpochEndOffset(error)
        epoch, end_offset = self.log.end_offset_for_epoch(leader_epoch)
        return EpochEndOffset(ErrorCode.NONE, epoch, end_offset)
