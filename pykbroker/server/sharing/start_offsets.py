"""The offset where a share group begins to read a partition that it has not read so far: `share.auto.offset.reset`."""

from __future__ import annotations

from pykbroker.config.offset_reset import OffsetReset
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.records.checking import TURN_UNITS, CheckBudget
from pykbroker.replication.partition import Partition
from pykbroker.replication.reads import FetchIsolation, ListedOffset
from pykbroker.storage.files.errors import CorruptLog, FileError
from pykbroker.storage.files.steps import Job

from ..logs.record_checks import proceed
from ..replicas.replica_manager import ReplicaManager
from ..runtime.fair_queue import FairShare

_NAMES = {"earliest": "earliest timestamp", "latest": "latest timestamp"}


async def start_offset(replicas: ReplicaManager, partition: Partition, reset: OffsetReset, now_ms: int) -> int:
    """Find the offset, as Kafka's `ShareFetchUtils.offsetForTimestamp` does. now_ms: the wall clock's.

    Raises ApiError: OFFSET_NOT_AVAILABLE also where no record is as late as the time.
    """
    timestamp = reset.timestamp(now_ms)
    isolation = FetchIsolation.HIGH_WATERMARK
    found = partition.known_offset(timestamp, isolation) or await _looked_up(replicas, partition, timestamp)
    if found.error_code is not ErrorCode.NONE:
        raise ApiError(found.error_code)
    if found.offset < 0:
        name = _NAMES.get(reset.kind, f"timestamp {timestamp}")
        raise ApiError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"Offset for {name} not found for topic partition: {partition.topic}-{partition.index}",
        )
    return found.offset


async def _looked_up(replicas: ReplicaManager, partition: Partition, timestamp: int) -> ListedOffset:
    budget = CheckBudget(TURN_UNITS)
    steps = partition.list_offset_steps(timestamp, FetchIsolation.HIGH_WATERMARK, budget)
    try:
        found: Job | ListedOffset | None = proceed(steps.__next__)
        if not isinstance(found, ListedOffset):
            found = await replicas.timestamp_lookups.finish(found, steps, budget, FairShare())
    except CorruptLog as damage:
        replicas.quarantine(partition, damage)
    except FileError as failure:
        replicas.failures.in_log(partition.log, failure)
    else:
        return found
    return ListedOffset(ErrorCode.KAFKA_STORAGE_ERROR)
