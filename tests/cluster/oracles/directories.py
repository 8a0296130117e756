"""What a node leaves on its disk when it stops cleanly: sound directories, and the replicas that the others leave, too.

`pykbroker verify` judges each directory; the logs and `leader-epoch-checkpoint` are compared between the nodes as they
were in memory.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping

from pykbroker.cli.verify_cluster import read_cluster
from pykbroker.protocol.records.batch import iter_batches
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.sim.node import LOG_DIRECTORY
from pykbroker.sim.threads import beside_the_loop
from pykbroker.storage.checks.directory_check import ClusterFacts, DirectoryCheck, DirectoryReport
from pykbroker.storage.directories.directory_names import parse_partition_directory
from pykbroker.storage.files.checkpoints import LOG_START_OFFSET
from pykbroker.storage.files.disk import Disk
from pykbroker.storage.segments.leader_epochs import FILE_NAME, LeaderEpochs
from pykbroker.storage.segments.segment import LOG_SUFFIX
from tests.replication.simulation.invariants import ensure

from .replicas import Replica, check_replicas


@beside_the_loop()
def check_directories(disks: Mapping[int, Disk], *, lost_power: Collection[int] = ()) -> None:
    """Of nodes that have stopped cleanly, by their ids.

    lost_power: who of them did behind that. A log that never had a record is made anew then, and nobody syncs it.
    """
    replicas: dict[TopicPartition, list[Replica]] = {}
    compacted: set[str] = set()
    for node_id, disk in disks.items():
        cluster = read_cluster(disk, [LOG_DIRECTORY])
        ensure(cluster.topics is not None, "SoundDirectory", "node", node_id, "has a metadata log that cannot be read")
        compacted |= {name for name, topic in (cluster.topics or {}).items() if topic.is_compacted}
        report = _sound(node_id, disk, cluster, has_lost_power=node_id in lost_power)
        for at, replica in _stored(f"node {node_id}", disk, report):
            if at.topic in (cluster.topics or {}):
                replicas.setdefault(at, []).append(replica)
    for at, stored in replicas.items():
        check_replicas(str(at), stored, leader=None, is_compacted=at.topic in compacted)


def _sound(node_id: int, disk: Disk, cluster: ClusterFacts, *, has_lost_power: bool) -> DirectoryReport:
    check = DirectoryCheck(disk, LOG_DIRECTORY, cluster, deep=True)
    findings = [finding for finding in check.run() if finding.is_damage]
    report = check.report
    if has_lost_power:
        empty = {log.path for log in report.partitions.values() if not log.log_end_offset}
        findings = [each for each in findings if posixpath.dirname(each.path) not in empty]
    damage = [f"{finding.path}: {finding}" for finding in findings]
    ensure(not damage and not report.missing, "SoundDirectory", "node", node_id, "left", damage, report.missing)
    ensure(report.was_clean_shutdown, "SoundDirectory", "node", node_id, "has no mark of its clean shutdown")
    return report


def _stored(node: str, disk: Disk, report: DirectoryReport) -> Iterable[tuple[TopicPartition, Replica]]:
    starts = report.offsets.get(LOG_START_OFFSET, {})
    for at, log in report.partitions.items():
        directory = posixpath.join(LOG_DIRECTORY, f"{at.topic}-{at.partition}")
        assert parse_partition_directory(posixpath.basename(directory)) == at
        names = [name for name in disk.list_directory(directory) if name.endswith(LOG_SUFFIX)]
        data = b"".join(disk.read_file(posixpath.join(directory, name)) for name in names)
        if not log.log_end_offset:
            continue
        epochs = LeaderEpochs(disk, posixpath.join(directory, FILE_NAME))
        epochs.load(log.log_end_offset)
        first_segment = int(names[0].removesuffix(LOG_SUFFIX)) if names else 0
        start = max(starts.get(at, 0), first_segment)
        yield at, Replica(node, start, log.log_end_offset, list(iter_batches(data)), epochs.entries)
