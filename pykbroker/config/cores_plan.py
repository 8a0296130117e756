"""The plan of `start --cores`: the settings of each of several nodes that are one cluster on this machine.

The first node is the one that a start without the flag has: its id, its directories, its ports. The others are brokers
beside it, whose settings are the first one's but for what must differ. Node n has each port of the first one, moved on
by n times the smallest step with which no two nodes meet, and a directory `nodes/ID` in each log directory.

Not here: processes (`pykbroker.cli.core_processes`), and what is on the disk.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.storage.directories.directory_names import NODES_DIRECTORY

from .authorizer import EARLY_START_LISTENERS
from .broker import BrokerConfig
from .keys import ConfigurationError, InvalidValue
from .listeners import AUTO, ListenerConfig, parse_endpoint
from .own_keys import CONSOLE_LISTENER, METRICS_LISTENER
from .roles import BOTH

_LOOPBACK: Final = "127.0.0.1"
_MOST_PORT: Final = 65535
_DEV: Final = "--dev"
_ONE_COPY: Final = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""A second copy on the same machine costs as much as the first and protects from nothing but a dead process."""
_COORDINATORS_TOPICS: Final = (
    "offsets.topic.num.partitions",
    "share.coordinator.state.topic.num.partitions",
    "transaction.state.log.num.partitions",
)
"""With --dev they have one partition; here one per node, so that each coordinates."""
_OF_CONTROLLERS: Final = ("broker.id", "controller.quorum.auto.join.enable", EARLY_START_LISTENERS)
"""Keys of the first node that the others have not."""


@dataclass(frozen=True, slots=True)
class CoreNode:
    """One of the nodes. settings: all of them, as text by key. derived: those of them that `--cores` has made."""

    node_id: int
    settings: Mapping[str, str]
    derived: frozenset[str]

    @property
    def name(self) -> str:
        return f"node-{self.node_id}"


def plan_cores(config: BrokerConfig, cores: int, controller_port: int) -> list[CoreNode]:
    """Plan the nodes, the first one first.

    config: of a start without the flag. controller_port: free on the loopback address, for a controller of which the
    configuration does not say where it listens. Raises ConfigurationError.
    """
    if "broker" not in config.roles:
        raise ConfigurationError("--cores: a controller is one process; process.roles has to name broker as well")
    common = _common(config, cores)
    first_changes = dict(common)
    quorum: dict[str, str] = {}
    if config.roles == BOTH:
        controller = _controller(config, controller_port)
        first_changes |= _with_controller(config, controller)
        if not config.quorum_voters and not config.quorum_bootstrap_servers:
            host = _LOOPBACK if controller.host in ("", "0.0.0.0", "::") else controller.host  # noqa: S104
            address = f"[{host}]:{controller.port}" if ":" in host else f"{host}:{controller.port}"
            quorum["controller.quorum.voters"] = f"{config.node_id}@{address}"
        _check_identity(config, controller)
    nodes = [_node(config, config.node_id, first_changes)]
    step = _step(config, cores)
    for number in range(1, cores):
        node_id = config.node_id + number
        if node_id in config.quorum_voters:
            raise ConfigurationError(
                f"--cores {cores}: the nodes' ids are {config.node_id} to {config.node_id + cores - 1}, "
                f"and controller.quorum.voters has another node {node_id}"
            )
        changes = common | quorum | _of_other(config, node_id, number * step)
        nodes.append(_node(config, node_id, changes, without=_OF_CONTROLLERS))
    for node in nodes:
        BrokerConfig(node.settings)
    return nodes


def nodes_directory(directory: str, node_id: int) -> str:
    """Return where a node that is not the first has what stands in `directory` on the first one."""
    return posixpath.join(directory, NODES_DIRECTORY, str(node_id))


def _node(config: BrokerConfig, node_id: int, changes: Mapping[str, str], without: Sequence[str] = ()) -> CoreNode:
    kept = {key: text for key, text in config.given.items() if key not in without}
    return CoreNode(node_id, {**kept, **changes}, frozenset(changes))


def _common(config: BrokerConfig, cores: int) -> dict[str, str]:
    """Return what all nodes have, and a node that is alone has not."""
    changes: dict[str, str] = {}
    if config.roles == BOTH:
        changes |= {key: text for key, text in _ONE_COPY.items() if key not in config.originals}
    changes |= {key: str(cores) for key in _COORDINATORS_TOPICS if config.origins.get(key) == _DEV}
    return changes


def _controller(config: BrokerConfig, port: int) -> ListenerConfig:
    """Return the first node's listener for the other ones."""
    given = config.listeners.controller[0]
    return given if given.port else ListenerConfig(given.name, given.host, port, given.security_protocol)


