"""What handlers see of their node. It is built once per node; nothing here waits or decides."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import trio

from pykbroker.config import BrokerConfig
from pykbroker.metadata.encoded_topics import EncodedTopicsOfNode
from pykbroker.metadata.image import MetadataImage
from pykbroker.replication.fetch_session import FetchSessionCache
from pykbroker.replication.replica_selector import RackAwareReplicaSelector

from ..coordinators.group_coordinator import GroupCoordinator
from ..quorum.auto_topic_creation import AutoTopicCreation
from ..quorum.broker_watch import BrokerWatch
from ..quorum.controller_channel import ControllerChannel
from ..quorum.controller_driver import ControllerDriver
from ..quorum.image_conditions import ImageConditions
from ..quorum.metadata_publisher import MetadataPublisher
from ..quorum.raft_driver import RaftDriver
from ..replicas.directory_assignments import DirectoryAssignments
from ..replicas.fetch_waits import FetchWaits
from ..replicas.log_moves import LogMoves
from ..replicas.replica_manager import ReplicaManager
from ..runtime.clock import Clock
from ..runtime.threads import Threads
from ..runtime.turns import LongRequests
from .node_transactions import NodeTransactions

_SECURITY_PROTOCOL_IDS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


@dataclass(frozen=True, slots=True)
class BoundListener:
    """Where one listener is reachable, with the port that was really bound."""

    name: str
    host: str
    port: int
    security_protocol: str

    @property
    def security_protocol_id(self) -> int:
        """As registrations have it."""
        return _SECURITY_PROTOCOL_IDS[self.security_protocol]

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


@dataclass(slots=True)
class ClusterNode:
    """What every node has, whatever its roles. controller, broker_watch: None on a broker alone."""

    config: BrokerConfig
    node_id: int
    cluster_id: str
    clock: Clock
    rng: random.Random
    threads: Threads
    raft: RaftDriver
    metadata: MetadataPublisher
    controller: ControllerDriver | None
    controller_channel: ControllerChannel
    broker_watch: BrokerWatch | None
    image_conditions: ImageConditions

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
    auto_topic_creation: AutoTopicCreation
    directory_assignments: DirectoryAssignments
    log_moves: LogMoves
    fetch_sessions: FetchSessionCache
    replica_selector: RackAwareReplicaSelector | None = None
    """Who refers consumers to replicas that are closer (`replica.selector.class`)."""
    advertised: tuple[BoundListener, ...] = field(default=())
    """What clients are told, one for each listener of the broker."""
    fetch_waits: FetchWaits = field(default_factory=FetchWaits)
    replica_turns: LongRequests = field(default_factory=LongRequests)
    """Of fetches by other brokers, so that replication does not stand behind a hundred long requests of clients."""
    encoded_topics: EncodedTopicsOfNode = field(default_factory=EncodedTopicsOfNode)
    encoding_all_topics: trio.Lock = field(default_factory=trio.Lock)
