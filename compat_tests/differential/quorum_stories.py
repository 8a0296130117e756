"""Stories of what controllers ask each other, and of the metrics that clients push (KIP-595, KIP-630, KIP-714).

The node that is asked leads the quorum alone. No request names a later epoch than its own: the node would step down,
and what follows would depend on the time of the next election. Nor does a FetchSnapshot name no topic: Apache Kafka's
controller ends at that (IndexOutOfBoundsException in its Raft thread).
"""

from __future__ import annotations

from typing import Any, Final

from pykbroker.protocol.api_keys import ApiKey

from .field_values import LARGE
from .sequences import Step, Tree, hexed, ref
from .stories import CLIENT_METRICS, altering, describing, on_controller, step

METADATA: Final = "__cluster_metadata"
_CLUSTER: Final = step(ApiKey.DESCRIBE_CLUSTER, 1, include_cluster_authorized_operations=False, endpoint_type=1)
_ZERO: Final = {"uuid": "none"}


def voting(version: int = 2, *, name: str = METADATA, partition: int = 0, cluster: Any = None, **row: Any) -> Step:
    tree: Tree = {
        "partition_index": partition,
        "replica_epoch": 0,
        "replica_id": 7,
        "replica_directory_id": _ZERO,
        "voter_directory_id": _ZERO,
        "last_offset_epoch": 0,
        "last_offset": 0,
        "pre_vote": False,
    }
    topics = [{"topic_name": name, "partitions": [tree | row]}]
    return on_controller(step(ApiKey.VOTE, version, cluster_id=cluster, voter_id=1, topics=topics))


def beginning(version: int = 1, *, name: str = METADATA, partition: int = 0, cluster: Any = None, **row: Any) -> Step:
    tree: Tree = {"partition_index": partition, "voter_directory_id": _ZERO, "leader_id": 7, "leader_epoch": 0} | row
    topics = [{"topic_name": name, "partitions": [tree]}]
    return on_controller(
        step(
            ApiKey.BEGIN_QUORUM_EPOCH,
            version,
            cluster_id=cluster,
            voter_id=1,
            topics=topics,
            leader_endpoints=[{"name": "CONTROLLER", "host": "localhost", "port": 9}],
        )
    )


def ending_epoch(
    version: int = 1, *, name: str = METADATA, partition: int = 0, cluster: Any = None, **row: Any
) -> Step:
    tree: Tree = {
        "partition_index": partition,
        "leader_id": 7,
        "leader_epoch": 0,
        "preferred_successors": [1],
        "preferred_candidates": [{"candidate_id": 1, "candidate_directory_id": _ZERO}],
    } | row
    topics = [{"topic_name": name, "partitions": [tree]}]
    return on_controller(step(ApiKey.END_QUORUM_EPOCH, version, cluster_id=cluster, topics=topics, leader_endpoints=[]))


def fetching_snapshot(
    version: int = 1, *, name: str = METADATA, partition: int = 0, cluster: Any = None, **row: Any
) -> Step:
    tree: Tree = {
        "partition": partition,
        "current_leader_epoch": -1,
        "snapshot_id": {"end_offset": 0, "epoch": 0},
        "position": 0,
    } | row
    topics = [{"name": name, "partitions": [tree]}]
    return on_controller(
        step(ApiKey.FETCH_SNAPSHOT, version, cluster_id=cluster, replica_id=-1, max_bytes=LARGE, topics=topics)
    )


OTHERS: Final = "other"
VOTES: Final = (
    _CLUSTER,
    voting(0),
    voting(1),
    voting(),
    voting(pre_vote=True),
    voting(cluster=ref("cluster")),
    voting(cluster=OTHERS),
    voting(replica_epoch=-1),
    voting(replica_id=-1),
    voting(replica_id=1),
    voting(last_offset=-1),
    voting(last_offset_epoch=-1),
    voting(last_offset_epoch=5),
    voting(voter_directory_id={"uuid": "unknown"}),
    voting(name="~t1"),
    voting(partition=1),
    on_controller(step(ApiKey.VOTE, 2, cluster_id=None, voter_id=1, topics=[])),
    on_controller(step(ApiKey.VOTE, 0, cluster_id=OTHERS, topics=[])),
)
EPOCHS: Final = (
    _CLUSTER,
    beginning(0),
    beginning(),
    beginning(cluster=ref("cluster")),
    beginning(cluster=OTHERS),
    beginning(leader_epoch=-1),
    beginning(leader_id=-1),
    beginning(leader_id=1),
    beginning(voter_directory_id={"uuid": "unknown"}),
    beginning(name="~t1"),
    beginning(partition=1),
    on_controller(step(ApiKey.BEGIN_QUORUM_EPOCH, 1, cluster_id=None, voter_id=1, topics=[])),
    ending_epoch(0),
    ending_epoch(),
    ending_epoch(cluster=ref("cluster")),
    ending_epoch(cluster=OTHERS),
    ending_epoch(leader_epoch=-1),
    ending_epoch(leader_id=-1),
    ending_epoch(leader_id=1),
    ending_epoch(name="~t1"),
    ending_epoch(partition=1),
    on_controller(step(ApiKey.END_QUORUM_EPOCH, 0, cluster_id=None, topics=[])),
)
SNAPSHOTS: Final = (
    _CLUSTER,
    fetching_snapshot(0, snapshot_id={"end_offset": 987654, "epoch": 1}),
    fetching_snapshot(1, snapshot_id={"end_offset": 987654, "epoch": 1}),
    fetching_snapshot(cluster=OTHERS),
    fetching_snapshot(current_leader_epoch=0),
    fetching_snapshot(current_leader_epoch=LARGE),
    fetching_snapshot(name="~t1"),
    fetching_snapshot(partition=1),
    fetching_snapshot(snapshot_id={"end_offset": -1, "epoch": -1}),
)
VOTERS: Final = tuple(
    on_controller(each)
    for each in (
        step(
            ApiKey.UPDATE_RAFT_VOTER,
            0,
            cluster_id=OTHERS,
            current_leader_epoch=-1,
            voter_id=1,
            voter_directory_id={"uuid": "unknown"},
            listeners=[{"name": "CONTROLLER", "host": "localhost", "port": 9}],
            kraft_version_feature={"min_supported_version": 0, "max_supported_version": 1},
        ),
        step(
            ApiKey.UPDATE_RAFT_VOTER,
            0,
            cluster_id=None,
            current_leader_epoch=0,
            voter_id=7,
            voter_directory_id={"uuid": "unknown"},
            listeners=[],
            kraft_version_feature={"min_supported_version": 0, "max_supported_version": 1},
        ),
        step(
            ApiKey.ADD_RAFT_VOTER,
            1,
            cluster_id=None,
            timeout_ms=1000,
            voter_id=-1,
            voter_directory_id={"uuid": "unknown"},
            listeners=[],
        ),
        step(ApiKey.REMOVE_RAFT_VOTER, 0, cluster_id=None, voter_id=-1, voter_directory_id={"uuid": "none"}),
    )
)
_INSTANCE: Final = ref("client instance")


