"""Our declarations beside the JSON schemas in Kafka's jars: nothing missing, nothing more, nothing different."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from compat_tests.apache_kafka import kafka_libs
from pykbroker.protocol.api_keys import ApiKey, api_name, request_type, response_type
from pykbroker.protocol.schema import Field, Message, Struct, StructType

from .declared import declared_messages
from .kafka_schemas import FieldShape, MessageShape, read_schemas

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def schemas() -> dict[str, MessageShape]:
    return read_schemas(kafka_libs())


def test_every_schema_of_kafka_is_declared_and_no_other(schemas: dict[str, MessageShape]) -> None:
    assert set(declared_messages()) == set(schemas)


def test_every_message_is_declared_as_in_kafka(schemas: dict[str, MessageShape]) -> None:
    differences = [
        difference
        for name, expected in schemas.items()
        for difference in _message_differences(declared_messages()[name], expected)
    ]
    assert differences == []


def test_every_api_is_found_by_its_key(schemas: dict[str, MessageShape]) -> None:
    requests = {shape.api_key: shape.name for shape in schemas.values() if shape.kind == "request"}
    responses = {shape.api_key: shape.name for shape in schemas.values() if shape.kind == "response"}
    assert {int(key) for key in ApiKey} == set(requests)
    for key in ApiKey:
        assert request_type(key).__name__ == requests[key] == f"{api_name(key)}Request"
        assert response_type(key).__name__ == responses[key]
        assert key.name.replace("_", "") == api_name(key).upper()


def test_the_comparison_notices_each_kind_of_difference(schemas: dict[str, MessageShape]) -> None:
    produce = declared_messages()["ProduceRequest"]
    changes = {
        "versions": "4+",
        "nullable": "none",
        "default": "x",
        "tag": 3,
        "tagged": "9+",
        "kind": "bytes",
        "ignorable": True,
        "map_key": True,
        "flexible": False,
    }
    expected = schemas["ProduceRequest"].fields[0]
    for attribute, value in changes.items():
        changed = FieldShape(**{**vars(expected), attribute: value})
        found = list(_field_differences(produce.__schema__.fields[0], changed, "path"))
        assert found, attribute


def _message_differences(declared: type[Message], expected: MessageShape) -> Iterator[str]:
    schema = declared.__schema__
    facts = {
        "versions": (str(schema.versions), expected.versions),
        "flexible": (str(schema.flexible), expected.flexible),
        "api_key": (schema.api_key, expected.api_key),
        "listeners": (schema.listeners, expected.listeners),
        "latest_version_unstable": (schema.latest_version_unstable, expected.latest_version_unstable),
    }
    for fact, (ours, theirs) in facts.items():
        if ours != theirs:
            yield f"{expected.name}: {fact} is {ours}, in Kafka {theirs}"
    yield from _fields_differences(declared, expected.fields, expected.name)


def _fields_differences(declared: StructType, expected: tuple[FieldShape, ...], path: str) -> Iterator[str]:
    ours = [field.name for field in declared.__schema__.fields]
    theirs = [field.name for field in expected]
    if ours != theirs:
        yield f"{path}: fields are {ours}, in Kafka {theirs}"
        return
    for our_field, their_field in zip(declared.__schema__.fields, expected, strict=True):
        yield from _field_differences(our_field, their_field, f"{path}.{our_field.name}")


def _field_differences(declared: Field, expected: FieldShape, path: str) -> Iterator[str]:
    facts = {
        "kind": (declared.kind, expected.kind),
        "versions": (str(declared.versions), expected.versions),
        "nullable": (str(declared.nullable), expected.nullable),
        "tagged": (str(declared.tagged), expected.tagged),
        "tag": (declared.tag, expected.tag),
        "default": (_default(declared), (type(expected.default), expected.default)),
        "ignorable": (declared.ignorable, expected.ignorable),
        "map_key": (declared.map_key, expected.map_key),
        "flexible": (declared.flexible, expected.flexible),
        "annotation": (
            declared.annotation.endswith("| None"),
            expected.nullable != "none" or expected.kind == "records",
        ),
    }
    for fact, (ours, theirs) in facts.items():
        if ours != theirs:
            yield f"{path}: {fact} is {ours}, in Kafka {theirs}"
    if expected.struct is not None and declared.kind == expected.kind:
        if not re.search(rf"{expected.struct}$", declared.struct.__name__):
            yield f"{path}: struct is {declared.struct.__name__}, in Kafka {expected.struct}"
        yield from _fields_differences(declared.struct, expected.fields, path)


def _default(declared: Field) -> tuple[type, object]:
    default = declared.new_default()
    if isinstance(default, Struct):
        return str, "empty struct" if default == declared.struct() else repr(default)
    if isinstance(default, list):
        return str, "empty array" if not default else repr(default)
    return type(default), default
