"""What a voter of the metadata quorum is asked: rightly, too late, by the wrong one, about nothing, twice.

Each scenario is for a voter in one situation (`SITUATIONS`), which it may change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pykbroker.protocol.messages import fetch, quorum, voters
from pykbroker.protocol.schema import Message
from pykbroker.protocol.uuids import METADATA_TOPIC_ID
from pykbroker.raft.voters import NO_DIRECTORY

from .voter_dialogue import CLUSTER_ID, LISTENER, NODE_ID, OTHER_DIRECTORY, REQUEST_TIMEOUT_MS, Dialogue

TOPIC = "__cluster_metadata"
UNKNOWN_CLUSTER = "AAAAAAAAQACAAAAAAAAAAA"


@dataclass(frozen=True, slots=True)
class Situation:
    """others: voters beside it, which are not there. is_dynamic: voters stand in the log. is_restarted: so that it is
    elected twice. has_snapshots: its log is covered by one.
    """

    others: Sequence[int] = ()
    is_dynamic: bool = False
    is_restarted: bool = False
    has_snapshots: bool = False


Rows = list[Any]


def vote(
    epoch: int,
    candidate: int = 2,
    end: tuple[int, int] = (1_000_000, 0),
    *,
    pre_vote: bool = False,
    voter: int = NODE_ID,
    directory: bytes = NO_DIRECTORY,
    cluster: str | None = CLUSTER_ID,
    topics: Callable[[Rows], Rows] = lambda topics: topics,
) -> quorum.VoteRequest:
    """end: offset and epoch of the candidate's log. topics: what becomes of the one that is right."""
    partition = quorum.VoteRequestPartitionData(
        replica_epoch=epoch,
        replica_id=candidate,
        replica_directory_id=OTHER_DIRECTORY,
        voter_directory_id=directory,
        last_offset=end[0],
        last_offset_epoch=end[1],
        pre_vote=pre_vote,
    )
    rows = topics([quorum.VoteRequestTopicData(topic_name=TOPIC, partitions=[partition])])
    return quorum.VoteRequest(cluster_id=cluster, voter_id=voter, topics=rows)


def begin(
    epoch: int,
    leader: int = 2,
    *,
    voter: int = NODE_ID,
    directory: bytes = NO_DIRECTORY,
    cluster: str | None = CLUSTER_ID,
    endpoints: bool = True,
    topics: Callable[[Rows], Rows] = lambda topics: topics,
) -> quorum.BeginQuorumEpochRequest:
    partition = quorum.BeginQuorumEpochRequestPartitionData(
        leader_id=leader, leader_epoch=epoch, voter_directory_id=directory
    )
    rows = topics([quorum.BeginQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=[partition])])
    return quorum.BeginQuorumEpochRequest(
        cluster_id=cluster, voter_id=voter, topics=rows, leader_endpoints=_endpoints(leader) if endpoints else []
    )


def end(
    epoch: int,
    leader: int = 2,
    *,
    successors: Sequence[int] = (3,),
    cluster: str | None = CLUSTER_ID,
    topics: Callable[[Rows], Rows] = lambda topics: topics,
) -> quorum.EndQuorumEpochRequest:
    partition = quorum.EndQuorumEpochRequestPartitionData(
        leader_id=leader,
        leader_epoch=epoch,
        preferred_candidates=[
            quorum.ReplicaInfo(candidate_id=each, candidate_directory_id=NO_DIRECTORY) for each in successors
        ],
    )
    rows = topics([quorum.EndQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=[partition])])
    return quorum.EndQuorumEpochRequest(cluster_id=cluster, topics=rows, leader_endpoints=_endpoints(leader))


def _endpoints(leader: int) -> list[quorum.LeaderEndpoint]:
    return [quorum.LeaderEndpoint(name=LISTENER, host="localhost", port=9100 + leader)]


