"""`compose` puts a node together: the parts that its roles ask for, and the listeners with their handlers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from pykbroker.config import BrokerConfig, ListenerConfig, Listeners
from pykbroker.config.listeners import uses_sasl
from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.uuids import random_uuid
from pykbroker.storage.files.errors import FileError

from ...network.client_memory import REQUEST_BYTES, ClientMemory
from ...network.connection_quotas import ConnectionQuotas
from ...network.dispatch import Dispatcher
from ...network.handlers import HandlerTable, NodeT
from ...network.host_addresses import HostAddresses
from ...network.listener import ConnectionLimits, Listener
from ...network.offer import Offer
from ...network.receive_buffer import BufferPool
from ...network.request_metrics import RequestMetrics
from ...network.seeking_clients import SeekingClients
from ...network.tap import Tap, TappedDispatcher
from ...network.throttling import Throttling
from ...network.transport import Acceptor
from ...quorum.snapshot_generator import SnapshotGenerator
from ...runtime.log_lines import RateLimitedLog
from ..bound_listeners import BoundListener, bound
from ..broker import ClusterNode
from ..broker_role import BrokerRole
from ..client_quotas import quota_windows
from ..controller_registration import ControllerRegistrar
from ..dynamic_listeners import DynamicListeners, MakeListener
from ..environment import Environment
from ..handlers import TELEMETRY_APIS, Handlers
from ..node_storage import NodeStorage
from ..token_keys import TokenKeys
from .broker import broker_role
from .quorum import cluster_node, snapshot_generator

_ClusterNodeT = TypeVar("_ClusterNodeT", bound=ClusterNode)

if TYPE_CHECKING:
    from ...network.jwks_refresh import JwksRefresh
    from ..node_sasl import NodeSasl
    from ..node_tls import NodeTls


@dataclass(frozen=True, slots=True)
class NodeParts:
    """All that `Node` starts and stops.

    broker_role: None without the broker role. registrar: None without the controller role. key_refreshes: keys for
    tokens of OAUTHBEARER, without which no listener may serve.
    """

    node: ClusterNode
    broker_role: BrokerRole | None
    registrar: ControllerRegistrar | None
    snapshots: SnapshotGenerator
    controller_listeners: list[Listener]
    client_listeners: list[Listener]
    connection_quotas: list[ConnectionQuotas]
    key_refreshes: Sequence[JwksRefresh]
    dynamic_listeners: DynamicListeners | None
    """Changes `client_listeners`; None without the broker role."""
    seeking: SeekingClients
    """Of a broker's clients."""
    requests: RequestMetrics
    """Of all listeners."""


def compose(
    config: BrokerConfig,
    handlers: Handlers,
    storage: NodeStorage,
    acceptors: dict[str, Acceptor],
    environment: Environment,
    tls: NodeTls | None = None,
) -> NodeParts:
    """Raises CorruptLog, FileError, StartupError: raft takes up its state from the metadata log.

    tls: None where no listener has it.
    """
    listeners = config.listeners
    of_controller = bound(listeners.advertised_controller, acceptors)
    token_keys = TokenKeys(environment.threads)
    sasl = _sasl(config, environment, token_keys, lambda: node.image)
    node = cluster_node(config, storage, environment, of_controller, tls, sasl)
    for each in (tls, sasl):
        if each is not None:
            each.errors = node.metadata.errors
            node.metadata.subscribe(each.apply)
    role = None
    if "broker" in config.roles:
        role = broker_role(node, storage, environment, bound(listeners.advertised, acceptors))
    snapshots = snapshot_generator(config, storage, environment)
    node.metadata.subscribe(snapshots.apply)
    registrar = None if node.controller is None else _registrar(node, environment, of_controller)

    disk_failed = _ignore if role is None else role.broker.partitions.failures.at_path
    requests = RequestMetrics()
    listening = _Listening(config, environment, count(1), requests, disk_failed, tls, sasl)
    of_controllers = _connection_quotas(node, environment, listeners.controller)
    of_clients = _connection_quotas(node, environment, listeners.client)
    # Two pools: clients must not take a controller's memory.
    make_of_controllers = listening.maker(node, handlers.controller, of_controllers)
    controller_listeners = [make_of_controllers(each, acceptors[each.name], listeners) for each in listeners.controller]
    client_listeners: list[Listener] = []
    dynamic_listeners: DynamicListeners | None = None
    for_brokers = handlers.broker if environment.takes_telemetry else handlers.broker.without(TELEMETRY_APIS)
    seeking = SeekingClients(environment.clock)
    if role is not None:
        throttling = Throttling(node.client_quotas, environment.clock)
        for_clients = _ForClients(throttling, environment.offer, seeking, environment.tap)
        make = listening.maker(role.broker, for_brokers, of_clients, for_clients)
        client_listeners = [make(each, acceptors[each.name], listeners) for each in listeners.client]
        dynamic_listeners = DynamicListeners(
            config,
            client_listeners,
            acceptors,
            make=make,
            network=environment.network,
            threads=environment.threads,
            quotas=of_clients,
            membership=role.lifecycle,
            tls=tls,
            sasl=sasl,
        )
        dynamic_listeners.errors = node.metadata.errors
        role.broker.listeners = dynamic_listeners
        node.metadata.subscribe(dynamic_listeners.apply)
    return NodeParts(
        node,
        role,
        registrar,
        snapshots,
        controller_listeners,
        client_listeners,
        [of_controllers, of_clients],
        token_keys.refreshes,
        dynamic_listeners,
        seeking,
        requests,
    )


