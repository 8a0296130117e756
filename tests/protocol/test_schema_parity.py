"""Our declarations beside the JSON schemas in Kafka's jars: nothing missing, nothing more, nothing different.

They are those of Kafka 4.4. What 4.3.1 knows of them is the same there, but for what 4.4 says anew of old versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

import pytest

from compat_tests.apache_kafka import JarsMissing, kafka_libs
from compat_tests.personalities.releases import jars_of
from pykbroker.protocol.api_keys import ApiKey, api_name, request_type, response_type
from pykbroker.protocol.schema import Field, Message, Struct, StructType, parse_versions

from .declared import declared_messages
from .kafka_schemas import FieldShape, MessageShape, as_of, read_schemas

pytestmark = pytest.mark.java


NEW_IN_4_4 = {
    "AbortedTxn",
    "StreamsGroupTopologyDescriptionUpdateRequest",
    "StreamsGroupTopologyDescriptionUpdateResponse",
    "UnregisterControllerRecord",
    "UnregisterControllerRequest",
    "UnregisterControllerResponse",
}
SAID_ANEW_IN_4_4 = {
    "DescribeProducersRequest.topics.name": {"map_key"},
    "StreamsGroupHeartbeatResponse.acceptable_recovery_lag_legacy": {"name", "json_name"},
    "StreamsGroupMetadataValue.stored_description_topology_epoch": {"new"},
    "StreamsGroupMetadataValue.failed_description_topology_epoch": {"new"},
    "TxnOffsetCommitRequest.generation_id_or_member_epoch": {"name", "json_name"},
    "TxnOffsetCommitRequest.topics.name": {"ignorable"},
    "TxnOffsetCommitResponse.topics.name": {"ignorable"},
}
"""Fields that versions of 4.3.1 have already, with what else 4.4 says of them; what is on the wire is the same."""


@pytest.fixture(scope="module")
def schemas() -> dict[str, MessageShape]:
    try:
        return read_schemas(jars_of("4.4").directory())
    except JarsMissing as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def schemas_of_4_3() -> dict[str, MessageShape]:
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


def test_the_schemas_of_4_3_are_those_of_4_4_without_what_is_new(
    schemas: dict[str, MessageShape], schemas_of_4_3: dict[str, MessageShape]
) -> None:
    assert schemas.keys() - schemas_of_4_3.keys() == NEW_IN_4_4
    assert not schemas_of_4_3.keys() - schemas.keys()
    said_anew: dict[str, set[str]] = {}
    for name, older in schemas_of_4_3.items():
        newest = parse_versions(older.versions).high
        newer = as_of(schemas[name], newest)
        older = as_of(older, newest)
        assert (newer.versions, newer.flexible, newer.listeners) == (older.versions, older.flexible, older.listeners)
        assert (newer.api_key, newer.latest_version_unstable) == (older.api_key, older.latest_version_unstable)
        for path, fact in _said_anew(newer.fields, older.fields, name):
            said_anew.setdefault(path, set()).add(fact)
    assert said_anew == SAID_ANEW_IN_4_4


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


def _said_anew(newer: tuple[FieldShape, ...], older: tuple[FieldShape, ...], path: str) -> Iterator[tuple[str, str]]:
    """What one release says of fields and the other does not: the path of the field, and the fact."""
    for ours, theirs in zip_longest(newer, older):
        if theirs is None:
            yield f"{path}.{ours.name}", "new"
            continue
        assert ours is not None, f"{path}.{theirs.name} is gone"
        for fact in vars(ours).keys() - {"fields", "struct"}:
            if getattr(ours, fact) != getattr(theirs, fact):
                yield f"{path}.{ours.name}", fact
        yield from _said_anew(ours.fields, theirs.fields, f"{path}.{ours.name}")


def _default(declared: Field) -> tuple[type, object]:
    default = declared.new_default()
    if isinstance(default, Struct):
        return str, "empty struct" if default == declared.struct() else repr(default)
    if isinstance(default, list):
        return str, "empty array" if not default else repr(default)
    return type(default), default
