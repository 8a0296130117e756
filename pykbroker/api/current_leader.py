"""Who leads a partition now, for answers that send a client there (KIP-951)."""

from __future__ import annotations

from typing import NamedTuple

from pykbroker.metadata.partition_state import NO_LEADER
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker

_NO_EPOCH = -1


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
    endpoint = None if broker is None or broker.fenced else broker.endpoint(context.listener_name)
    if broker is None or endpoint is None:
        return CurrentLeader(state.leader, state.leader_epoch)
    node = LeaderNode(broker.id, endpoint.host, endpoint.port, broker.rack)
    return CurrentLeader(state.leader, state.leader_epoch, node)
