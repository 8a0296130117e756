"""What handlers see of their node. It is built once per node; nothing here waits or decides."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pykbroker.config import BrokerConfig

from .clock import Clock
from .producer_ids import ProducerIds
from .threads import Threads

if TYPE_CHECKING:
    from pykbroker.metadata.image import MetadataImage
    from pykbroker.replication.fetch_session import FetchSessionCache

    from .controller_driver import ControllerDriver
    from .coordinator_driver import CoordinatorDriver
    from .replica_manager import ReplicaManager

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
class Broker:
    config: BrokerConfig
    node_id: int
    cluster_id: str
    clock: Clock
    rng: random.Random
    threads: Threads
    controller: ControllerDriver
    partitions: ReplicaManager
    groups: CoordinatorDriver
    fetch_sessions: FetchSessionCache
    advertised: tuple[BoundListener, ...] = field(default=())
    """What clients are told, one for each listener of the broker."""
    producer_ids: ProducerIds = field(init=False)

    def __post_init__(self) -> None:
        self.producer_ids = ProducerIds(self.controller, self.node_id)

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata that this node has."""
        return self.controller.image
