"""The replicas of a topic beside each other: each as the leader, and their files."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import ElectionType
from confluent_kafka import TopicPartition as ElectedPartition
from kafka import KafkaAdminClient, TopicPartition

from pykbroker.protocol.records.batch import iter_batches
from pykbroker.storage.files.checkpoints import decode_checkpoint

from .cluster import Cluster
from .topics import CALL_TIMEOUT_S, admin_client

EPOCHS_FILE = "leader-epoch-checkpoint"


def lead(cluster: Cluster, topic: str, leaders: Sequence[int]) -> None:
    """Makes these nodes, all of which are replicas in sync, the leaders of partition 0, 1, …, by a stock client."""
    wanted: dict[TopicPartition, list[int]] = {}
    for partition, leader in enumerate(leaders):
        others = [each for each in cluster.partition(topic, partition).replicas if each != leader]
        wanted[TopicPartition(topic, partition)] = [leader, *others]
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    admin.alter_partition_reassignments(wanted)
    admin.close()
    for (_, partition), replicas in wanted.items():
        cluster.wait_for(topic, partition, lambda view: view.replicas == tuple(replicas), f"prefers {replicas[0]}")  # noqa: B023
    elected = [ElectedPartition(topic, partition) for _, partition in wanted]
    # Where a partition needs no election, the answer is an error of that partition alone.
    elections = admin_client(cluster)
    elections.elect_leaders(ElectionType.PREFERRED, elected).result(CALL_TIMEOUT_S)
    for partition, leader in enumerate(leaders):
        cluster.wait_for(topic, partition, lambda view: view.leader == leader, f"is led by {leader}")  # noqa: B023


def records_file(cluster: Cluster, node_id: int, topic: str, partition: int) -> bytes:
    """All segments of that replica, one behind the other."""
    segments = sorted((cluster.nodes[node_id].data_directory / f"{topic}-{partition}").glob("*.log"))
    return b"".join(each.read_bytes() for each in segments)


def epochs_of_records(records: bytes) -> list[tuple[int, int]]:
    """Each leader epoch that wrote some of them, and where it began."""
    found: list[tuple[int, int]] = []
    for batch in iter_batches(records):
        if not found or found[-1][0] != batch.header.partition_leader_epoch:
            found.append((batch.header.partition_leader_epoch, batch.header.base_offset))
    return found


def epochs_in_file(cluster: Cluster, node_id: int, topic: str, partition: int) -> list[tuple[int, int]]:
    """As the node wrote them down, those without records among them, which only their leader knows."""
    path = cluster.nodes[node_id].data_directory / f"{topic}-{partition}" / EPOCHS_FILE
    return [(int(epoch), int(offset)) for epoch, offset in decode_checkpoint(path.read_bytes(), str(path))]
