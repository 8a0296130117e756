"""Feature levels (KIP-584): what this software can do, what the cluster has agreed on, and what clients are told.

Only metadata.version is offered. Kafka's other features stand for what is not served here: group.version for the
consumer protocol of KIP-848, transaction.version for transactions, share.version and streams.version for their group
types, eligible.leader.replicas.version for KIP-966. Where a directory that Kafka formatted has them finalized, they
stay in the log and are told to nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pykbroker.protocol.messages.metadata_records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from pykbroker.protocol.schema import Message

from .image import METADATA_VERSION, MetadataImage

METADATA_VERSION_LEVEL: Final = 30
"""4.3-IV0: the one whose records are written here."""

SUPPORTED_FEATURES: Final[dict[str, tuple[int, int]]] = {
    METADATA_VERSION: (METADATA_VERSION_LEVEL, METADATA_VERSION_LEVEL),
}
"""Least and greatest level of what this node can do; ApiVersions and registrations say so."""


class UnsupportedMetadataVersion(Exception):
    """The cluster's metadata.version is none that this software can write."""


def bootstrap_records() -> list[Message]:
    """What a new cluster begins with, as `bootstrap.checkpoint` holds it."""
    return [FeatureLevelRecord(name=METADATA_VERSION, feature_level=METADATA_VERSION_LEVEL)]


def bootstrap_transaction(records: Sequence[Message]) -> list[Message]:
    """The first records of an empty log: all of them or none (KIP-868)."""
    return [BeginTransactionRecord(name="Bootstrap records"), *records, EndTransactionRecord()]


def finalized_features(image: MetadataImage) -> dict[str, int]:
    """What clients may count on."""
    return {name: level for name, level in image.features.items() if name in SUPPORTED_FEATURES}


def check_metadata_version(image: MetadataImage) -> None:
    """Raises UnsupportedMetadataVersion."""
    level = image.features.get(METADATA_VERSION)
    low, high = SUPPORTED_FEATURES[METADATA_VERSION]
    if level is not None and not low <= level <= high:
        allowed = str(low) if low == high else f"{low} to {high}"
        raise UnsupportedMetadataVersion(f"the cluster has {METADATA_VERSION} {level}; this broker can use {allowed}")
