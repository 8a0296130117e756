"""Batches and logs for the tests of this folder."""

from collections.abc import Sequence

from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.storage.files.disk import Disk
from pykbroker.storage.log.log import Log, LogConfig

NOW_MS = 1_700_000_000_000


def batch(
    count: int = 1, *, timestamp: int = NOW_MS, value: bytes = b"value", base_offset: int = 0, epoch: int = -1
) -> bytes:
    records = [Record(b"key", value, (), timestamp) for _ in range(count)]
    return encode_batch(records, base_offset=base_offset, partition_leader_epoch=epoch)


def idempotent(
    sequence: int, count: int = 1, *, producer_id: int = 7, epoch: int = 0, timestamp: int = NOW_MS
) -> bytes:
    records = [Record(b"key", b"value", (), timestamp) for _ in range(count)]
    return encode_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def open_log(disk: Disk, path: str, config: LogConfig | None = None, **options: int | bool) -> Log:
    options.setdefault("now_ms", NOW_MS)
    return Log.open(disk, path, config or LogConfig(), **options)  # type: ignore[arg-type]


def config(**properties: object) -> LogConfig:
    return LogConfig.from_properties({key.replace("_", "."): str(value) for key, value in properties.items()})


def read_all(log: Log, offset: int | None = None) -> list[Record]:
    """Every record from `offset` on, as a consumer would get them."""
    offset = log.log_start_offset if offset is None else offset
    found: list[Record] = []
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20).read()
        if not data:
            break  # what is left was compacted away
        for read in iter_batches(data, allow_partial=True):
            read.ensure_valid()
            found += [record for record in iter_records(read) if record.offset >= offset]
            offset = read.header.next_offset
    return found


def offsets(records: Sequence[Record]) -> list[int]:
    return [record.offset for record in records]
