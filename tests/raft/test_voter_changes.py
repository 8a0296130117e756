"""Who becomes a voter: a replica that is there, which is a node with the directory that it has now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.control_records import KRaftVersionRecord
from pykbroker.protocol.messages.voters import AddRaftVoterRequest, AddRaftVoterResponse, RemoveRaftVoterResponse
from pykbroker.protocol.schema import Message
from pykbroker.raft.leader_state import LeaderState
from pykbroker.raft.node import Role
from pykbroker.raft.replica import LocalReplica
from pykbroker.raft.snapshots import SnapshotId
from pykbroker.raft.voters import KRAFT_VERSIONS, Endpoint, Voter, VoterSet

from .invariants import Invariants
from .memory_log import MemorySnapshot
from .simulated_node import TIMEOUTS, SimulatedNode, directory_of
from .simulated_world import Faults, World
from .voter_dialogue import CLUSTER_ID, LISTENER
from .voter_scenarios import add_voter, remove_voter

MOST_STEPS = 10_000


def endpoint_of(node_id: int) -> Endpoint:
    return Endpoint(LISTENER, "localhost", node_id)


class Pair:
    """Node 1 is the one voter, node 2 observes. auto_join: and it asks to become one."""

    def __init__(self, *, auto_join: bool = False) -> None:
        self._auto_join = auto_join
        self.world = World(1, Faults(delay_ms=0.1))
        self._invariants = Invariants()
        own = Voter(1, "localhost", 1, directory_of(1), (endpoint_of(1),), KRAFT_VERSIONS)
        control: tuple[Message, ...] = (KRaftVersionRecord(kraft_version=1), VoterSet([own]).to_record())
        self._invariants.control = [(-1, message) for message in control]
        self.voter, self.observer = self._node(1), self._node(2)
        self.voter.log.snapshots[SnapshotId(0, 0)] = MemorySnapshot((), control, b"")
        self.voter.start()
        self.observer.start()

    def _node(self, node_id: int) -> SimulatedNode:
        replica = LocalReplica(
            node_id, directory_of(node_id), CLUSTER_ID, (endpoint_of(node_id),), auto_join=self._auto_join
        )
        node = SimulatedNode(self.world, self._invariants, replica, VoterSet.unknown())
        node.bootstrap = [endpoint_of(3 - node_id)]
        # Longer than a Fetch of a quiet log waits, as in Kafka.
        node.timeouts = replace(TIMEOUTS, request_ms=1000) if self._auto_join else TIMEOUTS
        self.world.nodes[node_id] = node
        return node

    def wait_until_observed(self) -> None:
        self._run_until(self._is_observed)

    def _is_observed(self) -> bool:
        assert self.voter.raft is not None
        leader = self.voter.raft.leader_state
        progress = leader.observers.get(self.observer.replica.key) if isinstance(leader, LeaderState) else None
        return progress is not None and progress.last_caught_up_ms is not None

    def wait(self, ms: float) -> None:
        end_ms = self.world.now_ms + ms
        self._run_until(lambda: self.world.now_ms >= end_ms)

    def leader_epoch(self) -> int:
        """Of node 1."""
        assert self.voter.raft is not None
        assert self.voter.raft.role is Role.LEADER
        return self.voter.raft.epoch

    def lose_disk_of_observer(self) -> None:
        self.observer.lose_disk()
        self.observer.start()

    def add(self, replica: LocalReplica) -> ErrorCode:
        request: AddRaftVoterRequest = add_voter(replica.node_id, replica.directory_id)
        answers: list[Message] = []
        self.voter.receive(request, 1, answers.append)
        self._run_until(lambda: bool(answers))
        [answer] = answers
        assert isinstance(answer, AddRaftVoterResponse)
        return ErrorCode(answer.error_code)

    def remove(self, replica: LocalReplica) -> ErrorCode:
        answers: list[Message] = []
        self.voter.receive(remove_voter(replica.node_id, replica.directory_id), 0, answers.append)
        self._run_until(lambda: bool(answers))
        [answer] = answers
        assert isinstance(answer, RemoveRaftVoterResponse)
        return ErrorCode(answer.error_code)

    def wait_for_voters(self, count: int) -> None:
        self._run_until(lambda: len(self.voters()) == count and self._is_committed())

    def _is_committed(self) -> bool:
        assert self.voter.raft is not None
        return self.voter.raft.high_watermark == self.voter.raft.log_end_offset

    def _run_until(self, is_done: Callable[[], bool]) -> None:
        for _ in range(MOST_STEPS):
            if is_done():
                return
            self.world.step()
        raise AssertionError("it does not come about")

    def voters(self) -> list[bytes]:
        assert self.voter.raft is not None
        return [each.directory_id for each in self.voter.raft.voters]


def test_an_observer_that_has_the_log_becomes_a_voter() -> None:
    pair = Pair()
    pair.wait_until_observed()
    assert pair.add(pair.observer.replica) == ErrorCode.NONE
    assert pair.voters() == [directory_of(1), pair.observer.replica.directory_id]


def test_a_directory_that_its_node_has_lost_does_not_become_a_voter() -> None:
    """Two voters need both: with one that is no more the quorum would be lost."""
    pair = Pair()
    pair.wait_until_observed()
    lost = pair.observer.replica
    pair.lose_disk_of_observer()
    pair.wait_until_observed()
    assert pair.add(lost) == ErrorCode.REQUEST_TIMED_OUT
    assert pair.voters() == [directory_of(1)]
    assert pair.add(pair.observer.replica) == ErrorCode.NONE
    assert pair.voters() == [directory_of(1), pair.observer.replica.directory_id]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_voter_that_was_removed_does_not_join_again_by_itself(is_restarted: bool) -> None:
    """KAFKA-19850: with `controller.quorum.auto.join.enable` a new controller becomes a voter once."""
    pair = Pair(auto_join=True)
    pair.wait_for_voters(2)
    assert pair.remove(pair.observer.replica) == ErrorCode.NONE
    assert pair.voters() == [directory_of(1)]
    pair.wait_until_observed()
    if is_restarted:
        pair.observer.crash()
        pair.observer.start()
    pair.wait(20 * TIMEOUTS.fetch_ms)
    assert pair.voters() == [directory_of(1)]
    assert pair.add(pair.observer.replica) == ErrorCode.NONE, "as somebody wants it"


def test_another_directory_of_a_voter_that_was_removed_joins() -> None:
    pair = Pair(auto_join=True)
    pair.wait_for_voters(2)
    assert pair.remove(pair.observer.replica) == ErrorCode.NONE
    pair.lose_disk_of_observer()
    pair.wait_for_voters(2)
    assert pair.voters() == [directory_of(1), pair.observer.replica.directory_id]


def test_a_lone_leader_leads_on_when_there_is_a_second_voter() -> None:
    """It needed nobody so far, however long that was: the time in which it must hear of the other begins now."""
    pair = Pair()
    pair.wait_until_observed()
    pair.wait(2 * TIMEOUTS.check_quorum_ms)
    epoch = pair.leader_epoch()
    assert pair.add(pair.observer.replica) == ErrorCode.NONE
    pair.wait(2 * TIMEOUTS.check_quorum_ms)
    assert pair.leader_epoch() == epoch
