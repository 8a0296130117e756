"""Our voter answers what Apache Kafka's answers, code by code; where it does not, the reason stands here.

`record_conversations` writes what Kafka's says; with PYKBROKER_REWRITE=1 the answers of ours that differ are written
anew. Read the diff before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pykbroker.protocol.messages.control_records import KRaftVersionRecord
from pykbroker.protocol.schema import Message
from pykbroker.raft.node import RaftNode, Role
from pykbroker.raft.replica import LocalReplica
from pykbroker.raft.snapshots import SnapshotId
from pykbroker.raft.timeouts import Timeouts
from pykbroker.raft.voters import KRAFT_VERSIONS, Endpoint, Voter, VoterSet

from .invariants import Invariants
from .memory_log import MemorySnapshot
from .simulated_node import SimulatedNode
from .simulated_world import Faults, World, through_the_wire
from .voter_dialogue import CLUSTER_ID, LISTENER, NODE_ID, QUIET_MS, REQUEST_TIMEOUT_MS, Dialogue
from .voter_scenarios import SCENARIOS, SITUATIONS, Situation

CONVERSATIONS = Path(__file__).parent / "conversations"
PATIENCE_MS = 10_000

DIFFERENCES = {
    "fetch from the start, of version 12": "Before version 13 it names the topic, which Kafka looks at no more.",
    "snapshot": "Kafka's answers with an error lack the piece, which can't be null: UNKNOWN_SERVER_ERROR is left. "
    "It does not answer at all where there is no topic or no partition.",
    "begin, another leads": "Kafka's process ends where somebody else says that he leads the same epoch.",
    "end, another leads": "The same.",
    "begin of epoch 8 by another leader": "The same.",
    "end of epoch 8 by another leader": "The same.",
    "fetch with the wrong directory": "Kafka fails where a replica with its own node id fetches.",
    "begin of epoch 10 for another node": "Kafka tells where the leader is as the leader told; ours as the voters say.",
}
"""By what the requests are called, or how that begins: why ours answers something else."""


class OurVoter:
    """In a world of its own, in which nobody else is up."""

    directory_id = b"\xd1" * 16

    def __init__(self, situation: Situation) -> None:
        self.ports = {node: 9092 + node for node in (NODE_ID, *situation.others)}
        self._world = World(1, Faults(delay_ms=0.1))
        endpoint = Endpoint(LISTENER, "127.0.0.1", self.ports[NODE_ID])
        replica = LocalReplica(NODE_ID, self.directory_id, CLUSTER_ID, (endpoint,))
        if situation.is_dynamic:
            own = Voter(NODE_ID, endpoint.host, endpoint.port, self.directory_id, (endpoint,), KRAFT_VERSIONS)
            voters = VoterSet([own])
        else:
            voters = VoterSet(Voter(node, "127.0.0.1", port) for node, port in self.ports.items())
        configured = VoterSet.unknown() if situation.is_dynamic else voters
        self._node = node = SimulatedNode(self._world, Invariants(), replica, configured)
        node.timeouts = Timeouts(election_ms=QUIET_MS, fetch_ms=QUIET_MS, request_ms=REQUEST_TIMEOUT_MS)
        if situation.is_dynamic:
            control = (KRaftVersionRecord(kraft_version=1), voters.to_record())
            node.log.snapshots[SnapshotId(0, 0)] = MemorySnapshot((), control, b"")
            node.invariants.control = [(-1, message) for message in control]
        self._start(leads=not situation.others)
        if situation.is_restarted:
            node.crash()
            self._start(leads=True)
        if situation.has_snapshots:
            node.take_snapshot()

    def _start(self, *, leads: bool) -> None:
        self._node.start()
        raft = self._node.raft
        assert raft is not None
        if leads:
            while raft.role is not Role.LEADER or not raft.high_watermark:
                assert self._world.step()
            self._write()

    def _write(self) -> None:
        raft = self._node.raft
        assert raft is not None
        for value in range(10):
            while not self._node.propose(f"{raft.epoch}-{value}"):
                assert self._world.step()
        while raft.high_watermark < raft.log_end_offset:
            assert self._world.step()

    def ask(self, request: Message, version: int) -> Message:
        answers: list[Message] = []
        self._node.receive(request, version, answers.append)
        end_ms = self._world.now_ms + PATIENCE_MS
        while not answers and self._world.now_ms < end_ms:
            assert self._world.step(), f"no answer to {request}"
        return through_the_wire(answers[0], version)

    @property
    def raft(self) -> RaftNode:
        assert self._node.raft is not None
        return self._node.raft

    @property
    def now_ms(self) -> int:
        return self._node.now_ms

    def status(self) -> tuple[Role, int, int, int]:
        return self.raft.role, self.raft.epoch, self.raft.log_end_offset, self.raft.high_watermark

    def wait(self, ms: int) -> None:
        end_ms = self._world.now_ms + ms
        self._world.at(ms, lambda: None)
        while self._world.now_ms < end_ms:
            assert self._world.step()

    def ends_of_epochs(self) -> dict[int, int]:
        covered = self._node.log.latest_snapshot_id
        ends = {covered.epoch: covered.end_offset} if covered is not None and covered.end_offset else {}
        return ends | {batch.epoch: batch.next_offset for batch in self._node.log.batches}

    def latest_snapshot(self) -> SnapshotId | None:
        latest = self._node.log.latest_snapshot_id
        return latest if latest is not None and latest.end_offset else None


def conversation(name: str, recorded: str) -> tuple[str, list[str]]:
    """The recorded one, with a line of what ours answers where that differs; and where it does."""
    scenario = SCENARIOS[name]
    talk = Dialogue(OurVoter(SITUATIONS[scenario]))
    scenario(talk)
    blocks, differing = [], []
    for block in recorded.strip().split("\n\n"):
        title, asked, answered = block.split("\n")[:3]
        ours = talk.answers.pop(title.removeprefix("# "))
        lines = [title, asked, answered]
        if f"< {ours}" != answered:
            lines.append(f"= {ours}")
            differing.append(title.removeprefix("# "))
        blocks.append("\n".join(lines))
    assert not talk.answers, f"not recorded: {list(talk.answers)}"
    return "\n\n".join(blocks) + "\n", differing


@pytest.mark.parametrize("name", SCENARIOS)
def test_our_voter_answers_as_kafkas_does(name: str) -> None:
    path = CONVERSATIONS / f"{name}.txt"
    recorded = path.read_text()
    told, differing = conversation(name, recorded)
    if os.environ.get("PYKBROKER_REWRITE"):
        path.write_text(told)
    assert told == recorded
    unexplained = [title for title in differing if not any(map(title.startswith, DIFFERENCES))]
    assert not unexplained
