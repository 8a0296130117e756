"""Counts of metadata that could not be taken: Kafka's `metadata-load-error-count` and `metadata-apply-error-count`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class MetadataErrors:
    """The counts of one node since its start.

    load: metadata that could not be read or replayed, which ends the node. apply: settings that could not be used, so
    that the former ones stayed.
    """

    load: int = 0
    apply: int = 0
