"""What a node serves: a table of handlers for each kind of listener.

A module of `pykbroker.api` registers its handler here when it is imported; nothing of a node is in the tables. Brokers'
listeners belong to nodes with the broker role, controllers' listeners also to nodes without it. So a handler that
answers on the latter takes a `RequestContext[ClusterNode]`; type checkers refuse one that asks for a `Broker`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..network.handlers import MOST_ENTRIES, HandlerFunction, HandlerTable, RequestT
from .broker import Broker, ClusterNode


class Handlers:
    def __init__(self) -> None:
        self.broker: HandlerTable[Broker] = HandlerTable("broker")
        self.controller: HandlerTable[ClusterNode] = HandlerTable("controller")


HANDLERS = Handlers()
"""Filled by importing `pykbroker.api`; constant from then on."""

handles = HANDLERS.broker.handles
handles_on_controllers = HANDLERS.controller.handles


def handles_on_all_nodes(
    request_type: type[RequestT], *, most_entries: int = MOST_ENTRIES
) -> Callable[[HandlerFunction[ClusterNode, RequestT]], HandlerFunction[ClusterNode, RequestT]]:
    """Register a handler on brokers' listeners and on controllers'."""

    def register(function: HandlerFunction[ClusterNode, RequestT]) -> HandlerFunction[ClusterNode, RequestT]:
        handles(request_type, most_entries=most_entries)(function)
        return handles_on_controllers(request_type, most_entries=most_entries)(function)

    return register
