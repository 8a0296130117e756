"""Topics as Parquet files, each record once, with a manifest of offsets and checksums."""

from __future__ import annotations

from .options import ArchivedPartition, ArchiveOptions, ArchiveSummary
from .reading import read_archive
from .run import archive

__all__ = ["ArchiveOptions", "ArchiveSummary", "ArchivedPartition", "archive", "read_archive"]
