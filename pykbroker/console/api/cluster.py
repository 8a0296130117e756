"""`GET /api/cluster`: brokers, fenced ones too, the quorum, log directories and features.

What the user may not see, or a broker does not tell, has Kafka's name of the error in its place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import ClientError, check
from pykbroker.client.metadata import Node
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.console.failures import name_of
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.metadata import DescribeClusterRequest, DescribeClusterResponse, MetadataResponse

from .every_broker import LONGEST_S
from .log_dirs import LogDirRow, log_dirs
from .quorum import Quorum, describe_quorum
from .topic_rows import all_metadata, leaders_by_broker

_FENCED_SINCE = 2


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker. is_fenced: None where the broker that is asked is too old to tell."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool | None
    leaders: int


@dataclass(frozen=True, slots=True)
class FeatureRow:
    """A feature. finalized: the level that holds in the cluster, 0 for none."""

    name: str
    finalized: int
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class ClusterNow:
    """The cluster. errors: by part (brokers, quorum, features) why it is missing; log_dir_errors by broker."""

    cluster_id: str | None
    brokers: Sequence[BrokerRow]
    quorum: Quorum | None
    features: Sequence[FeatureRow]
    log_dirs: Sequence[LogDirRow]
    log_dir_errors: Mapping[int, str]
    errors: Mapping[str, str]


@dataclass(slots=True)
class _Found:
    brokers: DescribeClusterResponse | None = None
    tells_fenced: bool = False
    quorum: Quorum | None = None
    features: Sequence[FeatureRow] = ()
    log_dirs: Sequence[LogDirRow] = ()
    log_dir_errors: Mapping[int, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


async def cluster(asking: Asking, given: Arguments) -> ClusterNow:
    """Raises ClientError where not even the metadata can be had."""
    response = await all_metadata(asking.cluster)
    nodes = {each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in response.brokers}
    found = _Found()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_part, "brokers", _ask_brokers, asking.cluster, found)
        nursery.start_soon(_part, "quorum", _ask_quorum, asking.cluster, found)
        nursery.start_soon(_part, "features", _ask_features, asking.cluster, found)
        nursery.start_soon(_ask_log_dirs, asking.cluster, nodes, found)
    leaders = await asking.threads.run(leaders_by_broker, response)
    return ClusterNow(
        cluster_id=response.cluster_id,
        brokers=_brokers(response, found, leaders),
        quorum=found.quorum,
        features=found.features,
        log_dirs=sorted(found.log_dirs, key=lambda row: (row.broker, row.path)),
        log_dir_errors=found.log_dir_errors,
        errors=found.errors,
    )


async def _part(name: str, ask: Callable[[Cluster, _Found], Awaitable[None]], of: Cluster, found: _Found) -> None:
    """Have one part found, for some seconds; without it the others are shown nevertheless."""
    found.errors[name] = ErrorCode.REQUEST_TIMED_OUT.name
    with trio.move_on_after(LONGEST_S):
        try:
            await ask(of, found)
        except ClientError as error:
            found.errors[name] = name_of(error)
        else:
            del found.errors[name]


async def _ask_brokers(of: Cluster, found: _Found) -> None:
    connection = await of.any_connection()
    found.tells_fenced = connection.version_of(DescribeClusterRequest) >= _FENCED_SINCE
    request = DescribeClusterRequest(include_fenced_brokers=found.tells_fenced)
    response = await connection.request(request, DescribeClusterResponse)
    check(response.error_code, response.error_message)
    found.brokers = response


async def _ask_quorum(of: Cluster, found: _Found) -> None:
    found.quorum = await describe_quorum(of)


async def _ask_features(of: Cluster, found: _Found) -> None:
    request = ApiVersionsRequest(client_software_name="pykbroker", client_software_version="console")
    response = await of.request(request, ApiVersionsResponse)
    levels = {each.name: each.max_version_level for each in response.finalized_features}
    found.features = [
        FeatureRow(each.name, levels.get(each.name, 0), each.min_version, each.max_version)
        for each in sorted(response.supported_features, key=lambda each: each.name)
    ]


async def _ask_log_dirs(of: Cluster, nodes: Mapping[int, Node], found: _Found) -> None:
    answers = await log_dirs(of, nodes)
    found.log_dirs = [row for of_broker in answers.of.values() for row in of_broker]
    found.log_dir_errors = answers.errors


def _brokers(response: MetadataResponse, found: _Found, leaders: Mapping[int, int]) -> list[BrokerRow]:
    """Return the brokers that DescribeCluster names, or, where it could not be asked, those of the metadata."""

    def row(id: int, host: str, port: int, rack: str | None, is_fenced: bool | None = None) -> BrokerRow:
        return BrokerRow(id, host, port, rack, is_fenced if found.tells_fenced else None, leaders.get(id, 0))

    if found.brokers is None:
        rows = [row(each.node_id, each.host, each.port, each.rack) for each in response.brokers]
    else:
        rows = [row(each.broker_id, each.host, each.port, each.rack, each.is_fenced) for each in found.brokers.brokers]
    return sorted(rows, key=lambda each: each.id)
