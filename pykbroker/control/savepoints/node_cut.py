"""The cut: where each log of a node ends at one moment.

All of it is taken in one turn of the event loop, on which every append is made: so the logs agree with each other as
they do on the disk of a process that is killed. Whatever was acknowledged by then is in front of the cut, an offset
that was committed points at records that are there, and a transaction is open, or being ended, as its coordinator has
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import trio

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.server.node.broker_role import BrokerRole
from pykbroker.server.node.composition.parts import NodeParts
from pykbroker.server.node.node import Node
from pykbroker.server.quorum.formatting import directory_paths
from pykbroker.server.quorum.metadata_snapshots import file_name
from pykbroker.storage.files.errors import FileError
from pykbroker.storage.log.log import Log
from pykbroker.storage.log.log_cut import LogCut, cut_log

from .errors import SavepointRefused

COPIED_BYTES = 4 << 20
"""Active segments that have more than this together are rolled first: then most of it is shared, and not copied."""
ROLLED_BYTES = 64 << 10
"""Active segments with less are copied, however many there are."""
TURN_S = 0.004


@dataclass(frozen=True, slots=True)
class DirectoryCut:
    """A log directory with partitions. cleaned: how far compacted logs were cleaned."""

    path: str
    logs: dict[TopicPartition, LogCut]
    cleaned: dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class NodeCut:
    """A node at one moment. paths: its log directories, the metadata log's first. snapshots: names of files."""

    node_id: int
    cluster_id: str
    broker_epoch: int
    paths: tuple[str, ...]
    metadata: LogCut
    snapshots: tuple[str, ...]
    directories: tuple[DirectoryCut, ...]
    high_watermarks: dict[Log, int]


def parts_of(node: Node | None) -> tuple[NodeParts, BrokerRole]:
    """Return the parts of a node that can be copied. Raises SavepointRefused."""
    parts = None if node is None else node.parts
    if node is None or parts is None or not node.serves or node.is_stopping:
        raise SavepointRefused("the node does not serve, and only what serves can be forked or saved")
    role, cluster = parts.broker_role, parts.node
    if (
        role is None
        or cluster.controller is None
        or cluster.raft.has_peers
        or set(cluster.image.brokers) != {cluster.node_id}
    ):
        raise SavepointRefused(
            "only a node that is alone in its cluster, broker and controller, can be forked or saved: the others' part "
            "of the metadata and the records is not here"
        )
    partitions = role.broker.partitions
    offline = [path for path, directory in partitions.log_directories().items() if directory is None]
    if offline:
        raise SavepointRefused(f"the log directory {offline[0]} is offline: what it holds cannot be copied")
    for directory in partitions.logs.directories:
        for at in sorted(directory.damaged):
            raise SavepointRefused(f"the partition {at} is damaged and out of service: what it holds cannot be copied")
    return parts, role


async def roll_large(parts: NodeParts, role: BrokerRole) -> None:
    """Roll the largest active segments, so that little is left to be copied. Clients do not notice."""
    sizes = {log: log.segments[-1].size for log in _logs(parts, role)}
    left = sum(sizes.values())
    clock, began = parts.node.clock, trio.current_time()
    large = [log for log, size in sizes.items() if size >= ROLLED_BYTES]
    for log in sorted(large, key=sizes.__getitem__, reverse=True):
        size = sizes[log]
        if left <= COPIED_BYTES:
            break
        if not log.is_closed and not log.is_being_truncated:
            try:
                log.roll(clock.now_ms())
            except FileError:
                continue  # it is copied; where the disk has failed, others find that out, too
            left -= size
        if trio.current_time() - began > TURN_S:
            await trio.lowlevel.checkpoint()
            began = trio.current_time()


def cut_node(parts: NodeParts, role: BrokerRole) -> NodeCut:
    """Take the cut. On the event loop."""
    node, broker = parts.node, role.broker
    high_watermarks = {each.log: each.high_watermark for each in broker.partitions.partitions()}
    metadata = node.raft.metadata_log
    directories = []
    for directory in broker.partitions.logs.directories:
        logs = {at: cut_log(log) for at, log in directory.logs.copy().items() if not log.is_closed}
        directories.append(DirectoryCut(directory.path, logs, directory.cleaned_offsets))
    return NodeCut(
        node.node_id,
        node.cluster_id,
        role.lifecycle.epoch,
        tuple(directory_paths(node.config)),
        cut_log(metadata.log),
        tuple(map(file_name, metadata.snapshots.ids)),
        tuple(directories),
        high_watermarks,
    )


def has_metadata(cut: NodeCut, parts: NodeParts) -> bool:
    """Tell whether the metadata log still begins where it did, and has the snapshots of the cut."""
    metadata = parts.node.raft.metadata_log
    has_snapshots = set(map(file_name, metadata.snapshots.ids)).issuperset(cut.snapshots)
    return has_snapshots and metadata.log.log_start_offset == cut.metadata.start_offset


def _logs(parts: NodeParts, role: BrokerRole) -> Iterator[Log]:
    yield parts.node.raft.metadata_log.log
    yield from role.broker.partitions.logs
