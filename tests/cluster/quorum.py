"""What must be true of the metadata quorum in every run: clients may never notice that it is not.

One leader in an epoch, and who is elected has all that any node took for committed (the names are those of Kafka's
`RaftEventSimulationTest`; `tests.raft` checks more, of simulated voters alone).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from pykbroker.raft.epochs import OffsetAndEpoch
from pykbroker.raft.leader_state import LeaderState
from pykbroker.raft.node import RaftNode
from pykbroker.raft.quorum_state import QuorumState


class Quorum:
    """committed: where the last record ends that any node took for committed, and its epoch."""

    def __init__(self) -> None:
        self.leaders: dict[int, int] = {}
        self.committed = OffsetAndEpoch(0, 0)

    def elected(self, node: QuorumState) -> None:
        node_id, wanted = node.replica.node_id, self.committed
        first = self.leaders.setdefault(node.epoch, node_id)
        assert first == node_id, f"SingleLeader: nodes {first} and {node_id} lead epoch {node.epoch}"
        held = OffsetAndEpoch(min(node.epochs.end_offset, wanted.offset), node.epochs.epoch_before(wanted.offset))
        assert held == wanted, (
            f"LeaderCompleteness: the leader of epoch {node.epoch}, node {node_id}, lacks what is committed: "
            f"{held} instead of {wanted}"
        )

    def advanced(self, node: RaftNode) -> None:
        offset = node.high_watermark
        if offset > self.committed.offset:
            self.committed = OffsetAndEpoch(offset, node._quorum.epochs.epoch_before(offset))


@contextmanager
def safe_quorum() -> Iterator[None]:
    """While it lasts each node's raft fails where it breaks a rule."""
    quorum = Quorum()
    become_leader, advance = QuorumState.become_leader, RaftNode.advance

    def become_a_good_one(self: QuorumState) -> LeaderState:
        leader = become_leader(self)
        quorum.elected(self)
        return leader

    def advance_and_tell(self: RaftNode, **carried_out: Any) -> int:
        high_watermark = advance(self, **carried_out)
        quorum.advanced(self)
        return high_watermark

    with (
        patch.object(QuorumState, "become_leader", become_a_good_one),
        patch.object(RaftNode, "advance", advance_and_tell),
    ):
        yield
