"""Actions of `pykbroker quorum` that look: the state of the quorum, and its replicas."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.metadata import Node
from pykbroker.client.quorum import NO_LEADER, QuorumDescription, QuorumReplica, describe_quorum
from pykbroker.protocol.uuids import ZERO_UUID, uuid_to_text

from .command import CommandFailed, reject
from .controller_options import OptionsOfEither, node_to_ask
from .entries import Field, Value, print_entries

_FIELDS: Final = (
    Field("node", right=True),
    Field("status"),
    Field("log_end_offset", right=True),
    Field("lag", right=True),
    Field("lag_ms", right=True),
    Field("directory_id"),
    Field("endpoints"),
)
_UNKNOWN_MS: Final = -1


@dataclass(frozen=True, slots=True)
class QuorumOptions(OptionsOfEither):
    """A field per flag."""

    status: bool = False
    replication: bool = False
    human_readable: bool = False
    as_json: bool = False


async def describe(cluster: Cluster, options: QuorumOptions) -> bool:
    """Print the quorum, and return whether nobody leads it."""
    if options.status and options.replication:
        raise CommandFailed("Only one of --status or --replication should be specified with describe sub-command")
    if options.human_readable and not options.replication:
        raise CommandFailed("The option --human-readable is only supported along with --replication")
    if options.as_json:
        reject({"--status": options.status, "--replication": options.replication}, "and --json exclude each other")
    node = await node_to_ask(cluster, options)
    quorum = await describe_quorum(cluster, node)
    if options.replication:
        _print_replication(quorum, options.human_readable)
    elif options.status:
        _print_status(quorum, await _cluster_id(cluster, node))
    elif options.as_json:
        click.echo(json.dumps(_summary(quorum, await _cluster_id(cluster, node)) | _lists(quorum)))
    else:
        for name, value in _summary(quorum, await _cluster_id(cluster, node)).items():
            click.echo(f"{name.replace('_', ' ')}: {'none' if value is None else value}")
        click.echo()
        print_entries(_FIELDS, _rows(quorum), as_json=False)
    return quorum.leader_id == NO_LEADER


async def replication(cluster: Cluster, options: QuorumOptions) -> bool:
    """Print the replicas, and return whether nobody leads."""
    quorum = await describe_quorum(cluster, await node_to_ask(cluster, options))
    print_entries(_FIELDS, _rows(quorum), as_json=options.as_json)
    return quorum.leader_id == NO_LEADER


async def _cluster_id(cluster: Cluster, node: Node | None) -> str:
    from pykbroker.client.brokers import describe_cluster, id_known_to_controllers

    return (await describe_cluster(cluster)).cluster_id if node is None else await id_known_to_controllers(cluster)


def _summary(quorum: QuorumDescription, cluster_id: str) -> dict[str, Value]:
    return {
        "cluster_id": cluster_id,
        "leader": None if quorum.leader_id == NO_LEADER else quorum.leader_id,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "max_follower_lag": _max_lag(quorum),
        "max_follower_lag_ms": _max_lag_ms(quorum),
    }


def _lists(quorum: QuorumDescription) -> dict[str, Value]:
    names = [field.name for field in _FIELDS]
    return {"replicas": [dict(zip(names, row, strict=True)) for row in _rows(quorum)]}


def _replicas(quorum: QuorumDescription) -> Iterator[tuple[QuorumReplica, str]]:
    """Yield the leader, the other voters, then the observers, each with its part."""
    leader = quorum.leader
    if leader is not None:
        yield leader, "Leader"
    for each in quorum.voters:
        if each is not leader:
            yield each, "Follower"
    for each in quorum.observers:
        yield each, "Observer"


def _rows(quorum: QuorumDescription) -> list[list[Value]]:
    rows: list[list[Value]] = []
    for each, status in _replicas(quorum):
        lag_ms = None if status == "Leader" else _lag_ms(quorum, each)
        rows.append(
            [
                each.node_id,
                status.lower(),
                each.log_end_offset,
                _lag(quorum, each),
                lag_ms,
                None if each.directory_id == ZERO_UUID else uuid_to_text(each.directory_id),
                [str(at) for at in quorum.endpoints.get(each.node_id, ())],
            ]
        )
    return rows


def _lag(quorum: QuorumDescription, replica: QuorumReplica) -> int | None:
    """Return how many records it lacks; None where nobody leads, or where it was not heard of yet."""
    leader = quorum.leader
    if leader is None or replica.log_end_offset < 0:
        return None
    return leader.log_end_offset - replica.log_end_offset


def _lag_ms(quorum: QuorumDescription, replica: QuorumReplica) -> int | None:
    leader = quorum.leader
    if leader is None or leader.last_caught_up_ms is None or replica.last_caught_up_ms is None:
        return None
    return max(leader.last_caught_up_ms - replica.last_caught_up_ms, 0)


def _slowest(quorum: QuorumDescription) -> QuorumReplica | None:
    """Return the voter that has least of the log; one that was not heard of yet has nothing."""
    return min(quorum.voters, key=lambda each: each.log_end_offset, default=None)


def _max_lag(quorum: QuorumDescription) -> int | None:
    leader, slowest = quorum.leader, _slowest(quorum)
    return None if leader is None or slowest is None else leader.log_end_offset - slowest.log_end_offset


def _max_lag_ms(quorum: QuorumDescription) -> int | None:
    """Return the time that the slowest voter lags, as Kafka's tool has it."""
    leader, slowest = quorum.leader, _slowest(quorum)
    if leader is None or slowest is None:
        return None
    return 0 if slowest is leader or _max_lag(quorum) == 0 else _lag_ms(quorum, slowest)


