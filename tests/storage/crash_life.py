"""A log directory's life on a disk that keeps a journal, and what it promised to whom at which moment.

`Life` does what a broker does with its logs, step by step, and notes before each step what may be lost from now on,
and after it what must not be lost any more. `crash_checks` compares this with what a start finds.
"""

from dataclasses import dataclass, field, replace
from random import Random
from typing import NamedTuple, Protocol
from unittest import mock

from pykbroker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    Record,
    RecordBatch,
    decode_batch_header,
    encode_batch,
    encode_batch_prefix,
    iter_batches,
    iter_records,
)
from pykbroker.protocol.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    encode_end_transaction_batch,
)
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.storage.compaction.cleanable_logs import find_cleanable
from pykbroker.storage.compaction.compaction import CleanerConfig, Cleaning
from pykbroker.storage.directories.log_dirs import LogDirectory, format_directory
from pykbroker.storage.files.disk import Disk
from pykbroker.storage.log.log import AppendOrigin, Log, LogConfig
from tests.storage.batches import NOW_MS, config
from tests.storage.cleaning import swaps
from tests.storage.crash_states import Base, empty_disk
from tests.storage.recording_disk import Operation, RecordingDisk

PATH = "/var/data"
NODE_ID = 1
CLUSTER_ID = "a-cluster"

SMALL = config(segment_bytes=420, index_interval_bytes=1, retention_ms=-1, file_delete_delay_ms=0)
COMPACTED = replace(SMALL, cleanup_policy=config(cleanup_policy="compact").cleanup_policy, delete_retention_ms=0)


class Batch(NamedTuple):
    base_offset: int
    next_offset: int
    data: bytes
    """As it is in the log, offsets and epoch included."""
    timestamp: int
    producer_id: int
    base_sequence: int
    is_transactional: bool
    control: ControlRecordType | None
    """Of a marker at the end of a transaction."""
    records: tuple[tuple[int, bytes | None, bytes | None], ...]
    """Offset, key and value."""


@dataclass(eq=False, slots=True)
class LogLife:
    """versions: everything that was ever appended, in order; a new version begins with each truncation."""

    topic_id: bytes
    config: LogConfig
    versions: list[list[Batch]] = field(default_factory=lambda: [[]])


@dataclass(frozen=True, slots=True)
class LogPromise:
    """What holds of one log from one moment on. Offsets are exclusive ends, or first offsets.

    version: the last one by now. appended_end: what a killed process has not lost. flushed_end: what no crash takes.
    may_start: the records before may be gone. must_start: they must be. cleaned_end: of the records before it those
    may be gone that have a later one of the same key.
    """

    life: LogLife
    version: int = 0
    appended_end: int = 0
    flushed_end: int = 0
    may_start: int = 0
    must_start: int = 0
    cleaned_end: int = 0


Promises = dict[TopicPartition, LogPromise]
"""By partitions that the cluster has at the moment."""


class JournalingDisk(Disk, Protocol):
    """A disk that remembers what was done to it."""

    @property
    def journal(self) -> list[Operation]: ...

    @property
    def base(self) -> Base:
        """What was durable before that."""
        ...

    def process_died(self) -> None: ...


class NewDisk(RecordingDisk):
    """A disk in memory that is empty at first."""

    @property
    def base(self) -> Base:
        return empty_disk(self.root)

    def process_died(self) -> None:
        """What it wrote is there."""


