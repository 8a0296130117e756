"""Truncations of partitions, all steps at once."""

from pykbroker.replication.partition import Partition
from tests.storage.batches import NOW_MS


def truncate(partition: Partition, offset: int) -> None:
    truncation = partition.begin_truncation(offset)
    assert truncation is not None, f"the log ends at {partition.log.log_end_offset}"
    truncation.run()


def begin_anew(partition: Partition, offset: int) -> None:
    partition.begin_anew(offset, NOW_MS).run()
    partition.begun_anew()
