"""What a node brings along when it takes part in the metadata quorum: who it is, who votes, whom to ask, for how long.

From its configuration and its directory. The log may know better who votes.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence

from pykbroker.config import BrokerConfig
from pykbroker.raft.fetch_sizes import FetchSizes
from pykbroker.raft.node import RaftNode
from pykbroker.raft.replica import LocalReplica
from pykbroker.raft.timeouts import Timeouts
from pykbroker.raft.voters import Endpoint, Voter, VoterSet

from .metadata_log import MetadataLog

_log = logging.getLogger(__name__)

APPEND_LINGER = "controller.quorum.append.linger.ms"


def raft_node(
    config: BrokerConfig,
    log: MetadataLog,
    *,
    cluster_id: str,
    directory_id: bytes,
    endpoints: Sequence[Endpoint],
    rng: random.Random,
) -> RaftNode:
    """endpoints: of this node's controller listeners, as others reach them; none of a broker alone.

    Raises InvalidQuorumState, CorruptLog, FileError.
    """
    is_controller = "controller" in config.roles
    replica = LocalReplica(
        config.node_id,
        directory_id=directory_id,
        cluster_id=cluster_id,
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
        _log.warning("controller.quorum.voters has no effect: the metadata log says that %s vote", node.voters.ids)
    voters = None if configured or not is_controller else log.static_voters()
    if voters:
        _log.warning(
            "this node voted in a quorum of %s, whose log names no voters (kraft.version 0): without "
            "controller.quorum.voters it only follows them, until it hears of voters in the log",
            voters,
        )
    return node


def _configured_voters(config: BrokerConfig, endpoints: Sequence[Endpoint]) -> list[Voter]:
    """A controller that is told of nobody is a quorum of its own, for as long as its log says nothing else."""
    if config.quorum_voters:
        return [Voter(node_id, host, port) for node_id, (host, port) in config.quorum_voters.items()]
    others = [each for each in _bootstrap_servers(config) if not _is_own(each, endpoints)]
    if others or not endpoints:
        return []
    return [Voter(config.node_id, endpoints[0].host, endpoints[0].port)]


def _is_own(server: Endpoint, endpoints: Sequence[Endpoint]) -> bool:
    """As in the properties that Kafka comes with: `localhost:9093`, and the controller listens on port 9093."""
    return any(
        server.port == each.port and server.host in (each.host, "localhost", "127.0.0.1", "::1") for each in endpoints
    )


def _bootstrap_servers(config: BrokerConfig) -> list[Endpoint]:
    return [Endpoint("", host, port) for host, port in config.quorum_bootstrap_servers]


def append_linger_ms(config: BrokerConfig) -> int:
    """Where it was given: Kafka's 25 ms are 25 ms for every change of the metadata."""
    return config.int(APPEND_LINGER) if APPEND_LINGER in config.originals else 0


def _timeouts(config: BrokerConfig) -> Timeouts:
    return Timeouts(
        election_ms=config.int("controller.quorum.election.timeout.ms"),
        election_backoff_max_ms=config.int("controller.quorum.election.backoff.max.ms"),
        fetch_ms=config.int("controller.quorum.fetch.timeout.ms"),
        request_ms=config.int("controller.quorum.request.timeout.ms"),
        retry_backoff_ms=config.int("controller.quorum.retry.backoff.ms"),
    )
