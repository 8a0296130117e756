"""Rules of the console among the keys: by which listener it is a client of its broker, and who may reach it.

The console itself is `pykbroker.console`, which takes time to import; a start checks the rules without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .keys import InvalidValue
from .listener_keys import listener_prefix
from .listeners import ListenerConfig, uses_sasl, uses_tls
from .own_keys import (
    CHANGES_WITHOUT_LOGIN,
    CONSOLE_CLIENT,
    CONSOLE_CLIENT_LISTENER,
    CONSOLE_LISTENER,
    CONSOLE_READ_ONLY,
    CONSOLE_SECURITY_PROTOCOL,
)

if TYPE_CHECKING:
    from .broker import BrokerConfig

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_CLIENT_AUTH: Final = "ssl.client.auth"
_CERTIFICATE: Final = ("ssl.keystore.location", "ssl.keystore.key")


def listener_of_console(config: BrokerConfig) -> ListenerConfig:
    """Return the listener by which the console is a client of its broker. Raises InvalidValue.

    A listener with users goes first: whoever comes by the console shall not have more rights than other clients.
    """
    listeners = config.listeners.client
    wanted = config.str(CONSOLE_CLIENT_LISTENER).strip()
    if not wanted:
        return min(
            listeners, key=lambda each: (not uses_sasl(each.security_protocol), not uses_tls(each.security_protocol))
        )
    for each in listeners:
        if each.name == wanted.upper():
            return each
    names = ", ".join(each.name for each in listeners)
    raise InvalidValue(CONSOLE_CLIENT_LISTENER, wanted, f"one of this broker's listeners: {names}")


def check_console(config: BrokerConfig, host: str) -> None:
    """Raises InvalidValue where anybody in the network could change the cluster without a name and a password.

    host: the address on which the console listens.
    """
    with_users = uses_sasl(listener_of_console(config).security_protocol)
    if host in LOOPBACK or with_users or config.bool(CONSOLE_READ_ONLY) or config.bool(CHANGES_WITHOUT_LOGIN):
        return
    raise InvalidValue(
        CONSOLE_LISTENER,
        config.str(CONSOLE_LISTENER),
        "other machines reach it, and the broker has no users that log in: set console.read.only=true, or "
        f"{CHANGES_WITHOUT_LOGIN}=true where everybody may change everything",
    )


def certificate_missing(config: BrokerConfig) -> str:
    """Return a line where the listener takes clients with a certificate alone, and the console has none; or nothing."""
    listener = listener_of_console(config)
    with_sasl = uses_sasl(listener.security_protocol)
    own = config.given.get(f"{listener_prefix(listener.name)}{_CLIENT_AUTH}")
    auth = own if own is not None or with_sasl else config.given.get(_CLIENT_AUTH)
    if not uses_tls(listener.security_protocol) or auth is None or auth.strip() != "required":
        return ""
    if any(f"{CONSOLE_CLIENT}{key}" in config.given for key in _CERTIFICATE):
        return ""
    return (
        f"the broker's listener {listener.name} takes clients with a certificate alone, and the console has none: set "
        f"{CONSOLE_CLIENT}{_CERTIFICATE[0]}, or {CONSOLE_CLIENT_LISTENER} for another listener"
    )


def warnings_of_console(config: BrokerConfig, host: str) -> list[str]:
    """Return lines for what a console cannot show, and for what others may see or do with one that they reach.

    host: as above.
    """
    missing = certificate_missing(config)
    found = [f"the console has nothing to show: {missing}"] if missing else []
    if host in LOOPBACK:
        return found
    with_users = uses_sasl(listener_of_console(config).security_protocol)
    if not with_users:
        what = "sees all topics and records" if config.bool(CONSOLE_READ_ONLY) else "may change everything"
        found.append(f"whoever reaches the console from other machines {what}: the broker has no users that log in")
    if config.str(CONSOLE_SECURITY_PROTOCOL) != "SSL":
        read = "passwords and all that it shows" if with_users else "all that it shows"
        found.append(
            f"the console is open to other machines without TLS, so that {read} can be read on the way: "
            f"set {CONSOLE_SECURITY_PROTOCOL}=SSL, or put a proxy with TLS in front of it"
        )
    return found
