"""The addresses on which a node listens and those that it advertises: `listeners` and the keys around it.

The rules are those of Kafka's `KafkaConfig`, with two additions: a controller listener that nobody named is on a free
loopback port, and `auto` in `advertised.listeners`, or `NAME://auto` for one listener, answers each client with the
address that its connection has reached. Kafka refuses both forms: what Kafka takes has no other meaning here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from .keys import InvalidValue

_LISTENER = re.compile(r"([^:/]+)://(?:\[([0-9a-fA-F:.%]+)\]|([^:/\[\]]*)):(-?[0-9]+)", re.ASCII)
_SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
AUTO = "auto"
"""In `advertised.listeners`, for all listeners of clients; `NAME://auto` is for one of them."""
_AUTO_LISTENER = re.compile(r"([^:/]+)://auto", re.ASCII | re.IGNORECASE)
_WILDCARDS = ("0.0.0.0", "::", "0:0:0:0:0:0:0:0")  # noqa: S104 - a name for it


def uses_sasl(security_protocol: str) -> bool:
    return security_protocol.startswith("SASL_")


def uses_tls(security_protocol: str) -> bool:
    return security_protocol.endswith("SSL")


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """An endpoint as the configuration has it. `port` 0 is a free one, chosen when it is bound.

    An empty host is every address where it is bound, and stands for the machine's own name where it is advertised.
    """

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Listeners:
    """All endpoints of one node.

    client: where the broker listens for clients and other brokers; empty on a pure controller.
    controller: where the controller listens; empty on a pure broker.
    advertised: what Metadata answers, one per client listener; a port 0 stands for the one that was bound. Of a
    listener in `auto` it is what other brokers are told.
    """

    client: tuple[ListenerConfig, ...]
    controller: tuple[ListenerConfig, ...]
    advertised: tuple[ListenerConfig, ...]
    inter_broker_name: str
    controller_names: tuple[str, ...]
    """The names of all controllers' listeners; this node reaches others' at the first of them."""
    with_tls: Mapping[str, str]
    """The security protocols of the listeners with TLS, this node's and those at which it reaches others."""
    known_names: frozenset[str]
    """All that the configuration names, those of other nodes included."""
    advertised_controller: tuple[ListenerConfig, ...] = ()
    """Where other nodes find this controller: the listeners of `controller`, or what is advertised in their place."""
    controller_security_protocol: str = "PLAINTEXT"
    """How controllers are spoken to, also by a broker without a controller."""
    known_protocols: frozenset[str] = frozenset()
    """The names of listeners of which the security protocol is known."""
    auto: frozenset[str] = frozenset()
    """The names of the listeners whose clients are told the address of this node that they have reached."""

    @property
    def all(self) -> tuple[ListenerConfig, ...]:
        return self.client + self.controller

    @property
    def security_protocols(self) -> set[str]:
        """The protocols by which this node is spoken to, and that of controllers."""
        return {each.security_protocol for each in self.all} | {self.controller_security_protocol}

    def security_protocol(self, name: str) -> str:
        """The protocol of one of this node's listeners."""
        return next(listener.security_protocol for listener in self.all if listener.name == name)

    def advertised_for(self, name: str) -> ListenerConfig | None:
        return next((listener for listener in self.advertised if listener.name == name), None)


def parse_endpoint(key: str, text: str) -> tuple[str, str, int]:
    """`NAME://host:port` as name, host and port; names are upper case, as Kafka has it."""
    match = _LISTENER.fullmatch(text.strip())
    if match is None or not -1 <= int(match[4]) <= 65535:
        raise InvalidValue(key, text, "a listener is written NAME://host:port, with a port from 0 to 65535")
    return match[1].upper(), match[2] or match[3] or "", int(match[4])


