"""A console's settings: where its broker listens, how users log in there, whether they may change anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.config import BrokerConfig, ListenerConfig
from pykbroker.config.console import certificate_missing, listener_of_console
from pykbroker.config.listeners import uses_sasl, uses_tls
from pykbroker.config.own_keys import CONSOLE_CLIENT, CONSOLE_CLIENT_LISTENER, CONSOLE_READ_ONLY
from pykbroker.server.node.bound_listeners import BoundListener

_ANY_ADDRESS: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - a name for it
_TRUST: Final = (
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
    "ssl.truststore.certificates",
)


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """The settings of one console.

    reached: host and port to which the broker's listener is bound; advertised: those that Metadata tells of it. A
    connection to the latter goes to the former. client_properties: of Java's clients, without a prefix.
    why_unreachable: what keeps the console from its broker, where that is known.
    """

    security_protocol: str
    reached: tuple[str, int]
    advertised: tuple[str, int]
    client_properties: Mapping[str, str]
    is_read_only: bool = False
    why_unreachable: str = ""

    @property
    def needs_login(self) -> bool:
        """Tell whether the broker's listener asks clients who they are by a name and a password."""
        return uses_sasl(self.security_protocol)


def settings_of(config: BrokerConfig, bound: Sequence[BoundListener]) -> ConsoleSettings:
    """Return the settings of the console of a broker that serves. bound: its listeners. Raises ConfigurationError."""
    listener = listener_of_console(config)
    shown = next(each for each in bound if each.name == listener.name)
    return ConsoleSettings(
        security_protocol=listener.security_protocol,
        reached=(_ANY_ADDRESS.get(listener.host, listener.host), listener.port or shown.port),
        advertised=(shown.host, shown.port),
        client_properties=_client_properties(config, listener),
        is_read_only=config.bool(CONSOLE_READ_ONLY),
        why_unreachable=certificate_missing(config),
    )


def _client_properties(config: BrokerConfig, listener: ListenerConfig) -> dict[str, str]:
    """Return `console.client.*` without the prefix. Without a trust store there, the broker's own one is used."""
    given = {
        name.removeprefix(CONSOLE_CLIENT): value
        for name, value in config.given.items()
        if name.startswith(CONSOLE_CLIENT) and name != CONSOLE_CLIENT_LISTENER
    }
    if uses_tls(listener.security_protocol) and not any(name in given for name in _TRUST):
        for name in _TRUST:
            of_listener = f"listener.name.{listener.name.lower()}.{name}"
            value = config.given.get(of_listener, config.given.get(name))
            if value is not None:
                given[name] = value
    return given
