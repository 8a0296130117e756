"""A voter on its log whose records were cut off by another leader: what it has forgotten of them, and what not."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pytest
import trio

from pykbroker.long_work import whole
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchRequest
from pykbroker.protocol.messages.metadata_records import TopicRecord
from pykbroker.protocol.messages.quorum import VoteRequest
from pykbroker.protocol.schema import Message
from pykbroker.raft import wire
from pykbroker.raft.epochs import OffsetAndEpoch
from pykbroker.raft.events import OutgoingRequest, RequestFailed, ResponseReceived
from pykbroker.raft.node import RaftNode, Role
from pykbroker.raft.replica import LocalReplica
from pykbroker.raft.voters import Voter, VoterSet
from pykbroker.server.network.node_connections import NodeConnections
from pykbroker.server.quorum.encoded_records import EncodedRecords, encode_records
from pykbroker.server.quorum.metadata_log import MetadataLog
from pykbroker.server.quorum.raft_channel import RaftChannel
from pykbroker.server.quorum.raft_driver import RaftDriver
from pykbroker.server.runtime.threads import OnTheLoop
from pykbroker.sim.clock import SimulatedClock
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.sim.network import SimulatedNetwork
from pykbroker.storage.segments.log_config import LogConfig

DIRECTORY = "/data/__cluster_metadata-0"
OTHER = 2
VOTERS = VoterSet(Voter(node_id, f"host{node_id}", 9093) for node_id in (1, OTHER, 3))


def named(*names: str) -> EncodedRecords:
    return whole(encode_records([TopicRecord(name=name, topic_id=bytes(16)) for name in names], 0))


def names(records: Iterable[tuple[int, Message]]) -> list[str]:
    return [message.name for _, message in records if isinstance(message, TopicRecord)]


class Peers(RaftChannel):
    """The others grant every vote and never fetch, until the second one leads.

    answers: what it says to one Fetch after the other then. fetched: from which offsets it was asked for these.
    """

    def __init__(self) -> None:
        super().__init__(NodeConnections(SimulatedNetwork(random.Random(1)), client_id="test", request_timeout_ms=1000))
        self.answers: list[Message] | None = None
        self.fetched: list[int] = []
        self.are_all_given = trio.Event()

    async def ask(self, outgoing: OutgoingRequest) -> ResponseReceived | RequestFailed:
        request = outgoing.request
        if isinstance(request, VoteRequest):
            known = wire.Known(request.topics[0].partitions[0].replica_epoch, wire.NO_LEADER, None)
            return ResponseReceived(outgoing.request_id, wire.vote_response(known, ErrorCode.NONE, granted=True))
        if not isinstance(request, FetchRequest) or self.answers is None:
            await trio.sleep(0.1)
            return RequestFailed(outgoing.request_id)
        self.fetched.append(request.topics[0].partitions[0].fetch_offset)
        if not self.answers:
            self.are_all_given.set()
            await trio.sleep_forever()
        return ResponseReceived(outgoing.request_id, self.answers.pop(0))


def fetch_response(
    epoch: int, records: Sequence[bytes] = (), *, high_watermark: int, diverging: OffsetAndEpoch | None = None
) -> Message:
    known = wire.Known(epoch, OTHER, None)
    response = wire.fetch_response(known, ErrorCode.NONE, high_watermark=high_watermark, diverging=diverging)
    response.responses[0].partitions[0].records = b"".join(records)
    return response


@pytest.mark.parametrize("seed", range(5))
def test_records_that_take_the_place_of_truncated_ones_are_flushed_and_committed(seed: int) -> None:
    """Node 1 led and had two topics on its disk that nobody else has; the next leader has another one in their place,
    which is on the disk before it is told of.
    """
    disk = SimulatedDisk(random.Random(seed))
    disk.make_directory("/data")
    disk.sync_directory("/")

    async def run() -> None:
        log = MetadataLog.open(disk, DIRECTORY, LogConfig(), clean_shutdown=False, now_ms=0)
        node = RaftNode(LocalReplica(1), VOTERS, log.read_election([1, 2, 3]), log, rng=random.Random(seed))
        peers = Peers()
        driver = RaftDriver(node, log, peers, clock=SimulatedClock(), threads=OnTheLoop())
        async with trio.open_nursery() as nursery:
            await nursery.start(driver.run)
            while driver.role is not Role.LEADER:  # noqa: ASYNC110 - what is waited for has no event
                await trio.sleep(0.1)
            for name in ("lost", "lost too"):
                driver.propose(named(name))
            await trio.sleep(0.1)
            epoch = driver.epoch + 1
            peers.answers = [
                fetch_response(epoch, high_watermark=0, diverging=OffsetAndEpoch(1, driver.epoch)),
                fetch_response(epoch, [named("kept").batch(1, epoch)], high_watermark=0),
                fetch_response(epoch, high_watermark=2),
            ]
            begin = wire.begin_quorum_epoch_request(LocalReplica(OTHER), node._quorum.replica.key, epoch)
            await driver.answer(begin, 1, "CONTROLLER")
            await peers.are_all_given.wait()
            assert peers.fetched == [3, 1, 2, 2]
            assert names(each for batch in driver.committed(1) for each in batch.records) == ["kept"]
            disk.crash()
            nursery.cancel_scope.cancel()

    run_deterministic(run, seed=seed)
    log = MetadataLog.open(disk, DIRECTORY, LogConfig(), clean_shutdown=False, now_ms=0)
    assert names(log.read()) == ["kept"]
