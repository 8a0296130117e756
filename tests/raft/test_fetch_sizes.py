"""`controller.quorum.fetch.max.bytes` and `controller.quorum.fetch.snapshot.max.bytes`."""

from __future__ import annotations

from random import Random

from pykbroker.protocol.messages import fetch
from pykbroker.protocol.messages.quorum import FetchSnapshotRequest
from pykbroker.protocol.uuids import METADATA_TOPIC_ID
from pykbroker.raft.election_state import ElectionState
from pykbroker.raft.events import OutgoingRequest, RequestReceived, ResponseReceived
from pykbroker.raft.fetch_sizes import FetchSizes
from pykbroker.raft.node import RaftNode
from pykbroker.raft.replica import LocalReplica

from .memory_log import MemoryLog
from .test_elections import VOTERS
from .voter_scenarios import begin


def requests(node: RaftNode) -> list[OutgoingRequest]:
    ready = node.ready()
    node.advance(election=ready.election, durable_end_offset=0)
    return [*ready.requests]


def test_a_follower_asks_for_as_much_as_it_is_told_to() -> None:
    sizes = FetchSizes(fetch_max_bytes=1234, snapshot_max_bytes=567)
    node = RaftNode(LocalReplica(1), VOTERS, ElectionState(0), MemoryLog(), rng=Random(1), sizes=sizes)
    node.step(RequestReceived(1, begin(1), 1), 0)
    [asked] = requests(node)
    assert isinstance(asked.request, fetch.FetchRequest)
    assert asked.request.max_bytes == 1234
    partition = fetch.PartitionData(
        current_leader=fetch.LeaderIdAndEpoch(leader_id=2, leader_epoch=1),
        snapshot_id=fetch.SnapshotId(end_offset=10, epoch=1),
    )
    topic = fetch.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[partition])
    node.step(ResponseReceived(asked.request_id, fetch.FetchResponse(responses=[topic])), 10)
    [asked] = requests(node)
    assert isinstance(asked.request, FetchSnapshotRequest)
    assert asked.request.max_bytes == 567
