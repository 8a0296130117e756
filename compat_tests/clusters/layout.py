"""Who stands where in a cluster, and the properties that follow from it; the same for every kind of node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compat_tests.brokers import Place

KAFKA, PYKBROKER = "apache-kafka", "pykbroker"
BROKER, CONTROLLER, COMBINED = "broker", "controller", "broker,controller"

INTERNAL_TOPICS = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """kind: KAFKA or PYKBROKER. roles: BROKER, CONTROLLER or COMBINED, as process.roles has them."""

    kind: str
    roles: str = COMBINED
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_broker(self) -> bool:
        return BROKER in self.roles

    @property
    def is_controller(self) -> bool:
        return CONTROLLER in self.roles


@dataclass(frozen=True, slots=True)
class Member:
    """A node that has its id and its place."""

    node_id: int
    spec: NodeSpec
    place: Place

    @property
    def controller_endpoint(self) -> str:
        return f"{self.place.host}:{self.place.controller_port}"

    def listeners(self) -> str:
        listeners = []
        if self.spec.is_broker:
            listeners.append(f"PLAINTEXT://{self.place.host}:{self.place.port}")
        if self.spec.is_controller:
            listeners.append(f"CONTROLLER://{self.controller_endpoint}")
        return ",".join(listeners)


def node_properties(member: Member, members: Iterable[Member], *, is_dynamic: bool) -> dict[str, str]:
    """What every node of this cluster has to be told, but for its directories.

    is_dynamic: the voters stand in the metadata log (KIP-853), and properties say only whom to ask first.
    """
    everyone = list(members)
    controllers = [each for each in everyone if each.spec.is_controller]
    brokers = sum(each.spec.is_broker for each in everyone)
    properties = {
        "process.roles": member.spec.roles,
        "node.id": str(member.node_id),
        "broker.rack": f"rack-{member.node_id}",
        "listeners": member.listeners(),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    if is_dynamic:
        properties["controller.quorum.bootstrap.servers"] = ",".join(each.controller_endpoint for each in controllers)
    else:
        voters = [f"{each.node_id}@{each.controller_endpoint}" for each in controllers]
        properties["controller.quorum.voters"] = ",".join(voters)
    for topic in INTERNAL_TOPICS:
        properties[f"{topic}.replication.factor"] = str(min(brokers, 3))
    for topic in INTERNAL_TOPICS[1:]:
        properties[f"{topic}.min.isr"] = str(min(brokers, 2))
    return properties
