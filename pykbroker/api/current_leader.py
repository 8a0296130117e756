"""The current leader of a partition, for answers that send a client there (KIP-951) and spare it a Metadata request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from pykbroker.metadata.partition_state import NO_LEADER
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker

from .broker_endpoint import broker_endpoint

_NO_EPOCH = -1

LeaderT = TypeVar("LeaderT")
NodeT = TypeVar("NodeT")


class LeaderNode(NamedTuple):
    """host and port are those of the listener that the client came by."""

    node_id: int
    host: str
    port: int
    rack: str | None


class CurrentLeader(NamedTuple):
    leader_id: int = NO_LEADER
    leader_epoch: int = _NO_EPOCH
    node: LeaderNode | None = None


def current_leader(context: RequestContext[Broker], topic: str, index: int) -> CurrentLeader:
    """The id and epoch are -1 where they are not known, and `node` is None where the leader cannot be reached."""
    image = context.node.image
    state = image.partition(topic, index)
    if state is None:
        return CurrentLeader()
    broker = image.brokers.get(state.leader)
    endpoint = None if broker is None or broker.fenced else broker_endpoint(context, broker)
    if broker is None or endpoint is None:
        return CurrentLeader(state.leader, state.leader_epoch)
    node = LeaderNode(broker.id, endpoint.host, endpoint.port, broker.rack)
    return CurrentLeader(state.leader, state.leader_epoch, node)


class CurrentLeaders(Generic[LeaderT, NodeT]):
    """The leaders that one answer names. nodes: where they can be reached, each of them once.

    leader_type and node_type are the `LeaderIdAndEpoch` and the `NodeEndpoint` of the answer's message.
    """

    def __init__(
        self, context: RequestContext[Broker], leader_type: Callable[..., LeaderT], node_type: Callable[..., NodeT]
    ) -> None:
        self._context = context
        self._leader_type = leader_type
        self._node_type = node_type
        self._named: set[int] = set()
        self.nodes: list[NodeT] = []

    def of(self, topic: str, topic_id: bytes, index: int) -> LeaderT:
        """Return the leader and epoch to tell. topic: the name, empty where the request names the topic by its id."""
        name = topic or self._context.node.partitions.topic_name(topic_id) or ""
        leader = current_leader(self._context, name, index)
        node = leader.node
        if node is not None and node.node_id not in self._named:
            self._named.add(node.node_id)
            self.nodes.append(self._node_type(**node._asdict()))
        return self._leader_type(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch)
