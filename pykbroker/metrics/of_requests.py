"""The metrics of requests by API, and of connections and their memory by listener."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykbroker.protocol.api_keys import api_name
from pykbroker.protocol.errors import ErrorCode
from pykbroker.server.runtime.turns import Turn

from .readings import Readings

if TYPE_CHECKING:
    from pykbroker.server.network.listener import Listener
    from pykbroker.server.network.request_metrics import RequestMetrics
    from pykbroker.server.node.composition.parts import NodeParts

_STEPS_OF_API = 20


async def read_requests(requests: RequestMetrics, readings: Readings, turn: Turn) -> None:
    """Read the APIs that were asked for since the start."""
    name = "kafka_network_requestmetrics_{}"
    for api_key, api in sorted(requests.by_api.items()):
        request = api_name(api_key)
        for version, count in sorted(api.versions.items()):
            readings.add(name.format("requests"), count, request, str(version))
        for code, count in sorted(api.errors.items()):
            readings.add(name.format("errors"), count, request, _error(code))
        readings.add(name.format("requestbytes"), api.request_bytes, request)
        readings.add_histogram(name.format("totaltimems"), api.total, request)
        count = sum(api.total.counts)
        for part, part_ns in (("local", api.local_ns), ("remote", api.remote_ns), ("responsesend", api.send_ns)):
            readings.add_summary(name.format(f"{part}timems"), count, part_ns / 1e6, request)
        await turn.took(_STEPS_OF_API)


def _error(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def read_connections(parts: NodeParts, readings: Readings) -> None:
    """Read the listeners and the memory that those of one kind share."""
    for listeners, kind in ((parts.client_listeners, "client"), (parts.controller_listeners, "controller")):
        for each in listeners:
            _read_listener(each, readings)
        if listeners:
            memory = listeners[0].memory
            readings.add("pykbroker_memory_bytes", memory.request_bytes, "requests", kind)
            readings.add("pykbroker_memory_bytes", memory.answer_bytes, "answers", kind)
            readings.add("pykbroker_memory_limit_bytes", memory.request_limit_bytes, "requests", kind)
            readings.add("pykbroker_memory_limit_bytes", memory.answer_limit_bytes, "answers", kind)


def _read_listener(listener: Listener, readings: Readings) -> None:
    name, of = listener.name, "kafka_server_socket_server_metrics_{}"
    readings.add(of.format("connection_count"), listener.connection_count, name)
    readings.add(of.format("connection_creation"), listener.created_connections, name)
    readings.add(of.format("connection_close"), listener.closed_connections, name)
    readings.add("pykbroker_connections_refused", listener.refused_connections, name)
    readings.add("pykbroker_connections_throttled", listener.throttled_connections, name)
