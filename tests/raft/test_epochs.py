"""What a member of the quorum knows of epochs whose records its log has let go."""

from __future__ import annotations

import pytest

from pykbroker.raft.epochs import EpochChain
from pykbroker.raft.snapshots import SnapshotId

from .memory_log import MemoryLog, MemorySnapshot, batch_of
from .one_voter import OneVoter, static_voters

EPOCHS = (1, 1, 3, 3, 3, 4, 9)
"""Of the records of a log, by offset."""


def log_of_epochs() -> MemoryLog:
    return MemoryLog([batch_of([str(at)], base_offset=at, epoch=epoch) for at, epoch in enumerate(EPOCHS)])


def let_go(log: MemoryLog, end_offset: int) -> None:
    covered = SnapshotId(end_offset, EPOCHS[end_offset - 1])
    log.snapshots[covered] = MemorySnapshot((), (), b"some bytes")
    log.let_go(covered)


@pytest.mark.parametrize("first", range(1, len(EPOCHS) + 1))
def test_a_chain_whose_log_moves_on_is_that_of_a_start(first: int) -> None:
    """The log may move on several times."""
    log = log_of_epochs()
    chain = EpochChain.of_log(log)
    for end_offset in range(first, len(EPOCHS) + 1):
        let_go(log, end_offset)
        chain.forget_before(log.start_offset)
        assert vars(chain) == vars(EpochChain.of_log(log))


def test_a_log_that_begins_behind_a_chain_is_that_of_a_snapshot_which_raft_is_still_to_hear_of() -> None:
    chain = EpochChain.of_log(log_of_epochs())
    known = dict(vars(chain))
    chain.forget_before(len(EPOCHS) + 1)
    assert vars(chain) == known


def test_a_voter_keeps_no_epochs_of_before_its_log() -> None:
    """Whole-cluster seed 533910: fourteen elections, of which a start knew two."""
    voter = OneVoter(static_voters(1, 2, 3), log=log_of_epochs())
    let_go(voter.log, 6)
    voter.follow(2, 10)
    assert vars(voter.node._quorum.epochs) == vars(EpochChain.of_log(voter.log))
