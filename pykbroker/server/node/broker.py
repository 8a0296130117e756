"""Handlers see their node as a `ClusterNode` or, on brokers' listeners, as a `Broker`.

Both are plain collections of a node's parts, made once by `composition`; nothing here waits or decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from pykbroker.config import BrokerConfig
from pykbroker.metadata.encoded_topics import EncodedTopicsOfNode
from pykbroker.metadata.image import MetadataImage
from pykbroker.quotas.client_quotas import ClientQuotas
from pykbroker.replication.fetch_session import FetchSessionCache
from pykbroker.replication.replica_selector import RackAwareReplicaSelector
from pykbroker.sharing.persister import Persister

from ..coordinators.group_coordinator import GroupCoordinator
from ..coordinators.leadership import Leadership
from ..coordinators.share_coordinator import ShareCoordinator
from ..quorum.broker_watch import BrokerWatch
from ..quorum.controller_channel import ControllerChannel
from ..quorum.controller_driver import ControllerDriver
from ..quorum.image_conditions import ImageConditions
from ..quorum.metadata_publisher import MetadataPublisher
from ..quorum.raft_driver import RaftDriver
from ..replicas.fetch_sightings import FetchSightings
from ..replicas.fetch_waits import FetchWaits
from ..replicas.log_moves import LogMoves
from ..replicas.replica_manager import ReplicaManager
from ..runtime.clock import Clock
from ..runtime.threads import Threads
from ..runtime.turns import LongRequests
from ..sharing.share_partitions import SharePartitions
from .auto_topic_creation import AutoTopicCreation
from .node_authorizer import NodeAuthorizer
from .node_sharing import NodeSharing
from .node_transactions import NodeTransactions

if TYPE_CHECKING:
    from .dynamic_listeners import DynamicListeners
    from .node_sasl import NodeSasl
    from .node_telemetry import NodeTelemetry
    from .node_tls import NodeTls


@dataclass(slots=True)
class ClusterNode:
    """The parts that every node has, whatever its roles. controller, broker_watch: None without the controller role."""

    config: BrokerConfig
    node_id: int
    cluster_id: str
    clock: Clock
    threads: Threads
    raft: RaftDriver
    metadata: MetadataPublisher
    controller: ControllerDriver | None
    controller_channel: ControllerChannel
    broker_watch: BrokerWatch | None
    image_conditions: ImageConditions
    client_quotas: ClientQuotas
    tls: NodeTls | None
    """None where no listener has TLS."""
    authorizer: NodeAuthorizer | None = field(default=None, kw_only=True)
    """None where everybody may do everything."""
    sasl: NodeSasl | None = field(default=None, kw_only=True)
    """None where no listener has SASL."""

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata that this node has."""
        return self.metadata.image


@dataclass(slots=True)
class Broker(ClusterNode):
    """A node with the broker role."""

    partitions: ReplicaManager
    groups: GroupCoordinator
    transactions: NodeTransactions
    sharing: NodeSharing
    auto_topic_creation: AutoTopicCreation
    log_moves: LogMoves
    share_partitions: SharePartitions
    leadership: Leadership
    fetch_sessions: FetchSessionCache
    replica_selector: RackAwareReplicaSelector | None = None
    """The selector refers consumers to closer replicas (`replica.selector.class`); None where none is configured."""
    fetch_sightings: FetchSightings | None = None
    """None where nobody asks why a consumer gets nothing."""
    telemetry: NodeTelemetry | None = None
    """None where nobody shows what clients push."""
    listeners: DynamicListeners | None = None
    """None where a test has none."""
    fetch_waits: FetchWaits = field(default_factory=FetchWaits)
    replica_turns: LongRequests = field(default_factory=LongRequests)
    """Other brokers' fetches have turns of their own: replication does not queue behind long requests of clients."""
    encoded_topics: EncodedTopicsOfNode = field(default_factory=EncodedTopicsOfNode)
    encoding_all_topics: trio.Lock = field(default_factory=trio.Lock)

    @property
    def share_coordinator(self) -> ShareCoordinator:
        return self.sharing.coordinator

    @property
    def persister(self) -> Persister:
        """The state of share partitions, whichever broker coordinates them."""
        return self.sharing.persister
