"""A log directory's life on a recording disk, and what it promised to whom at which moment.

`Life` does what a broker does with its logs, step by step, and notes before each step what may be lost from now on,
and after it what must not be lost any more. `crash_checks` compares this with what a start finds.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import NamedTuple

from pykbroker.protocol.records.batch import Record, RecordBatch, encode_batch, iter_batches, iter_records
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.storage.compaction.cleanable_logs import find_cleanable
from pykbroker.storage.compaction.compaction import CleanerConfig, Cleaning
from pykbroker.storage.directories.log_dirs import LogDirectory, format_directory
from pykbroker.storage.log.log import Log, LogConfig
from tests.storage.batches import NOW_MS, config
from tests.storage.cleaning import swaps
from tests.storage.recording_disk import RecordingDisk

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


class Life:
    """`promises` are numbered by how much of the journal was written when they were made."""

    def __init__(self, seed: object = 1) -> None:
        self.disk = RecordingDisk()
        self.rng = Random(str(seed))
        self.now_ms = NOW_MS
        self.promises: list[tuple[int, Promises]] = [(0, {})]
        self._put_aside: list[str] = []
        format_directory(self.disk, PATH, cluster_id=CLUSTER_ID, node_id=NODE_ID, rng=self.rng)
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
        directory = LogDirectory.open(self.disk, PATH, rng=self.rng, node_id=NODE_ID, cluster_id=CLUSTER_ID)
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
        """A clean shutdown."""
        ends = {at: log.log_end_offset for at, log in self.directory.logs.items()}
        self.directory.close()
        for at, end in ends.items():
            self._promise(at, flushed_end=end)

    def kill(self) -> None:
        self.directory.release()

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
    ) -> None:
        log = self.log(at)
        self.now_ms += 10
        base_offset = log.log_end_offset
        records = [Record(b"%d" % self.rng.randrange(4), self._value(), (), self.now_ms) for _ in range(count)]
        sequence = -1 if producer is None else self._next_sequence(at, producer)
        data = encode_batch(
            records,
            base_offset=base_offset,
            partition_leader_epoch=epoch,
            producer_id=-1 if producer is None else producer,
            producer_epoch=-1 if producer is None else 0,
            base_sequence=sequence,
        )
        # It is a part of the log's life before anybody knows: a crash may keep it.
        self.current[at].life.versions[-1].append(as_batch(next(iter_batches(data))))
        if as_follower:
            log.append_as_follower(data, now_ms=self.now_ms)
        else:
            log.append_as_leader(as_sent(data), epoch, self.now_ms)
        self._promise(at, appended_end=log.log_end_offset)

    def _next_sequence(self, at: TopicPartition, producer: int) -> int:
        mine = [batch for batch in self.current[at].life.versions[-1] if batch.producer_id == producer]
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
        records,
    )


# Runs

Run = Callable[[], Life]


def appends() -> Life:
    """Idempotent producers, rolls and flushes in two partitions."""
    life = Life()
    one, two = life.create("one"), life.create("two")
    for number in range(14):
        life.append(one, 1 + number % 3, producer=number % 2)
        if number % 2:
            life.append(two, 2)
        match number % 7:
            case 3:
                life.flush(one)
            case 4:
                life.checkpoint()
            case 5:
                life.roll(two)
                life.checkpoint_high_watermarks()
            case 6:
                life.flush(two)
    return life


def follower() -> Life:
    """Epochs, truncations below and above what was flushed and checkpointed, a new beginning."""
    life = Life()
    at = life.create("t")

    def fetch(epoch: int, count: int) -> None:
        for number in range(count):
            life.append(at, 1 + number % 2, epoch=epoch, producer=epoch % 3, as_follower=True)

    fetch(1, 4)
    life.flush(at)
    fetch(2, 4)
    life.checkpoint()
    life.truncate(at, 7)
    fetch(4, 2)
    life.flush(at)
    life.checkpoint()
    life.truncate(at, 3)
    fetch(5, 6)
    life.flush(at)
    life.checkpoint()
    life.begin_anew(at, 100)
    fetch(6, 2)
    life.checkpoint()
    fetch(6, 2)
    life.flush(at)
    life.truncate(at, 101)
    fetch(7, 5)
    life.checkpoint()
    life.flush(at)
    return life


def deletions() -> Life:
    """DeleteRecords within and between segments, retention, files that go later."""
    life = Life()
    at = life.create("t")
    for number in range(16):
        life.append(at, 2, producer=number % 2)
        match number:
            case 3 | 9:
                life.flush(at)
                life.checkpoint()
            case 5:
                life.delete_records(at, 3)
            case 6:
                life.retain(at)
            case 7:
                life.remove_deleted()
            case 11:
                life.delete_records(at, 17)
                life.retain(at)
            case 12:
                life.flush(at)
            case 13:
                life.retain(at, 300)
                life.checkpoint()
                life.remove_deleted()
    life.delete_records(at, 32)
    life.retain(at)
    life.flush(at)
    life.remove_deleted()
    life.append(at)
    life.flush(at)
    return life


def compaction() -> Life:
    life = Life()
    at = life.create("t", COMPACTED)
    for number in range(24):
        life.append(at, 2, producer=number % 2)
        match number % 8:
            case 3:
                life.flush(at)
            case 5:
                life.clean(at)
            case 6:
                life.checkpoint()
            case 7:
                life.remove_deleted()
    life.roll(at)
    life.clean(at)
    life.flush(at)
    return life


def topics() -> Life:
    """Topics that are deleted and created anew, with and without checkpoints in between."""
    life = Life()
    at, other = life.create("t"), life.create("other")
    for _ in range(5):
        life.append(at, 2, producer=1)
    life.flush(at)
    life.delete(at)
    at = life.create("t")
    life.append(at, 1, producer=1)
    life.append(other, 1)
    life.flush(at)
    life.checkpoint()
    for _ in range(4):
        life.append(at, 2, producer=1)
    life.delete_records(at, 5)
    life.flush(at)
    life.checkpoint()
    life.checkpoint_high_watermarks()
    life.delete(at)
    life.remove_deleted()
    at = life.create("t")
    life.append(at, 1, producer=1)
    life.flush(at)
    life.append(at, 1, producer=1)
    life.checkpoint()
    life.delete(at)
    life.flush(other)
    life.delete(other)
    life.checkpoint()
    life.remove_deleted()
    other = life.create("other")
    life.append(other, 2)
    life.flush(other)
    return life


def restarts() -> Life:
    """Clean shutdowns, killed processes, and starts on what they left."""
    life = Life()
    at, compacted = life.create("t"), life.create("c", COMPACTED)
    life.append(at)
    life.kill()
    life.start()
    for number in range(18):
        life.append(at, 1 + number % 2, producer=number % 2)
        if number % 3 == 0:
            life.append(compacted, 2, producer=5)
        match number:
            case 3 | 14:
                life.stop()
                life.start()
            case 4:
                life.kill()
                life.start()
            case 7:
                life.checkpoint()
            case 8:
                life.flush(at)
            case 9:
                life.kill()
                life.start()
            case 10:
                life.clean(compacted)
            case 12:
                life.truncate(at, 12)
            case 15:
                life.kill()
                life.start()
                life.stop()
                life.start()
    life.append(at)
    life.stop()
    return life


RUNS: dict[str, Run] = {run.__name__: run for run in (appends, follower, deletions, compaction, topics, restarts)}
