"""What administrators do while clients act: partitions move, preferred leaders are elected, voters come and go.

Whatever they are answered, nothing that clients were told may be lost by it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from pykbroker.protocol.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from pykbroker.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from pykbroker.protocol.messages.voters import AddRaftVoterRequest, Listener, RemoveRaftVoterRequest
from pykbroker.protocol.schema import Message
from pykbroker.server.network.transport import Address
from tests.coordination.stage import CONFIGURATION, Lost, Wire, topic_of

from .nodes import BROKER_PORT, CONTROLLER_PORT, NODE_IDS, host
from .stage import ClusterStage

Tell = Callable[..., None]

_COORDINATORS = {
    "__consumer_offsets": int(CONFIGURATION["offsets.topic.num.partitions"]),
    "__transaction_state": int(CONFIGURATION["transaction.state.log.num.partitions"]),
}
_OF_COORDINATORS = [(topic, index) for topic, count in _COORDINATORS.items() for index in range(count)]
MIN_ISR = 2
_MOST_SWINGS = 4


class Administrator:
    """One request at a time, until all is quiet."""

    def __init__(self, stage: ClusterStage, tell: Tell) -> None:
        self._stage = stage
        self._tell = tell
        self._wire = Wire(stage, "administrator")
        self._partitions = [*map(topic_of, stage.keys), *_OF_COORDINATORS]
        self._removed: int | None = None

    async def run(self) -> None:
        duties: list[Callable[[], Awaitable[None]]] = []
        if self._stage.plan.reassigns:
            duties += [self._reassign, self._reassign, self._elect_preferred_leaders, self._swing]
        if self._stage.plan.directories > 1:
            duties += [self._move_logs] * 3
        if self._stage.plan.is_dynamic:
            duties += [self._change_voters]
        while duties and not self._stage.is_quiet:
            await trio.sleep(self._stage.rng.expovariate(1 / self._stage.plan.administers_s))
            await self._stage.rng.choice(duties)()

    async def _ask(self, request: Message, version: int) -> Any:
        try:
            return await self._wire.ask(request, version, timeout_s=1.5)
        except Lost:
            return None

    async def _reassign(self) -> None:
        """To all brokers in another order, or to as few as may be written to; or what goes on is cancelled."""
        rng = self._stage.rng
        topics = []
        for topic, index in rng.sample(self._partitions, rng.randint(1, 3)):
            replicas = rng.sample(NODE_IDS, rng.randint(MIN_ISR, len(NODE_IDS))) if rng.random() < 0.85 else None
            self._tell("reassign", f"{topic}-{index}", "to", replicas)
            partition = ReassignablePartition(partition_index=index, replicas=replicas)
            topics.append(ReassignableTopic(name=topic, partitions=[partition]))
        await self._ask(AlterPartitionReassignmentsRequest(timeout_ms=1000, topics=_merged(topics)), 1)

    async def _swing(self) -> None:
        """Elect one leader of a partition after the other, while requests wait for its replicas."""
        topic, index = self._stage.rng.choice(self._partitions)
        for _ in range(self._stage.rng.randint(2, _MOST_SWINGS)):
            replicas = self._stage.rng.sample(NODE_IDS, len(NODE_IDS))
            self._tell("swing", f"{topic}-{index}", "to", replicas[0])
            partition = ReassignablePartition(partition_index=index, replicas=replicas)
            topics = [ReassignableTopic(name=topic, partitions=[partition])]
            await self._ask(AlterPartitionReassignmentsRequest(timeout_ms=1000, topics=topics), 1)
            await self._elect_preferred_leaders()

    async def _move_logs(self) -> None:
        """Some replicas of a node to one of its directories, where they are or are not, or are on their way to."""
        rng, plan = self._stage.rng, self._stage.plan
        path, node_id = rng.choice(plan.log_directories), rng.choice(NODE_IDS)
        moved = rng.sample(self._partitions, rng.randint(1, min(len(self._partitions), 8)))
        self._tell("node", node_id, "moves to", path, *(f"{topic}-{index}" for topic, index in moved))
        topics: dict[str, AlterReplicaLogDirTopic] = {}
        for topic, index in moved:
            topics.setdefault(topic, AlterReplicaLogDirTopic(name=topic)).partitions.append(index)
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=list(topics.values()))])
        address = Address(host(node_id), BROKER_PORT)
        try:
            await self._wire.attempt(lambda: self._wire.ask_at(address, request, 2), timeout_s=1.5)
        except Lost:
            pass

    async def _elect_preferred_leaders(self) -> None:
        self._tell("elect preferred leaders")
        await self._ask(ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1000), 2)

    async def _change_voters(self) -> None:
        """One of three goes, and comes back."""
        cluster = self._stage.cluster
        if self._removed is None:
            node_id = self._stage.rng.choice(NODE_IDS)
            self._tell("remove voter", node_id)
            request: Message = RemoveRaftVoterRequest(
                cluster_id=cluster.cluster_id, voter_id=node_id, voter_directory_id=cluster.directory_ids[node_id]
            )
            await self._ask(request, 0)
            self._removed = node_id
        else:
            node_id = self._removed
            self._tell("add voter", node_id)
            request = AddRaftVoterRequest(
                cluster_id=cluster.cluster_id,
                timeout_ms=1000,
                voter_id=node_id,
                voter_directory_id=cluster.directory_ids[node_id],
                listeners=[Listener(name="CONTROLLER", host=host(node_id), port=CONTROLLER_PORT)],
            )
            answer = await self._ask(request, 1)
            if answer is not None and answer.error_code == 0:
                self._removed = None


def _merged(topics: list[ReassignableTopic]) -> list[ReassignableTopic]:
    by_name: dict[str, ReassignableTopic] = {}
    for topic in topics:
        known = by_name.setdefault(topic.name, ReassignableTopic(name=topic.name, partitions=[]))
        known.partitions += topic.partitions
    return list(by_name.values())
