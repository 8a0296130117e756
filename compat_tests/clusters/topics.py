"""Topics of clusters, made by a stock client, and usable at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka.admin import AdminClient, NewTopic

from .cluster import Cluster

CALL_TIMEOUT_S = 60.0


def create_replicated_topic(
    cluster: Cluster,
    name: str,
    partitions: int = 1,
    *,
    replication_factor: int = 3,
    configs: Mapping[str, str] | None = None,
    assignment: Sequence[Sequence[int]] | None = None,
    awaited_partitions: int | None = None,
) -> None:
    """assignment: the replicas of each partition, the preferred leader first. awaited_partitions: how many of them have
    a leader when this returns; all of them by default.
    """
    admin = admin_client(cluster)
    config = {"min.insync.replicas": "2"} | dict(configs or {})
    if assignment is not None:
        topic = NewTopic(name, len(assignment), replica_assignment=[list(each) for each in assignment], config=config)
    else:
        topic = NewTopic(name, partitions, replication_factor, config=config)
    admin.create_topics([topic], operation_timeout=CALL_TIMEOUT_S)[name].result(CALL_TIMEOUT_S)
    created = len(assignment) if assignment is not None else partitions
    for partition in range(created if awaited_partitions is None else awaited_partitions):
        cluster.leader(name, partition)


def admin_client(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2, "reconnect.backoff.max.ms": 500})
