"""Records of an archive, written to a topic again."""

from __future__ import annotations

from .options import ReplayOptions, ReplaySummary
from .run import replay

__all__ = ["ReplayOptions", "ReplaySummary", "replay"]