class Life:
    """`promises` are numbered by how much of the journal was written when they were made.

    closes_together: a clean shutdown syncs the volume, as where there are many logs.
    """

    def __init__(
        self, seed: object = 1, *, disk: JournalingDisk | None = None, path: str = PATH, closes_together: bool = False
    ) -> None:
        self.disk: JournalingDisk = NewDisk() if disk is None else disk
        self.path = path
        self.rng = Random(str(seed))
        self._closes_together = closes_together
        self.now_ms = NOW_MS
        self.promises: list[tuple[int, Promises]] = [(0, {})]
        self._put_aside: list[str] = []
        format_directory(self.disk, path, cluster_id=CLUSTER_ID, node_id=NODE_ID, rng=self.rng)
        self.first_cut = len(self.disk.journal)
        """Before that the directory was not formatted."""
        self.directory = self._open()

    # Promises

    def promises_at(self, cut: int) -> tuple[int, Promises]:
        """With their number, which is the same as long as they are."""
        number = 0
        for number, (at, _) in enumerate(self.promises):
            if at > cut:
                return number - 1, self.promises[number - 1][1]
        return number, self.promises[number][1]

    @property
    def current(self) -> Promises:
        return self.promises[-1][1]

    def _promise(self, at: TopicPartition, **changes: int) -> None:
        self._note({**self.current, at: replace(self.current[at], **changes)})

    def _note(self, promises: Promises) -> None:
        self.promises.append((len(self.disk.journal), promises))

    # Starts and ends

    def _open(self) -> LogDirectory:
        directory = LogDirectory.open(self.disk, self.path, rng=self.rng, node_id=NODE_ID, cluster_id=CLUSTER_ID)
        self.directory = directory
        for at in self.current:
            self._open_log(at)
        return directory

    def _open_log(self, at: TopicPartition) -> None:
        life = self.current[at].life
        log = self.directory.open_log(at.topic, at.partition, life.topic_id, life.config, now_ms=self.now_ms)
        # What a start has found is served from now on.
        self._promise(at, flushed_end=log.log_end_offset, appended_end=log.log_end_offset)

    def stop(self) -> None:
        """A clean shutdown, which begins with the high watermarks (`ReplicaManager.shutdown`)."""
        self.checkpoint_high_watermarks()
        ends = {at: log.log_end_offset for at, log in self.directory.logs.items()}
        with mock.patch("pykbroker.storage.directories.log_dirs._MANY_LOGS", 1 if self._closes_together else 64):
            self.directory.close()
        for at, end in ends.items():
            self._promise(at, flushed_end=end)

    def kill(self) -> None:
        self.directory.release()
        self.disk.process_died()

    def start(self) -> None:
        self._open()

    # Topics

    def create(self, topic: str, settings: LogConfig = SMALL, partition: int = 0) -> TopicPartition:
        at = TopicPartition(topic, partition)
        self._note({**self.current, at: LogPromise(LogLife(self.rng.randbytes(16), settings))})
        self._open_log(at)
        return at

    def delete(self, at: TopicPartition) -> None:
        self._note({each: promise for each, promise in self.current.items() if each != at})
        self._put_aside.append(self.directory.delete_log(self.log(at)))

    def remove_deleted(self) -> None:
        """When `file.delete.delay.ms` is over."""
        paths, self._put_aside = self._put_aside, []
        self.directory.remove_deleted(paths)

    def log(self, at: TopicPartition) -> Log:
        return self.directory.logs[at]

    # Appends

    def append(
        self,
        at: TopicPartition,
        count: int = 2,
        *,
        epoch: int = 0,
        producer: int | None = None,
        as_follower: bool = False,
        is_transactional: bool = False,
    ) -> None:
        self.now_ms += 10
        records = [Record(b"%d" % self.rng.randrange(4), self._value(), (), self.now_ms) for _ in range(count)]
        sequence = -1 if producer is None else self._next_sequence(at, producer)
        data = encode_batch(
            records,
            base_offset=self.log(at).log_end_offset,
            partition_leader_epoch=epoch,
            producer_id=-1 if producer is None else producer,
            producer_epoch=-1 if producer is None else 0,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        self._append(at, data, epoch, as_follower=as_follower)

    def end_transaction(
        self,
        at: TopicPartition,
        producer: int,
        control: ControlRecordType,
        *,
        epoch: int = 0,
        as_follower: bool = False,
    ) -> None:
        """A marker, as the transaction's coordinator has it written."""
        self.now_ms += 10
        marker = EndTransactionMarker(control, 0)
        data = encode_end_transaction_batch(marker, producer_id=producer, producer_epoch=0, timestamp=self.now_ms)
        header = decode_batch_header(data)
        prefix = encode_batch_prefix(self.log(at).log_end_offset, header.batch_length, epoch, header.crc)
        self._append(at, prefix + data[ATTRIBUTES_OFFSET:], epoch, as_follower=as_follower, is_marker=True)

    def _append(
        self, at: TopicPartition, data: bytes, epoch: int, *, as_follower: bool, is_marker: bool = False
    ) -> None:
        log = self.log(at)
        # It is a part of the log's life before anybody knows: a crash may keep it.
        self.current[at].life.versions[-1].append(as_batch(next(iter_batches(data))))
        if as_follower:
            log.append_as_follower(data, now_ms=self.now_ms)
        else:
            origin = AppendOrigin.COORDINATOR if is_marker else AppendOrigin.CLIENT
            log.append_as_leader(as_sent(data), epoch, self.now_ms, origin=origin)
        self._promise(at, appended_end=log.log_end_offset)

    def lead(self, at: TopicPartition, epoch: int) -> None:
        """A leader begins its epoch, and writes nothing yet."""
        log = self.log(at)
        log.assign_epoch_start_offset(epoch, log.log_end_offset)

    def _next_sequence(self, at: TopicPartition, producer: int) -> int:
        mine = [
            batch
            for batch in self.current[at].life.versions[-1]
            if batch.producer_id == producer and batch.control is None
        ]
        return mine[-1].base_sequence + mine[-1].next_offset - mine[-1].base_offset if mine else 0

    def _value(self) -> bytes | None:
        return None if self.rng.random() < 0.1 else b"%x" % self.rng.getrandbits(self.rng.choice((16, 200)))

    def flush(self, at: TopicPartition) -> None:
        end = self.log(at).log_end_offset
        self.log(at).flush()
        self._promise(at, flushed_end=end)

    def roll(self, at: TopicPartition) -> None:
        self.log(at).roll(self.now_ms)

    def truncate(self, at: TopicPartition, offset: int) -> None:
        """As a follower does that disagrees with its leader."""
        promise = self.current[at]
        life, version = promise.life, promise.version
        life.versions.append([batch for batch in life.versions[-1] if batch.next_offset <= offset])
        assert offset in {0, *(batch.next_offset for batch in life.versions[-1])}, (
            "leaders disagree about whole batches"
        )
        self._promise(
            at,
            version=version + 1,
            appended_end=min(promise.appended_end, offset),
            flushed_end=min(promise.flushed_end, offset),
        )
        self.log(at).truncate_to(offset)

    def begin_anew(self, at: TopicPartition, offset: int) -> None:
        """As a follower does that is behind the beginning of its leader's log."""
        promise = self.current[at]
        promise.life.versions.append([])
        self._promise(at, version=promise.version + 1, appended_end=0, flushed_end=0, may_start=offset)
        self.log(at).truncate_fully_and_start_at(offset, now_ms=self.now_ms)
        self._promise(at, appended_end=offset)

    # What happens by time

    def checkpoint(self) -> None:
        self.directory.checkpoint_recovery_points()

    def checkpoint_high_watermarks(self) -> None:
        self.directory.checkpoint_high_watermarks({at: log.log_end_offset for at, log in self.directory.logs.items()})

    def delete_records(self, at: TopicPartition, offset: int) -> None:
        """Answered when the checkpoint of log start offsets is durable."""
        self._promise(at, may_start=max(offset, self.current[at].may_start))
        self.log(at).increment_log_start_offset(offset)
        self.directory.checkpoint_log_start_offsets()
        self._promise(at, must_start=max(offset, self.current[at].must_start))

    def retain(self, at: TopicPartition, retention_bytes: int = -1) -> None:
        log = self.log(at)
        log.update_config(replace(log.config, retention_bytes=retention_bytes))
        self._promise(at, may_start=log.log_end_offset)
        self._put_aside += log.delete_old_segments(log.log_end_offset, self.now_ms)
        self._promise(at, may_start=log.log_start_offset)

    def clean(self, at: TopicPartition) -> None:
        log = self.log(at)
        found = find_cleanable(log, self.directory.cleaned_offset(at), log.log_end_offset, self.now_ms)
        if not found.dirty_bytes:
            return
        self._promise(at, cleaned_end=max(found.end_offset, self.current[at].cleaned_end))
        cleaning = Cleaning(found, CleanerConfig(1 << 16, 0.9), now_ms=self.now_ms, progress=lambda size: None)
        for paths in swaps(log, cleaning):
            self._put_aside += paths
        self.directory.checkpoint_cleaned_offset(at, log, cleaning.end_offset)


def as_sent(data: bytes) -> bytes:
    """As a client sends what is in a log: without an offset."""
    return bytes(8) + data[8:]


def as_batch(batch: RecordBatch) -> Batch:
    header, data = batch
    records = tuple((record.offset, record.key, record.value) for record in iter_records(batch))
    return Batch(
        header.base_offset,
        header.next_offset,
        bytes(data),
        header.max_timestamp,
        header.producer_id,
        header.base_sequence,
        header.is_transactional,
        ControlRecordType(int.from_bytes((records[0][1] or b"")[2:4], "big")) if header.is_control else None,
        records,
    )
