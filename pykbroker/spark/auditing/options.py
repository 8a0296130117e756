"""The options of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..archiving.selection import Selection
from ..errors import BadOptions
from ..session import SessionOptions
from ..source import ISOLATION_LEVELS, Source


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """A look at topics, at an archive, or at both.

    source: the cluster of the topics; None for an archive alone. topics, topics_matching: names, and a regular
    expression that takes whole names; without both all topics of the archive. archive: compared with the topics, or
    looked at where there is no source. compare_with: a topic whose keys, values and headers have to be those of the
    only topic named, partition by partition; it is in `compare_source`, or in the same cluster. replayed_from: the
    topic of the archive, of which `selection` was replayed to the only topic named. listed: so many of the
    largest records, of the heaviest keys, of gaps and of differences are told. dry_run: nothing is read.
    """

    source: Source | None
    topics: Sequence[str] = ()
    topics_matching: str | None = None
    archive: str | None = None
    compare_with: str | None = None
    compare_source: Source | None = None
    replayed_from: str | None = None
    selection: Selection = field(default_factory=Selection)
    isolation_level: str = "read_committed"
    listed: int = 10
    dry_run: bool = False
    session: SessionOptions = field(default_factory=SessionOptions)

    def check(self) -> None:
        """Raises BadOptions."""
        if self.source is None and self.archive is None:
            raise BadOptions("Neither a cluster nor an archive is named")
        if self.source is not None and self.archive is None and not self.topics and self.topics_matching is None:
            raise BadOptions("No topic is named")
        if self.source is None and self.topics_matching is not None:
            raise BadOptions("Of an archive, topics are named one by one")
        if self.isolation_level not in ISOLATION_LEVELS:
            raise BadOptions(f"isolation_level is {' or '.join(ISOLATION_LEVELS)}, not '{self.isolation_level}'")
        if self.compare_with is not None and (
            self.archive is not None or len(self.topics) != 1 or self.topics_matching
        ):
            raise BadOptions("A topic is compared with one other topic")
        if self.replayed_from is not None and (
            self.source is None or self.archive is None or len(self.topics) != 1 or self.topics_matching
        ):
            raise BadOptions("A replay is compared as one topic with the archive that it comes from")
        if self.replayed_from is None and self.selection != Selection():
            raise BadOptions("Offsets and times are those of a replay")
        self.selection.check()
        if not 1 <= self.listed <= 1000:
            raise BadOptions("listed is from 1 to 1000")
