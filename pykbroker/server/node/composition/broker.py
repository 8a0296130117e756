"""The broker role adds replicas, groups and transactions to a node, and the membership in its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykbroker.protocol.uuids import random_uuid
from pykbroker.replication.fetch_session import FetchSessionCache

from ...coordinators.group_coordinator import GroupCoordinator
from ...coordinators.leadership import Leadership
from ...quorum.committed_metadata import CommittedMetadata
from ...replicas.directory_assignments import DirectoryAssignments
from ...replicas.fetch_sightings import FetchSightings
from ...replicas.log_moves import LogMoves, moves_at_once
from ...replicas.replica_selector import replica_selector
from ...sharing.share_partitions import SharePartitions
from ..auto_topic_creation import AutoTopicCreation
from ..bound_listeners import BoundListener
from ..broker import Broker, ClusterNode
from ..broker_lifecycle import BrokerIdentity, BrokerLifecycle
from ..broker_role import BrokerRole
from ..dynamic_settings import DynamicSettings
from ..environment import Environment
from ..node_storage import NodeStorage
from ..unserved_settings import UnservedSettings
from .replicas import node_replication, replica_manager
from .sharing import node_sharing, writes_letters
from .transactions import node_transactions

if TYPE_CHECKING:
    from ..node_telemetry import NodeTelemetry


def broker_role(
    node: ClusterNode, storage: NodeStorage, environment: Environment, advertised: tuple[BoundListener, ...]
) -> BrokerRole:
    """The broker role of this node. advertised: the addresses that clients are told, one for each listener."""
    assignments = DirectoryAssignments(node.controller_channel, lambda: node.image, node.node_id)
    identity = _identity(node, storage, environment, advertised)
    broker = _broker(node, storage, environment, assignments, identity.incarnation_id)
    replicas = broker.partitions
    lifecycle = BrokerLifecycle(
        identity,
        node.controller_channel,
        lambda: node.image,
        node.config,
        node.clock,
        offline_directories=lambda: replicas.failures.offline_directory_ids,
        cordoned_directories=replicas.cordoned_directory_ids,
    )
    replicas.failures.on_offline = lifecycle.wake
    replication = node_replication(node.config, replicas, broker.transactions.inter_broker, node.clock)
    settings = DynamicSettings(node.config, replicas.cleaner, replication.fetchers, replicas.logs)
    unserved = UnservedSettings(node.node_id, has_authorizer=node.authorizer is not None)
    for listener in (
        replicas.apply,
        broker.groups.apply,
        broker.sharing.coordinator.apply,
        lifecycle.apply,
        settings.apply,
        unserved.apply,
    ):
        node.metadata.subscribe(listener)
    node.metadata.watch(replicas.note_applied)
    return BrokerRole(broker, replication, assignments, lifecycle, settings)


def _broker(
    node: ClusterNode,
    storage: NodeStorage,
    environment: Environment,
    assignments: DirectoryAssignments,
    incarnation_id: bytes,
) -> Broker:
    config, clock, threads = node.config, node.clock, node.threads
    replicas = replica_manager(
        config,
        storage.directories,
        incarnation_id=incarnation_id,
        clock=clock,
        threads=threads,
        new_workplace=environment.new_workplace,
        on_loading=environment.on_loading,
        on_placement=assignments.note,
        time=environment.time,
    )
    groups = GroupCoordinator(
        config,
        replicas,
        image=lambda: node.image,
        clock=clock,
        threads=threads,
        rng=environment.fork_rng(),
        time=environment.time,
    )
    transactions = node_transactions(
        config,
        node.controller_channel,
        replicas,
        groups,
        image=lambda: node.image,
        network=environment.network if node.tls is None else node.tls.to_brokers(environment.network),
        credentials=None if node.sasl is None else node.sasl.to_brokers,
        clock=clock,
        threads=threads,
        time=environment.time,
    )
    sharing = node_sharing(
        config,
        node.controller_channel,
        node.image_conditions,
        replicas,
        transactions.inter_broker,
        image=lambda: node.image,
        clock=clock,
        threads=threads,
    )
    groups.share_states.persister = sharing.persister
    for coordinator in (groups, transactions.coordinator, sharing.coordinator):
        replicas.subscribe(coordinator.topic, coordinator)
    session_slots = config.int("max.incremental.fetch.session.cache.slots")
    return Broker(
        config=config,
        node_id=node.node_id,
        cluster_id=node.cluster_id,
        clock=clock,
        threads=threads,
        raft=node.raft,
        metadata=node.metadata,
        controller=node.controller,
        controller_channel=node.controller_channel,
        broker_watch=node.broker_watch,
        image_conditions=node.image_conditions,
        tls=node.tls,
        client_quotas=node.client_quotas,
        partitions=replicas,
        groups=groups,
        transactions=transactions,
        sharing=sharing,
        share_partitions=SharePartitions(
            config,
            replicas,
            sharing.persister,
            transactions.inter_broker,
            node.image_conditions,
            image=lambda: node.image,
            clock=clock,
            threads=threads,
            writes_letters=writes_letters(config),
        ),
        leadership=Leadership(
            transactions.inter_broker,
            CommittedMetadata(node.controller_channel, node.image_conditions),
            timeout_ms=config.int("offsets.commit.timeout.ms"),
        ),
        auto_topic_creation=AutoTopicCreation(config, node.controller_channel, clock),
        log_moves=LogMoves(replicas, assignments, most_at_once=moves_at_once(config), clock=clock, threads=threads),
        fetch_sessions=FetchSessionCache(environment.fork_rng(), session_slots),
        replica_selector=replica_selector(config, lambda: node.image),
        telemetry=_telemetry(node, environment),
        fetch_sightings=FetchSightings() if environment.notes_fetches else None,
        authorizer=node.authorizer,
        sasl=node.sasl,
    )


def _telemetry(node: ClusterNode, environment: Environment) -> NodeTelemetry | None:
    if not environment.takes_telemetry:
        return None
    from ..node_telemetry import NodeTelemetry

    telemetry = NodeTelemetry(node.config, environment.fork_rng(), clock=node.clock, threads=node.threads)
    node.metadata.subscribe(telemetry.clients.subscriptions.apply)
    return telemetry


def _identity(
    node: ClusterNode, storage: NodeStorage, environment: Environment, advertised: tuple[BoundListener, ...]
) -> BrokerIdentity:
    return BrokerIdentity(
        node_id=node.node_id,
        cluster_id=node.cluster_id,
        incarnation_id=random_uuid(environment.rng),
        rack=node.config.optional_str("broker.rack"),
        listeners=advertised,
        log_directory_ids=tuple(directory.directory_id for directory in storage.directories),
        previous_epoch=storage.previous_broker_epoch,
    )
