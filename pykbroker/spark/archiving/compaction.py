"""Small files of a topic and a date become larger ones, in tiers: each record is written anew a few times at most.

A tier has the files whose sizes are within a factor of four. Where there are eight of them, four or more each become
one of the next tiers, up to the target size, so that a record moves once per tier; each core merges some. A commit
removes them and adds what they became; the checksums of each partition stay what they were.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING

from ..errors import ArchiveDamaged
from ..progress import Listener
from .batches import IN_FILES, write_files
from .manifest import ArchivedFile, ArchiveState, Commit, Share
from .options import ArchiveOptions
from .store import ArchiveStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIER_FACTOR = 4
FILES_OF_A_TIER = 8
_SMALLEST_TIER_BYTES = 64 << 10


def compact(
    spark: SparkSession,
    store: ArchiveStore,
    state: ArchiveState,
    options: ArchiveOptions,
    run_id: str,
    listener: Listener,
) -> ArchiveState:
    """Merge what is due, a commit for each group; the state behind the last one."""
    while group := next_group(state.files.values(), options.target_file_bytes):
        state = _merge(spark, store, state, options, run_id, group)
        listener.say(f"Merged {len(group)} files of {group[0].directory}")
    return state


def next_group(files: Iterable[ArchivedFile], target_bytes: int) -> Sequence[ArchivedFile]:
    """The files to be merged next, of one directory; none where nothing is due."""
    tiers: dict[tuple[str, int], list[ArchivedFile]] = {}
    for file in files:
        if file.file_bytes <= target_bytes // 2:
            tiers.setdefault((file.directory, _tier(file.file_bytes)), []).append(file)
    for group in tiers.values():
        if len(group) >= FILES_OF_A_TIER:
            return _up_to(group, target_bytes)
    return ()


def shared_out(group: Sequence[ArchivedFile], tasks: int) -> list[Sequence[ArchivedFile]]:
    """The files of each task, each of which makes one of them; fewer tasks where some would have less than four."""
    count = max(1, min(tasks, len(group) // TIER_FACTOR))
    bounds = [number * len(group) // count for number in range(count + 1)]
    return [group[start:end] for start, end in pairwise(bounds)]


def _tier(size: int) -> int:
    return max(0, math.floor(math.log(max(size, 1) / _SMALLEST_TIER_BYTES, TIER_FACTOR)))


def _up_to(group: Sequence[ArchivedFile], target_bytes: int) -> Sequence[ArchivedFile]:
    taken: list[ArchivedFile] = []
    size = 0
    for file in sorted(group, key=lambda each: each.path):
        if len(taken) >= 2 and size + file.file_bytes > target_bytes:
            break
        taken.append(file)
        size += file.file_bytes
    return taken


def _merge(
    spark: SparkSession,
    store: ArchiveStore,
    state: ArchiveState,
    options: ArchiveOptions,
    run_id: str,
    group: Sequence[ArchivedFile],
) -> ArchiveState:
    from pyspark.sql.functions import lit

    directory = store.directory
    staging = store.staging(state, run_id)
    frames = [
        spark.read.schema(IN_FILES)
        .parquet(*(directory.uri(file.path) for file in files))
        .coalesce(1)
        .sortWithinPartitions("partition", "offset")
        for files in shared_out(group, spark.sparkContext.defaultParallelism)
    ]
    frame = reduce(lambda one, other: one.union(other), frames).withColumn("topic", lit(group[0].topic))
    added = write_files(frame, directory, staging, options.codec)
    if _totals(added) != _totals(group):
        raise ArchiveDamaged(f"The files of {group[0].directory} are not what the manifest says")
    assert state.cluster_id is not None
    assert state.isolation_level is not None
    commit = Commit(
        number=state.number + 1,
        at_ms=time.time_ns() // 1_000_000,
        cluster_id=state.cluster_id,
        isolation_level=state.isolation_level,
        staging=staging,
        topic_ids={},
        reads={},
        added=added,
        removed=tuple(file.path for file in group),
    )
    return store.commit(state, commit)


def _totals(files: Iterable[ArchivedFile]) -> dict[int, Share]:
    totals: dict[int, Share] = {}
    for file in files:
        for partition, share in file.shares.items():
            totals[partition] = totals[partition].plus(share) if partition in totals else share
    return totals
