"""The check that a snapshot of the metadata log is whole: a header record, the records, a footer record (KIP-630)."""

from collections.abc import Iterator

from pykbroker.protocol.records.batch import iter_records
from pykbroker.protocol.records.control import ControlRecordType, decode_control_key
from pykbroker.protocol.records.errors import InvalidRecords

from .batch_walk import FoundBatch
from .findings import Finding, FindingKind


class SnapshotFrame:
    """Told of every batch in order."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._has_begun = self._has_header = self._has_footer = False

    def note(self, batch: FoundBatch) -> Iterator[Finding]:
        if self._has_footer:
            yield self._finding("records follow the snapshot's footer", batch.position)
        kinds = _control_kinds(batch)
        if not self._has_begun:
            self._has_header = ControlRecordType.SNAPSHOT_HEADER in kinds
        self._has_begun = True
        self._has_footer = self._has_footer or ControlRecordType.SNAPSHOT_FOOTER in kinds

    def finish(self) -> Iterator[Finding]:
        if not self._has_header:
            yield self._finding("the snapshot does not begin with its header")
        if not self._has_footer:
            yield self._finding("the snapshot has no footer: it was not written to its end")

    def _finding(self, what: str, position: int | None = None) -> Finding:
        return Finding(self._path, FindingKind.METADATA, what, position)


def _control_kinds(batch: FoundBatch) -> set[ControlRecordType | None]:
    if not batch.header.is_control or batch.data is None:
        return set()
    try:
        return {decode_control_key(record.key) for record in iter_records(batch.data)}
    except InvalidRecords:
        return set()
