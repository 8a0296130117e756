"""The diagnosis of a message that cannot be encoded names the value at fault.

Generated encoders only notice that something does not fit. The diagnosis is on no hot path: it runs when an encoder has
failed, which is always a bug of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .encoded_structs import EncodedStructs
from .primitives import MAX_STRING_BYTES
from .schema import Field, Struct
from .source import is_present

_RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}


def find_problem(message: Struct, version: int) -> str | None:
    """The path of the first value that does not fit the schema, and why; None if all of them do."""
    return next(_problems(message, version, type(message).__name__), None)


def _problems(struct: Struct, version: int, path: str) -> Iterator[str]:
    for f in type(struct).__schema__.fields:
        if is_present(f, version):
            yield from _field_problems(f, getattr(struct, f.name, None), version, f"{path}.{f.name}")
    tags: dict[int, Any] = dict(struct.unknown_tagged_fields)
    for tag, value in tags.items():
        if not isinstance(value, bytes):
            yield f"{path}: tagged field {tag} is {type(value).__name__}, bytes expected"


def _field_problems(f: Field, value: Any, version: int, path: str) -> Iterator[str]:
    if value is None:
        if not f.nullable.includes(version):
            yield f"{path} is None, version {version} allows no null"
    elif not f.is_array:
        yield from _value_problems(f, value, version, path)
    elif isinstance(value, EncodedStructs):
        if value.version != version:
            yield f"{path} is encoded for version {value.version}, not {version}"
    elif not isinstance(value, (list, tuple)):
        yield f"{path} is {type(value).__name__}, a list expected"
    else:
        for index, item in enumerate(value):
            yield from _value_problems(f, item, version, f"{path}[{index}]")


def _value_problems(f: Field, value: Any, version: int, path: str) -> Iterator[str]:
    kind = f.element
    if kind == "struct":
        if isinstance(value, f.struct):
            yield from _problems(value, version, path)
        else:
            yield f"{path} is {type(value).__name__}, {f.struct.__name__} expected"
    elif kind in _RANGES:
        low, high = _RANGES[kind]
        if not isinstance(value, int) or not low <= value <= high:
            yield f"{path} is {value!r}, which is no {kind}"
    elif not isinstance(value, _PYTHON_TYPES[kind]) and not (kind == "records" and hasattr(value, "size")):
        yield f"{path} is {type(value).__name__}, {kind} expected"
    elif kind == "uuid" and len(value) != 16:
        yield f"{path} has {len(value)} bytes, a UUID has 16"
    elif kind == "string":
        yield from _string_problems(value, path)


def _string_problems(value: str, path: str) -> Iterator[str]:
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        yield f"{path} holds a lone surrogate, which UTF-8 cannot carry"
        return
    if size > MAX_STRING_BYTES:
        yield f"{path} has {size} bytes, a string holds at most {MAX_STRING_BYTES}"


_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "bool": bool,
    "float64": (int, float),
    "string": str,
    "uuid": bytes,
    "bytes": (bytes, bytearray, memoryview),
    "records": (bytes, bytearray, memoryview),
}
