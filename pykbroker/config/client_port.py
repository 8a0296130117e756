"""The port for clients as one number, in the place of the one in `listeners`."""

from __future__ import annotations

from .broker import BrokerConfig
from .keys import InvalidValue
from .listeners import ListenerConfig, parse_endpoint


def at_client_port(config: BrokerConfig, port: int) -> dict[str, str]:
    """`listeners`, and `advertised.listeners` if that is given, with the first listener for clients at `port`.

    What is advertised moves along where it was the same port. Raises InvalidValue for a node without such a listener.
    """
    if not config.listeners.client:
        raise InvalidValue("--port", port, "a node without the broker role has no listener for clients")
    first = config.listeners.client[0]
    bound = [_moved(text, "listeners", first, port) for text in config.list("listeners")]
    values = {"listeners": ",".join(bound)}
    if config.value("advertised.listeners") is not None:
        shown = [_moved(text, "advertised.listeners", first, port) for text in config.list("advertised.listeners")]
        values["advertised.listeners"] = ",".join(shown)
    return values


def _moved(text: str, key: str, from_listener: ListenerConfig, port: int) -> str:
    name, host, old = parse_endpoint(key, text)
    is_meant = name == from_listener.name and old == from_listener.port
    return str(ListenerConfig(name, host, port if is_meant else old))
