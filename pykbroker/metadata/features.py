"""Feature levels (KIP-584): what this software can do, what the cluster has agreed on, and what clients are told.

Offered are metadata.version, group.version for the consumer protocol (KIP-848), share.version for share groups
(KIP-932) and their dead letter queues (KIP-1191), streams.version for streams groups (KIP-1071), transaction.version
for transactions (KIP-890), and eligible.leader.replicas.version for KIP-966.

A new cluster begins at metadata.version 30 (4.3-IV0), and may be raised to the levels of Kafka 4.4: 31 (4.4-IV0)
changes nothing in the metadata, 32 (4.4-IV1) allows ranges of addresses in ACLs (KIP-1276), and with 33 (4.4-IV2)
controllers can be unregistered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pykbroker.protocol.messages.metadata_records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from pykbroker.protocol.schema import Message

from .image import METADATA_VERSION, MetadataImage

METADATA_VERSION_LEVEL: Final = 30
"""4.3-IV0: the one with which a new cluster begins, and the least at which this node can be in a cluster."""
NEWEST_METADATA_VERSION: Final = 33
"""4.4-IV2."""
METADATA_VERSIONS_WITH_CHANGES: Final = frozenset({30, 32, 33})
"""The levels that brought new records or a new meaning of old ones: no cluster goes down from one of them."""
KAFKA_4_4_SINCE: Final = 31
"""4.4-IV0: configurations that Kafka 4.4 brought are described from it on."""
ADDRESS_RANGES_SINCE: Final = 32
UNREGISTERED_CONTROLLERS_SINCE: Final = 33

GROUP_VERSION: Final = "group.version"
TRANSACTION_VERSION: Final = "transaction.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"

SHARE_GROUPS_SINCE: Final = 1
DEAD_LETTERS_SINCE: Final = 2
"""Levels of share.version."""

SUPPORTED_FEATURES: Final[dict[str, tuple[int, int]]] = {
    METADATA_VERSION: (METADATA_VERSION_LEVEL, NEWEST_METADATA_VERSION),
    GROUP_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
    ELR_VERSION: (0, 1),
    SHARE_VERSION: (0, 2),
    STREAMS_VERSION: (0, 1),
}
"""Least and greatest level of what this node can do; ApiVersions and registrations say so."""


REGISTERED_FEATURES: Final[dict[str, tuple[int, int]]] = SUPPORTED_FEATURES | {"kraft.version": (0, 1)}
"""What a node says when it registers: at which levels it can be in a cluster. A fresh cluster of Apache Kafka's has all
of these finalized, and takes in nobody who does not know them."""


class UnsupportedFeatureLevel(Exception):
    """The cluster has agreed on a level of a feature at which this software cannot be part of it."""


def bootstrap_records(levels: Mapping[str, int] | None = None) -> list[Message]:
    """Return the records of `bootstrap.checkpoint`.

    metadata.version is `METADATA_VERSION_LEVEL` where it is not in `levels`, and any other feature has the level that a
    new cluster has with that metadata.version in Kafka.
    """
    given = {METADATA_VERSION: METADATA_VERSION_LEVEL} | dict(levels or {})
    greatest = {name: high for name, (_, high) in SUPPORTED_FEATURES.items()}
    if given[METADATA_VERSION] < KAFKA_4_4_SINCE:
        greatest[SHARE_VERSION] = SHARE_GROUPS_SINCE
    chosen = greatest | given
    names = [METADATA_VERSION, *sorted(chosen.keys() - {METADATA_VERSION})]
    return [FeatureLevelRecord(name=name, feature_level=chosen[name]) for name in names if chosen[name]]


def bootstrap_transaction(records: Sequence[Message]) -> list[Message]:
    """The first records of an empty log: all of them or none (KIP-868)."""
    return [BeginTransactionRecord(name="Bootstrap records"), *records, EndTransactionRecord()]


def finalized_features(image: MetadataImage) -> dict[str, int]:
    """Return the features that clients may count on."""
    return {name: level for name, level in image.features.items() if name in SUPPORTED_FEATURES}


def feature_level(image: MetadataImage, name: str) -> int:
    """0 where the cluster has none."""
    return image.features.get(name, 0)


def check_feature_levels(image: MetadataImage) -> None:
    """Check that this node can be in a cluster that has agreed on these levels. Raises UnsupportedFeatureLevel."""
    for name, level in image.features.items():
        low, high = REGISTERED_FEATURES.get(name, (0, 0))
        if not low <= level <= high:
            allowed = str(low) if low == high else f"{low} to {high}"
            raise UnsupportedFeatureLevel(f"the cluster has {name} {level}; this broker can use {allowed}")
