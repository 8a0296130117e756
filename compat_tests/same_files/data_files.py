"""A data directory as values that can be compared: the entries of its files, without what no two brokers share.

The formats are written down once more here, by their bytes, so that nothing of the broker under test reads its own
files. Ids are replaced by their kind, and times by what they are after the history's NOW. A batch whose checksum is
right says so: every other byte of it is compared by itself.
"""

# construct's parse() may return None in its type, and never does.
# pyright: reportOptionalMemberAccess=false

import re
import struct
from collections.abc import Container, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from crc32c import crc32c

from pykbroker.protocol.descriptions.index_files import ABORTED_TRANSACTION, OFFSET_ENTRY, TIME_ENTRY
from pykbroker.protocol.descriptions.record_batches import BATCH
from pykbroker.protocol.records.batch import iter_batches, iter_records

from .history import NOW

_SNAPSHOT_HEAD = struct.Struct(">hIi")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
_HEX_ID = re.compile(r"\.[0-9a-f]{32}(?=-(?:delete|stray)$)")
_BASE64_ID = re.compile(r"[A-Za-z0-9_-]{22}")

_LATEST_AFTER_MS = 3_600_000
_ATTRIBUTES_POSITION = 21
"""Of a batch: where what its checksum covers begins."""

Batch = dict[str, Any]


def since(timestamp_ms: int) -> int | str:
    """A time of the history, the same in all its runs."""
    after_ms = timestamp_ms - NOW
    return f"NOW+{after_ms}" if 0 <= after_ms < _LATEST_AFTER_MS else timestamp_ms


def batches(data: bytes) -> Iterator[Batch]:
    """The header's fields, those of its attributes among them, and the records as they are stored."""
    position = 0
    while position < len(data):
        batch = BATCH.parse(data[position:])
        end = position + 12 + batch.batch_length
        fields = {name: value for name, value in batch.items() if name not in ("_io", "attributes")}
        fields |= {name: since(fields[name]) for name in ("base_timestamp", "max_timestamp")}
        if crc32c(data[position + _ATTRIBUTES_POSITION : end]) == batch.crc:
            fields["crc"] = "right"
        yield (
            {"position": position} | fields | {name: value for name, value in batch.attributes.items() if name != "_io"}
        )
        position = end


def in_one_line(batch: Batch, without: Container[str] = ()) -> str:
    shown = batch | {"records": sha256(batch["records"]).hexdigest()[:16]}
    return " ".join(f"{name}={value}" for name, value in shown.items() if name not in without)


def decoded_records(data: bytes) -> list[tuple[Any, ...]]:
    """What readers get, whatever the codec."""
    records = (record for batch in iter_batches(data) for record in iter_records(batch))
    return [tuple(record._replace(timestamp=since(record.timestamp))) for record in records]


def offset_entries(data: bytes) -> list[tuple[int, int]]:
    return [(each.relative_offset, each.position) for each in _entries(OFFSET_ENTRY, data)]


def time_entries(data: bytes) -> list[tuple[int | str, int]]:
    return [(since(each.timestamp), each.relative_offset) for each in _entries(TIME_ENTRY, data)]


def aborted_transactions(data: bytes) -> list[tuple[int, ...]]:
    return [
        tuple(value for name, value in each.items() if name != "_io") for each in _entries(ABORTED_TRANSACTION, data)
    ]


def _entries(entry: Any, data: bytes) -> Iterator[Any]:
    size = entry.sizeof()
    assert len(data) % size == 0, f"{len(data)} bytes are not entries of {size}"
    return (entry.parse(data[at : at + size]) for at in range(0, len(data), size))


def producers(data: bytes) -> dict[str, Any]:
    """A producer snapshot; its checksum is compared with the bytes."""
    version, _, count = _SNAPSHOT_HEAD.unpack_from(data)
    rows = sorted(_SNAPSHOT_ENTRY.iter_unpack(data[_SNAPSHOT_HEAD.size :]))
    assert len(rows) == count
    return {"version": version, "producers": [(*row[:5], since(row[5]), *row[6:]) for row in rows]}


def checkpoint(path: Path) -> dict[str, Any]:
    """Version, announced count and lines; their order is a hash map's."""
    text = path.read_text()
    if not text:
        return {}
    assert text.endswith("\n")
    version, count, *lines = text.splitlines()
    return {"version": version, "count": int(count), "lines": sorted(lines)}


def names(directory: Path) -> dict[str, str]:
    kinds = {_HEX_ID.sub(".ID", path.name): "directory" if path.is_dir() else "file" for path in directory.iterdir()}
    return dict(sorted(kinds.items()))


def all_names(directory: Path) -> dict[str, dict[str, str]]:
    """Of a data directory that may be in use, and of what is in it, without checkpoints that are just being written."""
    inner = [path for path in directory.iterdir() if path.is_dir()]
    found = {_HEX_ID.sub(".ID", path.name): names(path) for path in (directory, *inner)}
    return {
        place: {name: kind for name, kind in there.items() if not name.endswith("-checkpoint.tmp")}
        for place, there in found.items()
    }


def without_ids(text: str) -> str:
    return _BASE64_ID.sub("ID", text)


def log_files(directory: Path) -> dict[str, Any]:
    """Everything in a partition's directory by file name."""
    return {path.name: log_file(path) for path in sorted(directory.iterdir())}


def log_file(path: Path) -> Any:
    data = path.read_bytes()
    match path.name.removesuffix(".deleted").rpartition(".")[2]:
        case "log":
            return [in_one_line(batch) for batch in batches(data)]
        case "index":
            return offset_entries(data)
        case "timeindex":
            return time_entries(data)
        case "snapshot":
            return producers(data)
        case "txnindex":
            return aborted_transactions(data)
    if path.name.endswith("-checkpoint"):
        return checkpoint(path)
    return without_ids(data.decode())


def properties(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return dict(sorted(line.split("=", 1) for line in lines))


def without_ids_in(properties: dict[str, str]) -> dict[str, str]:
    return {name: without_ids(value) for name, value in properties.items()}