def asking_subscriptions(instance: Any = None) -> Step:
    return step(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, client_instance_id=_ZERO if instance is None else instance)


def pushing(subscription: Any, *, metrics: Any = "", codec: int = 0, instance: Any = None, ends: bool = False) -> Step:
    return step(
        ApiKey.PUSH_TELEMETRY,
        0,
        client_instance_id=_INSTANCE if instance is None else instance,
        subscription_id=subscription,
        terminating=ends,
        compression_type=codec,
        metrics=metrics,
    )


TELEMETRY: Final = (
    asking_subscriptions(),
    pushing(0),
    asking_subscriptions(_INSTANCE),
    pushing(77, instance={"uuid": "none"}),
    pushing(77, instance={"uuid": "unknown"}),
    altering(CLIENT_METRICS, "~c1", "metrics", "org.apache.kafka.consumer."),
    altering(CLIENT_METRICS, "~c1", "metrics", "a b"),
    altering(CLIENT_METRICS, "~c1", "interval.ms", "1000"),
    describing(CLIENT_METRICS, "~c1", None),
    asking_subscriptions({"uuid": "unknown"}),
    pushing(ref("subscription"), metrics=hexed(b"nonsense"), instance={"uuid": "unknown"}),
    pushing(ref("subscription"), codec=9, instance={"uuid": "unknown"}),
    pushing(77, instance={"uuid": "unknown"}),
    altering(CLIENT_METRICS, "~c1", "metrics", None, 1),
    altering(CLIENT_METRICS, "~c1", "interval.ms", None, 1),
)
QUORUM_STORIES: Final = (VOTES, EPOCHS, SNAPSHOTS, VOTERS)


def of_a_voter(of: Step, voter_id: int) -> Step:
    """Return the step with another voter as the one that is asked."""
    return Step(of.api_key, of.version, of.tree | {"voter_id": voter_id}, of.listener, of.connection)


def updating(**fields: Any) -> Step:
    tree: Tree = {
        "cluster_id": ref("cluster"),
        "current_leader_epoch": -1,
        "voter_id": 1,
        "voter_directory_id": {"uuid": "unknown"},
        "listeners": [{"name": "CONTROLLER", "host": "localhost", "port": 9}],
        "kraft_version_feature": {"min_supported_version": 0, "max_supported_version": 1},
    }
    return on_controller(step(ApiKey.UPDATE_RAFT_VOTER, 0, **(tree | fields)))


OTHER_VOTERS: Final = (
    _CLUSTER,
    of_a_voter(voting(), 99),
    of_a_voter(beginning(), 99),
    updating(),
    updating(current_leader_epoch=LARGE),
    updating(current_leader_epoch=0),
    updating(voter_id=7),
    updating(listeners=[]),
)


def pushed(**push: Any) -> tuple[Step, ...]:
    """Return a story of a client that the broker gives an id, and of what it pushes first."""
    return (
        altering(CLIENT_METRICS, "~c1", "metrics", "org.apache.kafka.consumer."),
        asking_subscriptions(),
        pushing(**push),
        altering(CLIENT_METRICS, "~c1", "metrics", None, 1),
    )


QUORUM_ERRORS: Final = (
    OTHER_VOTERS,
    pushed(subscription=77),
    pushed(subscription=ref("subscription"), metrics=hexed(b"nonsense")),
    pushed(subscription=ref("subscription"), codec=9),
    pushed(subscription=ref("subscription"), metrics=hexed(b"nonsense"), codec=1),
    pushed(subscription=ref("subscription"), ends=True),
)
"""Stories that are there for errors."""