def fetch_from(
    epoch: int,
    offset: int,
    last_epoch: int,
    *,
    replica: int = 5,
    wait_ms: int = 0,
    cluster: str | None = CLUSTER_ID,
    topics: Callable[[Rows], Rows] = lambda topics: topics,
) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        replica_directory_id=OTHER_DIRECTORY,
    )
    rows = topics([fetch.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])])
    return fetch.FetchRequest(
        cluster_id=cluster,
        replica_state=fetch.ReplicaState(replica_id=replica),
        max_wait_ms=wait_ms,
        max_bytes=1 << 20,
        topics=rows,
    )


def fetch_snapshot(
    epoch: int,
    snapshot: tuple[int, int],
    position: int = 0,
    *,
    max_bytes: int = 100,
    cluster: str | None = CLUSTER_ID,
    topics: Callable[[Rows], Rows] = lambda topics: topics,
) -> quorum.FetchSnapshotRequest:
    partition = quorum.FetchSnapshotRequestPartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=quorum.SnapshotId(end_offset=snapshot[0], epoch=snapshot[1]),
        position=position,
        replica_directory_id=OTHER_DIRECTORY,
    )
    rows = topics([quorum.FetchSnapshotRequestTopicSnapshot(name=TOPIC, partitions=[partition])])
    return quorum.FetchSnapshotRequest(cluster_id=cluster, replica_id=5, max_bytes=max_bytes, topics=rows)


def add_voter(
    node_id: int = 2,
    directory: bytes = OTHER_DIRECTORY,
    *,
    listener: str | None = LISTENER,
    cluster: str | None = CLUSTER_ID,
) -> voters.AddRaftVoterRequest:
    return voters.AddRaftVoterRequest(
        cluster_id=cluster,
        timeout_ms=REQUEST_TIMEOUT_MS,
        voter_id=node_id,
        voter_directory_id=directory,
        listeners=_listeners(listener),
    )


def remove_voter(
    node_id: int = 2, directory: bytes = OTHER_DIRECTORY, *, cluster: str | None = CLUSTER_ID
) -> voters.RemoveRaftVoterRequest:
    return voters.RemoveRaftVoterRequest(cluster_id=cluster, voter_id=node_id, voter_directory_id=directory)


def update_voter(
    epoch: int,
    node_id: int = 2,
    directory: bytes = OTHER_DIRECTORY,
    *,
    versions: tuple[int, int] = (0, 1),
    listener: str | None = LISTENER,
    cluster: str | None = CLUSTER_ID,
) -> voters.UpdateRaftVoterRequest:
    return voters.UpdateRaftVoterRequest(
        cluster_id=cluster,
        current_leader_epoch=epoch,
        voter_id=node_id,
        voter_directory_id=directory,
        listeners=_listeners(listener),
        kraft_version_feature=voters.KRaftVersionFeature(
            min_supported_version=versions[0], max_supported_version=versions[1]
        ),
    )


def _listeners(name: str | None) -> list[voters.Listener]:
    return [] if name is None else [voters.Listener(name=name, host="localhost", port=2)]


# What can be wrong about the topics of a request.


def none(topics: Rows) -> Rows:
    return []


def twice(topics: Rows) -> Rows:
    return topics * 2


def without_partitions(topics: Rows) -> Rows:
    topics[0].partitions = []
    return topics


def partition_twice(topics: Rows) -> Rows:
    topics[0].partitions *= 2
    return topics


def another(topics: Rows) -> Rows:
    if isinstance(topics[0], fetch.FetchTopic):
        topics[0].topic_id = OTHER_DIRECTORY
    elif isinstance(topics[0], quorum.FetchSnapshotRequestTopicSnapshot):
        topics[0].name = "orders"
    else:
        topics[0].topic_name = "orders"
    return topics


def another_partition(topics: Rows) -> Rows:
    [partition] = topics[0].partitions
    setattr(partition, "partition" if hasattr(partition, "partition") else "partition_index", 1)
    return topics


