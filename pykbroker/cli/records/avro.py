"""Keys and values in Avro, by a schema from a file, shown in Avro's own JSON encoding.

That is the encoding of `kafka-avro-console-consumer`: a union names its branch (`{"string": "a"}`), bytes are strings
of U+0000 to U+00FF, and logical types are the numbers or bytes that they are made of, so that a document can be
written again.
Data with and without the prefix of a schema registry is read; the registry is not asked.
"""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

from ..command import CommandFailed
from ..line_reader import InvalidLine
from . import json_text
from .codecs import short
from .confluent_prefix import PREFIX_BYTES, has_prefix, prefix
from .extras import imported

_UNREADABLE = (EOFError, ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError, struct.error)
"""The errors of fastavro for data or documents that do not have the schema's form."""


class AvroCodec:
    """Made by `avro_codec`."""

    def __init__(self, fastavro: Any, schema: Any, *, schema_id: int | None, is_pretty: bool) -> None:
        self._fastavro = fastavro
        self._schema = schema
        self._prefix = b"" if schema_id is None else prefix(schema_id)
        self._is_pretty = is_pretty

    def shown(self, data: bytes) -> bytes:
        document = self.document(data)
        return (json_text.pretty(document) if self._is_pretty else document).encode("utf-8", "surrogatepass")

    def document(self, data: bytes) -> str:
        text = io.StringIO()
        try:
            self._fastavro.json_writer(text, self._schema, [self._datum(data)])
            return json_text.compact(text.getvalue())
        except RecursionError:
            raise InvalidLine("not Avro of this schema: nested too deeply") from None
        except _UNREADABLE as error:
            raise InvalidLine(f"not Avro of this schema: {_first_line(error)}") from None

    def _datum(self, data: bytes) -> Any:
        """Data that opens with a zero may have a prefix or not; the whole of it must be one datum."""
        if has_prefix(data):
            try:
                return self._read(data[PREFIX_BYTES:])
            except _UNREADABLE:
                pass
        return self._read(data)

    def _read(self, data: bytes) -> Any:
        stream = io.BytesIO(data)
        datum = self._fastavro.schemaless_reader(stream, self._schema, None)
        if stream.tell() != len(data):
            raise ValueError(f"{len(data) - stream.tell()} bytes too many")
        return datum

    def from_line(self, text: bytes) -> bytes:
        try:
            document = json_text.parse(text.decode())
        except ValueError as error:
            raise InvalidLine(f"not JSON: {error}") from None
        return self.from_document(document)

    def from_document(self, document: object) -> bytes:
        encoded = io.BytesIO()
        try:
            lines = io.StringIO(json.dumps(document))
            (datum,) = self._fastavro.json_reader(lines, self._schema)
            # The writer itself would cut a number that is too large.
            self._fastavro.validate(datum, self._schema, strict=True)
            self._fastavro.schemaless_writer(encoded, self._schema, datum, strict=True)
        except self._fastavro.validation.ValidationError as error:
            raise InvalidLine(f"does not fit the Avro schema: {_invalid_field(error)}") from None
        except RecursionError:
            raise InvalidLine("does not fit the Avro schema: nested too deeply") from None
        except _UNREADABLE as error:
            raise InvalidLine(f"does not fit the Avro schema: {_first_line(error)}") from None
        left_out = _left_out(document, json_text.parse(self.document(encoded.getvalue())))
        if left_out is not None:
            raise InvalidLine(f"does not fit the Avro schema: no field is called {short(left_out)}")
        return self._prefix + encoded.getvalue()


def avro_codec(path: Path, schema_text: bytes, *, flag: str, schema_id: int | None, is_pretty: bool) -> AvroCodec:
    """Raises CommandFailed for a schema that is none."""
    fastavro = imported("fastavro", extra="avro", needed_by=f"{flag} with Avro")
    try:
        schema = _without_logical_types(json_text.parse(schema_text.decode()))
        parsed = fastavro.parse_schema(schema)
        _is_without_bytes(parsed)
    except RecursionError:
        raise CommandFailed(f"{path} is not an Avro schema: nested too deeply") from None
    except (fastavro.schema.UnknownType, fastavro.schema.SchemaParseException, *_UNREADABLE) as error:
        raise CommandFailed(f"{path} is not an Avro schema: {_first_line(error)}") from None
    return AvroCodec(fastavro, parsed, schema_id=schema_id, is_pretty=is_pretty)


def _without_logical_types(schema: Any) -> Any:
    """Return the schema of the numbers and bytes below, which any JSON document can hold."""
    if isinstance(schema, dict):
        return {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    if isinstance(schema, list):
        return [_without_logical_types(each) for each in schema]
    return schema


def _left_out(document: object, written: object) -> str | None:
    """Return a name of the document that was not written: fastavro drops fields that a schema does not have."""
    if isinstance(document, dict) and isinstance(written, dict):
        for name, value in document.items():
            found = _left_out(value, written[name]) if name in written else name
            if found is not None:
                return str(found)
    elif isinstance(document, list) and isinstance(written, list):
        found_in = (_left_out(one, other) for one, other in zip(document, written, strict=False))
        return next((found for found in found_in if found is not None), None)
    return None


def _invalid_field(error: Any) -> str:
    first = error.errors[0]
    kind = first.schema if isinstance(first.schema, str) else "what the schema says"
    return f"{first.field or 'the document'} is not {kind}"


def _is_without_bytes(schema: Any, around: frozenset[str] = frozenset(), empty: set[str] | None = None) -> bool:
    """Return whether data of a schema has no bytes. Raises ValueError for schemas that no reader is safe with.

    Ten bytes would be a quintillion entries of an array whose entries have no bytes. A record in itself is read by
    recursion in C, which data of some kilobytes drives through the end of the stack.
    around: names of the records around this schema. empty: names of the types without bytes; a name is defined before
    it is used.
    """
    empty = set() if empty is None else empty
    if isinstance(schema, str):
        if schema in around:
            raise ValueError(f"{schema[:100]} contains itself, which is not supported")
        return schema == "null" or schema in empty
    if isinstance(schema, list):
        if not schema:
            raise ValueError("a union has no branches")
        for each in schema:
            _is_without_bytes(each, around, empty)
        return False
    match schema["type"]:
        case "array":
            if _is_without_bytes(schema["items"], around, empty):
                raise ValueError("arrays of entries that have no bytes are not supported")
            return False
        case "map":
            _is_without_bytes(schema["values"], around, empty)
            return False
        case "enum":
            return False
        case "fixed":
            is_empty = bool(schema["size"] == 0)
        case "record" | "error":
            inside = around | {schema["name"]}
            of_fields = [_is_without_bytes(field["type"], inside, empty) for field in schema["fields"]]
            is_empty = all(of_fields)
        case inner:
            return _is_without_bytes(inner, around, empty)
    if is_empty:
        empty.add(schema["name"])
    return is_empty


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
