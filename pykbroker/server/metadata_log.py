"""`__cluster_metadata-0` on disk: the metadata log's batches and the `quorum-state` beside it.

Bytes only: what a record means is the business of `metadata`, who may write is raft's (`RaftNode`). One writer, the
controller's driver. KIP-595, KIP-631.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pykbroker.metadata.records import decode_record, encode_record
from pykbroker.protocol.compile import encode
from pykbroker.protocol.messages.quorum_records import LeaderChangeMessage, Voter
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.protocol.records.control import ControlRecordType, encode_control_batch
from pykbroker.protocol.schema import Message
from pykbroker.raft.election_state import ElectionState
from pykbroker.raft.node import LeaderChange
from pykbroker.storage.disk import Disk
from pykbroker.storage.log import Log

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = bytes(15) + b"\x01"
QUORUM_STATE = "quorum-state"
READ_BYTES = 1 << 20


class MetadataRecord(NamedTuple):
    offset: int
    message: Message


class MetadataLog:
    """disk, directory: where the log's files are, `quorum-state` among them."""

    def __init__(self, disk: Disk, directory: str, log: Log) -> None:
        self._disk = disk
        self._quorum_state = posixpath.join(directory, QUORUM_STATE)
        self._log = log

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def last_epoch(self) -> int:
        """0 where the log is empty."""
        return max(self._log.latest_epoch or 0, 0)

    def read_election(self) -> ElectionState:
        """What was stored last; a voter that never stood for election knows nothing. Raises InvalidQuorumState."""
        if not self._disk.exists(self._quorum_state):
            return ElectionState(self.last_epoch)
        return ElectionState.from_json(self._disk.read_file(self._quorum_state))

    def store_election(self, election: ElectionState, voter_ids: Sequence[int]) -> None:
        """Durable when it returns."""
        self._disk.replace_file(self._quorum_state, election.to_json(voter_ids))

    def append_leader_change(self, change: LeaderChange, epoch: int, now_ms: int) -> None:
        message = LeaderChangeMessage(
            leader_id=change.leader_id,
            voters=[Voter(voter_id=voter_id) for voter_id in change.voters],
            granting_voters=[Voter(voter_id=voter_id) for voter_id in change.granting_voters],
        )
        batch = encode_control_batch(
            ControlRecordType.LEADER_CHANGE,
            encode(message, 0),
            base_offset=self.end_offset,
            leader_epoch=epoch,
            timestamp=now_ms,
        )
        self._log.append_as_follower(batch)

    def append_records(self, messages: Sequence[Message], epoch: int, now_ms: int) -> None:
        """One atomic batch; not durable before `flush`."""
        records = [Record(key=None, value=encode_record(message), timestamp=now_ms) for message in messages]
        batch = encode_batch(records, base_offset=self.end_offset, partition_leader_epoch=epoch)
        self._log.append_as_follower(batch)

    def flush(self) -> None:
        """Everything appended so far is durable when it returns; may run in a thread."""
        self._log.flush()

    def read(self) -> Iterator[MetadataRecord]:
        """Every metadata record from the log's start to its end; control records are raft's and left out."""
        offset, end = self._log.log_start_offset, self.end_offset
        while offset < end:
            data = self._log.read(offset, READ_BYTES, max_offset=end, min_one_batch=True).read()
            for batch in iter_batches(data):
                offset = batch.header.next_offset
                if not batch.header.is_control:
                    for record in iter_records(batch):
                        yield MetadataRecord(record.offset, decode_record(record.value))

    def close(self) -> None:
        self._log.close()
