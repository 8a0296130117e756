"""Producer snapshots, read leniently: what each entry says, and what is wrong with the file.

The layout is `producer_state`'s: version, checksum, count, entries of a fixed size.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from .findings import Finding, FindingKind

_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_VERSION = 1


class ProducerRow(NamedTuple):
    position: int
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_transaction_first_offset: int


def read_producer_snapshot(path: str, data: bytes) -> tuple[list[ProducerRow], list[Finding]]:
    """Entries are given even where the checksum is wrong."""
    findings = list(_findings(path, data))
    start = _HEAD.size + _COUNT.size
    whole = (len(data) - start) // _ENTRY.size if len(data) > start else 0
    rows = [
        ProducerRow(start + number * _ENTRY.size, *_ENTRY.unpack_from(data, start + number * _ENTRY.size))
        for number in range(whole)
    ]
    seen: set[int] = set()
    for row in rows:
        if row.producer_id in seen:
            what = f"a second entry for producer {row.producer_id}"
            findings.append(Finding(path, FindingKind.PRODUCERS, what, row.position))
        seen.add(row.producer_id)
    return rows, findings


def _findings(path: str, data: bytes) -> Iterator[Finding]:
    if len(data) < _HEAD.size + _COUNT.size:
        yield Finding(path, FindingKind.PRODUCERS, f"{len(data)} bytes, too few for a snapshot")
        return
    version, crc = _HEAD.unpack_from(data)
    (count,) = _COUNT.unpack_from(data, _HEAD.size)
    computed = crc32c(data[_HEAD.size :])
    if version != _VERSION:
        yield Finding(path, FindingKind.PRODUCERS, f"the version is {version}, not {_VERSION}", 0)
    if crc != computed:
        what = f"the checksum is {crc:08x}, that of the bytes {computed:08x}"
        yield Finding(path, FindingKind.PRODUCERS, what, _HEAD.size - 4)
    expected = _HEAD.size + _COUNT.size + count * _ENTRY.size
    if expected != len(data):
        what = f"{count} entries are announced, which take {expected} bytes; the file has {len(data)}"
        yield Finding(path, FindingKind.PRODUCERS, what, _HEAD.size)
