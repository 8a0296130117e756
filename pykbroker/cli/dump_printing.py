"""The two forms of what `pykbroker dump` and `pykbroker verify` print: lines for people, and one JSON object a line."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import click

from pykbroker.storage.checks.findings import Finding

from .dump_entries import Dumped, Entry
from .listing import INDENT, field_lines, preview, print_line, printable, timestamp_text


class JsonPrinter:
    """Bytes that are UTF-8 are strings, others an object with their base64; every object names its file."""

    def file(self, path: str, kind: str) -> None:
        click.echo(json_line({"type": "file", "file": path, "kind": kind}))

    def empty(self) -> None:
        """Print nothing: the file has no objects."""

    def dumped(self, path: str, dumped: Dumped) -> None:
        if isinstance(dumped, Finding):
            click.echo(finding_json(dumped))
        else:
            click.echo(json_line({"type": dumped.kind, "file": path} | dumped.fields))


def finding_json(finding: Finding) -> str:
    fields = finding._asdict()
    fields["file"] = fields.pop("path")
    fields["kind"] = str(finding.kind)
    return json_line({"type": "finding", "is_damage": finding.is_damage} | fields)


def json_line(fields: Mapping[str, Any]) -> str:
    """Return an object in one line; bytes that are UTF-8 are strings, others an object with their base64."""
    return json.dumps(_plain(fields), ensure_ascii=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such numbers
    return value


class TextPrinter:
    """`whole`: keys and values in full. `names_files`: there are several."""

    def __init__(self, *, names_files: bool, whole: bool = False, skip_record_metadata: bool = False) -> None:
        self._names_files = names_files
        self._limit = None if whole else 48
        self._skip_record_metadata = skip_record_metadata

    def file(self, path: str, kind: str) -> None:
        if self._names_files:
            print_line(f"{printable(path)}: {kind}")

    def empty(self) -> None:
        """Say that the file has no entries, such as the segment of a partition that nobody has written to."""
        print_line(f"{INDENT}(empty)")

    def dumped(self, _path: str, dumped: Dumped) -> None:
        if isinstance(dumped, Finding):
            print_line(f"{INDENT}! {printable(str(dumped))}")
            return
        for line in self._lines(dumped):
            print_line(line)

    def _lines(self, entry: Entry) -> Iterator[str]:
        fields = entry.fields
        match entry.kind:
            case "batch":
                yield _batch_line(fields)
            case "record":
                yield from self._record_lines(fields)
            case "hole":
                yield f"{INDENT}offsets {fields['first_offset']}-{fields['last_offset']} are not there"
            case "legacy_message":
                yield (
                    f"@{fields['position']} offset {fields['offset']}  {fields['size']} bytes  "
                    f"crc {'ok' if fields['is_crc_valid'] else 'WRONG'}  format {fields['magic']}"
                )
            case "offset_entry":
                yield f"@{fields['position']} offset {fields['offset']}  position {fields['log_position']}"
            case "time_entry":
                stamp = timestamp_text(fields["timestamp"])
                yield f"@{fields['position']} timestamp {fields['timestamp']} ({stamp})  offset {fields['offset']}"
            case "aborted_transaction":
                yield (
                    f"@{fields['position']} producer {fields['producer_id']}  offsets {fields['first_offset']}-"
                    f"{fields['last_offset']}  last stable offset {fields['last_stable_offset']}"
                )
            case "producer":
                yield _producer_line(fields)
            case _:
                yield "  ".join(f"{printable(key)} {_shown(value)}" for key, value in fields.items())

    def _record_lines(self, fields: Mapping[str, Any]) -> Iterator[str]:
        place = INDENT
        if not self._skip_record_metadata:
            place = f"{INDENT}{fields['offset']}  {timestamp_text(fields['timestamp'])}  "
        if "record_type" not in fields:
            reason = f"  (not understood: {printable(fields['not_understood'])})" if "not_understood" in fields else ""
            yield f"{place}{self._plain_record(fields)}{reason}"
            return
        version = "tombstone" if fields["version"] is None else f"v{fields['version']}"
        yield f"{place}{fields['record_type']} {version}"
        yield from field_lines(fields.get("content_of_key", {}), 2)
        yield from field_lines(fields.get("content", {}), 2)

    def _plain_record(self, fields: Mapping[str, Any]) -> str:
        text = f"key {preview(fields['key'], self._limit)}  value {preview(fields['value'], self._limit)}"
        headers = ", ".join(
            f"{preview(name.encode('utf-8', 'surrogateescape'), self._limit)}={preview(value, self._limit)}"
            for name, value in fields["headers"]
        )
        return f"{text}  headers {headers}" if headers else text


def _batch_line(fields: Mapping[str, Any]) -> str:
    parts = [
        f"@{fields['position']} offsets {fields['base_offset']}-{fields['last_offset']}",
        f"{fields['records_count']} records",
        f"{fields['size']} bytes",
        fields["compression"],
        "crc ok" if fields["is_crc_valid"] else "crc WRONG",
        f"leader epoch {fields['leader_epoch']}",
        f"{fields['timestamp_type'].lower()} {timestamp_text(fields['max_timestamp'])}",
    ]
    if fields["producer_id"] >= 0:
        parts.append(
            f"producer {fields['producer_id']} epoch {fields['producer_epoch']} sequence {fields['base_sequence']}"
        )
    parts += [flag.removeprefix("is_") for flag in ("is_transactional", "is_control") if fields[flag]]
    if fields["delete_horizon"] is not None:
        parts.append(f"delete horizon {timestamp_text(fields['delete_horizon'])}")
    return "  ".join(parts)


def _producer_line(fields: Mapping[str, Any]) -> str:
    text = (
        f"@{fields['position']} producer {fields['producer_id']}  epoch {fields['producer_epoch']}  "
        f"last sequence {fields['last_sequence']}  last offset {fields['last_offset']}  "
        f"offset delta {fields['offset_delta']}  {timestamp_text(fields['timestamp'])}"
    )
    if fields["coordinator_epoch"] >= 0:
        text += f"  coordinator epoch {fields['coordinator_epoch']}"
    if fields["current_transaction_first_offset"] >= 0:
        text += f"  in a transaction from offset {fields['current_transaction_first_offset']} on"
    return text


def _shown(value: Any) -> str:
    return (printable(value) or '""') if isinstance(value, str) else printable(json.dumps(value, default=str))
