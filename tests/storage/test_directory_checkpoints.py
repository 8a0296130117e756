"""High watermarks that somebody found out before a truncation, and writes behind it; and what needs no write."""

from __future__ import annotations

import pytest

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.directories.directory_checkpoints import DirectoryCheckpoints

ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def checkpoints(disk: SimulatedDisk) -> DirectoryCheckpoints:
    checkpoints = DirectoryCheckpoints.read(disk, "/data")
    checkpoints.write_high_watermarks({ONE: 10, OTHER: 10}, (), checkpoints.lowerings)
    return checkpoints


def written(disk: SimulatedDisk) -> tuple[int, int]:
    found = DirectoryCheckpoints.read(disk, "/data").high_watermarks
    return found[ONE], found[OTHER]


def test_what_was_found_out_before_a_truncation_counts_for_the_other_logs_alone(
    disk: SimulatedDisk, checkpoints: DirectoryCheckpoints
) -> None:
    found, lowerings = {ONE: 12, OTHER: 12}, checkpoints.lowerings
    checkpoints.lower(ONE, 7)
    assert written(disk) == (7, 10)
    checkpoints.write_high_watermarks(found, (), lowerings)
    assert written(disk) == (7, 12)


def test_what_was_found_out_behind_a_truncation_counts(disk: SimulatedDisk, checkpoints: DirectoryCheckpoints) -> None:
    checkpoints.lower(ONE, 7)
    checkpoints.write_high_watermarks({ONE: 9, OTHER: 12}, (), checkpoints.lowerings)
    assert written(disk) == (9, 12)


def test_of_several_truncations_each_counts_for_its_log(disk: SimulatedDisk, checkpoints: DirectoryCheckpoints) -> None:
    checkpoints.lower(ONE, 7)
    found, lowerings = {ONE: 8, OTHER: 12}, checkpoints.lowerings
    checkpoints.lower(OTHER, 3)
    checkpoints.write_high_watermarks(found, (), lowerings)
    assert written(disk) == (8, 3)


def test_truncations_of_deleted_logs_are_forgotten(disk: SimulatedDisk, checkpoints: DirectoryCheckpoints) -> None:
    """Whole-cluster seed 535259; of the logs that are there the latest one counts on."""
    deleted = [TopicPartition("deleted", partition) for partition in range(100)]
    lowerings = checkpoints.lowerings
    for at in (*deleted, ONE):
        checkpoints.lower(at, 7)
    checkpoints.forget_others_in_files({ONE, OTHER})
    assert list(checkpoints._lowered) == [ONE]
    checkpoints.write_high_watermarks({ONE: 9, OTHER: 12}, (), lowerings)
    assert written(disk) == (7, 12)


def test_a_log_that_will_begin_at_offset_0_needs_no_checkpoint(
    disk: SimulatedDisk, checkpoints: DirectoryCheckpoints
) -> None:
    path = "/data/log-start-offset-checkpoint"
    checkpoints.write_log_start_offset(ONE, 0, lambda: True)
    assert disk.read_file(path) == b""
    checkpoints.write_log_start_offset(ONE, 5, lambda: True)
    checkpoints.write_log_start_offset(OTHER, 0, lambda: True)
    assert disk.read_file(path) == b"0\n1\nt 0 5\n"
    checkpoints.write_log_start_offset(ONE, 0, lambda: True)
    assert disk.read_file(path) == b"0\n1\nt 0 0\n"
