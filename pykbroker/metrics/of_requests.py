"""The metrics of requests by API, and of connections and their memory by listener."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykbroker.protocol.api_keys import api_name
from pykbroker.protocol.errors import ErrorCode
from pykbroker.server.runtime.turns import Turn

from .readings import Readings

if TYPE_CHECKING:
    from pykbroker.server.network.listener import Listener
    from pykbroker.server.network.request_metrics import ApiMetrics, RequestMetrics
    from pykbroker.server.node.composition.parts import NodeParts

_STEPS_OF_API = 40


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
        _read_times(api, name, request, readings)
        await turn.took(_STEPS_OF_API)


def _read_times(api: ApiMetrics, name: str, request: str, readings: Readings) -> None:
    """Read the parts of a request's time; of waits those alone that there were."""
    readings.add_histogram(name.format("totaltimems"), api.total, request)
    count = sum(api.total.counts)
    for part, times in (("local", api.local), ("responsesend", api.send)):
        readings.add_histogram(name.format(f"{part}timems"), times.among(count), request)
    for part, times in (
        ("requestqueue", api.request_queue),
        ("remote", api.remote),
        ("responsequeue", api.response_queue),
        ("throttle", api.throttle),
    ):
        if times.sum_ns:
            readings.add_histogram(name.format(f"{part}timems"), times.among(count), request)


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
