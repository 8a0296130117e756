"""DescribeQuorum on the leader: which replicas it names, and with which directories."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from pykbroker.raft.leader_state import LeaderState
from pykbroker.raft.timeouts import Timeouts
from pykbroker.raft.voters import NO_DIRECTORY, ReplicaKey, Voter, VoterSet
from pykbroker.server.quorum.quorum_description import describe_quorum
from tests.api.api_node import VirtualClock

LEADER, FOLLOWER, OBSERVER = ReplicaKey(1, b"1" * 16), ReplicaKey(2, b"2" * 16), ReplicaKey(3, b"3" * 16)


@pytest.mark.parametrize(
    ("kraft_version", "directories"),
    [(0, [NO_DIRECTORY, NO_DIRECTORY]), (1, [LEADER.directory_id, FOLLOWER.directory_id])],
)
def test_static_voters_have_no_directory_though_they_fetch_with_one(
    kraft_version: int, directories: list[bytes]
) -> None:
    named = [key if kraft_version else ReplicaKey(key.node_id) for key in (LEADER, FOLLOWER)]
    voters = VoterSet(Voter(key.node_id, "localhost", 9093, key.directory_id) for key in named)
    leader = LeaderState(LEADER, voters, [1, 2], 0, Timeouts(), 0)
    for key in (FOLLOWER, OBSERVER):
        leader.progress_of(key).fetched(5, 5, 100)
    partition = described(leader, kraft_version)
    assert [each.replica_directory_id for each in partition.current_voters] == directories
    assert [each.log_end_offset for each in partition.current_voters] == [7, 5]
    assert [(each.replica_id, each.replica_directory_id) for each in partition.observers] == [OBSERVER]


def described(leader: LeaderState, kraft_version: int) -> Any:
    raft = SimpleNamespace(
        leader_state=leader, node_id=leader.key.node_id, epoch=4, log_end_offset=7, kraft_version=kraft_version
    )
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    request = DescribeQuorumRequest(topics=[topic])
    return describe_quorum(cast("Any", raft), MetadataImage(), request, VirtualClock()).topics[0].partitions[0]
