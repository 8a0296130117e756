"""Fetching the log from a leader: appending what it has, truncating what it has not, its high watermark (KIP-595).

Observers do the same, and ask around where they know no leader. Nothing a leader sends takes back what is committed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from pykbroker.protocol.errors import ErrorCode, MalformedMessage
from pykbroker.protocol.messages import fetch
from pykbroker.protocol.records.batch import MAGIC_VALUE_V2, RecordBatch, iter_batches
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.schema import Message

from . import wire
from .answers import handle_common, log_unexpected
from .control_records import decode_control_batch
from .epochs import OffsetAndEpoch
from .events import Append, Destination
from .quorum_state import QuorumState, Wanted
from .snapshot_fetch import SnapshotFetch
from .snapshots import SnapshotId
from .states import FetchingSnapshot, FollowerState, UnattachedState
from .voter_changes import VoterChanges
from .voters import InvalidVoters

logger = logging.getLogger(__name__)


class Following:
    def __init__(self, quorum: QuorumState, snapshots: SnapshotFetch, voter_changes: VoterChanges) -> None:
        self._quorum = quorum
        self._snapshots = snapshots
        self._voter_changes = voter_changes

    def wanted(self) -> list[Wanted]:
        match self._quorum.state:
            case FollowerState() as state:
                return self._wanted_of_leader(state)
            case UnattachedState():
                return self._wanted_of_anyone()
            case _:
                return []

    def _wanted_of_leader(self, state: FollowerState) -> list[Wanted]:
        if state.fetch_elsewhere:
            return self._wanted_of_anyone()
        update = self._voter_changes.update_wanted(state)
        if update is not None:
            return [update]
        if state.snapshot is not None:
            return [] if state.snapshot.is_whole else [(state.leader, self._snapshots.request)]
        return [(state.leader, self._fetch_request)]

    def _wanted_of_anyone(self) -> list[Wanted]:
        """One after the other, until one of them tells who leads."""
        quorum = self._quorum
        others = quorum.bootstrap_destinations()
        if not others or any(quorum.peers.is_awaited(each) for each in others):
            return []
        ready = [each for each in others if quorum.peers.ready_ms(each) <= quorum.now_ms]
        chosen = quorum.rng.choice(ready) if ready else min(others, key=quorum.peers.ready_ms)
        return [(chosen, self._fetch_request)]

    def _fetch_request(self) -> Message:
        quorum = self._quorum
        known = quorum.high_watermark if quorum.high_watermark else -1
        max_bytes = quorum.sizes.fetch_max_bytes
        return wire.fetch_request(quorum.replica, quorum.epoch, quorum.epochs.end, known, max_bytes)

    def failed(self, source: Destination, *, connection_refused: bool) -> None:
        """Take note of a Fetch without an answer.

        A leader whose port refuses connections is gone, so that a voter does not wait for the fetch timeout. Voters
        that still hear from the leader reject the pre-vote.
        """
        quorum, state = self._quorum, self._quorum.state
        if isinstance(state, FollowerState) and source == state.leader:
            if not quorum.is_voter:
                state.fetch_elsewhere = True
            elif connection_refused:
                self._leader_is_gone(state)

    def _leader_is_gone(self, state: FollowerState) -> None:
        if not state.leader_is_gone:
            state.leader_is_gone = True
            backoff_ms = self._quorum.election_backoff_ms(state.attempts)
            state.fetch_deadline_ms = min(state.fetch_deadline_ms, self._quorum.now_ms + backoff_ms)

    def answered(self, source: Destination, request: fetch.FetchRequest, answer: fetch.FetchResponse) -> bool:
        """False where it was no use, and asking again should wait a little."""
        partition = wire.fetch_answer_of(answer) if answer.error_code == ErrorCode.NONE else None
        if partition is None:
            return log_unexpected(self._quorum, source, answer)
        leader = partition.current_leader
        told = wire.leadership(leader.leader_epoch, leader.leader_id, answer.node_endpoints)
        handled = handle_common(self._quorum, told, partition.error_code, source)
        if partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._leader_declines(source)
        self._quorum.note_told(told, partition.error_code, source)
        if handled is not None:
            return handled and partition.error_code == ErrorCode.NONE
        state = self._quorum.state
        if not isinstance(state, FollowerState):
            return False
        if partition.error_code != ErrorCode.NONE:
            return log_unexpected(self._quorum, source, partition.error_code)
        asked = request.topics[0].partitions[0]
        if asked.fetch_offset != self._quorum.epochs.end_offset:
            return True  # of a log that is no more
        return self._take(state, partition)

    def _leader_declines(self, source: Destination) -> None:
        """Treat a leader that says that it resigned from this epoch as gone."""
        state = self._quorum.state
        if isinstance(state, FollowerState) and source == state.leader and self._quorum.is_voter:
            self._leader_is_gone(state)

    def _take(self, state: FollowerState, partition: fetch.PartitionData) -> bool:
        snapshot_id = partition.snapshot_id
        if partition.diverging_epoch.epoch >= 0:
            diverging = partition.diverging_epoch
            is_done = self._truncate(OffsetAndEpoch(diverging.end_offset, diverging.epoch))
        elif snapshot_id.epoch >= 0 or snapshot_id.end_offset >= 0:
            is_done = self._begin_snapshot(state, SnapshotId(snapshot_id.end_offset, snapshot_id.epoch))
        else:
            is_done = self._append(partition)
        if is_done:
            state.has_fetched = True
            state.leader_is_gone = False
            state.attempts = 0
            state.fetch_deadline_ms = self._quorum.now_ms + self._quorum.timeouts.fetch_ms
        return is_done

    def _truncate(self, diverging: OffsetAndEpoch) -> bool:
        """Both logs agree up to the smaller end of the last epoch that both have."""
        quorum = self._quorum
        own = quorum.epochs.end_of(diverging.epoch)
        offset = min(own.offset, diverging.offset) if own.epoch == diverging.epoch else own.offset
        if offset < quorum.high_watermark or diverging.offset < 0:
            quorum.complain(
                "cut off",
                "raft node %d: the leader of epoch %d wants the log cut off at %d, and it is committed up to %d",
                quorum.replica.node_id,
                quorum.epoch,
                offset,
                quorum.high_watermark,
            )
            return False
        if offset < quorum.epochs.end_offset:
            logger.info("raft node %d: truncates its log at %d", quorum.replica.node_id, offset)
            quorum.truncate(offset)
        return True

    def _begin_snapshot(self, state: FollowerState, snapshot_id: SnapshotId) -> bool:
        if not 0 <= snapshot_id.epoch <= self._quorum.epoch or snapshot_id.end_offset <= self._quorum.high_watermark:
            quorum, text = self._quorum, "raft node %d: offered %s, which is of no use"
            quorum.complain("snapshot", text, quorum.replica.node_id, snapshot_id)
            return False
        state.snapshot = FetchingSnapshot(snapshot_id)
        return True

    def _append(self, partition: fetch.PartitionData) -> bool:
        quorum = self._quorum
        data = partition.records
        if data is not None and not isinstance(data, bytes | memoryview):
            return False
        batches = self._usable(data) if data else []
        if batches:
            self._append_batches(batches)
        if partition.high_watermark > quorum.high_watermark:
            quorum.high_watermark = max(quorum.high_watermark, min(partition.high_watermark, quorum.epochs.end_offset))
        return bool(batches) or not data

    def _append_batches(self, batches: Sequence[RecordBatch]) -> None:
        quorum, first, last = self._quorum, batches[0].header, batches[-1].header
        for header, _ in batches:
            quorum.epochs.append(header.partition_leader_epoch, header.next_offset)
        for offset, message in _control_records(batches):
            quorum.history.note(offset, message)
        payload = b"".join(batch.data for batch in batches)
        count = last.next_offset - first.base_offset
        quorum.outbox.appends.append(Append(first.base_offset, count, last.partition_leader_epoch, payload))

    def _usable(self, data: bytes | memoryview) -> list[RecordBatch]:
        """Whole batches that continue the log, up to the first that does not."""
        quorum = self._quorum
        usable: list[RecordBatch] = []
        offset, epoch = quorum.epochs.end
        try:
            for batch in iter_batches(data, allow_partial=True):
                batch.ensure_valid()
                header = batch.header
                follows = header.magic == MAGIC_VALUE_V2 and header.base_offset == offset <= header.last_offset
                if not follows or not epoch <= header.partition_leader_epoch <= quorum.epoch:
                    raise InvalidRecords(ErrorCode.INVALID_RECORD, f"a batch at {header.base_offset} follows {offset}")
                for _, message in _control_records([batch]):
                    quorum.history.ensure_readable(message)
                usable.append(batch)
                offset, epoch = header.next_offset, header.partition_leader_epoch
        except (InvalidRecords, MalformedMessage, InvalidVoters) as error:
            text = "raft node %d: records that the leader sent: %s"
            quorum.complain("records", text, quorum.replica.node_id, error)
        return usable


def _control_records(batches: Iterable[RecordBatch]) -> Iterator[tuple[int, Message]]:
    for batch in batches:
        if batch.header.is_control:
            yield from decode_control_batch(batch)
