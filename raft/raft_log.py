"""The log as a member of the quorum sees it (Kafka's `RaftLog`): where it begins and ends, and where its epochs do.

Only what is on disk. Who holds it carries out `Ready` on it; nobody else appends or truncates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pykbroker.protocol.schema import Message

from .snapshots import SnapshotId


class RaftLog(Protocol):
    @property
    def start_offset(self) -> int:
        """The offset of the first record in the log; earlier ones are in a snapshot."""
        ...

    @property
    def end_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, in the log or in the snapshot that it continues; 0 where there is none."""
        ...

    def snapshot_id_at(self, end_offset: int) -> SnapshotId | None:
        """The snapshot that ends there, be there older ones or later ones."""
        ...

    @property
    def latest_snapshot_id(self) -> SnapshotId | None: ...

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one that has records in the log, and where it ends; (-1, -1) where none is."""
        ...

    def snapshot_size_bytes(self, snapshot_id: SnapshotId) -> int | None:
        """Return None where there is no such snapshot."""
        ...

    def control_records(self) -> Iterable[tuple[int, Message]]:
        """KRaftVersionRecords and VotersRecords with their offsets: of the latest snapshot (at the last offset that it
        covers), then of the log. Asked for once, at the start.
        """
        ...
