"""One voter of a quorum, whose peers are the test: what they ask of it, and what they answer it.

There is no world and no chance in it: a test says what each of the others says, also what they never should.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages import fetch
from pykbroker.protocol.messages.control_records import KRaftVersionRecord
from pykbroker.protocol.messages.fetch import FetchRequest, FetchResponse
from pykbroker.protocol.messages.quorum import VoteRequest
from pykbroker.protocol.schema import Message
from pykbroker.raft import wire
from pykbroker.raft.election_state import ElectionState
from pykbroker.raft.epochs import OffsetAndEpoch
from pykbroker.raft.events import OutgoingRequest, OutgoingResponse, RequestReceived, ResponseReceived
from pykbroker.raft.node import RaftNode, Role
from pykbroker.raft.replica import LocalReplica
from pykbroker.raft.snapshots import SnapshotId
from pykbroker.raft.voters import NO_DIRECTORY, Endpoint, ReplicaKey, Voter, VoterSet

from .memory_log import Batch, MemoryLog, MemorySnapshot

LISTENER = "CONTROLLER"
MOST_WAITS = 100


def directory_of(node_id: int) -> bytes:
    return bytes([node_id]) * 16


def static_voters(*node_ids: int) -> VoterSet:
    return VoterSet(Voter(node_id, f"host{node_id}", 9093) for node_id in node_ids)


def dynamic_voters(*node_ids: int) -> VoterSet:
    """As a VotersRecord has them, with directories."""
    return VoterSet(
        Voter(node_id, f"host{node_id}", 9093, directory_of(node_id), (endpoint_of(node_id),), (0, 1))
        for node_id in node_ids
    )


def endpoint_of(node_id: int) -> Endpoint:
    return Endpoint(LISTENER, f"host{node_id}", 9093)


def of_dynamic_quorum(*node_ids: int) -> OneVoter:
    """Node 1, where the voters stand in the log (KIP-853)."""
    log = MemoryLog()
    control = (KRaftVersionRecord(kraft_version=1), dynamic_voters(*node_ids).to_record())
    log.snapshots[SnapshotId(0, 0)] = MemorySnapshot((), control, b"")
    return OneVoter(VoterSet.unknown(), log=log, directory=directory_of(1))


class OneVoter:
    """Node 1. sent: its newest request to each of the others. responses: by token, not yet taken.

    durable_end_offset: what `advance` is told, where not everything is durable at once.
    """

    def __init__(
        self,
        voters: VoterSet,
        batches: Iterable[Batch] = (),
        *,
        epoch: int = 0,
        log: MemoryLog | None = None,
        directory: bytes | None = None,
    ) -> None:
        own = voters.get(1)
        if directory is None:
            directory = NO_DIRECTORY if own is None else own.directory_id
        replica = LocalReplica(1, directory, None, (endpoint_of(1),))
        self.log = log or MemoryLog(batches)
        self.node = RaftNode(replica, voters, ElectionState(max(epoch, self.log.last_epoch)), self.log, rng=Random(1))
        self.now_ms = 0
        self.sent: dict[int, OutgoingRequest] = {}
        self.responses: dict[int, OutgoingResponse] = {}
        self.durable_end_offset: int | None = None
        self._last_token = 0
        self.node.tick(0)
        self.carry_out()

    def carry_out(self) -> None:
        while ready := self.node.ready():
            self.sent |= {each.destination.node_id: each for each in ready.requests}
            self.responses |= {each.token: each for each in ready.responses}
            durable = self.node.log_end_offset if self.durable_end_offset is None else self.durable_end_offset
            self.node.advance(election=ready.election, durable_end_offset=durable)

    def wait(self) -> None:
        """Until something is due."""
        deadline_ms = self.node.next_deadline_ms(self.now_ms)
        assert deadline_ms is not None
        self.pass_time(max(deadline_ms - self.now_ms, 0))

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        self.node.tick(self.now_ms)
        self.carry_out()

    # What the others ask

    def ask(self, request: Message) -> Any:
        token = self.tell(request)
        self.carry_out()
        return self.responses.pop(token).response

    def tell(self, request: Message) -> int:
        """Returns the token of the response, which is not made yet."""
        self._last_token += 1
        version = request.__schema__.stable_versions.high
        self.node.step(RequestReceived(self._last_token, request, version, LISTENER), self.now_ms)
        return self._last_token

    def vote(
        self,
        candidate: int,
        epoch: int,
        end: tuple[int, int],
        *,
        directory: bytes = NO_DIRECTORY,
        pre_vote: bool = False,
    ) -> bool:
        """end: offset and epoch of the candidate's log."""
        partition = self.ask(vote_request(candidate, epoch, end, directory=directory, pre_vote=pre_vote))
        [answered] = partition.topics[0].partitions
        return bool(answered.vote_granted)

    def fetch(
        self, replica_id: int, offset: int, last_epoch: int, *, directory: bytes = NO_DIRECTORY
    ) -> fetch.PartitionData:
        """What the leader answers a replica whose log ends there."""
        response: FetchResponse = self.ask(self.fetch_request(replica_id, offset, last_epoch, directory=directory))
        [partition] = response.responses[0].partitions
        return partition

    def fetch_request(
        self, replica_id: int, offset: int, last_epoch: int, *, directory: bytes = NO_DIRECTORY
    ) -> FetchRequest:
        replica = LocalReplica(replica_id, directory)
        request = wire.fetch_request(replica, self.node.epoch, OffsetAndEpoch(offset, last_epoch), -1, 1 << 20)
        request.max_wait_ms = 0
        return request

    # What the others answer

    def answer(self, node_id: int, response: Message) -> None:
        self.step_answer(node_id, response)
        self.carry_out()

    def step_answer(self, node_id: int, response: Message) -> None:
        """Nothing is carried out yet."""
        self.node.step(ResponseReceived(self.sent.pop(node_id).request_id, response), self.now_ms)

    def grant(self, node_id: int) -> None:
        known = wire.Known(self.node.epoch, wire.NO_LEADER, None)
        self.answer(node_id, wire.vote_response(known, ErrorCode.NONE, granted=True))

    def lead(self) -> None:
        """Everybody who is asked elects it."""
        for _ in range(MOST_WAITS):
            if self.node.role is Role.LEADER:
                return
            asked = [each for each, sent in self.sent.items() if isinstance(sent.request, VoteRequest)]
            if asked:
                self.grant(asked[0])
            else:
                self.wait()
        raise AssertionError("it is never elected")

    def follow(self, leader_id: int, epoch: int) -> None:
        """That leader has told who leads; the Fetch to it is sent."""
        key = self.node._quorum.replica.key
        self.ask(wire.begin_quorum_epoch_request(LocalReplica(leader_id), key, epoch))
        assert self.node.role is Role.FOLLOWER

    def give(
        self,
        leader_id: int,
        batches: Sequence[Batch] = (),
        *,
        high_watermark: int = 0,
        diverging: tuple[int, int] | None = None,
    ) -> None:
        """The leader answers the Fetch: with batches, or with the epoch and its end offset where the logs part."""
        while leader_id not in self.sent:
            self.wait()
        self.hear(leader_id, batches, high_watermark=high_watermark, diverging=diverging)
        self.carry_out()

    def hear(
        self,
        leader_id: int,
        batches: Sequence[Batch] = (),
        *,
        high_watermark: int = 0,
        diverging: tuple[int, int] | None = None,
    ) -> None:
        """As `give`, and nothing is carried out yet."""
        known = wire.Known(self.node.epoch, leader_id, None)
        at = None if diverging is None else OffsetAndEpoch(diverging[1], diverging[0])
        response = wire.fetch_response(known, ErrorCode.NONE, high_watermark=high_watermark, diverging=at)
        response.responses[0].partitions[0].records = b"".join(each.data for each in batches)
        self.step_answer(leader_id, response)


def vote_request(
    candidate: int, epoch: int, end: tuple[int, int], *, directory: bytes = NO_DIRECTORY, pre_vote: bool = False
) -> VoteRequest:
    return wire.vote_request(
        LocalReplica(candidate, directory), ReplicaKey(-1), epoch, OffsetAndEpoch(*end), pre_vote=pre_vote
    )