MALFORMED: dict[str, Callable[[Rows], Rows]] = {
    "no topic": none,
    "the topic twice": twice,
    "no partition": without_partitions,
    "the partition twice": partition_twice,
    "another topic": another,
    "another partition": another_partition,
}


def ask_malformed(talk: Dialogue, what: str, build: Callable[..., Message], *arguments: Any) -> None:
    for title, change in MALFORMED.items():
        talk.ask(f"{what}, {title}", build(*arguments, topics=change))
    talk.ask(f"{what}, another cluster", build(*arguments, cluster=UNKNOWN_CLUSTER))
    talk.ask(f"{what}, an empty cluster id", build(*arguments, cluster=""))
    talk.ask(f"{what}, no cluster", build(*arguments, cluster=None))


# Scenarios


def leading(talk: Dialogue) -> None:
    """The one voter, elected for the second time."""
    ends = talk.voter.ends_of_epochs()
    first, last = ends[1], ends[2]
    ask_malformed(talk, "vote", vote, 1)
    talk.ask("vote in an epoch that is over", vote(1, end=(last, 0)))
    talk.ask("vote in this epoch", vote(2, end=(last, 1)))
    talk.ask("pre-vote in this epoch", vote(2, end=(last, 2), pre_vote=True))
    talk.ask("pre-vote of a log that is behind", vote(2, end=(1, 1), pre_vote=True))
    talk.ask("vote, the candidate has records of the epoch", vote(2, end=(last, 2)))
    talk.ask("pre-vote, the candidate has records of a later epoch", vote(2, end=(last, 3), pre_vote=True))
    talk.ask("vote, negative offset", vote(2, end=(-1, 1)))
    talk.ask("vote, negative epoch of the log", vote(2, end=(last, -1)))
    talk.ask("vote, negative epoch", vote(-1, end=(last, 0)))
    talk.ask("vote, negative candidate", vote(2, -1, (last, 1)))
    talk.ask("vote for another voter", vote(2, end=(last, 1), voter=7))
    talk.ask("vote for another directory", vote(2, end=(last, 1), directory=OTHER_DIRECTORY))
    talk.ask("vote for nobody in particular", vote(2, end=(last, 1), voter=-1))
    talk.ask("vote of version 0", vote(2, end=(last, 1)), 0)
    ask_malformed(talk, "begin", begin, 1)
    talk.ask("begin of an epoch that is over", begin(1))
    talk.ask("begin, negative epoch", begin(-1))
    talk.ask("begin, negative leader", begin(2, -1))
    ask_malformed(talk, "end", end, 1)
    talk.ask("end of an epoch that is over", end(1))
    talk.ask("end, negative leader", end(2, -1))
    ask_malformed(talk, "fetch", fetch_from, 2, 0, 0)
    talk.ask("fetch from the start", fetch_from(2, 0, 0))
    talk.ask("fetch from the start, of version 12", _named(fetch_from(2, 0, 0)), 12)
    talk.ask("fetch from the end", fetch_from(2, last, 2))
    talk.ask("fetch from the end, and wait", fetch_from(2, last, 2, wait_ms=200))
    talk.ask("fetch from the end of the epoch before", fetch_from(2, first, 1))
    talk.ask("fetch behind the end", fetch_from(2, last + 5, 2))
    talk.ask("fetch behind the end of the epoch before", fetch_from(2, first + 1, 1))
    talk.ask("fetch, an epoch that was skipped", fetch_from(2, first, 0))
    talk.ask("fetch in an epoch that is over", fetch_from(1, first, 1))
    talk.ask("fetch in an epoch to come", fetch_from(3, last, 2))
    talk.ask("fetch, no epoch", fetch_from(-1, 0, 0))
    talk.ask("fetch, negative offset", fetch_from(2, -1, 0))
    talk.ask("fetch, negative epoch of the log", fetch_from(2, 1, -1))
    talk.ask("fetch, the log has a later epoch", fetch_from(2, last, 3))
    talk.ask("fetch, negative wait", fetch_from(2, 0, 0, wait_ms=-1))
    talk.ask("fetch of a consumer", fetch_from(2, 0, 0, replica=-1))
    ask_malformed(talk, "snapshot", fetch_snapshot, 2, (first, 1))
    talk.ask("snapshot that is not there", fetch_snapshot(2, (first, 1)))
    talk.ask("snapshot of before all", fetch_snapshot(2, (0, 0)))
    talk.ask("snapshot, negative id", fetch_snapshot(2, (-1, -1)))
    talk.ask("snapshot in an epoch that is over", fetch_snapshot(1, (first, 1)))
    talk.ask("snapshot in an epoch to come", fetch_snapshot(3, (first, 1)))
    talk.ask("add a voter to a static quorum", add_voter())
    talk.ask("remove a voter of a static quorum", remove_voter(NODE_ID, talk.voter.directory_id))
    talk.ask("vote in a later epoch, of a log that is behind", vote(5, end=(0, 0)))
    talk.ask("fetch of one that has resigned", fetch_from(2, 0, 0))


