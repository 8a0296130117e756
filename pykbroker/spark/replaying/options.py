"""The options of a replay, and what it has done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..archiving.selection import Selection
from ..errors import BadOptions
from ..session import SessionOptions
from ..source import Source

DEFAULT_BATCH_RECORDS = 2_000_000


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """A replay of records of an archive to a topic that exists.

    target: its cluster. archive: the directory. topic: as the archive has it. to_topic: the same name where it is not
    given. selection: which of its records. same_partitions: each record goes to the partition that it came from; else
    its key says where it goes, as Java's producer has it. rate: records a second, 0 for as fast as it goes.
    exactly_once: in transactions. max_batch_records: of one job of Spark. producer_properties: of librdkafka.
    """

    target: Source
    archive: str
    topic: str
    to_topic: str | None = None
    selection: Selection = field(default_factory=Selection)
    same_partitions: bool = True
    rate: float = 0.0
    exactly_once: bool = False
    max_batch_records: int = DEFAULT_BATCH_RECORDS
    producer_properties: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    session: SessionOptions = field(default_factory=SessionOptions)

    @property
    def target_topic(self) -> str:
        return self.to_topic or self.topic

    def check(self) -> None:
        """Raises BadOptions."""
        self.selection.check()
        if not 0 <= self.rate < float("inf"):
            raise BadOptions("rate is 0, or a number of records a second")
        if self.max_batch_records < 1:
            raise BadOptions("max_batch_records is 1 at least")


@dataclass(frozen=True, slots=True)
class ReplaySummary:
    """The result of a replay. selected: records that were asked for. there: those of them that the target had when the
    run began. records, size_bytes, batches: written by this run; bytes of keys and values.
    """

    selected: int
    there: int
    records: int
    size_bytes: int
    batches: int
