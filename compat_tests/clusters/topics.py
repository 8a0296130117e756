"""Topics of clusters, made by a stock client, and usable at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.waiting import until

from .cluster import Cluster

CALL_TIMEOUT_S = 60.0
ATTEMPT_S = 30.0
"""Of one client: longer than Metadata still names a broker that was killed (`broker.session.timeout.ms`, 9 s)."""


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
    config = {"min.insync.replicas": "2"} | dict(configs or {})
    if assignment is not None:
        topic = NewTopic(name, len(assignment), replica_assignment=[list(each) for each in assignment], config=config)
    else:
        topic = NewTopic(name, partitions, replication_factor, config=config)
    _create(cluster, topic)
    created = len(assignment) if assignment is not None else partitions
    for partition in range(created if awaited_partitions is None else awaited_partitions):
        cluster.leader(name, partition)


def _create(cluster: Cluster, topic: NewTopic) -> None:
    """By as many clients as it takes to find a controller: librdkafka stays with the broker that Metadata named when it
    first asked, and a cluster in KRaft mode names any that it has not missed yet, one that was just killed among them.
    A broker that was asked, and does not answer, fails the test.
    """

    def is_created() -> bool:
        admin = admin_client(cluster)
        asked = admin.create_topics([topic], operation_timeout=CALL_TIMEOUT_S, request_timeout=ATTEMPT_S)
        try:
            asked[topic.topic].result(CALL_TIMEOUT_S)
        except KafkaException as failed:
            if "waiting for controller" in failed.args[0].str():
                return False
            raise
        return True

    until(is_created, f"{topic.topic} is created")


def admin_client(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2, "reconnect.backoff.max.ms": 500})