def _named(request: fetch.FetchRequest) -> fetch.FetchRequest:
    """Before version 13 topics have names, before 15 replicas have no state."""
    request.topics[0].topic = TOPIC
    request.replica_id, request.replica_state = 5, fetch.ReplicaState()
    return request


def contradicted(talk: Dialogue) -> None:
    """The one voter, by somebody who says that he leads its epoch."""
    talk.ask("begin, another leads", begin(max(talk.voter.ends_of_epochs())))
    talk.ask("end, another leads", end(max(talk.voter.ends_of_epochs())))


def changing_voters(talk: Dialogue) -> None:
    """The one voter of a quorum whose voters stand in the log."""
    own = talk.voter.directory_id
    for title, request in {
        "add of another cluster": add_voter(cluster=UNKNOWN_CLUSTER),
        "add, negative node": add_voter(-1),
        "add without a directory": add_voter(directory=NO_DIRECTORY),
        "add without listeners": add_voter(listener=None),
        "add with the wrong listener": add_voter(listener="OTHER"),
        "add who votes already": add_voter(NODE_ID, own),
        "add who votes already, with another directory": add_voter(NODE_ID),
        "add who is not there": add_voter(),
        "remove of another cluster": remove_voter(cluster=UNKNOWN_CLUSTER),
        "remove, negative node": remove_voter(-1),
        "remove without a directory": remove_voter(NODE_ID, NO_DIRECTORY),
        "remove who does not vote": remove_voter(),
        "remove another directory": remove_voter(NODE_ID),
        "remove the last": remove_voter(NODE_ID, own),
    }.items():
        talk.ask(title, request)
    [epoch] = talk.voter.ends_of_epochs()
    for title, update in {
        "update of another cluster": update_voter(epoch, cluster=UNKNOWN_CLUSTER),
        "update in an epoch that is over": update_voter(epoch - 1),
        "update in an epoch to come": update_voter(epoch + 1),
        "update, negative node": update_voter(epoch, -1),
        "update without a directory": update_voter(epoch, directory=NO_DIRECTORY),
        "update without listeners": update_voter(epoch, listener=None),
        "update with the wrong listener": update_voter(epoch, listener="OTHER"),
        "update, negative version": update_voter(epoch, NODE_ID, own, versions=(-1, 1)),
        "update, versions the wrong way round": update_voter(epoch, NODE_ID, own, versions=(1, 0)),
        "update, too low a version": update_voter(epoch, NODE_ID, own, versions=(0, 0)),
        "update who does not vote": update_voter(epoch),
        "update another directory": update_voter(epoch, NODE_ID),
        "fetch with the wrong directory": fetch_from(epoch, 0, 0, replica=NODE_ID),
        "vote of one who does not vote": vote(epoch, 9),
        "vote in a later epoch, of one who does not vote": vote(epoch + 5, 9, (1_000_000, epoch + 4)),
    }.items():
        talk.ask(title, update)


