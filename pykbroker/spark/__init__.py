"""Bulk work on topics by Apache Spark: `pip install 'pykbroker[spark]'`, and Java 17 or newer.

from pykbroker.spark import ArchiveOptions, Source, archive

archive(ArchiveOptions(Source("127.0.0.1:9092"), "/data/archive", topics=["orders"]))
"""

from __future__ import annotations

from .archiving import ArchivedPartition, ArchiveOptions, ArchiveSummary, archive, read_archive
from .archiving.selection import Selection
from .auditing import AuditOptions, AuditReport, audit
from .lagging import LagOptions, LagReport, PartitionLag, QueryLag, lag
from .mirroring import MirroredPartition, MirrorOptions, MirrorSummary, mirror
from .progress import Listener, Progress
from .replaying import ReplayOptions, ReplaySummary, replay
from .session import SessionOptions
from .source import Source

__all__ = [
    "ArchiveOptions",
    "ArchiveSummary",
    "ArchivedPartition",
    "AuditOptions",
    "AuditReport",
    "LagOptions",
    "LagReport",
    "Listener",
    "MirrorOptions",
    "MirrorSummary",
    "MirroredPartition",
    "PartitionLag",
    "Progress",
    "QueryLag",
    "ReplayOptions",
    "ReplaySummary",
    "Selection",
    "SessionOptions",
    "Source",
    "archive",
    "audit",
    "lag",
    "mirror",
    "read_archive",
    "replay",
]
