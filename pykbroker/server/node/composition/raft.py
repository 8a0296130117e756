"""Raft is told who this node is, who votes, whom it asks, and for how long it waits.

The configuration and the metadata directory say so at the start; the metadata log may know better who votes.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pykbroker.config import BrokerConfig
from pykbroker.raft.fetch_sizes import FetchSizes
from pykbroker.raft.node import RaftNode
from pykbroker.raft.replica import LocalReplica
from pykbroker.raft.timeouts import Timeouts
from pykbroker.raft.voters import Endpoint, Voter, VoterSet

from ...network.node_connections import NodeConnections
from ...network.transport import Network
from ...quorum.metadata_remedy import remedy, telling
from ...quorum.raft_channel import RaftChannel
from ...quorum.raft_driver import RaftDriver
from ..bound_listeners import BoundListener
from ..environment import Environment
from ..node_storage import NodeStorage, refusing_start

if TYPE_CHECKING:
    from pykbroker.security.sasl.credentials import Credentials

_log = logging.getLogger(__name__)

_APPEND_LINGER = "controller.quorum.append.linger.ms"


def raft_driver(
    config: BrokerConfig,
    storage: NodeStorage,
    environment: Environment,
    listeners: Sequence[BoundListener],
    network: Network,
    credentials: Callable[[], Credentials] | None,
) -> RaftDriver:
    """The driver of raft on this node's metadata log. Raises CorruptLog, FileError, StartupError.

    listeners: where others reach this node's controller; none of a broker alone. network: the way to controllers.
    credentials: those that controllers ask for, None where they ask for none.
    """
    endpoints = [Endpoint(each.name, each.host, each.port) for each in listeners]
    with refusing_start(), telling(remedy(config)):
        node = _raft_node(config, storage, endpoints, environment.fork_rng())
    timeout_ms = config.int("controller.quorum.request.timeout.ms")
    connections = NodeConnections(
        network,
        client_id=f"raft-client-{config.node_id}",
        request_timeout_ms=timeout_ms,
        credentials=credentials,
    )
    return RaftDriver(
        node,
        storage.metadata_log,
        RaftChannel(connections, storage.cluster_id),
        clock=environment.clock,
        threads=environment.threads,
        flush_threads=environment.flush_threads,
        append_linger_ms=_append_linger_ms(config),
    )


def _raft_node(
    config: BrokerConfig, storage: NodeStorage, endpoints: Sequence[Endpoint], rng: random.Random
) -> RaftNode:
    """Raises InvalidQuorumState, CorruptLog, FileError."""
    log = storage.metadata_log
    is_controller = "controller" in config.roles
    replica = LocalReplica(
        config.node_id,
        directory_id=storage.metadata_directory_id,
        cluster_id=storage.cluster_id,
        endpoints=tuple(endpoints),
        may_vote=is_controller,
        auto_join=is_controller and config.bool("controller.quorum.auto.join.enable"),
    )
    configured = _configured_voters(config, endpoints)
    node = RaftNode(
        replica,
        VoterSet(configured) if configured else VoterSet.unknown(),
        log.read_election([each.node_id for each in configured]),
        log,
        rng=rng,
        timeouts=_timeouts(config),
        sizes=FetchSizes(
            fetch_max_bytes=config.int("controller.quorum.fetch.max.bytes"),
            snapshot_max_bytes=config.int("controller.quorum.fetch.snapshot.max.bytes"),
        ),
        bootstrap=[] if configured else _bootstrap_servers(config),
    )
    if config.quorum_voters and node.voters.ids != sorted(config.quorum_voters):
        _log.warning(
            "controller.quorum.voters has no effect and can be removed: the metadata log names the voters %s",
            node.voters.ids,
        )
    voters = None if configured or not is_controller else log.static_voters()
    if voters:
        _log.warning(
            "this node voted in a quorum of %s, whose log names no voters (kraft.version 0): without "
            "controller.quorum.voters it only follows them, until it hears of voters in the log",
            voters,
        )
    return node


def _configured_voters(config: BrokerConfig, endpoints: Sequence[Endpoint]) -> list[Voter]:
    """The voters of the configuration. A controller that is told of no other is a quorum of its own."""
    if config.quorum_voters:
        return [Voter(node_id, host, port) for node_id, (host, port) in config.quorum_voters.items()]
    others = [each for each in _bootstrap_servers(config) if not _is_own(each, endpoints)]
    if others or not endpoints:
        return []
    return [Voter(config.node_id, endpoints[0].host, endpoints[0].port)]


def _is_own(server: Endpoint, endpoints: Sequence[Endpoint]) -> bool:
    """Tell whether a bootstrap server is this node, as `localhost:9093` in Kafka's own file is."""
    return any(
        server.port == each.port and server.host in (each.host, "localhost", "127.0.0.1", "::1") for each in endpoints
    )


def _bootstrap_servers(config: BrokerConfig) -> list[Endpoint]:
    return [Endpoint("", host, port) for host, port in config.quorum_bootstrap_servers]


def _append_linger_ms(config: BrokerConfig) -> int:
    """The linger that the file gives, or none: Kafka's default of 25 ms would delay every change of the metadata."""
    return config.int(_APPEND_LINGER) if _APPEND_LINGER in config.originals else 0


def _timeouts(config: BrokerConfig) -> Timeouts:
    return Timeouts(
        election_ms=config.int("controller.quorum.election.timeout.ms"),
        election_backoff_max_ms=config.int("controller.quorum.election.backoff.max.ms"),
        fetch_ms=config.int("controller.quorum.fetch.timeout.ms"),
        request_ms=config.int("controller.quorum.request.timeout.ms"),
        retry_backoff_ms=config.int("controller.quorum.retry.backoff.ms"),
    )
