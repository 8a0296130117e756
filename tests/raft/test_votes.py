"""To whom a voter gives its vote, whatever it is told: the rules of Raft's elections one by one (§5.2, §5.4.1)."""

from __future__ import annotations

import pytest

from pykbroker.raft.node import Role
from pykbroker.raft.voters import NO_DIRECTORY

from .memory_log import batch_of
from .one_voter import OneVoter, directory_of, dynamic_voters, static_voters

THREE = static_voters(1, 2, 3)
OF_EPOCH_3 = batch_of(["a", "b"], base_offset=0, epoch=3)


@pytest.mark.parametrize(
    ("end", "granted"),
    [
        ((100, 2), False),  # longer, and of an earlier epoch: what epoch 3 has committed may be missing
        ((1, 3), False),
        ((2, 3), True),
        ((3, 3), True),
        ((1, 4), True),  # shorter, and of a later epoch: whatever is missing was never committed
    ],
)
def test_the_epoch_of_the_last_record_counts_before_the_length(end: tuple[int, int], granted: bool) -> None:
    assert OneVoter(THREE, [OF_EPOCH_3]).vote(2, epoch=9, end=end) is granted
    assert OneVoter(THREE, [OF_EPOCH_3]).vote(2, epoch=9, end=end, pre_vote=True) is granted


def test_an_epoch_has_one_vote() -> None:
    voter = OneVoter(THREE)
    assert voter.vote(2, epoch=5, end=(0, 0))
    assert not voter.vote(3, epoch=5, end=(0, 0))
    assert voter.vote(2, epoch=5, end=(0, 0)), "the answer may have been lost"
    assert voter.vote(3, epoch=6, end=(0, 0))


def test_a_vote_for_a_node_is_for_the_directory_that_it_had() -> None:
    """A node that lost its disk is another replica, and may not have what it had when it was voted for."""
    voter = OneVoter(dynamic_voters(1, 2, 3))
    assert voter.vote(2, epoch=5, end=(0, 0), directory=directory_of(2))
    assert not voter.vote(2, epoch=5, end=(0, 0), directory=directory_of(9))
    assert voter.vote(2, epoch=5, end=(0, 0), directory=directory_of(2))


def test_an_epoch_whose_leader_is_known_has_no_vote_left() -> None:
    """Also where that leader is silent: its followers have what it committed in this epoch."""
    voter = OneVoter(THREE)
    voter.follow(2, epoch=5)
    while voter.node.role is not Role.PROSPECTIVE:
        voter.wait()
    assert (voter.node.epoch, voter.node.leader_id) == (5, 2)
    assert not voter.vote(3, epoch=5, end=(0, 0))
    assert voter.vote(3, epoch=6, end=(0, 0))


def test_a_candidate_of_static_voters_needs_no_directory() -> None:
    voter = OneVoter(THREE)
    assert voter.vote(2, epoch=5, end=(0, 0), directory=directory_of(2))
    assert voter.vote(3, epoch=6, end=(0, 0), directory=NO_DIRECTORY)
