"""The records that an audit lists: their keys as text, looked up by their offsets."""

from __future__ import annotations

from .report import KeyReport, KeysReport, LargeRecord
from .scanning import KeyRow, Scan
from .subjects import At, Subject, key_text


def listed_records(subject: Subject, found: Scan) -> tuple[list[LargeRecord], KeysReport]:
    """The largest records, and the keys. Raises ClusterUnavailable."""
    places = {At(row.partition, row.offset) for row in found.largest}
    places |= {At(row.partition, row.offset) for row in (*found.heaviest_keys, *found.scattered_keys)}
    keys = subject.keys_at(places)

    def text(partition: int, offset: int) -> str | None:
        return key_text(keys.get(At(partition, offset)))

    def report(row: KeyRow) -> KeyReport:
        return KeyReport(
            text(row.partition, row.offset), row.partition, row.offset, row.records, row.size_bytes, row.partitions
        )

    return (
        [LargeRecord(*row, text(row.partition, row.offset)) for row in found.largest],
        KeysReport(
            found.keys,
            found.keys_in_several_partitions,
            [report(row) for row in found.heaviest_keys],
            [report(row) for row in found.scattered_keys],
        ),
    )
