"""Features of a cluster and their levels (KIP-584): what is supported and finalized, and changes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from pykbroker.protocol.messages.api_versions import ApiVersionsResponse
from pykbroker.protocol.messages.brokers import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse

from .cluster import Cluster
from .errors import ClientError, KafkaError, check, code_of
from .metadata import Node


class UpgradeType(IntEnum):
    """The direction of a change; only the unsafe one may lose metadata."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature with its levels. finalized: the one that the cluster has agreed on, 0 where it has none."""

    name: str
    min_supported: int
    max_supported: int
    finalized: int


@dataclass(frozen=True, slots=True)
class Features:
    """All features. epoch: the offset of the metadata log up to which a node knows them, None where it does not."""

    features: tuple[Feature, ...]
    epoch: int | None


async def describe_features(cluster: Cluster, node: Node | None = None) -> Features:
    """Ask a node, or any broker, by name. Raises ClientError."""
    connection = await (cluster.any_connection() if node is None else cluster.node_connection(node))
    return features_of(await connection.ask_versions())


def features_of(response: ApiVersionsResponse) -> Features:
    supported = {row.name: (row.min_version, row.max_version) for row in response.supported_features}
    finalized = {row.name: row.max_version_level for row in response.finalized_features}
    features = (
        Feature(name, *supported.get(name, (0, 0)), finalized.get(name, 0)) for name in sorted({*supported, *finalized})
    )
    epoch = response.finalized_features_epoch
    return Features(tuple(features), epoch if epoch >= 0 else None)


async def update_features(
    cluster: Cluster,
    levels: Mapping[str, int],
    upgrade_type: UpgradeType,
    *,
    dry_run: bool = False,
    node: Node | None = None,
) -> dict[str, ClientError | None]:
    """Change levels, all or none of them from Kafka 4.0 on; return for each why it was not, None where it was.

    Raises ClientError where nothing is said of a single one.
    """
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)
            for name, level in levels.items()
        ],
        validate_only=dry_run,
    )
    response = await cluster.request(request, UpdateFeaturesResponse, node=node, verify=_check_retriable)
    whole = KafkaError(code_of(response.error_code), response.error_message) if response.error_code else None
    single = {
        row.feature: KafkaError(code_of(row.error_code), row.error_message) if row.error_code else None
        for row in response.results
    }
    return {name: whole or single.get(name) for name in levels}


def _check_retriable(response: UpdateFeaturesResponse) -> None:
    if code_of(response.error_code).retriable:
        check(response.error_code, response.error_message)