# The texts of kafka-metadata-quorum


def _print_status(quorum: QuorumDescription, cluster_id: str) -> None:
    lag, lag_ms = _max_lag(quorum), _max_lag_ms(quorum)
    shown = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": _UNKNOWN_MS if lag is None else lag,
        "MaxFollowerLagTimeMs": _UNKNOWN_MS if lag_ms is None else lag_ms,
        "CurrentVoters": _nodes_text(quorum, quorum.voters),
        "CurrentObservers": _nodes_text(quorum, quorum.observers),
    }
    for name, value in shown.items():
        click.echo(f"{name + ':':<24}{value}")


def _nodes_text(quorum: QuorumDescription, replicas: tuple[QuorumReplica, ...]) -> str:
    nodes: list[dict[str, Value]] = []
    for each in replicas:
        node: dict[str, Value] = {"id": each.node_id}
        if each.directory_id != ZERO_UUID:
            node["directoryId"] = uuid_to_text(each.directory_id)
        endpoints = quorum.endpoints.get(each.node_id, ())
        nodes.append(node | ({"endpoints": [str(at) for at in endpoints]} if endpoints else {}))
    return json.dumps(nodes)


def _print_replication(quorum: QuorumDescription, human_readable: bool) -> None:
    """Print columns that are padded and ended by tabs."""
    now_ms = time.time_ns() // 1_000_000
    titles = ["NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status"]
    lines = [titles]
    for each, status in _replicas(quorum):
        leader = quorum.leader
        lag = None if leader is None else leader.log_end_offset - each.log_end_offset
        lines.append(
            [
                str(each.node_id),
                uuid_to_text(each.directory_id),
                str(each.log_end_offset),
                str(-1 if lag is None else lag),
                _time_text(each.last_fetch_ms, now_ms, human_readable),
                _time_text(each.last_caught_up_ms, now_ms, human_readable),
                status,
            ]
        )
    widths = [max(len(line[index]) for line in lines) for index in range(len(titles))]
    for line in lines:
        click.echo("".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True)))


def _time_text(at_ms: int | None, now_ms: int, human_readable: bool) -> str:
    if at_ms is None:
        return str(_UNKNOWN_MS)
    return f"{max(now_ms - at_ms, 0)} ms ago" if human_readable else str(at_ms)
