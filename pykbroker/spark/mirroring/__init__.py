"""Topics of one cluster, copied to another, with the offsets of their groups."""

from __future__ import annotations

from .options import MirroredPartition, MirrorOptions, MirrorSummary
from .run import mirror

__all__ = ["MirrorOptions", "MirrorSummary", "MirroredPartition", "mirror"]
