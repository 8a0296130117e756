"""A node serves what stands in two tables of handlers, one for each kind of listener.

A module of `pykbroker.api` registers its handler here when it is imported; nothing of a node is in the tables. Brokers'
listeners belong to nodes with the broker role, controllers' listeners also to nodes without it. A handler that answers
on controllers' listeners therefore takes a `RequestContext[ClusterNode]`, and type checkers refuse one that asks for a
`Broker`. Kafka's counterparts are `KafkaApis` and `ControllerApis`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pykbroker.protocol.api_keys import ApiKey

from ..network.handlers import MOST_ENTRIES, HandlerFunction, HandlerTable, RequestT
from ..network.needs import Needs
from .broker import Broker, ClusterNode
from .guards import guarded_on_brokers, guarded_on_controllers


class Handlers:
    """The handlers of both kinds of listeners."""

    def __init__(self) -> None:
        self.broker: HandlerTable[Broker] = HandlerTable("broker", guarded_on_brokers)
        self.controller: HandlerTable[ClusterNode] = HandlerTable("controller", guarded_on_controllers)


TELEMETRY_APIS: Final = frozenset((ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY))
"""Those of a broker that takes telemetry, and of no other."""

HANDLERS = Handlers()
"""The import of `pykbroker.api` fills these tables; they are constant from then on."""

handles = HANDLERS.broker.handles
handles_on_controllers = HANDLERS.controller.handles


def handles_on_all_nodes(
    request_type: type[RequestT], *, needs: Needs, most_entries: int = MOST_ENTRIES
) -> Callable[[HandlerFunction[ClusterNode, RequestT]], HandlerFunction[ClusterNode, RequestT]]:
    """Register a handler on brokers' listeners and on controllers'."""

    def register(function: HandlerFunction[ClusterNode, RequestT]) -> HandlerFunction[ClusterNode, RequestT]:
        handles(request_type, needs=needs, most_entries=most_entries)(function)
        return handles_on_controllers(request_type, needs=needs, most_entries=most_entries)(function)

    return register