def _sasl(
    config: BrokerConfig, environment: Environment, token_keys: TokenKeys, image: Callable[[], MetadataImage]
) -> NodeSasl | None:
    if not any(map(uses_sasl, config.listeners.security_protocols)):
        return None
    from ..node_sasl import NodeSasl
    from ..offered_mechanisms import SaslParts, token_credentials

    parts = SaslParts(image, token_keys, token_credentials(config))
    return NodeSasl(config, parts, environment.clock, environment.threads, environment.process_options)


def _connection_quotas(
    node: ClusterNode, environment: Environment, listeners: Sequence[ListenerConfig]
) -> ConnectionQuotas:
    quotas = ConnectionQuotas(
        node.config,
        [each.name for each in listeners],
        protected=node.config.listeners.inter_broker_name,
        windows=quota_windows(node.config),
        clock=environment.clock,
        hosts=HostAddresses(environment.threads),
    )
    quotas.errors = node.metadata.errors
    node.metadata.subscribe(partial(quotas.apply, node.node_id))
    return quotas


def _registrar(node: ClusterNode, environment: Environment, listeners: Sequence[BoundListener]) -> ControllerRegistrar:
    incarnation_id = random_uuid(environment.rng)
    registrar = ControllerRegistrar(
        node.node_id, incarnation_id, listeners, node.controller_channel, lambda: node.image
    )
    node.metadata.subscribe(registrar.apply)
    return registrar


@dataclass(frozen=True, slots=True)
class _ForClients:
    """The part of brokers' listeners that controllers' have not.

    throttling: what nodes ask a controller for waits for nobody's quota. offer: None where it is all that is served.
    tap: None where nobody looks.
    """

    throttling: Throttling
    offer: Offer | None
    seeking: SeekingClients
    tap: Tap | None


@dataclass(frozen=True, slots=True)
class _Listening:
    """All listeners of a node share these. request_numbers: counts requests, whichever listener they come by."""

    config: BrokerConfig
    environment: Environment
    request_numbers: Iterator[int]
    requests: RequestMetrics
    disk_failed: Callable[[FileError], None]
    tls: NodeTls | None
    sasl: NodeSasl | None

    def maker(
        self,
        node: _ClusterNodeT,
        handlers: HandlerTable[_ClusterNodeT],
        quotas: ConnectionQuotas,
        clients: _ForClients | None = None,
    ) -> MakeListener:
        """Return what makes listeners of one kind, which share the memory for requests and the limits of connections.

        clients: what brokers' listeners have besides.
        """
        offer = None if clients is None else clients.offer
        pool = BufferPool(_client_memory(self.config))
        limits = _connection_limits(self.config)
        refusals = RateLimitedLog(logging.getLogger(f"{Listener.__module__}.refusals"), self.environment.clock)
        offered = handlers if offer is None else handlers.offering(offer)
        everything_at = frozenset() if offer is None else offer.everything_at

        def make(each: ListenerConfig, acceptor: Acceptor, all_listeners: Listeners) -> Listener:
            return Listener(
                each.name,
                acceptor,
                self._dispatcher(node, handlers if each.name in everything_at else offered, clients),
                limits,
                pool,
                refusals,
                quotas,
                tls=None if self.tls is None else self.tls.of_listener(each.name),
                sasl=None if self.sasl is None else self.sasl.of_listener(each.name),
                tells_reached=each.name in all_listeners.auto,
                seeking=None if clients is None else clients.seeking,
                requests=self.requests,
            )

        return make

    def _dispatcher(self, node: NodeT, handlers: HandlerTable[NodeT], clients: _ForClients | None) -> Dispatcher[NodeT]:
        tap = None if clients is None else clients.tap
        make = Dispatcher[NodeT] if tap is None else partial(TappedDispatcher[NodeT], tap)
        return make(
            node,
            handlers,
            self.environment.threads,
            disk_failed=self.disk_failed,
            numbers=self.request_numbers,
            throttling=None if clients is None else clients.throttling,
            requests=self.requests,
        )


def _ignore(failure: FileError) -> None:
    """A node without partitions sends no files."""


def _connection_limits(config: BrokerConfig) -> ConnectionLimits:
    return ConnectionLimits(
        max_request_bytes=config.int("socket.request.max.bytes"),
        max_idle_ms=config.int("connections.max.idle.ms"),
    )


def _client_memory(config: BrokerConfig) -> ClientMemory:
    limit_bytes = config.int("queued.max.request.bytes")
    return ClientMemory(limit_bytes if limit_bytes > 0 else REQUEST_BYTES)