def resolve(
    values: Mapping[str, str],
    listeners: Sequence[str],
    advertised: Sequence[str] | None,
    *,
    roles: Sequence[str],
) -> Listeners:
    """Resolve the listeners of a node. values: the given keys, as text; listeners, advertised: the parsed lists."""
    names = _controller_names(values)
    protocols = _protocol_map(values, names)
    bound = _endpoints("listeners", listeners, protocols)
    client = tuple(each for each in bound if each.name not in names) if "broker" in roles else ()
    controller = tuple(each for each in bound if each.name in names)
    if "controller" in roles and not controller:
        controller = (_implied_controller(values, names, protocols),)
    if "controller" not in roles and controller:
        raise InvalidValue(
            "listeners",
            values.get("listeners"),
            f"a node without the controller role has no listener of controller.listener.names ({', '.join(names)})",
        )
    if "broker" in roles and not client:
        raise InvalidValue(
            "listeners",
            values.get("listeners"),
            f"a broker needs a listener that is not in controller.listener.names ({', '.join(names)})",
        )
    if "broker" not in roles and len(bound) > len(controller):
        raise InvalidValue(
            "listeners",
            values.get("listeners"),
            f"a controller alone has no listener but those of controller.listener.names ({', '.join(names)})",
        )
    auto = _auto_names(advertised or (), client)
    if advertised is not None:
        advertised = _without_auto(advertised, client, auto)
    everything = None if advertised is None else _endpoints("advertised.listeners", advertised, protocols)
    shown = _advertised(client, everything, names) if "broker" in roles else ()
    inter_broker = _inter_broker_name(values, shown) if "broker" in roles else ""
    by_name = {each.name: each for each in everything or ()}
    told = tuple(by_name.get(each.name, each) for each in controller)
    with_tls = _with_tls([*bound, *controller], names[0], protocols)
    known = frozenset((*protocols, *names, *(each.name for each in bound)))
    of_controllers = protocols.get(names[0], "PLAINTEXT")
    return Listeners(
        client,
        controller,
        shown,
        inter_broker,
        names,
        with_tls,
        known,
        told,
        of_controllers,
        known_protocols=frozenset(protocols),
        auto=auto,
    )


def _auto_names(advertised: Sequence[str], client: Sequence[ListenerConfig]) -> frozenset[str]:
    """Return the names of the listeners that are advertised by `auto`."""
    key, texts = "advertised.listeners", [text.strip() for text in advertised]
    if any(text.lower() == AUTO for text in texts):
        if len(texts) > 1:
            raise InvalidValue(key, ",".join(texts), "`auto` stands alone, for all listeners; NAME://auto is for one")
        return frozenset(each.name for each in client)
    names = [match[1].upper() for text in texts if (match := _AUTO_LISTENER.fullmatch(text)) is not None]
    for name in names:
        if all(each.name != name for each in client):
            raise InvalidValue(key, f"{name}://{AUTO}", "only listeners of clients can be advertised by auto")
    return frozenset(names)


def _without_auto(advertised: Sequence[str], client: Sequence[ListenerConfig], auto: Collection[str]) -> list[str]:
    """Return what is told to other nodes: in the place of `auto` the listener's own address, or the machine's name."""
    own = {each.name: str(replace(each, host="") if each.host in _WILDCARDS else each) for each in client}
    texts: list[str] = []
    for text in advertised:
        match = _AUTO_LISTENER.fullmatch(text.strip())
        if match is not None:
            texts.append(own[match[1].upper()])
        elif text.strip().lower() == AUTO:
            texts += [own[name] for name in own if name in auto]
        else:
            texts.append(text)
    return texts


def _with_tls(bound: Sequence[ListenerConfig], controller_name: str, protocols: Mapping[str, str]) -> dict[str, str]:
    """A broker alone has no controller listener, and must know all the same how to speak to one."""
    own = {each.name: each.security_protocol for each in bound}
    used = {controller_name: protocols.get(controller_name, "PLAINTEXT"), **own}
    return {name: protocol for name, protocol in used.items() if uses_tls(protocol)}