def _with_controller(config: BrokerConfig, controller: ListenerConfig) -> dict[str, str]:
    """Return `listeners` with the controller's, and what has to be said of its name."""
    texts, is_there = [], False
    for text in config.list("listeners"):
        name, _, _ = parse_endpoint("listeners", text)
        is_there = is_there or name == controller.name
        texts.append(str(controller) if name == controller.name else text)
    if not is_there:
        texts.append(str(controller))
    changes = {"listeners": ",".join(texts), "controller.listener.names": ",".join(config.listeners.controller_names)}
    protocols = config.given.get("listener.security.protocol.map")
    if protocols is not None and not is_there and controller.name not in config.listeners.known_protocols:
        changes["listener.security.protocol.map"] = f"{protocols},{controller.name}:{controller.security_protocol}"
    return changes


def _check_identity(config: BrokerConfig, controller: ListenerConfig) -> None:
    """Raise ConfigurationError where the nodes would refuse each other, since nobody knows who they are."""
    authorizer = config.authorizer
    if authorizer is None or authorizer.allows_everyone_without_acls or "User:ANONYMOUS" in authorizer.super_users:
        return
    between = [each for each in config.listeners.client if each.name == config.listeners.inter_broker_name]
    for each in (controller, *between):
        if each.security_protocol == "PLAINTEXT":
            raise ConfigurationError(
                f"--cores: with authorizer.class.name nodes have to say who they are, and the listener {each.name} is "
                "PLAINTEXT: give it TLS or SASL in `listeners` and listener.security.protocol.map, and their user in "
                "super.users"
            )


def _of_other(config: BrokerConfig, node_id: int, offset: int) -> dict[str, str]:
    """Return what only this node has. offset: of its ports from those of the first one."""
    names = config.listeners.controller_names
    bound = [_moved("listeners", text, offset) for text in config.list("listeners") if _name(text) not in names]
    changes = {
        "node.id": str(node_id),
        "process.roles": "broker",
        "listeners": ",".join(bound),
        "controller.listener.names": ",".join(names),
        "log.dirs": ",".join(nodes_directory(each, node_id) for each in config.log_dirs),
    }
    protocols = config.given.get("listener.security.protocol.map")
    if protocols is not None and not set(names) <= config.listeners.known_protocols:
        missing = [name for name in names if name not in config.listeners.known_protocols]
        changes["listener.security.protocol.map"] = ",".join([protocols, *(f"{name}:PLAINTEXT" for name in missing)])
    if config.value("advertised.listeners") is not None:
        shown = [each for each in config.list("advertised.listeners") if _name(each) not in names]
        changes["advertised.listeners"] = ",".join(_moved("advertised.listeners", each, offset) for each in shown)
    if config.optional_str("metadata.log.dir") is not None:
        changes["metadata.log.dir"] = nodes_directory(config.str("metadata.log.dir"), node_id)
    for key in (CONSOLE_LISTENER, METRICS_LISTENER):
        port = _web_port(config, key)
        if port:
            changes[key] = f"{config.str(key).strip().rpartition(':')[0]}:{port + offset}"
    return changes


def _name(text: str) -> str:
    return text.strip().partition("://")[0].upper()


def _moved(key: str, text: str, offset: int) -> str:
    """Return a listener on its port of another node; any free port, and `auto`, are the same there."""
    if text.strip().lower() == AUTO or text.strip().lower().endswith(f"://{AUTO}"):
        return text.strip()
    name, host, port = parse_endpoint(key, text)
    if port + offset > _MOST_PORT:
        raise InvalidValue(key, text, f"with --cores a port so low that those of all nodes are below {_MOST_PORT + 1}")
    return str(ListenerConfig(name, host, port + offset if port > 0 else port))


def _web_port(config: BrokerConfig, key: str) -> int:
    """Return the port of a web listener that is given; 0 where none is, or any free one."""
    port = config.str(key).strip().rpartition(":")[2] if key in config.originals else ""
    return int(port) if port.isascii() and port.isdecimal() and len(port) <= len(str(_MOST_PORT)) else 0


def _step(config: BrokerConfig, cores: int) -> int:
    """Return the distance of two nodes' ports: the smallest with which no port is of two. Raises ConfigurationError."""
    moving = {each.port for each in config.listeners.client if each.port}
    moving |= {port for key in (CONSOLE_LISTENER, METRICS_LISTENER) if (port := _web_port(config, key))}
    staying = {each.port for each in config.listeners.controller if each.port}
    if not moving:
        return 1
    step = 1
    while max(moving) + (cores - 1) * step <= _MOST_PORT:
        ports = {port + number * step for port in moving for number in range(cores)}
        if len(ports) == len(moving) * cores and ports.isdisjoint(staying):
            return step
        step += 1
    raise ConfigurationError(f"--cores {cores}: no ports below {_MOST_PORT + 1} are left for all: see `listeners`")
