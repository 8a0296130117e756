"""Transactions need a coordinator, markers, the way to other brokers, and producer ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import MetadataImage

from ...coordinators.group_coordinator import GroupCoordinator
from ...coordinators.marker_appends import MarkerAppends
from ...coordinators.producer_ids import ProducerIds
from ...coordinators.transaction_coordinator import TransactionCoordinator
from ...coordinators.transaction_markers import TransactionMarkers
from ...coordinators.transaction_membership import TransactionMembership
from ...network.inter_broker import InterBroker
from ...network.node_connections import NodeConnections
from ...network.transport import Network
from ...quorum.controller_channel import ControllerChannel
from ...replicas.replica_manager import ReplicaManager
from ...runtime.clock import Clock
from ...runtime.threads import Threads
from ...runtime.time_scopes import BY_THE_CLOCK, TimeScopes
from ..node_transactions import NodeTransactions

if TYPE_CHECKING:
    from pykbroker.security.sasl.credentials import Credentials


def node_transactions(
    config: BrokerConfig,
    controller: ControllerChannel,
    replicas: ReplicaManager,
    groups: GroupCoordinator,
    *,
    image: Callable[[], MetadataImage],
    network: Network,
    credentials: Callable[[], Credentials] | None,
    clock: Clock,
    threads: Threads,
    time: TimeScopes = BY_THE_CLOCK,
) -> NodeTransactions:
    """A broker's parts for transactions. groups: takes the markers of transactions that commit offsets.

    network, credentials: the way to other brokers, and what they ask for there.
    """
    node_id = config.node_id
    connections = NodeConnections(
        network,
        client_id=f"broker-{node_id}",
        request_timeout_ms=config.int("request.timeout.ms"),
        threads=threads,
        credentials=credentials,
    )
    inter_broker = InterBroker(connections, image=image, listener_name=config.listeners.inter_broker_name)
    appends = MarkerAppends(replicas, groups, clock)
    markers = TransactionMarkers(node_id, appends, inter_broker, image=image)
    producer_ids = ProducerIds(controller, image, node_id)
    coordinator = TransactionCoordinator(
        config,
        replicas,
        markers,
        take_producer_id=producer_ids.take,
        image=image,
        clock=clock,
        threads=threads,
        time=time,
    )
    membership = TransactionMembership(
        node_id,
        coordinator,
        inter_broker,
        image=image,
        retry_backoff_ms=config.int("add.partitions.to.txn.retry.backoff.ms"),
        retry_backoff_max_ms=config.int("add.partitions.to.txn.retry.backoff.max.ms"),
    )
    return NodeTransactions(coordinator, membership, markers, appends, producer_ids, inter_broker)
