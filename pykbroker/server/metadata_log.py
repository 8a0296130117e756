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
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.messages.control_records import LeaderChangeMessage, LeaderChangeMessageVoter
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.protocol.records.control import ControlRecordType, encode_control_batch
from pykbroker.protocol.schema import Message
from pykbroker.raft.election_state import ElectionState
from pykbroker.raft.node import LeaderChange
from pykbroker.storage.disk import Disk
from pykbroker.storage.errors import CorruptLog
from pykbroker.storage.log import Log
from pykbroker.storage.log_config import LogConfig
from pykbroker.storage.partition_metadata import read_topic_id, write_topic_id

METADATA_TOPIC_ID = bytes(15) + b"\x01"
QUORUM_STATE = "quorum-state"
READ_BYTES = 1 << 20


class MetadataRecord(NamedTuple):
    offset: int
    message: Message


class MetadataLog:
    """The log and, in the same directory, `quorum-state`."""

    def __init__(self, disk: Disk, log: Log) -> None:
        self._disk = disk
        self._quorum_state = posixpath.join(log.directory, QUORUM_STATE)
        self._log = log

    @classmethod
    def open(cls, disk: Disk, directory: str, config: LogConfig, *, clean_shutdown: bool, now_ms: int) -> MetadataLog:
        """Opens or creates it, and recovers what a crash left. Raises CorruptLog, DiskFailed."""
        log = Log.open(disk, directory, config, now_ms=now_ms, clean_shutdown=clean_shutdown)
        if read_topic_id(disk, directory) is None:
            write_topic_id(disk, directory, METADATA_TOPIC_ID, sync=True)
        return cls(disk, log)

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
            voters=[LeaderChangeMessageVoter(voter_id=voter_id) for voter_id in change.voters],
            granting_voters=[LeaderChangeMessageVoter(voter_id=voter_id) for voter_id in change.granting_voters],
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
        """Every metadata record from the log's start to its end; control records are raft's and left out.

        Raises CorruptLog, DiskFailed.
        """
        offset, end = self._log.log_start_offset, self.end_offset
        while offset < end:
            data = self._log.read(offset, READ_BYTES, max_offset=end, min_one_batch=True).read()
            for batch in iter_batches(data):
                offset = batch.header.next_offset
                if not batch.header.is_control:
                    for record in iter_records(batch):
                        yield MetadataRecord(record.offset, self._decode(record))

    def _decode(self, record: Record) -> Message:
        try:
            return decode_record(record.value or b"")
        except MalformedMessage as error:
            raise CorruptLog(f"{self._log.directory}: the record at offset {record.offset}: {error}") from error

    def close(self) -> None:
        """At a clean shutdown: everything is durable and the files are in their final form."""
        self._log.close()

    def abandon(self) -> None:
        """Closes the files as they are."""
        self._log.abandon()
