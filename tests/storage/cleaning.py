"""Cleaning a log in one go, as the broker does it step by step."""

from collections.abc import Iterator, Sequence

from pykbroker.protocol.records.batch import Record, RecordBatch, encode_batch, iter_batches
from pykbroker.protocol.records.compression import Compression
from pykbroker.storage.compaction.cleanable_logs import CleanableLog, find_cleanable
from pykbroker.storage.compaction.compaction import CleanerConfig, Cleaning
from pykbroker.storage.files.disk import Disk
from pykbroker.storage.log.log import Log
from tests.storage.batches import NOW_MS

MEMORY_BYTES = 1 << 20


def cleanable(log: Log, cleaned: int | None = None, *, stable: int | None = None, now_ms: int = NOW_MS) -> CleanableLog:
    return find_cleanable(log, cleaned, log.log_end_offset if stable is None else stable, now_ms)


def clean(
    disk: Disk,
    log: Log,
    cleaned: int | None = None,
    *,
    stable: int | None = None,
    now_ms: int = NOW_MS,
    memory_bytes: int = MEMORY_BYTES,
) -> int:
    """Returns where the next cleaning is to begin."""
    found = cleanable(log, cleaned, stable=stable, now_ms=now_ms)
    assert found.dirty_bytes, "there is nothing to clean"
    config = CleanerConfig(memory_bytes, 0.9)
    cleaning = Cleaning(found, config, now_ms=now_ms, progress=lambda size: None)
    for paths in swaps(log, cleaning):
        for path in paths:
            disk.remove(path)
    return cleaning.end_offset


def swaps(log: Log, cleaning: Cleaning) -> Iterator[Sequence[str]]:
    """Group by group; the paths that each puts out of use."""
    for group in cleaning.plan():
        segment = cleaning.clean(group)
        cleaning.begin_swap(segment, group)
        log.sync_names()
        paths = cleaning.swap(segment)
        log.sync_names()
        yield paths


def keyed(*pairs: tuple[bytes | None, bytes | None], timestamp: int = NOW_MS, **options: object) -> bytes:
    records = [Record(key, value, (), timestamp) for key, value in pairs]
    return encode_batch(records, **options)  # type: ignore[arg-type]


def batches(log: Log) -> list[RecordBatch]:
    """All of them, the empty ones too."""
    return [batch for segment in log.segments for batch in iter_batches(segment.file.read_at(0, segment.size))]


CODECS = list(Compression)