def following(talk: Dialogue) -> None:
    """One of three that has heard from nobody yet; nodes 2 and 3 are those who ask."""
    talk.ask("fetch from one who knows no leader", fetch_from(0, 0, 0))
    talk.ask("fetch in an epoch to come", fetch_from(4, 0, 0))
    talk.ask("snapshot from one who knows no leader", fetch_snapshot(0, (5, 1)))
    talk.ask("add a voter", add_voter())
    talk.ask("remove a voter", remove_voter())
    talk.ask("pre-vote", vote(0, end=(0, 0), pre_vote=True))
    talk.ask("pre-vote in a later epoch", vote(3, end=(0, 0), pre_vote=True))
    talk.ask("vote in epoch 5", vote(5))
    talk.ask("vote in epoch 5 again", vote(5))
    talk.ask("vote in epoch 5 of another", vote(5, 3))
    talk.ask("pre-vote in epoch 5 of another", vote(5, 3, pre_vote=True))
    talk.ask("vote in epoch 4", vote(4))
    talk.ask("vote for another directory", vote(6, directory=OTHER_DIRECTORY))
    talk.ask("vote of one who is no voter", vote(7, 9))
    talk.ask("begin of epoch 8, without endpoints", begin(8, endpoints=False))
    talk.ask("begin of epoch 8", begin(8))
    talk.ask("begin of epoch 8 again", begin(8))
    talk.ask("begin of epoch 8 for another directory", begin(8, directory=OTHER_DIRECTORY))
    talk.ask("begin of epoch 8 of version 0", begin(8), 0)
    talk.ask("begin of epoch 8 by another leader", begin(8, 3))
    talk.ask("begin of epoch 7", begin(7))
    talk.ask("vote in the leader's epoch", vote(8, 3))
    talk.ask("pre-vote of one who has not fetched yet", vote(8, 3, pre_vote=True))
    talk.ask("fetch from a follower", fetch_from(8, 0, 0))
    talk.ask("fetch from a follower, in an epoch that is over", fetch_from(7, 0, 0))
    talk.ask("snapshot from a follower", fetch_snapshot(8, (5, 1)))
    talk.ask("update at a follower", update_voter(8))
    talk.ask("end of epoch 7", end(7))
    talk.ask("end of epoch 8 by another leader", end(8, 3))
    talk.ask("end of epoch 8", end(8, successors=[2, 3]))
    talk.ask("end of epoch 8 again", end(8, successors=[2, 3]))
    talk.ask("begin of epoch 9 by one who is no voter", begin(9, 9))
    talk.ask("begin of epoch 10 for another node", begin(10, 3, voter=7))


def snapshots(talk: Dialogue) -> None:
    """Whose log is covered by a snapshot."""
    latest = talk.voter.latest_snapshot()
    assert latest is not None
    ends = talk.voter.ends_of_epochs()
    epoch = max(ends)
    talk.ask("fetch from the start", fetch_from(epoch, 0, 0))
    talk.ask("fetch from the end", fetch_from(epoch, ends[epoch], epoch))
    talk.ask("snapshot", fetch_snapshot(epoch, latest))
    talk.ask("snapshot from the middle", fetch_snapshot(epoch, latest, 50))
    talk.ask("snapshot, from a negative position", fetch_snapshot(epoch, latest, -1))
    talk.ask("snapshot, from behind its end", fetch_snapshot(epoch, latest, 1 << 30))
    talk.ask("snapshot, of another epoch", fetch_snapshot(epoch, (latest.end_offset, epoch + 1)))
    talk.ask("snapshot, in an epoch that is over", fetch_snapshot(epoch - 1, latest))


SITUATIONS = {
    leading: Situation(is_restarted=True),
    contradicted: Situation(),
    changing_voters: Situation(is_dynamic=True),
    following: Situation(others=(2, 3)),
    snapshots: Situation(has_snapshots=True),
}
SCENARIOS = {scenario.__name__: scenario for scenario in SITUATIONS}
