"""A look at what an advance has made due: it happens at once, and the look ends when it has happened.

The parts of a node look at intervals for what is too old. Each is asked for a look that begins now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence

from pykbroker.server.node.broker import Broker
from pykbroker.server.node.composition.parts import NodeParts

Look = Callable[[], Awaitable[None]]


def looks(parts: NodeParts, scopes: Sequence[str]) -> Iterator[tuple[str, Look]]:
    """Give the looks of a node for the scopes, each once, with the scope that it is for."""
    found: dict[Look, str] = {}
    for scope in scopes:
        for look in _looks_of(parts, scope):
            found.setdefault(look, scope)
    for look, scope in found.items():
        yield scope, look


def _looks_of(parts: NodeParts, scope: str) -> Sequence[Look]:
    if scope == "tokens":
        return [] if parts.node.controller is None else [parts.node.controller.sweep_tokens]
    return [] if parts.broker_role is None else _looks_of_broker(parts.broker_role.broker, scope)


def _looks_of_broker(broker: Broker, scope: str) -> Sequence[Look]:
    replicas, transactions = broker.partitions, broker.transactions.coordinator
    match scope:
        case "retention":
            return [replicas.upkeep.retention.at_once]
        case "tombstones":
            return [replicas.cleaner.clean_all]
        case "producers":
            return [replicas.upkeep.producer_expiry.at_once, transactions.look_at_timeouts]
        case "transactions":
            return [transactions.look_at_timeouts]
        case "offsets":
            return [broker.groups.look_now]
        case "sessions":
            return [broker.groups.catch_up]
        case _:
            raise AssertionError(f"nobody looks at {scope}")
