"""What makes a node a broker: its replicas, groups and transactions, and its membership of the cluster."""

from __future__ import annotations

import random
from collections.abc import Sequence

import trio

from pykbroker.protocol.uuids import random_uuid
from pykbroker.replication.fetch_session import FetchSessionCache

from ..coordinators.group_coordinator import GroupCoordinator
from ..logs.log_cleaner import NewWorkplace
from ..logs.log_loading import OnLoading
from ..network.transport import Network
from ..quorum.auto_topic_creation import AutoTopicCreation
from ..replicas.directory_assignments import DirectoryAssignments
from ..replicas.log_moves import LogMoves
from ..replicas.replica_selector import replica_selector
from .broker import BoundListener, Broker, ClusterNode
from .broker_lifecycle import BrokerIdentity, BrokerLifecycle
from .composition.replicas import node_replication, replica_manager
from .node_storage import NodeStorage
from .node_transactions import NodeTransactions
from .unserved_settings import UnservedSettings


class BrokerRole:
    """advertised: what clients are told, one for each listener."""

    def __init__(
        self,
        node: ClusterNode,
        storage: NodeStorage,
        advertised: Sequence[BoundListener],
        *,
        network: Network,
        new_workplace: NewWorkplace,
        on_loading: OnLoading | None,
    ) -> None:
        config, clock, threads = node.config, node.clock, node.threads
        assignments = DirectoryAssignments(node.controller_channel, lambda: node.image, node.node_id)
        replicas = replica_manager(
            config,
            storage.directories,
            clock=clock,
            threads=threads,
            new_workplace=new_workplace,
            on_loading=on_loading,
            on_placement=assignments.note,
        )
        groups = GroupCoordinator(
            config, replicas, image=lambda: node.image, clock=clock, threads=threads, rng=_fork(node.rng)
        )
        transactions = NodeTransactions.of(
            config,
            node.controller_channel,
            replicas,
            groups,
            image=lambda: node.image,
            network=network,
            clock=clock,
            threads=threads,
        )
        replicas.subscribe(groups.topic, groups)
        replicas.subscribe(transactions.coordinator.topic, transactions.coordinator)
        self.broker = Broker(
            config=config,
            node_id=node.node_id,
            cluster_id=node.cluster_id,
            clock=clock,
            rng=node.rng,
            threads=threads,
            raft=node.raft,
            metadata=node.metadata,
            controller=node.controller,
            controller_channel=node.controller_channel,
            broker_watch=node.broker_watch,
            image_conditions=node.image_conditions,
            partitions=replicas,
            groups=groups,
            transactions=transactions,
            auto_topic_creation=AutoTopicCreation(config, node.controller_channel, clock),
            directory_assignments=assignments,
            log_moves=LogMoves(replicas, assignments, clock=clock, threads=threads),
            fetch_sessions=FetchSessionCache(_fork(node.rng), config.int("max.incremental.fetch.session.cache.slots")),
            replica_selector=replica_selector(config, lambda: node.image),
            advertised=tuple(advertised),
        )
        self._replication = node_replication(config, replicas, transactions.inter_broker, clock)
        self.lifecycle = BrokerLifecycle(
            _identity(self.broker, storage),
            node.controller_channel,
            lambda: node.image,
            config,
            clock,
            offline_directories=lambda: replicas.failures.offline_directory_ids,
        )
        replicas.failures.on_offline = self.lifecycle.wake
        unserved = UnservedSettings(config.node_id)
        for listener in (replicas.apply, groups.apply, self.lifecycle.apply, unserved.apply):
            node.metadata.subscribe(listener)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until it is cancelled; started when the broker is unfenced. Raises RegistrationError, StorageError."""
        broker = self.broker
        async with trio.open_nursery() as nursery:
            await nursery.start(broker.partitions.run)
            await nursery.start(broker.groups.run)
            await nursery.start(broker.transactions.run)
            await nursery.start(self.lifecycle.run)
            submit, epoch = broker.controller_channel.submit, lambda: self.lifecycle.epoch
            nursery.start_soon(self._replication.run, submit, epoch)
            nursery.start_soon(broker.directory_assignments.run)
            nursery.start_soon(broker.auto_topic_creation.run)
            await nursery.start(broker.log_moves.run)
            task_status.started()


def _identity(broker: Broker, storage: NodeStorage) -> BrokerIdentity:
    return BrokerIdentity(
        node_id=broker.node_id,
        cluster_id=broker.cluster_id,
        incarnation_id=random_uuid(broker.rng),
        rack=broker.config.optional_str("broker.rack"),
        listeners=broker.advertised,
        log_directory_ids=tuple(directory.directory_id for directory in storage.directories),
        previous_epoch=storage.previous_broker_epoch,
    )


def _fork(rng: random.Random) -> random.Random:
    return random.Random(rng.getrandbits(64))
