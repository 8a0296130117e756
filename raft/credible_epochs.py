"""Rules for the epochs that a peer can have reached: epochs are finite, and without any left there are no elections.

An epoch is an int32, each election takes the next one, and nobody goes back. So a single message with the last of them
would end a quorum for good, if it were believed. How far an epoch may be ahead depends on who says it:

- Asked by anybody (Vote, BeginQuorumEpoch, EndQuorumEpoch, and Fetch by who is no voter): ahead of the last record in
  the log, which only a leader that was elected adds to, by what elections without any result can use up; or ahead of
  the own epoch by a few. The distance is from the log, so that many small steps get no farther than one large one;
  and where a leader is elected after each large step, they go no faster together than elections do.
- Told by a peer that this node asked itself, at a configured address or at the leader's: up to half of what is left.
  A node that was away for however long, or begins with an empty directory, learns its epoch that way; its own
  pre-votes are answered with it even where nobody leads.
- Stored in `quorum-state`: as from a peer. What is beyond was taken over before this rule stood. The node begins again
  at the farthest epoch that it can have voted in, without a vote left in it: nobody gets a second vote of an epoch. A
  broker alone never votes, and begins at its log's.

What is not believed is answered with INVALID_REQUEST, a Fetch with UNKNOWN_LEADER_EPOCH, and changes nothing.
FetchSnapshot, UpdateRaftVoter and a voter's Fetch with an epoch ahead never change the epoch of who is asked.
"""

from __future__ import annotations

from .election_state import ElectionState
from .replica import LocalReplica

LAST_EPOCH = 2**31 - 1
"""No election can follow in it."""

UNDECIDED_ELECTIONS = 2**16
"""So many epochs may pass without one whose leader gets a record to this node: those of two hours."""

ELECTIONS_PER_SECOND = 10

A_FEW = 16
"""Elections that a node may have missed which is far ahead of its log already."""


class RequestedEpochs:
    """The epochs that requests may take a node ahead: no more than elections can have used up since the last time."""

    def __init__(self) -> None:
        self._left = float(UNDECIDED_ELECTIONS)
        self._counted_ms = 0

    def take(self, epoch: int, *, own: int, last_written: int, now_ms: int) -> bool:
        """Tell whether a requester can have reached `epoch`; a large step counts against the next one.

        own: the epoch of the node that is asked. last_written: the epoch of the last record in its log.
        """
        if epoch <= own + A_FEW:
            return True
        passed = (now_ms - self._counted_ms) * ELECTIONS_PER_SECOND / 1000
        left = min(self._left + passed, UNDECIDED_ELECTIONS) - (epoch - own)
        if epoch > min(last_written + UNDECIDED_ELECTIONS, _half_way(last_written)) or left < 0:
            return False
        self._left, self._counted_ms = left, now_ms
        return True


def is_credible_answer(epoch: int, *, own: int, last_written: int) -> bool:
    return epoch <= max(_half_way(last_written), own + A_FEW)


def credible_election(stored: ElectionState, replica: LocalReplica, last_written: int) -> ElectionState:
    """Return the election state with which a node begins: the stored one, if its epoch is credible."""
    if is_credible_answer(stored.epoch, own=last_written, last_written=last_written):
        return stored
    if not replica.may_vote:
        return ElectionState(last_written)
    epoch = min(last_written + UNDECIDED_ELECTIONS, LAST_EPOCH)
    return ElectionState(epoch, voted_id=replica.node_id, voted_directory_id=replica.directory_id)


def _half_way(last_written: int) -> int:
    return last_written + (LAST_EPOCH - last_written) // 2
