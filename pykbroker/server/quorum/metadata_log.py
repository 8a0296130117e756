"""The metadata log is `__cluster_metadata-0` on disk: its batches, its snapshots, and the `quorum-state` beside them.

The module knows bytes only: what a record means is the business of `metadata`, who may write is raft's (`RaftNode`).
There is one writer, the controller's driver. KIP-595, KIP-630, KIP-631.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from pykbroker.long_work import whole
from pykbroker.metadata.records import decode_record
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.records.batch import (
    RECORD_BATCH_OVERHEAD_BYTES,
    Record,
    RecordBatch,
    decode_batch_header,
    iter_batches,
    iter_records,
)
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.schema import Message
from pykbroker.raft.control_records import decode_control_record, encode_control_batch
from pykbroker.raft.election_state import ElectionState, InvalidQuorumState, stored_voters
from pykbroker.raft.events import SnapshotChunk
from pykbroker.raft.snapshots import SnapshotId, StoredSnapshot
from pykbroker.storage.directories.partition_metadata import read_topic_id, write_topic_id
from pykbroker.storage.files.disk import Disk
from pykbroker.storage.files.errors import CorruptLog
from pykbroker.storage.log.log import Log
from pykbroker.storage.log.truncation import Truncation
from pykbroker.storage.segments.log_config import LogConfig

from .encoded_records import EncodedRecords, encode_records
from .metadata_snapshots import MetadataSnapshots
from .snapshot_format import InvalidSnapshot, QuorumRecords, Snapshot, encode_snapshot

METADATA_TOPIC_ID = bytes(15) + b"\x01"
QUORUM_STATE = "quorum-state"
READ_BYTES = 1 << 20

_logger = logging.getLogger(__name__)


class MetadataRecord(NamedTuple):
    """A metadata record stands at an offset of the log."""

    offset: int
    message: Message


class MetadataBatch(NamedTuple):
    """A batch of the log is atomic. records: without the control records, which are raft's; those are in `control`.

    Records can be taken once. They are decoded when they are taken, which raises CorruptLog for those that are damaged.
    """

    base_offset: int
    next_offset: int
    size_bytes: int
    records: Iterator[MetadataRecord]
    control: Sequence[Record] = ()


class StartSnapshot(NamedTuple):
    """The start snapshot is the one that the log continues."""

    id: SnapshotId
    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class SnapshotHead:
    """The head is what is to be known of a snapshot before it is written. timestamp_ms: of the last record that it
    covers.
    """

    id: SnapshotId
    timestamp_ms: int
    now_ms: int
    quorum: QuorumRecords


class MetadataLog:
    """The metadata log has, in the same directory, its snapshots and `quorum-state`. `start` is the snapshot to begin
    with.
    """

    def __init__(
        self, disk: Disk, log: Log, snapshots: MetadataSnapshots, start: tuple[SnapshotId, Snapshot] | None
    ) -> None:
        self._disk = disk
        self._quorum_state = posixpath.join(log.directory, QUORUM_STATE)
        self._log = log
        self.snapshots = snapshots
        self._start = start
        self._covered = SnapshotId(0, 0) if start is None else start[0]
        self._quorum = QuorumRecords() if start is None else start[1].quorum
        self.uncovered_bytes = 0
        """The size of the batches behind the latest snapshot, as far as they are in the image."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        config: LogConfig,
        *,
        clean_shutdown: bool,
        machine_stayed_up: bool = False,
        now_ms: int,
    ) -> MetadataLog:
        """Open or create the log, and recover what a crash left. Raises CorruptLog, FileError."""
        open_log = partial(
            Log.open,
            disk,
            directory,
            config,
            now_ms=now_ms,
            recovery_point=None,
            high_watermark=None,
            machine_stayed_up=machine_stayed_up,
        )
        log = open_log(clean_shutdown=clean_shutdown)
        if log.latest_epoch is None and log.log_end_offset > log.log_start_offset:
            _logger.warning("%s: leader-epoch-checkpoint is missing or damaged, and made anew", directory)
            log.abandon()
            log = open_log(clean_shutdown=False)
        if read_topic_id(disk, directory) is None:
            write_topic_id(disk, directory, METADATA_TOPIC_ID, sync=True)
        disk.sync_directory(posixpath.dirname(directory))  # or else votes could go with the name of what holds them
        snapshots = MetadataSnapshots(disk, directory)
        _begin_where_epochs_begin(log, snapshots)
        start = _latest_valid_snapshot(log, snapshots)
        if start is not None:
            snapshot_id = start[0]
            if log.log_end_offset < snapshot_id.end_offset:
                _logger.warning(
                    "%r ends before its newest snapshot, and begins anew at offset %d", log, snapshot_id.end_offset
                )
                log.truncate_fully_and_start_at(snapshot_id.end_offset, now_ms=now_ms)
            oldest = next(each for each in snapshots.ids if each.end_offset >= log.log_start_offset)
            for path in snapshots.forget_before(oldest):
                disk.remove(path)
        return cls(disk, log, snapshots, start)

    @property
    def log(self) -> Log:
        """The log for who copies its files (`pykbroker.control.savepoints`); nobody else appends to it."""
        return self._log

    @property
    def directory(self) -> str:
        return self._log.directory

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def size_bytes(self) -> int:
        """The size of the log without the snapshots."""
        return self._log.size_bytes

    @property
    def last_epoch(self) -> int:
        """0 where there is no record yet."""
        return max(self._log.latest_epoch or 0, self._covered.epoch)

    def snapshot_id_at(self, end_offset: int) -> SnapshotId | None:
        return next((each for each in reversed(self.snapshots.ids) if each.end_offset == end_offset), None)

    @property
    def latest_snapshot_id(self) -> SnapshotId | None:
        return self.snapshots.ids[-1] if self.snapshots.ids else None

    def snapshot_size_bytes(self, snapshot_id: SnapshotId) -> int | None:
        """Return None where there is no such snapshot. Raises FileError."""
        return self.snapshots.size_bytes(snapshot_id) if snapshot_id in self.snapshots.ids else None

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one that has records in the log, and where it ends; (-1, -1) where none is."""
        return self._log.end_offset_for_epoch(epoch)

    def control_records(self) -> Iterator[tuple[int, Message]]:
        """Read what the snapshot and the log behind it say of the quorum. For the start, once.

        Raises CorruptLog, FileError.
        """
        if self._start is not None:
            snapshot_id, snapshot = self._start
            try:
                for each in snapshot.quorum.messages():
                    yield snapshot_id.end_offset - 1, each
            except MalformedMessage as error:
                raise CorruptLog(f"{self.snapshots.path(snapshot_id)}: a record of the quorum: {error}") from error
        for batch in self._batches(self._covered.end_offset, self.end_offset):
            if batch.header.is_control:
                for record in iter_records(batch):
                    message = self._decode_control(record, record.offset)
                    if message is not None:
                        yield record.offset, message

    def _decode_control(self, record: Record, offset: int) -> Message | None:
        try:
            return decode_control_record(record)
        except (MalformedMessage, InvalidRecords) as error:
            raise CorruptLog(f"{self._log.directory}: the control record at offset {offset}: {error}") from error

    def read_election(self, voter_ids: Sequence[int]) -> ElectionState:
        """Read the election that was stored last; a voter that never stood for election knows nothing.

        voter_ids: whom this node is configured for; a snapshot that names voters knows better. Raises
        InvalidQuorumState, also where the log is that of others.
        """
        election, known_voters = ElectionState(self.last_epoch), self.static_voters()
        if self._disk.exists(self._quorum_state):
            with self._named_errors():
                election = ElectionState.from_json(self._disk.read_file(self._quorum_state))
        if known_voters and voter_ids and known_voters != sorted(voter_ids):
            raise InvalidQuorumState(
                f"{self.directory} belongs to a metadata quorum of the nodes {_listed(known_voters)}, and this node is "
                f"configured for one of {_listed(voter_ids)}: who decides without the others may lose what they know"
            )
        if election.epoch < self.last_epoch:
            _logger.warning("%s is of epoch %d, the log of %d", self._quorum_state, election.epoch, self.last_epoch)
            return ElectionState(self.last_epoch)
        return election

    def static_voters(self) -> list[int] | None:
        """Whom `quorum-state` names as the voters, where nothing in the log or its snapshots does. Raises
        InvalidQuorumState.
        """
        if not self._disk.exists(self._quorum_state):
            return None
        with self._named_errors():
            return None if self._knows_voters() else stored_voters(self._disk.read_file(self._quorum_state))

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except InvalidQuorumState as error:
            raise InvalidQuorumState(f"{self.directory}: {error}") from None

    def _knows_voters(self) -> bool:
        try:
            return self._quorum.voter_ids() is not None
        except MalformedMessage as error:
            raise InvalidQuorumState(f"the record of the voters: {error}") from None

    def store_election(self, election: ElectionState, voter_ids: Sequence[int], kraft_version: int = 0) -> None:
        """Durable when it returns. voter_ids: told by the file of a quorum whose voters are configured."""
        text = election.to_json(voter_ids if kraft_version == 0 else None)
        self._disk.replace_file(self._quorum_state, text)

    def append_control_records(self, messages: Sequence[Message], epoch: int, now_ms: int) -> None:
        """One batch of raft's own records; not durable before `flush`."""
        self.append_batch(
            encode_control_batch(messages, base_offset=self.end_offset, leader_epoch=epoch, timestamp=now_ms)
        )

    def append_records(self, messages: Sequence[Message], epoch: int, now_ms: int) -> int:
        """One atomic batch; not durable before `flush`. Returns its size."""
        return self.append_encoded(whole(encode_records(messages, now_ms)), epoch)

    def append_encoded(self, records: EncodedRecords, epoch: int) -> int:
        """The same with what was encoded before."""
        batch = records.batch(self.end_offset, epoch)
        self.append_batch(batch)
        return len(batch)

    def append_batch(self, batch: bytes | memoryview) -> None:
        """Append one batch or more, as a leader made them; not durable before `flush`."""
        self._log.append_as_follower(batch)

    def flush(self) -> None:
        """Make everything appended so far durable; may run in a thread."""
        self._log.flush()

    def read(self) -> Iterator[MetadataRecord]:
        """Every metadata record: first those of the latest snapshot, at the last offset that it covers, then the log's
        behind it. For whoever looks at a log that nobody writes to, once.

        Raises CorruptLog, FileError.
        """
        start = self.take_start()
        if start is not None:
            for message in start.messages:
                yield MetadataRecord(start.id.end_offset - 1, message)
        for batch in self.batches(self._covered.end_offset, self.end_offset):
            self.note_applied(batch)
            yield from batch.records

    @property
    def begins_anew(self) -> bool:
        """Tell whether `take_start` gives a snapshot."""
        return self._start is not None

    def take_start(self) -> StartSnapshot | None:
        """The snapshot that was there when the log was opened, or came from a leader since; handed out once."""
        start, self._start = self._start, None
        return None if start is None else StartSnapshot(start[0], start[1].messages)

    def read_bytes(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches as they are, one at least where there is one, for those who fetch. Raises FileError."""
        return self._log.read(offset, max_bytes, min_one_batch=True).read()

    def begin_truncation(self, offset: int) -> Truncation | None:
        """Cut off what is at the offset and behind it: the leader has something else there. Raises FileError."""
        return self._log.begin_truncation(offset)

    def batches(self, offset: int, end: int) -> Iterator[MetadataBatch]:
        """The batches from one offset to another, where batches begin and end. Raises CorruptLog, FileError."""
        for batch in self._batches(offset, end):
            header = batch.header
            control = list(iter_records(batch)) if header.is_control else []
            records = iter(()) if header.is_control else self._records(batch)
            yield MetadataBatch(header.base_offset, header.next_offset, header.size_bytes, records, control)

    def _records(self, batch: RecordBatch) -> Iterator[MetadataRecord]:
        for record in iter_records(batch):
            yield MetadataRecord(record.offset, self._decode(record))

    def _batches(self, offset: int, end: int) -> Iterator[RecordBatch]:
        while offset < end:
            chunk_start = offset
            data = self._log.read(offset, READ_BYTES, max_offset=end, min_one_batch=True).read()
            for batch in iter_batches(data, allow_partial=True):
                offset = batch.header.next_offset
                yield batch
            if offset == chunk_start:
                raise CorruptLog(f"{self._log.directory} has no whole batch at offset {offset}")

    def note_applied(self, batch: MetadataBatch) -> None:
        """Note that the image has the batch now, as the next snapshot will."""
        self.uncovered_bytes += batch.size_bytes
        for record in batch.control:
            self._quorum.note(record)

    def _decode(self, record: Record) -> Message:
        try:
            return decode_record(record.value or b"")
        except MalformedMessage as error:
            raise CorruptLog(f"{self._log.directory}: the record at offset {record.offset}: {error}") from error

    # Snapshots

    def begin_snapshot(self, last_offset: int, now_ms: int) -> SnapshotHead:
        """Begin a snapshot of the state with everything up to last_offset, which is where a batch ends."""
        batch = self._log.read(last_offset, 1, min_one_batch=True)
        header = decode_batch_header(batch.file.read_at(batch.position, RECORD_BATCH_OVERHEAD_BYTES))
        assert header.last_offset == last_offset, "a snapshot must not divide a batch"
        snapshot_id = SnapshotId(last_offset + 1, header.partition_leader_epoch)
        return SnapshotHead(snapshot_id, header.max_timestamp, now_ms, self._quorum)

    def write_snapshot(self, head: SnapshotHead, messages: Iterable[Message]) -> int:
        """Write the snapshot in a thread, and return its size: appends may go on beside it. Raises FileError."""
        portions = encode_snapshot(
            messages, epoch=head.id.epoch, timestamp_ms=head.timestamp_ms, now_ms=head.now_ms, quorum=head.quorum
        )
        return self.snapshots.write(head.id, portions)

    def write_chunk(self, chunk: SnapshotChunk) -> None:
        """A piece of a leader's snapshot; for a thread. Raises FileError."""
        self.snapshots.write_chunk(chunk.snapshot_id, chunk.position, chunk.data)

    def complete_snapshot(self, snapshot_id: SnapshotId) -> Snapshot:
        """The pieces are all there, and it is durable when this returns; for a thread.

        Raises CorruptLog, FileError.
        """
        try:
            return self.snapshots.complete(snapshot_id)
        except InvalidSnapshot as error:
            path = self.snapshots.path(snapshot_id)
            raise CorruptLog(f"{path} is not as a controller writes it, and comes from the leader: {error}") from None

    def begin_behind(self, snapshot_id: SnapshotId, snapshot: Snapshot, now_ms: int) -> None:
        """The log is empty and begins behind a leader's snapshot, and `take_start` gives what that says.

        Durable when it returns. A start after a crash before this finds a log that ends before its snapshot, and does
        the same. Raises FileError.
        """
        self._log.truncate_fully_and_start_at(snapshot_id.end_offset, now_ms=now_ms)
        self.remove(self.snapshots.forget_before(snapshot_id))
        self._start = snapshot_id, snapshot
        self._covered, self._quorum = snapshot_id, snapshot.quorum.copy()
        self.uncovered_bytes = 0

    def prepare_cleaning(self) -> list[StoredSnapshot]:
        """Return the snapshots, oldest first; then `begin_at` one of them. In a thread. Raises FileError."""
        self._log.make_names_durable()
        return self.snapshots.describe()

    def begin_at(self, snapshot_id: SnapshotId, now_ms: int) -> list[str]:
        """Segments of nothing but what the snapshot covers, and older snapshots, are put out of use.

        Returns the files' paths, to be removed later. Raises FileError.
        """
        self._log.increment_log_start_offset(snapshot_id.end_offset)
        # The segments first: without them an older snapshot is known for a leftover.
        paths = self._log.put_old_segments_aside(snapshot_id.end_offset, now_ms)
        return paths + self.snapshots.forget_before(snapshot_id)

    def remove(self, paths: Sequence[str]) -> None:
        """Remove files in a thread. Raises FileError."""
        for path in paths:
            self._disk.remove(path)

    def close(self) -> None:
        """Close the log at a clean shutdown: everything is durable and the files are in their final form."""
        self._log.close()

    def abandon(self) -> None:
        """Close the files as they are."""
        self._log.abandon()


def _listed(node_ids: Sequence[int]) -> str:
    return ", ".join(map(str, node_ids))


def _begin_where_epochs_begin(log: Log, snapshots: MetadataSnapshots) -> None:
    """A log that began at a snapshot, in the midst of a segment, begins there again: of what is in front of it in the
    segment the checkpoint of epochs tells nothing any more, and who asks where such an epoch ends needs an answer.
    """
    if log.epochs and any(each.end_offset >= log.epochs[0].start_offset for each in snapshots.ids):
        log.increment_log_start_offset(log.epochs[0].start_offset)


def _latest_valid_snapshot(log: Log, snapshots: MetadataSnapshots) -> tuple[SnapshotId, Snapshot] | None:
    """The snapshot that the log continues; None where the log goes back to the first record.

    Damaged ones are set aside where the log has everything that they cover. Raises CorruptLog where it has not. One
    that covers no record has what no log has: the first voters of the quorum.
    """
    damaged: list[tuple[SnapshotId, InvalidSnapshot]] = []
    found: tuple[SnapshotId, Snapshot] | None = None
    for snapshot_id in reversed(snapshots.ids):
        if snapshot_id.end_offset < log.log_start_offset:
            break
        try:
            found = snapshot_id, snapshots.read(snapshot_id)
            break
        except InvalidSnapshot as error:
            damaged.append((snapshot_id, error))
    has_start = found is not None or log.log_start_offset == 0
    for snapshot_id, why in damaged:
        if not has_start or not 0 < snapshot_id.end_offset <= log.log_end_offset:
            raise CorruptLog(
                f"{snapshots.path(snapshot_id)}: {why}; the log beside it has only the records "
                f"{log.log_start_offset} to {log.log_end_offset - 1}: the metadata can't be put together"
            )
    if not has_start:
        raise CorruptLog(
            f"{log.directory}: the log begins at {log.log_start_offset}, and no snapshot covers what was before it"
        )
    for snapshot_id, why in damaged:
        snapshots.set_aside(snapshot_id, why)
    return found
