"""Which entries of leader epochs go when one contradicts them, and what is known of epochs that are not here."""

from __future__ import annotations

import pytest

from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.files.checkpoints import encode_checkpoint
from pykbroker.storage.segments.leader_epochs import EpochEntry, LeaderEpochs


@pytest.fixture
def epochs(disk: SimulatedDisk) -> LeaderEpochs:
    """Epoch 1 from offset 0 on, 3 from 10 on, 5 from 20 on."""
    epochs = LeaderEpochs(disk, "/data/leader-epoch-checkpoint")
    for epoch, start_offset in ((1, 0), (3, 10), (5, 20)):
        epochs.assign(epoch, start_offset)
    return epochs


@pytest.mark.parametrize(
    ("assigned", "left"),
    [
        (EpochEntry(7, 30), [(1, 0), (3, 10), (5, 20), (7, 30)]),
        (EpochEntry(7, 20), [(1, 0), (3, 10), (7, 20)]),  # nothing of epoch 5 can be there
        (EpochEntry(7, 15), [(1, 0), (3, 10), (7, 15)]),
        (EpochEntry(4, 30), [(1, 0), (3, 10), (4, 30)]),  # an epoch never goes back
        (EpochEntry(5, 25), [(1, 0), (3, 10), (5, 20)]),  # it has begun already
        (EpochEntry(7, 0), [(7, 0)]),
    ],
)
def test_entries_that_a_new_one_contradicts_go(
    epochs: LeaderEpochs, assigned: EpochEntry, left: list[tuple[int, int]]
) -> None:
    epochs.assign(*assigned)
    assert epochs.entries == left


@pytest.mark.parametrize(("end_offset", "left"), [(21, 3), (20, 2), (19, 2), (11, 2), (10, 1), (0, 0)])
def test_an_epoch_that_begins_where_the_log_ends_has_no_records(
    epochs: LeaderEpochs, end_offset: int, left: int
) -> None:
    epochs.truncate_from_end(end_offset)
    assert len(epochs.entries) == left


@pytest.mark.parametrize(
    ("requested", "answer"),
    [(-1, (-1, -1)), (0, (0, 0)), (1, (1, 10)), (2, (1, 10)), (4, (3, 20)), (5, (5, 99)), (6, (-1, -1))],
)
def test_where_an_epoch_ends(epochs: LeaderEpochs, requested: int, answer: tuple[int, int]) -> None:
    """Of an epoch that is newer than all here nobody can say that it ended (KIP-279)."""
    assert epochs.end_offset_for(requested, log_end_offset=99) == answer


@pytest.mark.parametrize("begun", [[], [EpochEntry(2, 0)]])
@pytest.mark.parametrize("torn", [b"0\n\x00", b"0\n1\n0 0"])
def test_a_file_that_a_power_cut_tore_in_front_of_the_first_record_is_written_anew(
    disk: SimulatedDisk, torn: bytes, begun: list[EpochEntry]
) -> None:
    """begun: the epochs that the replica has heard of since."""
    path = "/data/leader-epoch-checkpoint"
    disk.replace_file(path, torn)
    epochs = LeaderEpochs(disk, path)
    epochs.load(recovery_point=0)
    for entry in begun:
        epochs.assign(*entry)
    epochs.write(0)
    assert disk.read_file(path) == encode_checkpoint(begun)


def test_a_last_line_without_an_end_counts_where_the_file_was_made_durable(disk: SimulatedDisk) -> None:
    path = "/data/leader-epoch-checkpoint"
    disk.replace_file(path, b"0\n1\n3 0")
    epochs = LeaderEpochs(disk, path)
    epochs.load(recovery_point=7)
    assert epochs.entries == [(3, 0)]


def test_a_log_that_lost_all_its_records_has_a_durable_file(disk: SimulatedDisk) -> None:
    path = "/data/leader-epoch-checkpoint"
    epochs = LeaderEpochs(disk, path)
    epochs.begin_rebuild()
    epochs.write(7)
    written = disk.read_file(path)
    disk.crash()
    assert disk.read_file(path) == written
