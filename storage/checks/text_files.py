"""The small text files of a log directory and of a partition, read leniently: what they say, and what is wrong.

The broker's own readers (`checkpoints`, `meta_properties`, `partition_metadata`) take a file or refuse it; here every
line that makes sense is shown beside what is wrong with the others.
"""

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pykbroker.protocol.uuids import uuid_from_text

from ..directories.meta_properties import VERSION, parse_properties
from ..files.checkpoints import CLEANED_OFFSET, HIGH_WATERMARK, LOG_START_OFFSET, RECOVERY_POINT
from .findings import Finding, FindingKind

OFFSET_CHECKPOINTS = (RECOVERY_POINT, HIGH_WATERMARK, LOG_START_OFFSET, CLEANED_OFFSET)

_SHOWN_CHARACTERS = 60


class Row(NamedTuple):
    """One statement of a file. line: from 1 on."""

    line: int
    fields: Mapping[str, object]


class TextFile(NamedTuple):
    rows: list[Row]
    findings: list[Finding]


class _Reader:
    def __init__(self, path: str, kind: FindingKind) -> None:
        self.path = path
        self.kind = kind
        self.rows: list[Row] = []
        self.findings: list[Finding] = []

    def complain(self, what: str) -> None:
        self.findings.append(Finding(self.path, self.kind, what))

    def text(self, data: bytes) -> str:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            self.findings.append(Finding(self.path, self.kind, "not text in UTF-8", error.start))
            return data.decode("utf-8", "replace")

    def result(self) -> TextFile:
        return TextFile(self.rows, self.findings)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…")


def _number(text: str) -> int:
    """Read a number as Java does; raises `ValueError`."""
    if not text.isascii() or len(text) > 20 or not text.removeprefix("-").isdigit():
        raise ValueError(text)
    return int(text)


def _read_checkpoint(
    path: str, data: bytes, kind: FindingKind, parse: Callable[[list[str]], Mapping[str, object]]
) -> TextFile:
    reader = _Reader(path, kind)
    lines = reader.text(data).split("\n")
    if lines[-1] == "":
        lines.pop()
    elif lines[-1]:
        reader.complain("the last line is cut off: it has no end")
    if not lines:
        return reader.result()
    if lines[0] != "0":
        reader.complain(f"line 1: the version is {_shown(lines[0])}, not 0")
    if len(lines) < 2:
        reader.complain("it ends before the number of entries")
    elif lines[1] != str(len(lines) - 2):
        reader.complain(f"line 2: {_shown(lines[1])} entries are announced, {len(lines) - 2} are there")
    for number, line in enumerate(lines[2:], 3):
        try:
            reader.rows.append(Row(number, parse(line.split(" "))))
        except ValueError as error:
            reader.complain(f"line {number}: {_shown(line)} is not {error}")
    return reader.result()


def _offset_row(words: list[str]) -> Mapping[str, object]:
    try:
        topic, partition, offset = words
        row = {"topic": topic, "partition": _number(partition), "offset": _number(offset)}
    except ValueError:
        raise ValueError("a topic, a partition and an offset") from None
    if row["partition"] < 0 or row["offset"] < 0:  # type: ignore[operator]
        raise ValueError("without a negative number")
    return row


def _epoch_row(words: list[str]) -> Mapping[str, object]:
    try:
        epoch, start_offset = words
        return {"epoch": _number(epoch), "start_offset": _number(start_offset)}
    except ValueError:
        raise ValueError("an epoch and the offset where it begins") from None


def read_offset_checkpoint(path: str, data: bytes) -> TextFile:
    """Rows of `topic`, `partition`, `offset`."""
    found = _read_checkpoint(path, data, FindingKind.OFFSETS, _offset_row)
    seen = set()
    for row in found.rows:
        key = (row.fields["topic"], row.fields["partition"])
        if key in seen:
            what = f"line {row.line}: a second entry for {key[0]}-{key[1]}"
            found.findings.append(Finding(path, FindingKind.OFFSETS, what))
        seen.add(key)
    return found


def read_leader_epochs(path: str, data: bytes) -> TextFile:
    """Rows of `epoch`, `start_offset`; both must ascend."""
    found = _read_checkpoint(path, data, FindingKind.EPOCHS, _epoch_row)
    previous: tuple[int, int] | None = None
    for row in found.rows:
        epoch, start = row.fields["epoch"], row.fields["start_offset"]
        assert isinstance(epoch, int)
        assert isinstance(start, int)
        if epoch < 0 or start < 0:
            found.findings.append(Finding(path, FindingKind.EPOCHS, f"line {row.line}: a negative number"))
        elif previous is not None and (epoch <= previous[0] or start < previous[1]):
            what = f"line {row.line}: epoch {epoch} from {start} on follows epoch {previous[0]} from {previous[1]} on"
            found.findings.append(Finding(path, FindingKind.EPOCHS, what))
        previous = epoch, start
    return found


def read_partition_metadata(path: str, data: bytes) -> TextFile:
    """One row of `topic_id`, Kafka's base64 text."""
    reader = _Reader(path, FindingKind.IDENTITY)
    lines = reader.text(data).splitlines()
    if lines[:1] != ["version: 0"]:
        reader.complain(f"line 1: {_shown(lines[0] if lines else '')} instead of version: 0")
    label, _, text = (lines[1] if len(lines) > 1 else "").partition(": ")
    try:
        if label != "topic_id":
            raise ValueError
        uuid_from_text(text)
        reader.rows.append(Row(2, {"topic_id": text}))
    except ValueError:
        reader.complain(f"line 2: {_shown(lines[1] if len(lines) > 1 else '')} instead of topic_id and an id")
    if any(line.strip() for line in lines[2:]):
        reader.complain(f"line 3: {_shown(lines[2])} behind the topic id")
    return reader.result()


def read_meta_properties_file(path: str, data: bytes) -> TextFile:
    reader = _Reader(path, FindingKind.IDENTITY)
    properties = parse_properties(reader.text(data))
    reader.rows.append(Row(1, properties))
    version = properties.get("version")
    if version not in ("0", str(VERSION)):
        reader.complain("there is no version" if version is None else f"the version is {_shown(version)}, not 1")
    node_key = "broker.id" if version == "0" else "node.id"
    try:
        node_id = _number(properties.get(node_key, ""))
    except ValueError:
        node_id = -1
    if node_id < 0:
        reader.complain(f"{node_key} is {_shown(properties.get(node_key, ''))}, not the number of a node")
    if not properties.get("cluster.id"):
        reader.complain("there is no cluster.id")
    directory_id = properties.get("directory.id")
    if directory_id is not None and not _is_uuid(directory_id):
        reader.complain(f"directory.id is {_shown(directory_id)}, not 16 bytes in base64")
    return reader.result()


def _is_uuid(text: str) -> bool:
    try:
        uuid_from_text(text)
    except ValueError:
        return False
    return True


def read_clean_shutdown(path: str, data: bytes) -> TextFile:
    """Empty, or JSON with the broker's epoch."""
    reader = _Reader(path, FindingKind.NOTE)
    text = reader.text(data)
    if not text.strip():
        return reader.result()
    try:
        content = json.loads(text)
        if not isinstance(content, dict) or not isinstance(content.get("brokerEpoch"), int):
            raise ValueError
        reader.rows.append(Row(1, content))
    except (ValueError, RecursionError):
        reader.complain(f"{_shown(text)} is not the broker's epoch in JSON; it counts as a clean shutdown all the same")
    return reader.result()
