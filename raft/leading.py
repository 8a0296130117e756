"""Leading an epoch: what followers fetch, what that commits, and whether a majority still follows (KIP-595).

A Fetch waits here until there is news for it: records, a higher high watermark (v18), or that this node leads no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages import fetch
from pykbroker.protocol.messages.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
)
from pykbroker.protocol.schema import Message

from . import wire
from .answers import KnownNow, check_leader, is_of_cluster
from .epochs import OffsetAndEpoch
from .events import ControlRecords, ReadRange
from .fetch_sizes import MOST_SERVED_BYTES
from .leader_state import LeaderState
from .quorum_state import QuorumState, Wanted
from .snapshots import SnapshotId
from .voter_history import BOOTSTRAP_OFFSET
from .voters import KRAFT_VERSIONS, ReplicaKey, Voter


@dataclass(frozen=True, slots=True)
class WaitingFetch:
    token: int
    replica: ReplicaKey
    asked: fetch.FetchPartition
    max_bytes: int
    deadline_ms: int
    known: KnownNow


class Leading:
    def __init__(self, quorum: QuorumState) -> None:
        self._quorum = quorum
        self._waiting: dict[int, WaitingFetch] = {}

    def begin(self) -> None:
        """The epoch opens with a record that says who leads it, and for whose votes."""
        quorum = self._quorum
        leader = quorum.become_leader()
        records = [self._leader_change(leader), *self._voter_records()]
        quorum.append(ControlRecords(records), len(records))

    def _voter_records(self) -> list[Message]:
        """Return the records that put the voters into the log, where they may change (KIP-853)."""
        quorum, history = self._quorum, self._quorum.history
        own = quorum.voters.get(quorum.replica.node_id)
        if history.kraft_version < 1 or own is None:
            return []
        current = Voter(
            own.node_id, own.host, own.port, quorum.replica.directory_id, quorum.replica.endpoints, KRAFT_VERSIONS
        )
        if history.voters_offset != BOOTSTRAP_OFFSET and current == own:
            return []
        level = KRaftVersionRecord(kraft_version=history.kraft_version)
        return [level, quorum.voters.with_voter(current).to_record()]

    def _leader_change(self, leader: LeaderState) -> LeaderChangeMessage:
        return LeaderChangeMessage(
            leader_id=leader.key.node_id,
            voters=[LeaderChangeMessageVoter(voter_id=voter.node_id) for voter in self._quorum.voters],
            granting_voters=[LeaderChangeMessageVoter(voter_id=node_id) for node_id in leader.granting_voters],
        )

    # Fetches

    def serve_fetch(self, token: int, request: fetch.FetchRequest, known: KnownNow) -> None:
        outbox = self._quorum.outbox
        if not is_of_cluster(self._quorum, request.cluster_id):
            return outbox.respond(token, fetch.FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
        asked = wire.fetched_partition_of(request)
        if asked is None:
            return outbox.respond(token, fetch.FetchResponse(error_code=ErrorCode.INVALID_REQUEST))
        out_of_range = request.max_wait_ms < 0 or asked.fetch_offset < 0 or asked.last_fetched_epoch < 0
        if out_of_range or asked.last_fetched_epoch > asked.current_leader_epoch:
            return outbox.respond(token, wire.fetch_response(known(), ErrorCode.INVALID_REQUEST))
        replica = wire.fetching_replica(request, asked)
        error = check_leader(self._quorum, asked.current_leader_epoch)
        if error is ErrorCode.NONE and replica.node_id == self._quorum.replica.node_id:
            error = ErrorCode.INVALID_REQUEST
        if error is not ErrorCode.NONE:
            outbox.respond(token, wire.fetch_response(known(), error))
            return self._join_epoch_of_outsider(replica, asked.current_leader_epoch)
        deadline_ms = self._quorum.now_ms + request.max_wait_ms
        max_bytes = max(1, min(request.max_bytes, MOST_SERVED_BYTES))
        self._quorum.refusing.discard(replica.node_id)
        waiting = WaitingFetch(token, replica, asked, max_bytes, deadline_ms, known)
        self._note_progress(waiting)
        if not self._answer(waiting):
            self._waiting[token] = waiting
        return None

    def _join_epoch_of_outsider(self, replica: ReplicaKey, epoch: int) -> None:
        """Lead no more where a node that is no voter fetches in a newer epoch: the next epoch is one for it, too.

        It took part in an election among those who did not know yet that they are removed. A voter would bring its
        epoch about with its own pre-votes; those of a node that was removed go to nodes which do not lead, and it would
        be refused as long as this epoch lasts. Where voters are static nobody is removed.
        """
        quorum = self._quorum
        if not isinstance(quorum.state, LeaderState) or epoch <= quorum.epoch or replica.node_id < 0:
            return
        if quorum.history.kraft_version < 1:
            return
        if not quorum.voters.has(replica) and quorum.believes(epoch, f"a Fetch of node {replica.node_id}", asked=True):
            quorum.become_unattached(epoch, deadline_ms=quorum.soon_ms())

    def _note_progress(self, waiting: WaitingFetch) -> None:
        """Note the progress of a fetcher: it has the log up to its fetch offset, if the two logs agree up to there."""
        quorum, leader = self._quorum, self._quorum.state
        assert isinstance(leader, LeaderState)
        if waiting.replica.node_id < 0 or self._divergence(waiting.asked) is not None:
            return
        progress = leader.progress_of(waiting.replica)
        progress.fetched(waiting.asked.fetch_offset, quorum.epochs.end_offset, quorum.now_ms)
        leader.heard_from(waiting.replica, quorum.now_ms)
        self.advance_high_watermark()

    def _divergence(self, asked: fetch.FetchPartition) -> OffsetAndEpoch | SnapshotId | None:
        """Return where the fetcher's log diverges, or the snapshot to begin with; None where the log continues."""
        log, epochs = self._quorum.log, self._quorum.epochs
        offset, epoch, start = asked.fetch_offset, asked.last_fetched_epoch, log.start_offset
        latest = log.latest_snapshot_id
        if latest is not None and latest.end_offset > 0 and (offset == 0 or offset < start):
            return latest
        if offset == 0 and epoch == 0:
            return None
        if latest is not None and latest.end_offset > 0 and start > 0:
            base_epoch = epochs.epoch_before(start)
            if epoch < base_epoch or (offset == start and epoch != base_epoch):
                return latest
        end = epochs.end_of(epoch)
        return end if end.epoch != epoch or end.offset < offset else None

    def _answer(self, waiting: WaitingFetch) -> bool:
        """False where there is nothing to tell yet."""
        quorum, leader, asked = self._quorum, self._quorum.state, waiting.asked
        assert isinstance(leader, LeaderState)
        divergence = self._divergence(asked)
        high_watermark = -1 if leader.high_watermark is None else leader.high_watermark
        has_records = divergence is None and asked.fetch_offset < quorum.epochs.end_offset
        is_due = waiting.deadline_ms <= quorum.now_ms
        if divergence is None and not has_records and high_watermark <= asked.high_watermark and not is_due:
            return False
        response = wire.fetch_response(
            waiting.known(),
            ErrorCode.NONE,
            high_watermark=high_watermark,
            log_start_offset=quorum.log.start_offset,
            diverging=divergence if isinstance(divergence, OffsetAndEpoch) else None,
            snapshot_id=divergence if isinstance(divergence, SnapshotId) else None,
        )
        read = ReadRange(asked.fetch_offset, waiting.max_bytes) if has_records else None
        quorum.outbox.respond(waiting.token, response, read)
        return True

    def serve_waiting(self) -> None:
        """Answer the fetches that need wait no longer; all of them in another role than leader."""
        if isinstance(self._quorum.state, LeaderState):
            self._waiting = {token: each for token, each in self._waiting.items() if not self._answer(each)}
            return
        for waiting in self._waiting.values():
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            self._quorum.outbox.respond(waiting.token, wire.fetch_response(waiting.known(), error))
        self._waiting.clear()

    def withdraw(self, token: int) -> None:
        """Drop the fetch that waits under that token."""
        self._waiting.pop(token, None)

    # What is committed, and who follows

    def advance_high_watermark(self) -> None:
        quorum, leader = self._quorum, self._quorum.state
        if isinstance(leader, LeaderState) and leader.advance_high_watermark(quorum.durable_end_offset):
            assert leader.high_watermark is not None
            quorum.high_watermark = max(quorum.high_watermark, leader.high_watermark)

    def tick(self) -> None:
        """Resign where no majority follows: the leader could not know of another one."""
        quorum, leader = self._quorum, self._quorum.state
        if not isinstance(leader, LeaderState):
            return
        leader.forget_silent_observers(quorum.now_ms)
        deadline_ms = leader.check_quorum_deadline_ms
        if deadline_ms is not None and quorum.now_ms >= deadline_ms:
            self.resign()

    def resign(self) -> None:
        leader = self._quorum.state
        if isinstance(leader, LeaderState):
            self._quorum.become_resigned(leader.successors())

    def deadline_ms(self) -> int | None:
        leader = self._quorum.state
        if not isinstance(leader, LeaderState):
            return None
        deadlines = [waiting.deadline_ms for waiting in self._waiting.values()]
        if leader.check_quorum_deadline_ms is not None:
            deadlines.append(leader.check_quorum_deadline_ms)
        now_ms = self._quorum.now_ms
        deadlines += [each.begin_epoch_due_ms for each in leader.others() if each.begin_epoch_due_ms > now_ms]
        return min(deadlines, default=None)

    def wanted(self) -> list[Wanted]:
        """Voters who do not fetch are told who leads."""
        quorum, leader = self._quorum, self._quorum.state
        if not isinstance(leader, LeaderState):
            return []
        wanted: list[Wanted] = []
        for progress in leader.others():
            voter = quorum.voters.get(progress.key.node_id)
            if voter is not None and progress.begin_epoch_due_ms <= quorum.now_ms:
                build = partial(wire.begin_quorum_epoch_request, quorum.replica, voter.key, quorum.epoch)
                wanted.append((quorum.destination_of(voter), build))
        return wanted
