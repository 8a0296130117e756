"""Snapshots of the metadata over the wire: read in pieces by those who are too far behind the log (KIP-630)."""

from __future__ import annotations

import logging

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages import quorum as messages
from pykbroker.protocol.schema import Message

from . import wire
from .answers import KnownNow, check_leader, handle_common, is_of_cluster, log_unexpected
from .events import Destination, ReadRange, SnapshotChunk, SnapshotInstalled
from .fetch_sizes import MOST_SERVED_BYTES
from .leader_state import LeaderState
from .quorum_state import QuorumState
from .snapshots import SnapshotId
from .states import FollowerState
from .voters import InvalidVoters, ReplicaKey

logger = logging.getLogger(__name__)


class SnapshotFetch:
    def __init__(self, quorum: QuorumState) -> None:
        self._quorum = quorum

    # As the leader

    def serve(
        self, request: messages.FetchSnapshotRequest, known: KnownNow
    ) -> tuple[messages.FetchSnapshotResponse, ReadRange | None]:
        if not is_of_cluster(self._quorum, request.cluster_id):
            return messages.FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID), None
        if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
            return messages.FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST), None
        topic, asked = request.topics[0].name, request.topics[0].partitions[0]
        if topic != wire.TOPIC or asked.partition != wire.PARTITION:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return wire.fetch_snapshot_response(known(), error, topic=topic, partition=asked.partition), None
        error = check_leader(self._quorum, asked.current_leader_epoch)
        if error is not ErrorCode.NONE:
            return wire.fetch_snapshot_response(known(), error), None
        return self._piece(request, asked, known)

    def _piece(
        self,
        request: messages.FetchSnapshotRequest,
        asked: messages.FetchSnapshotRequestPartitionSnapshot,
        known: KnownNow,
    ) -> tuple[messages.FetchSnapshotResponse, ReadRange | None]:
        snapshot_id = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        size_bytes = self._quorum.log.snapshot_size_bytes(snapshot_id) if snapshot_id.end_offset > 0 else None
        if size_bytes is None:
            return wire.fetch_snapshot_response(known(), ErrorCode.SNAPSHOT_NOT_FOUND), None
        if not 0 <= asked.position < size_bytes:
            return wire.fetch_snapshot_response(known(), ErrorCode.POSITION_OUT_OF_RANGE), None
        state = self._quorum.state
        assert isinstance(state, LeaderState)
        self._quorum.refusing.discard(request.replica_id)
        state.heard_from(ReplicaKey(request.replica_id, asked.replica_directory_id), self._quorum.now_ms)
        response = wire.fetch_snapshot_response(known(), ErrorCode.NONE)
        piece = response.topics[0].partitions[0]
        piece.snapshot_id = messages.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)
        piece.size, piece.position = size_bytes, asked.position
        return response, ReadRange(asked.position, max(1, min(request.max_bytes, MOST_SERVED_BYTES)))

    # As a follower

    def request(self) -> Message:
        state = self._quorum.state
        assert isinstance(state, FollowerState)
        assert state.snapshot is not None
        return wire.fetch_snapshot_request(
            self._quorum.replica,
            self._quorum.epoch,
            state.snapshot.snapshot_id,
            state.snapshot.position,
            self._quorum.sizes.snapshot_max_bytes,
        )

    def answered(self, source: Destination, answer: messages.FetchSnapshotResponse) -> bool:
        """False where it was no use, and asking again should wait a little."""
        topics = answer.topics if answer.error_code == ErrorCode.NONE else []
        if len(topics) != 1 or topics[0].name != wire.TOPIC or len(topics[0].partitions) != 1:
            return log_unexpected(self._quorum, source, answer)
        piece = topics[0].partitions[0]
        leader = piece.current_leader
        told = wire.leadership(leader.leader_epoch, leader.leader_id, answer.node_endpoints)
        handled = handle_common(self._quorum, told, piece.error_code, source)
        self._quorum.note_told(told, piece.error_code, source)
        if handled is not None:
            return handled and piece.error_code == ErrorCode.NONE
        state = self._quorum.state
        if not isinstance(state, FollowerState) or state.snapshot is None:
            return False
        return self._take(state, piece)

    def _take(self, state: FollowerState, piece: messages.FetchSnapshotResponsePartitionSnapshot) -> bool:
        """Take a piece of the snapshot. After one that does not fit the node fetches the log again."""
        fetching = state.snapshot
        assert fetching is not None
        data = piece.unaligned_records
        snapshot_id = SnapshotId(piece.snapshot_id.end_offset, piece.snapshot_id.epoch)
        fits = piece.error_code == ErrorCode.NONE and snapshot_id == fetching.snapshot_id
        if not fits or piece.position != fetching.position or not isinstance(data, bytes | memoryview) or not data:
            logger.info(
                "raft node %d: the fetch of snapshot %s has ended at position %d: error %d",
                self._quorum.replica.node_id,
                fetching.snapshot_id,
                fetching.position,
                piece.error_code,
            )
            state.snapshot = None
            return False
        end = fetching.position + len(data)
        if end > piece.size:
            state.snapshot = None
            return False
        is_last = end == piece.size
        self._quorum.outbox.snapshot_chunk = SnapshotChunk(snapshot_id, fetching.position, bytes(data), is_last)
        fetching.position, fetching.is_whole = end, is_last
        state.fetch_deadline_ms = self._quorum.now_ms + self._quorum.timeouts.fetch_ms
        return True

    def installed(self, event: SnapshotInstalled) -> None:
        """The log begins behind it now, and is durable up to there."""
        quorum = self._quorum
        quorum.epochs.begin_at(event.snapshot_id)
        quorum.history.clear()
        for message in event.control_records:
            try:
                quorum.history.note(event.snapshot_id.end_offset - 1, message)
            except InvalidVoters as error:
                logger.error(
                    "raft node %d: the voters in snapshot %s cannot be used: %s",
                    quorum.replica.node_id,
                    event.snapshot_id,
                    error,
                )
        quorum.durable_end_offset = event.snapshot_id.end_offset
        quorum.high_watermark = max(quorum.high_watermark, event.snapshot_id.end_offset)
        if isinstance(quorum.state, FollowerState):
            quorum.state.snapshot = None
            quorum.state.has_fetched = True
            quorum.state.fetch_deadline_ms = quorum.now_ms + quorum.timeouts.fetch_ms
