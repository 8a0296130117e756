"""The options of an archive, and the summary of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import BadOptions
from ..plan import NOW, check_options
from ..session import SessionOptions
from ..source import Source

DEFAULT_BATCH_RECORDS = 5_000_000
DEFAULT_TARGET_FILE_BYTES = 128 << 20
DEFAULT_POLL_INTERVAL_S = 10.0


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """A copy of topics.

    path: a directory, as `/data/archive` or `hdfs://…`. topics, topics_matching: names, and a regular expression that
    takes whole names; one of them at least. until: `now`, or milliseconds of Unix time, up to which records are taken;
    with `follow` the run goes on until it is ended. isolation_level: `read_committed` leaves out what transactions
    aborted. max_batch_records: so many offsets go into one commit. accept_loss: records that the topic has deleted
    before they were read are noted, and do not end the run. target_file_bytes: files of a topic and a date are merged
    up to this size; 0: never. codec: of Parquet. dry_run: nothing is written.
    """

    source: Source
    path: str
    topics: Sequence[str] = ()
    topics_matching: str | None = None
    until: str | int = NOW
    follow: bool = False
    isolation_level: str = "read_committed"
    max_batch_records: int = DEFAULT_BATCH_RECORDS
    poll_interval_s: float = DEFAULT_POLL_INTERVAL_S
    accept_loss: bool = False
    target_file_bytes: int = DEFAULT_TARGET_FILE_BYTES
    codec: str = "zstd"
    dry_run: bool = False
    session: SessionOptions = field(default_factory=SessionOptions)

    def check(self) -> None:
        """Raises BadOptions."""
        check_options(self)
        if self.target_file_bytes < 0:
            raise BadOptions("target_file_bytes is not negative")


@dataclass(frozen=True, slots=True)
class ArchivedPartition:
    """A partition of an archive. next_offset: where the next run goes on.

    records, checksum: of all that the archive has of it.
    """

    start_offset: int
    next_offset: int
    records: int
    checksum: str


@dataclass(frozen=True, slots=True)
class ArchiveSummary:
    """A summary. records, size_bytes: what this run added; bytes are those of keys and values.

    left: offsets that are still to be read. partitions: of the whole archive.
    """

    commits: int
    records: int
    size_bytes: int
    files: int
    file_bytes: int
    left: int
    partitions: Mapping[str, Mapping[int, ArchivedPartition]]
