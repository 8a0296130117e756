"""One version of one message as a `construct`, made from its declaration.

What it parses is a Container with the fields of the body by name, and in `tagged` a list of the entries of the tagged
section. A field that the version lacks is not there, nor a tagged one that was left out.
"""

# construct's types are objects made by decorators, which pyright takes for the classes and functions behind them.
# pyright: reportOperatorIssue=false, reportArgumentType=false, reportAssignmentType=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

import functools
from typing import Any

import construct as c

from ..schema import Field, StructType
from ..uuids import uuid_to_text
from .values import BYTES, COMPACT_BYTES, COMPACT_STRING, NUMBERS, STRING, array, nullable, tagged_section

TAGGED = "tagged"


@functools.lru_cache(maxsize=256)
def describe(cls: StructType, version: int) -> c.Construct:
    """Return the description of one version of a message or struct."""
    return _struct(cls, version, cls.__schema__.flexible.includes(version))


def _struct(cls: StructType, version: int, flexible: bool) -> c.Construct:
    body: list[c.Construct] = []
    tagged: dict[int, c.Construct] = {}
    for field in cls.__schema__.fields:
        if field.versions.includes(version):
            if field.tagged.includes(version):
                assert field.tag is not None
                tagged[field.tag] = _value(field, version, flexible, null_mark=0)
            else:
                body.append(field.name / _value(field, version, flexible, null_mark=-1))
    section = [TAGGED / tagged_section(tagged)] if flexible else []
    return c.Struct(*body, *section)


def _value(field: Field, version: int, flexible: bool, null_mark: int) -> c.Construct:
    kind = field.kind.removeprefix("[]")
    if kind == "struct":
        value = _struct(field.struct, version, flexible)
        if field.kind == kind and field.nullable.includes(version):
            value = nullable(value, null_mark)
    elif kind == "string":
        value = COMPACT_STRING if flexible and field.flexible else STRING
    elif kind in ("bytes", "records"):
        value = COMPACT_BYTES if flexible else BYTES
    else:
        value = NUMBERS[kind]
    return array(value, flexible) if field.kind.startswith("[]") else value


def fields_by_name(cls: StructType, parsed: Any, version: int) -> dict[str, Any]:
    """Return the parsed fields as plain dicts and lists: known tagged fields stand by name, UUIDs in Kafka's text."""
    tags = {entry.tag: entry.value for entry in parsed.get(TAGGED) or ()}
    named: dict[str, Any] = {}
    for field in cls.__schema__.fields:
        if field.versions.includes(version):
            if not field.tagged.includes(version):
                named[field.name] = _plain(field, parsed[field.name], version)
            elif field.tag in tags:
                named[field.name] = _plain(field, tags.pop(field.tag), version)
    return named | ({"unknown_tagged_fields": tags} if tags else {})


def _plain(field: Field, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.kind.startswith("[]"):
        return [_plain_element(field, element, version) for element in value]
    return _plain_element(field, value, version)


def _plain_element(field: Field, value: Any, version: int) -> Any:
    if field.kind.endswith("struct"):
        return None if value is None else fields_by_name(field.struct, value, version)
    return uuid_to_text(value) if field.kind.endswith("uuid") else value
