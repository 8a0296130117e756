"""Kafka's own schemas, as the JSON files inside its jars have them, brought into one plain shape for comparison."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

JARS_WITH_SCHEMAS = (
    "kafka-clients",
    "kafka-metadata",
    "kafka-group-coordinator",
    "kafka-transaction-coordinator",
    "kafka-share-coordinator",
    "kafka-storage",
    "kafka-raft",
)
_INTEGERS = ("int8", "int16", "uint16", "int32", "uint32", "int64")
_ZEROS: dict[str, Any] = dict.fromkeys(_INTEGERS, 0) | {
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "uuid": bytes(16),
    "records": None,
}

Default = Any


@dataclass(frozen=True)
class FieldShape:
    """One field, with the shapes of its struct's fields where it has one. json_name: what Kafka's classes call it."""

    name: str
    json_name: str
    kind: str
    versions: str
    nullable: str
    tagged: str
    tag: int | None
    default: Default
    ignorable: bool
    map_key: bool
    flexible: bool
    struct: str | None
    fields: tuple[FieldShape, ...]


@dataclass(frozen=True)
class MessageShape:
    name: str
    kind: str
    versions: str
    flexible: str
    api_key: int | None
    listeners: tuple[str, ...]
    latest_version_unstable: bool
    fields: tuple[FieldShape, ...]


def read_schemas(libs: Path) -> dict[str, MessageShape]:
    """All schemas that have versions; Kafka keeps empty ones of APIs that it has removed."""
    shapes: dict[str, MessageShape] = {}
    for jar in JARS_WITH_SCHEMAS:
        [path] = libs.glob(f"{jar}-[0-9]*.jar")
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".json"):
                    schema = _parse(archive.read(name).decode())
                    if schema.get("validVersions", "none") != "none":
                        shapes[schema["name"]] = _message(schema)
    return shapes


def as_of(shape: MessageShape, newest: int) -> MessageShape:
    """The message as a release has it that knows no version above `newest`."""
    return replace(
        shape,
        versions=_clipped(shape.versions, newest),
        flexible=_clipped(shape.flexible, newest),
        fields=_fields_as_of(shape.fields, newest),
    )


def _fields_as_of(fields: tuple[FieldShape, ...], newest: int) -> tuple[FieldShape, ...]:
    return tuple(
        replace(
            each,
            versions=_clipped(each.versions, newest),
            nullable=_clipped(each.nullable, newest),
            tagged=_clipped(each.tagged, newest),
            fields=_fields_as_of(each.fields, newest),
        )
        for each in fields
        if _clipped(each.versions, newest) != "none"
    )


def _clipped(versions: str, newest: int) -> str:
    """The part of a range that ends with `newest`, with both ends named; `none` where nothing is left of it."""
    if versions == "none":
        return versions
    low, dash, high = versions.partition("-")
    first = int(low.removesuffix("+"))
    last = min(int(high or first) if dash or not low.endswith("+") else newest, newest)
    return "none" if first > last else f"{first}-{last}"


def _parse(text: str) -> dict[str, Any]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("//")]
    parsed: dict[str, Any] = json.loads("\n".join(lines))
    return parsed


def _message(schema: dict[str, Any]) -> MessageShape:
    structs = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
    _collect_structs(schema["fields"], structs)
    for fields in list(structs.values()):
        _collect_structs(fields, structs)
    return MessageShape(
        name=schema["name"],
        kind=schema["type"],
        versions=schema["validVersions"],
        flexible=_range(schema["flexibleVersions"]),
        api_key=schema.get("apiKey"),
        listeners=tuple(schema.get("listeners", ())),
        latest_version_unstable=_flag(schema.get("latestVersionUnstable")),
        fields=tuple(_field(field, structs) for field in schema["fields"]),
    )


def _collect_structs(fields: list[dict[str, Any]], structs: dict[str, list[dict[str, Any]]]) -> None:
    for field in fields:
        if "fields" in field:
            structs[field["type"].removeprefix("[]")] = field["fields"]
            _collect_structs(field["fields"], structs)


def _field(field: dict[str, Any], structs: dict[str, list[dict[str, Any]]]) -> FieldShape:
    element = field["type"].removeprefix("[]")
    is_array = field["type"] != element
    struct = element if element in structs else None
    return FieldShape(
        name=snake_case(field["name"]),
        json_name=field["name"][0].lower() + field["name"][1:],
        kind=("[]" if is_array else "") + ("struct" if struct else element),
        versions=_range(field.get("versions") or field["taggedVersions"]),
        nullable=_range(field.get("nullableVersions", "none")),
        tagged=_range(field.get("taggedVersions", "none")),
        tag=field.get("tag"),
        default=_default(field.get("default"), element, is_array, struct),
        ignorable=_flag(field.get("ignorable")),
        map_key=_flag(field.get("mapKey")),
        flexible=field.get("flexibleVersions") != "none",
        struct=struct,
        fields=tuple(_field(inner, structs) for inner in structs[element]) if struct else (),
    )


def _default(text: Any, element: str, is_array: bool, struct: str | None) -> Default:
    """A JSON null and an empty text both mean that nothing was said."""
    if text == "null":
        return None
    if is_array:
        return "empty array"
    if struct:
        return "empty struct"
    if text is None or text == "":
        return _ZEROS[element]
    if element == "bool":
        return str(text).lower() == "true"
    return int(str(text), 0) if element in _INTEGERS else text


def _flag(value: Any) -> bool:
    return str(value).lower() == "true"


def _range(text: str) -> str:
    low, dash, high = text.partition("-")
    return low if dash and low == high else text


def snake_case(name: str) -> str:
    """KRaft counts as one word."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.replace("KRaft", "Kraft"))
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", words).lower()
