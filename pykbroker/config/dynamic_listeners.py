"""Listeners of a broker that come and go while it runs, by `listeners` and `listener.security.protocol.map`.

The model is Kafka's `DynamicListenerConfig`. The listeners of the properties file that are advertised stay, where they
are and with their security protocols, and those of controllers stay as well. Others may be added, moved and removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from .broker import BrokerConfig
from .broker_keys import broker_keys
from .keys import ConfigurationError, InvalidValue
from .listeners import ListenerConfig, Listeners, resolve

LISTENERS: Final = "listeners"
PROTOCOL_MAP: Final = "listener.security.protocol.map"
KEYS: Final = (LISTENERS, PROTOCOL_MAP)


def wanted_listeners(config: BrokerConfig, static: Listeners, dynamic: Mapping[str, str]) -> Listeners:
    """Return the listeners of a broker where these texts are set at run time.

    static: those that its properties file gives. dynamic: all that is set for the broker. Raises ConfigurationError
    where it could not have them.
    """
    set_ = {key: dynamic[key] for key in KEYS if key in dynamic}
    if not set_:
        return static
    key = broker_keys()[LISTENERS]
    listeners = config.list(LISTENERS)
    if LISTENERS in set_:
        parsed = key.parse(set_[LISTENERS])
        assert isinstance(parsed, list)
        if not parsed:
            raise InvalidValue(LISTENERS, "", "a broker has a listener")
        listeners = parsed
    advertised = None if config.value("advertised.listeners") is None else config.list("advertised.listeners")
    found = resolve({**config.originals, **set_}, listeners, advertised, roles=sorted(config.roles))
    _check_kept(static, found)
    return found


def check_protocols(before: Listeners, after: Listeners) -> None:
    """Raises ConfigurationError where a listener that is there would have another security protocol."""
    protocols = {each.name: each.security_protocol for each in before.client}
    for each in after.client:
        if protocols.get(each.name, each.security_protocol) != each.security_protocol:
            raise ConfigurationError(
                f"Security protocol cannot be updated for existing listener ListenerName({each.name})"
            )


def served(static: Listeners, wanted: Listeners) -> dict[str, ListenerConfig]:
    """Return where a broker listens for its clients, by name: the file's own listeners stay where they are."""
    of_file = {each.name: each for each in static.client}
    return {each.name: of_file.get(each.name, each) for each in wanted.client}


def _check_kept(static: Listeners, wanted: Listeners) -> None:
    names = {each.name for each in wanted.all}
    if not {each.name for each in static.advertised} <= names:
        raise ConfigurationError(
            f"Advertised listeners '{_shown(static.advertised)}' must be a subset of listeners '{_shown(wanted.all)}'"
        )
    if [(each.name, each.security_protocol) for each in static.controller] != [
        (each.name, each.security_protocol) for each in wanted.controller
    ]:
        raise ConfigurationError("Listeners of controllers cannot be changed while they run")
    check_protocols(static, wanted)


def _shown(listeners: Iterable[ListenerConfig]) -> str:
    return f"Set({', '.join(f'ListenerName({each.name})' for each in listeners)})"