def _controller_names(values: Mapping[str, str]) -> tuple[str, ...]:
    names = tuple(name.strip().upper() for name in values.get("controller.listener.names", "CONTROLLER").split(","))
    if not all(names):
        raise InvalidValue("controller.listener.names", values["controller.listener.names"], "a list of listener names")
    return names


def _protocol_map(values: Mapping[str, str], controller_names: Sequence[str]) -> dict[str, str]:
    text = values.get("listener.security.protocol.map")
    protocols = {name: name for name in _SECURITY_PROTOCOLS}
    if text is None:
        return protocols | {name: "PLAINTEXT" for name in controller_names if name not in protocols}
    protocols.clear()
    for entry in text.split(","):
        name, colon, protocol = entry.strip().partition(":")
        if not colon or protocol.strip().upper() not in _SECURITY_PROTOCOLS:
            raise InvalidValue(
                "listener.security.protocol.map",
                text,
                f"a list of NAME:PROTOCOL, with a protocol of {', '.join(_SECURITY_PROTOCOLS)}",
            )
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def _endpoints(key: str, texts: Sequence[str], protocols: Mapping[str, str]) -> list[ListenerConfig]:
    found: list[ListenerConfig] = []
    for text in texts:
        name, host, port = parse_endpoint(key, text)
        if name not in protocols:
            raise InvalidValue(key, text, f"no security protocol is given for {name} in listener.security.protocol.map")
        if any(each.name == name for each in found):
            raise InvalidValue(key, ",".join(texts), "each listener must have a different name")
        if port > 0 and key == "listeners" and any(each.port == port and _overlap(each.host, host) for each in found):
            raise InvalidValue(key, ",".join(texts), "each listener must have a different port")
        found.append(ListenerConfig(name, host, port, protocols[name]))
    return found


def _overlap(one: str, other: str) -> bool:
    return one == other or "" in (one, other) or one in _WILDCARDS or other in _WILDCARDS


def _implied_controller(
    values: Mapping[str, str], names: Sequence[str], protocols: Mapping[str, str]
) -> ListenerConfig:
    if "controller.listener.names" in values and "listeners" in values:
        raise InvalidValue(
            "controller.listener.names",
            values["controller.listener.names"],
            "a controller needs one of these listeners in `listeners`",
        )
    return ListenerConfig(names[0], "127.0.0.1", 0, protocols.get(names[0], "PLAINTEXT"))


def _advertised(
    client: Sequence[ListenerConfig], advertised: Sequence[ListenerConfig] | None, controller_names: Sequence[str]
) -> tuple[ListenerConfig, ...]:
    key = "advertised.listeners"
    shown = [each for each in (client if advertised is None else advertised) if each.name not in controller_names]
    for each in shown:
        if each.host in _WILDCARDS:
            raise InvalidValue(
                key,
                each,
                "clients cannot connect to the address of all interfaces; name one they "
                "can reach in advertised.listeners, or set advertised.listeners=auto",
            )
        if each.port < 0:
            raise InvalidValue(key, each, "a port from 0 to 65535")
        if all(each.name != bound.name for bound in client):
            raise InvalidValue(key, each, "only the names of `listeners` can be advertised")
    return tuple(shown)


def _inter_broker_name(values: Mapping[str, str], advertised: Sequence[ListenerConfig]) -> str:
    given = values.get("inter.broker.listener.name")
    protocol = values.get("security.inter.broker.protocol")
    if given is not None and protocol is not None:
        raise InvalidValue(
            "security.inter.broker.protocol",
            protocol,
            "only one of inter.broker.listener.name and security.inter.broker.protocol may be set",
        )
    names = [each.name for each in advertised]
    name = (given or protocol or ("PLAINTEXT" if "PLAINTEXT" in names or not names else names[0])).upper()
    if name not in names:
        key = "inter.broker.listener.name" if given else "security.inter.broker.protocol"
        raise InvalidValue(key, name, f"one of the advertised listeners: {', '.join(names)}")
    return name
