"""Where a broker is, by the address that its client has reached (`advertised.listeners=auto`)."""

from __future__ import annotations

from typing import Any

import pytest

from pykbroker.api.current_leader import current_leader
from pykbroker.api.metadata import metadata
from pykbroker.protocol.messages.metadata import MetadataRequest
from pykbroker.server.network.handlers import ConnectionState
from pykbroker.server.network.transport import Address

from .api_node import ApiNode, in_virtual_time
from .turns_taken import context_of

REACHED = Address("10.0.0.7", 19092)


def _client(reached: Address | None) -> ConnectionState:
    return ConnectionState("PLAINTEXT", "10.0.0.9", reached=reached)


def _brokers(node: ApiNode, reached: Address | None) -> dict[int, tuple[str, int]]:
    async def ask() -> Any:
        return await node.call(
            metadata, MetadataRequest(topics=None, allow_auto_topic_creation=False), 13, connection=_client(reached)
        )

    return {each.node_id: (each.host, each.port) for each in in_virtual_time(ask).brokers}


def test_this_broker_is_where_it_was_reached_and_others_where_they_registered(node: ApiNode) -> None:
    registered = _brokers(node, None)
    own = node.broker.node_id
    assert len(registered) > 1
    assert _brokers(node, REACHED) == registered | {own: tuple(REACHED)}


@pytest.mark.parametrize("is_own", [True, False])
def test_the_leader_that_a_client_is_sent_to_follows_the_same_rule(node: ApiNode, is_own: bool) -> None:
    own = node.broker.node_id
    leader = own if is_own else next(each for each in _brokers(node, None) if each != own)
    node.create_topic("records", leader=leader)
    context = context_of(node.broker, MetadataRequest(topics=None), 13)
    context.connection.reached = REACHED
    told = current_leader(context, "records", 0).node
    assert told is not None
    assert ((told.host, told.port) == REACHED) == is_own
