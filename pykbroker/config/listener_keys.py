"""Keys of one listener: `listener.name.<listener>.<key>`, and `listener.name.<listener>.<mechanism>.<key>` of SASL.

Listeners are named in lower case there, as in Kafka (`ListenerName.configPrefix`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from .broker_keys import broker_keys
from .keys import ConfigKey, InvalidValue
from .listeners import uses_tls

PREFIX = "listener.name."
MOST_PARTS = 10
"""Between dots, of a key behind its listener; every key that is known has fewer."""
_PROTECTING = ("ssl.", "sasl.")
_CLIENT_AUTH = "ssl.client.auth"
_MECHANISMS = "sasl.enabled.mechanisms"
_REAUTHENTICATION = "connections.max.reauth.ms"
_JAAS = "sasl.jaas.config"


def listener_prefix(listener: str) -> str:
    """The beginning of the keys that are given for this listener alone."""
    return f"{PREFIX}{listener.lower()}."


def is_of_a_listener(name: str) -> bool:
    return name.startswith(PREFIX)


def tails(name: str) -> Iterator[str]:
    """Return all names that the key behind the listener, and perhaps behind a mechanism, may have.

    The first is all that stands behind the listener; of the others, those with more than MOST_PARTS are left out, since
    a name may be long, and full of dots.
    """
    parts = _behind_listener(name).rsplit(".", MOST_PARTS)
    return (".".join(parts[i:]) for i in range(len(parts) if "." in name.removeprefix(PREFIX) else 0))


def begins_with_family(name: str, families: tuple[str, ...]) -> bool:
    """Tell whether a tail that `tails` leaves out begins with one of these."""
    rest = name.removeprefix(PREFIX)
    end = len(rest.rsplit(".", MOST_PARTS)[0])
    return any(rest.find(f".{family}", 0, end + len(family)) >= 0 for family in families)


def _behind_listener(name: str) -> str:
    return name.removeprefix(PREFIX).partition(".")[2]


def is_sasl_at_run_time(name: str) -> bool:
    """Tell whether a key of SASL may change while a node runs: who is let in, and for how long a session lasts.

    These are the mechanisms of a listener or of all, the JAAS line of a mechanism, and the lifetime of sessions.
    """
    if not is_of_a_listener(name):
        return name == _MECHANISMS
    key = _behind_listener(name)
    of_mechanism = key.partition(".")[2]
    return key in (_MECHANISMS, _REAUTHENTICATION) or of_mechanism in (_JAAS, _REAUTHENTICATION)


def key_of_listener(name: str) -> ConfigKey | None:
    """The key that is set for one listener by this name; None where nobody knows it."""
    return next((broker_keys()[each] for each in tails(name) if each in broker_keys()), None)


def check_listeners_exist(names: Iterable[str], listeners: Collection[str]) -> None:
    """Raises InvalidValue where a key that protects is for a listener that nobody has.

    Kafka ignores such a key, and the listener that was meant stays open.
    """
    prefixes = tuple(map(listener_prefix, listeners))
    for name in names:
        if is_of_a_listener(name) and not name.startswith(prefixes) and _protects(name):
            known = ", ".join(sorted(each.lower() for each in listeners))
            raise InvalidValue(name, "[hidden]", f"no listener has this name; in lower case they are {known}")


def check_client_auth(given: Mapping[str, str], listeners: Mapping[str, str]) -> None:
    """Raises InvalidValue where a listener is to ask for certificates and has no TLS.

    given: texts by key. listeners: the security protocols of this node's listeners by their names.
    """
    for name, text in given.items():
        own = {f"{listener_prefix(each)}{_CLIENT_AUTH}": protocol for each, protocol in listeners.items()}
        meant = list(own.values()) if name == _CLIENT_AUTH else [own[name]] if name in own else []
        if meant and text.strip() not in ("none", "") and not any(map(uses_tls, meant)):
            raise InvalidValue(name, text, "without TLS a listener sees no certificates; none is the one allowed")


def _protects(name: str) -> bool:
    """Tell whether something behind the listener begins as a key that protects does."""
    rest = name.removeprefix(PREFIX)
    return any(f".{family}" in rest for family in _PROTECTING)
