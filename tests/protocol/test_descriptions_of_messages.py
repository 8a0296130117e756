"""The generated codecs beside `construct`: two readers of the same bytes, with nothing in common, must agree."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.protocol.api_keys import ApiKey, request_type, response_type
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.descriptions.frames import FRAME, REQUEST_START, request_body, response_body
from pykbroker.protocol.descriptions.messages import describe
from pykbroker.protocol.framing import encode_request, encode_response
from pykbroker.protocol.schema import Field, Message, Struct
from tests.examples import examples

from .declared import declared_messages
from .maker import make_message


def flatten_message(struct: Struct, version: int) -> dict[str, Any]:
    """What our reader found, in the shape of what `construct` finds: known tagged fields that were there, by name."""
    flat: dict[str, Any] = {
        f.name: _flatten_value(f, getattr(struct, f.name), version)
        for f in type(struct).__schema__.fields
        if f.versions.includes(version)
    }
    return flat | {"unknown": dict(struct.unknown_tagged_fields)}


def _flatten_value(f: Field, value: Any, version: int) -> Any:
    if isinstance(value, Struct):
        return flatten_message(value, version)
    if isinstance(value, list):
        return [_flatten_value(f, item, version) for item in value]
    return bytes(value) if isinstance(value, memoryview) else value


def flatten_parsed(cls: type[Struct], parsed: Any, version: int) -> dict[str, Any]:
    """What `construct` found, with defaults in place of tagged fields that were left out."""
    tags = {entry.tag: entry.value for entry in parsed.get("tagged") or ()}
    flat: dict[str, Any] = {}
    for f in cls.__schema__.fields:
        if f.versions.includes(version):
            if not f.tagged.includes(version):
                flat[f.name] = _flatten_parsed_value(f, parsed[f.name], version)
            elif f.tag in tags:
                flat[f.name] = _flatten_parsed_value(f, tags.pop(f.tag), version)
            else:
                flat[f.name] = _flatten_value(f, f.new_default(), version)
    return flat | {"unknown": tags}


def _flatten_parsed_value(f: Field, value: Any, version: int) -> Any:
    if value is None or f.element != "struct":
        return list(value) if isinstance(value, list) else value
    if f.is_array:
        return [flatten_parsed(f.struct, item, version) for item in value]
    return flatten_parsed(f.struct, value, version)


@pytest.mark.parametrize("name", sorted(declared_messages()))
@examples(1)
@given(seed=st.integers(0, 2**32))
def test_codec_and_description_read_the_same(name: str, seed: int) -> None:
    cls: type[Message] = declared_messages()[name]
    versions = cls.__schema__.versions
    for version in range(versions.low, versions.high + 1):
        encoded = encode(make_message(cls, version, seed), version)
        decoded, _ = decode(cls, version, encoded)
        parsed = describe(cls, version).parse(encoded)
        assert flatten_parsed(cls, parsed, version) == flatten_message(decoded, version)
        assert describe(cls, version).build(parsed) == encoded


@examples(30)
@given(seed=st.integers(0, 2**32))
def test_frames_are_described_as_they_are_written(seed: int) -> None:
    rng = Random(seed)
    key = rng.choice(list(ApiKey))
    versions = request_type(key).__schema__.versions
    version = rng.randint(versions.low, versions.high)

    request = make_message(request_type(key), version, seed)
    frame = FRAME.parse(encode_request(request, version, 17, "client"))
    start = REQUEST_START.parse(frame)
    assert (start.api_key, start.api_version) == (key, version)
    parsed = request_body(key, version).parse(frame + b"behind")
    assert (parsed.correlation_id, parsed.client_id, parsed.garbage) == (17, "client", b"behind")
    assert flatten_parsed(type(request), parsed.body, version) == flatten_message(request, version)

    response = make_message(response_type(key), version, seed)
    written = b"".join(part for part in encode_response(18, response, version) if isinstance(part, bytes))
    parsed = response_body(key, version).parse(FRAME.parse(written))
    assert (parsed.correlation_id, parsed.garbage) == (18, b"")
    assert flatten_parsed(type(response), parsed.body, version) == flatten_message(response, version)
