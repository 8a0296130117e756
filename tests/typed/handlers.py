"""Registrations that type checkers take, and such that they refuse: mypy and pyright read this file in `make check`.

A handler on a controller's listener may touch what every node has, and nothing of a broker: the node may not be one.
Each refusal is marked as expected. A mark that is not needed any more is an error for both checkers.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import Callable

from pykbroker.protocol.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.server.network.dispatch import Dispatcher
from pykbroker.server.network.handlers import HandlerTable, RequestContext
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.node.broker import Broker, ClusterNode
from pykbroker.server.node.handlers import Handlers
from pykbroker.server.runtime.threads import Threads
from pykbroker.storage.files.errors import FileError

handlers = Handlers()


@handlers.broker.handles(HeartbeatRequest, needs=NOTHING)
async def heartbeat(context: RequestContext[Broker], request: HeartbeatRequest) -> HeartbeatResponse:
    assert context.node.groups
    return HeartbeatResponse()


async def of_every_node(
    context: RequestContext[ClusterNode], request: BrokerHeartbeatRequest
) -> BrokerHeartbeatResponse:
    assert context.node.raft
    context.node.partitions  # type: ignore[attr-defined]  # noqa: B018
    return BrokerHeartbeatResponse()


async def of_brokers(context: RequestContext[Broker], request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse()


def register(handlers: Handlers) -> None:
    handlers.broker.handles(BrokerHeartbeatRequest, needs=NOTHING)(of_every_node)
    handlers.controller.handles(BrokerHeartbeatRequest, needs=NOTHING)(of_every_node)
    handlers.broker.handles(BrokerHeartbeatRequest, needs=NOTHING)(of_brokers)
    handlers.controller.handles(BrokerHeartbeatRequest, needs=NOTHING)(of_brokers)  # type: ignore[arg-type]


async def pass_on(context: RequestContext[Broker], request: BrokerHeartbeatRequest) -> None:
    """What every node can answer, a broker can."""
    await of_every_node(context, request)


async def pass_on_to_brokers(context: RequestContext[ClusterNode], request: BrokerHeartbeatRequest) -> None:
    await of_brokers(context, request)  # type: ignore[arg-type]


async def call_what_is_served(context: RequestContext[ClusterNode], request: BrokerHeartbeatRequest) -> None:
    for handler in context.listener:
        await handler.function(context, request)  # type: ignore[arg-type]


def listen(
    node: ClusterNode, brokers: HandlerTable[Broker], threads: Threads, disk_failed: Callable[[FileError], None]
) -> None:
    Dispatcher(node, brokers, threads, disk_failed=disk_failed)  # type: ignore[misc]
