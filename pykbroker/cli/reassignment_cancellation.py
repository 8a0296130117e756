"""The end of moves before they are done: partitions and replicas go back to where they are."""

from __future__ import annotations

from collections.abc import Collection

from pykbroker.client.cluster import Cluster
from pykbroker.client.metadata import Node
from pykbroker.client.reassignments import alter_reassignments, list_reassignments
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed, one_line
from .reassignment_plan import Plan
from .reassignment_start import move_between_directories
from .replica_places import find_places


async def cancel_moves(
    cluster: Cluster, partitions: Collection[TopicPartition], node: Node | None = None
) -> list[TopicPartition]:
    """End the moves of these partitions, and return those that were under way. Raises CommandFailed."""
    ongoing = await list_reassignments(cluster, node=node)
    active = [of for of in sorted(partitions) if of in ongoing]
    outcomes = await alter_reassignments(cluster, dict.fromkeys(active), node=node) if active else {}
    refused = [f"{of}: {one_line(error)}" for of, error in sorted(outcomes.items()) if error is not None]
    if refused:
        plural = "" if len(refused) == 1 else "s"
        raise CommandFailed(f"Error cancelling partition reassignment{plural} for: {'; '.join(refused[:100])}")
    return active


async def cancel_directory_moves(cluster: Cluster, plan: Plan, timeout_s: float, *, as_json: bool = False) -> int:
    """Let replicas stay in their directories, and return how many were on their way. Raises CommandFailed."""
    if not plan.log_dirs:
        return 0
    wanted: dict[TopicPartition, set[int]] = {}
    for of, broker in plan.log_dirs:
        wanted.setdefault(of, set()).add(broker)
    places = await find_places(cluster, wanted)
    back = {
        replica: places.current[replica]
        for replica, target in plan.log_dirs.items()
        if places.future.get(replica) == target and replica in places.current
    }
    if back:
        await move_between_directories(cluster, back, timeout_s, as_json=as_json)
    return len(back)
