"""The leader of a partition knows its in-sync replicas: Kafka's `Replica`, and what `Partition` knows of the ISR.

Pure. The controller has the last word about the ISR: the leader proposes an `IsrChange` and goes on with the stricter
of both sets, the maximal ISR, until it knows (KIP-497). A follower falls out when it was behind the leader's log end
for `replica.lag.time.max.ms`, and comes back when it has all that is replicated or of older leader epochs.
Times are those of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pykbroker.protocol.errors import ErrorCode

from .reads import NO_OFFSET

NO_BROKER_EPOCH = -1
"""A follower that does not tell its epoch, as in Fetch before version 15, has this one; it is not compared."""

_NEVER_MS = -(1 << 62)

_NOT_APPLIED = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)
"""The controller knows the partition epoch that was named, and has done nothing."""

_METADATA_IS_NEWER = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)
"""With these errors the change may have been made or not; the metadata will say how things stand."""


class Brokers(Protocol):
    """A leader asks here about the cluster's brokers."""

    def live_epoch(self, broker_id: int) -> int | None:
        """The epoch of its registration; None where it is fenced or not registered."""
        ...

    def may_join_isr(self, broker_id: int) -> bool:
        """The broker is registered, not fenced and not about to shut down."""
        ...

    def knows_this_process(self) -> bool:
        """The registration of this broker's process is applied, and all metadata in front of it. Before, partitions may
        be as the last process left them, without what was done about its end.
        """
        ...


@dataclass(frozen=True, slots=True)
class IsrChange:
    """The controller is asked for this. broker_epochs: of each in `isr`, -1 where the leader does not know it."""

    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CommittedIsr:
    """The controller's answer to a change: how the partition stands now."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int


class FetchTimes(Protocol):
    """A follower's fetch session, as `session_watch.Watching` is one."""

    @property
    def fetched_ms(self) -> int:
        """The follower's last request came then."""
        ...

    def ask_again(self, in_sync: InSyncReplicas) -> None:
        """Another request speaks for a follower of this partition: the session is to say again what it has."""
        ...


@dataclass(slots=True)
class Replica:
    """The leader keeps this of one other replica; offsets are -1 before its first fetch of this leader epoch.

    last_caught_up_ms: the latest time of which is known that it had all that the leader had. quiet_in: it has all, and
    every further request of that session says so again without naming the partition. last_request: the number of the
    newest one that has told of it.
    """

    replica_id: int
    log_end_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    last_request: int = 0
    last_fetch_ms: int = _NEVER_MS
    last_fetch_leader_end_offset: int = NO_OFFSET
    last_caught_up_ms: int = _NEVER_MS
    broker_epoch: int | None = None
    quiet_in: FetchTimes | None = None

    @property
    def caught_up_ms(self) -> int:
        quiet_in = self.quiet_in
        return self.last_caught_up_ms if quiet_in is None else max(self.last_caught_up_ms, quiet_in.fetched_ms)

    def end_quiet(self) -> None:
        """End the quiet time: only what is asked of the partition itself counts from now on."""
        if self.quiet_in is not None:
            self.last_caught_up_ms = self.caught_up_ms
            self.last_fetch_ms = max(self.last_fetch_ms, self.quiet_in.fetched_ms)
            self.quiet_in = None

    def note_fetch(
        self, offset: int, log_start_offset: int, leader_end_offset: int, now_ms: int, broker_epoch: int
    ) -> None:
        """The follower asks for what is at `offset`: so it has everything before."""
        self.end_quiet()
        if offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.last_fetch_leader_end_offset:
            # It has what there was when it asked last, so it was level with the leader then.
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.last_fetch_leader_end_offset = max(leader_end_offset, self.last_fetch_leader_end_offset)
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_time_max_ms: int) -> bool:
        return self.log_end_offset == leader_end_offset or now_ms - self.caught_up_ms <= lag_time_max_ms


