"""Every node has raft, the image and the way to the active controller; some have a controller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.metadata.controller import Controller
from pykbroker.quotas.client_quotas import ClientQuotas
from pykbroker.raft.snapshots import RetentionLimits, SnapshotSchedule

from ...network.host_addresses import HostAddresses
from ...network.node_connections import NodeAddress, NodeConnections
from ...network.transport import Network
from ...quorum.broker_watch import BrokerWatch
from ...quorum.controller_channel import ControllerChannel
from ...quorum.controller_driver import ControllerDriver
from ...quorum.image_conditions import ImageConditions
from ...quorum.metadata_publisher import MetadataPublisher
from ...quorum.metadata_remedy import remedy
from ...quorum.raft_driver import RaftDriver
from ...quorum.snapshot_generator import SnapshotGenerator
from ...runtime.startup_error import StartupError
from ..bound_listeners import BoundListener
from ..broker import ClusterNode
from ..client_quotas import QuotasOfImage, controller_quota_windows, quota_windows
from ..environment import Environment
from ..node_authorizer import NodeAuthorizer
from ..node_storage import NodeStorage
from .raft import raft_driver

if TYPE_CHECKING:
    from pykbroker.security.sasl.credentials import Credentials

    from ...quorum.node_policies import NodePolicies
    from ..node_sasl import NodeSasl
    from ..node_tls import NodeTls


def cluster_node(
    config: BrokerConfig,
    storage: NodeStorage,
    environment: Environment,
    listeners: Sequence[BoundListener],
    tls: NodeTls | None,
    sasl: NodeSasl | None,
) -> ClusterNode:
    """The parts that every node has. Raises CorruptLog, FileError, StartupError.

    listeners: where others reach this node's controller. tls, sasl: None where no listener has it.
    """
    network = environment.network if tls is None else tls.to_controllers(environment.network)
    credentials = None if sasl is None else sasl.to_controllers
    raft = raft_driver(config, storage, environment, listeners, network, credentials)
    metadata = MetadataPublisher(raft, storage.metadata_log, remedy=remedy(config))
    authorizer = _authorizer(config, environment, metadata)
    quotas = ClientQuotas(quota_windows(config), controller_quota_windows(config))
    metadata.subscribe(QuotasOfImage(quotas).apply)
    controller = None
    if "controller" in config.roles:
        controller = _controller_driver(config, storage, environment, raft, metadata, quotas)
    channel = _controller_channel(config, environment, raft, controller, network, credentials)
    watch = None
    if controller is not None:
        watch = BrokerWatch(config.node_id, environment.network, controller, lambda: metadata.image)
        metadata.subscribe(watch.apply)
        controller.watch(channel.leader_may_have_changed)
        controller.watch(watch.activity_may_have_changed)
    return ClusterNode(
        config=config,
        node_id=config.node_id,
        cluster_id=storage.cluster_id,
        clock=environment.clock,
        threads=environment.threads,
        raft=raft,
        metadata=metadata,
        controller=controller,
        controller_channel=channel,
        broker_watch=watch,
        image_conditions=ImageConditions(metadata),
        client_quotas=quotas,
        tls=tls,
        authorizer=authorizer,
        sasl=sasl,
    )


def _authorizer(config: BrokerConfig, environment: Environment, metadata: MetadataPublisher) -> NodeAuthorizer | None:
    """The first listener of the image: nobody hears of a topic before its ACLs are known."""
    if config.authorizer is None:
        return None
    authorizer = NodeAuthorizer(config.authorizer, environment.clock)
    metadata.subscribe(authorizer.apply)
    metadata.watch(authorizer.note_applied)
    return authorizer


def _controller_driver(
    config: BrokerConfig,
    storage: NodeStorage,
    environment: Environment,
    raft: RaftDriver,
    metadata: MetadataPublisher,
    quotas: ClientQuotas,
) -> ControllerDriver:
    controller = Controller(
        config,
        node_id=config.node_id,
        cluster_id=storage.cluster_id,
        rng=environment.fork_rng(),
        reckon_tokens=environment.time.tokens,
    )
    return ControllerDriver(
        raft,
        metadata,
        controller,
        clock=environment.clock,
        bootstrap=storage.bootstrap,
        mutations=quotas.mutations,
        hosts=HostAddresses(environment.threads),
        max_idle_ms=config.int("metadata.max.idle.interval.ms"),
        policies=_policies(config),
    )


def _policies(config: BrokerConfig) -> NodePolicies | None:
    """The policies that the properties name. Raises StartupError."""
    if not any(config.value(key) for key in ("create.topic.policy.class.name", "alter.config.policy.class.name")):
        return None
    from ...quorum.node_policies import NodePolicies

    try:
        return NodePolicies.load(config)
    except ConfigurationError as error:
        raise StartupError(str(error)) from error


def _controller_channel(
    config: BrokerConfig,
    environment: Environment,
    raft: RaftDriver,
    controller: ControllerDriver | None,
    network: Network,
    credentials: Callable[[], Credentials] | None,
) -> ControllerChannel:
    timeout_ms = config.int("request.timeout.ms")
    channel = ControllerChannel(
        NodeConnections(
            network,
            client_id=f"broker-{config.node_id}",
            request_timeout_ms=timeout_ms,
            credentials=credentials,
        ),
        local=controller,
        find=partial(_leader_elsewhere, raft),
        timeout_ms=timeout_ms,
        threads=environment.threads,
    )
    raft.watch(channel.leader_may_have_changed)
    return channel


def _leader_elsewhere(raft: RaftDriver) -> NodeAddress | None:
    leader = raft.leader_endpoint
    if leader is None or leader.node_id == raft.node_id:
        return None
    return NodeAddress(f"controller {leader.node_id}", leader.host, leader.port)


def snapshot_generator(config: BrokerConfig, storage: NodeStorage, environment: Environment) -> SnapshotGenerator:
    """The generator of the snapshots behind which the metadata log may begin; a listener of the image."""
    return SnapshotGenerator(
        storage.metadata_log,
        SnapshotSchedule(
            config.int("metadata.log.max.record.bytes.between.snapshots"),
            config.int("metadata.log.max.snapshot.interval.ms"),
            environment.clock.monotonic_ms(),
        ),
        RetentionLimits(config.int("metadata.max.retention.bytes"), config.int("metadata.max.retention.ms")),
        delete_delay_ms=config.int("internal.metadata.delete.delay.millis"),
        clock=environment.clock,
        threads=environment.threads,
    )