class InSyncReplicas:
    """The followers of a partition that is led here. `committed` is the ISR that the controller told last.

    `maximal` are those that the high watermark waits for: with whom a pending change adds, and with whom it removes.
    """

    def __init__(self, local_id: int, brokers: Brokers, lag_time_max_ms: int) -> None:
        self._local_id = local_id
        self._brokers = brokers
        self._lag_time_max_ms = lag_time_max_ms
        self.committed: tuple[int, ...] = ()
        self.maximal: tuple[int, ...] = ()
        self.pending: IsrChange | None = None
        self.followers: dict[int, Replica] = {}
        self._now_ms = _NEVER_MS
        """The leader heard something last then: appends are too many to ask for the time."""

    # Roles

    def begin(
        self, replicas: Iterable[int], isr: Sequence[int], partition_epoch: int, now_ms: int, *, is_new_epoch: bool
    ) -> None:
        """The partition is led here with these replicas. In a new epoch nothing is known of them yet.

        A pending change of the state with this partition epoch may still be made: the answer to the one before may have
        been faster than the metadata, and the next one was proposed already.
        """
        known = {} if is_new_epoch else self.followers
        self.followers = {
            replica_id: known.get(replica_id) or Replica(replica_id)
            for replica_id in replicas
            if replica_id != self._local_id
        }
        if is_new_epoch:
            for replica_id in isr:
                if replica_id in self.followers:
                    self.followers[replica_id].last_caught_up_ms = now_ms
        self._now_ms = max(self._now_ms, now_ms)
        pending = self.pending
        self.commit(isr)
        if pending is not None and not is_new_epoch and pending.partition_epoch >= partition_epoch:
            self._await(pending)

    def end(self, isr: Sequence[int]) -> None:
        """The partition is led elsewhere, or by nobody."""
        self.followers = {}
        self.commit(isr)

    def commit(self, isr: Sequence[int]) -> None:
        self.committed = self.maximal = tuple(isr)
        self.pending = None

    # What followers tell

    def hears(self, replica_id: int, request_number: int) -> bool:
        """Return whether no newer request has spoken already; numbers are in the order of their arrival."""
        follower = self.followers.get(replica_id)
        if follower is None:
            return True
        if request_number < follower.last_request:
            return False
        follower.last_request = request_number
        return True

    def note_fetch(
        self,
        follower: Replica,
        offset: int,
        log_start_offset: int,
        leader_end_offset: int,
        now_ms: int,
        broker_epoch: int,
    ) -> None:
        if follower.quiet_in is not None:
            follower.quiet_in.ask_again(self)
        self._now_ms = max(self._now_ms, now_ms)
        follower.note_fetch(offset, log_start_offset, leader_end_offset, now_ms, broker_epoch)

    def begin_quiet(self, replica_id: int, log_end_offset: int, session: FetchTimes) -> bool:
        """Return whether the replica has everything and is in sync: nothing is to be said of it before a change."""
        follower = self.followers.get(replica_id)
        if follower is None or follower.log_end_offset != log_end_offset:
            return False
        if replica_id not in self.committed or self.pending is not None:
            return False
        follower.quiet_in = session
        return True

    def end_quiet(self, session: FetchTimes) -> None:
        """End the quiet time: what the session says of others no longer counts for this partition."""
        for follower in self.followers.values():
            if follower.quiet_in is session:
                follower.end_quiet()

    def is_stale(self, replica_id: int, broker_epoch: int) -> bool:
        """The request speaks for an incarnation of the broker that is gone."""
        if broker_epoch == NO_BROKER_EPOCH:
            return False
        live_epoch = self._brokers.live_epoch(replica_id)
        return live_epoch is not None and broker_epoch < live_epoch

    def least_end_offset(self, log_end_offset: int) -> int:
        """Return the end of what the maximal ISR has, and every follower that is about to join it."""
        least = log_end_offset
        for follower in self.followers.values():
            if follower.log_end_offset < least and (
                follower.replica_id in self.maximal or self._is_joining(follower, log_end_offset)
            ):
                least = follower.log_end_offset
        return least

    def _is_joining(self, follower: Replica, log_end_offset: int) -> bool:
        """Otherwise it might never catch up with a high watermark that moves all the time."""
        return follower.is_caught_up(log_end_offset, self._now_ms, self._lag_time_max_ms) and self._may_join(follower)

    def _may_join(self, follower: Replica) -> bool:
        brokers = self._brokers
        if follower.broker_epoch is None or not brokers.may_join_isr(follower.replica_id):
            return False
        return follower.broker_epoch in (NO_BROKER_EPOCH, brokers.live_epoch(follower.replica_id))

    # Changes

    def growth(self, follower: Replica, high_watermark: int, epoch_start_offset: int) -> tuple[int, ...]:
        """The ISR with this follower, or nothing: it is in it, or is not to come into it yet."""
        if self.pending is not None or follower.replica_id in self.committed:
            return ()
        if follower.log_end_offset < max(high_watermark, epoch_start_offset) or not self._may_join(follower):
            return ()
        return (*self.committed, follower.replica_id)

    def shrunk(self, log_end_offset: int, now_ms: int) -> tuple[int, ...]:
        """The ISR without those who have lagged for too long; nothing where there are none."""
        self._now_ms = max(self._now_ms, now_ms)
        if self.pending is not None:
            return ()
        left = tuple(each for each in self.committed if not self._is_out_of_sync(each, log_end_offset, now_ms))
        return left if left != self.committed else ()

    def _is_out_of_sync(self, replica_id: int, log_end_offset: int, now_ms: int) -> bool:
        if replica_id == self._local_id:
            return False
        follower = self.followers.get(replica_id)
        return follower is None or not follower.is_caught_up(log_end_offset, now_ms, self._lag_time_max_ms)

    def propose(self, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int) -> IsrChange:
        """The high watermark waits from now on for both the committed ISR and the one that is asked for."""
        change = IsrChange(
            isr,
            tuple(self._broker_epoch(each) for each in isr),
            leader_epoch,
            partition_epoch,
            added=tuple(each for each in isr if each not in self.committed),
            removed=tuple(each for each in self.committed if each not in isr),
        )
        self._await(change)
        return change

    def _await(self, change: IsrChange) -> None:
        self.pending = change
        self.maximal = (*self.committed, *change.added)

    def _broker_epoch(self, replica_id: int) -> int:
        follower = self.followers.get(replica_id)
        return NO_BROKER_EPOCH if follower is None or follower.broker_epoch is None else follower.broker_epoch

    def refused(self, error_code: ErrorCode) -> bool:
        """The controller refused the pending change; True where it is to be asked for again."""
        if error_code in _NOT_APPLIED:
            self.commit(self.committed)
            return False
        return error_code not in _METADATA_IS_NEWER
