"""Keys and values in Protobuf, by a schema and the name of a message, shown in Protobuf's JSON encoding.

A schema is a `.proto` file (`proto_file`), or a descriptor set, as `protoc --include_imports
--descriptor_set_out=orders.desc orders.proto` makes it. Data with and without the
prefix of a schema registry is read; the registry is not asked. Fields that the message does not have are not shown.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.records.varints import decode_varint, encode_zigzag

from ..command import CommandFailed
from ..line_reader import InvalidLine
from . import json_text
from .confluent_prefix import PREFIX_BYTES, has_prefix, prefix
from .extras import imported
from .proto_file import listed, message_name

_FIRST_MESSAGE = b"\0"
"""The index of a message in its file, as serializers shorten it where it is the first."""


class ProtobufCodec:
    """Made by `protobuf_codec`. message_class: made by the protobuf package."""

    def __init__(self, message_class: Any, *, schema_id: int | None, is_pretty: bool) -> None:
        self._message_class = message_class
        self._json_format = imported("google.protobuf.json_format", extra="protobuf", needed_by="Protobuf")
        self._decode_error = imported("google.protobuf.message", extra="protobuf", needed_by="Protobuf").DecodeError
        index = _message_index(message_class.DESCRIPTOR)
        self._prefix = b"" if schema_id is None else prefix(schema_id) + index
        self._is_pretty = is_pretty
        # Some of these, such as google.protobuf.Value, are other JSON than objects.
        self._is_well_known = message_class.DESCRIPTOR.full_name.startswith("google.protobuf.")

    def shown(self, data: bytes) -> bytes:
        document = self.document(data)
        return (json_text.pretty(document) if self._is_pretty else document).encode()

    def document(self, data: bytes) -> str:
        message = self._message_class()
        try:
            message.ParseFromString(_without_prefix(data))
            text: str = self._json_format.MessageToJson(message, indent=None, ensure_ascii=False)
            return json_text.compact(text)
        except (self._decode_error, self._json_format.Error, ValueError, TypeError, RecursionError) as error:
            raise InvalidLine(f"not this Protobuf message: {_first_line(error)}") from None

    def from_line(self, text: bytes) -> bytes:
        try:
            return self._encoded(text.decode())
        except UnicodeDecodeError:
            raise InvalidLine("not JSON: not UTF-8") from None

    def from_document(self, document: object) -> bytes:
        return self._encoded(json.dumps(document))

    def _encoded(self, text: str) -> bytes:
        try:
            if not isinstance(json_text.parse(text), dict) and not self._is_well_known:
                raise ValueError("not an object")  # an empty list would be taken for an empty message
            message = self._json_format.Parse(text, self._message_class())
            encoded: bytes = message.SerializeToString(deterministic=True)
        except (self._json_format.Error, ValueError, TypeError, RecursionError) as error:
            raise InvalidLine(f"does not fit the Protobuf message: {_first_line(error)}") from None
        return self._prefix + encoded


def protobuf_codec(
    path: Path, descriptors: bytes, message: str | None, *, flag: str, schema_id: int | None, is_pretty: bool
) -> ProtobufCodec:
    """Raises CommandFailed for a file that is no descriptor set, or has no such message.

    path: also of the `.proto` file that the descriptor set was made of. message: None for the only one.
    """
    needed_by = f"{flag} with Protobuf"
    descriptor_pb2 = imported("google.protobuf.descriptor_pb2", extra="protobuf", needed_by=needed_by)
    descriptor_pool = imported("google.protobuf.descriptor_pool", extra="protobuf", needed_by=needed_by)
    message_factory = imported("google.protobuf.message_factory", extra="protobuf", needed_by=needed_by)
    decode_error = imported("google.protobuf.message", extra="protobuf", needed_by=needed_by).DecodeError
    pool = descriptor_pool.DescriptorPool()
    names: list[str] = []
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
        for file in files:
            pool.Add(file)
        names += _names(files[-1]) if files else []  # protoc puts a file behind those that it imports
        message = message or message_name(path, names, flag)
        message_class = message_factory.GetMessageClass(pool.FindMessageTypeByName(message))
    except KeyError:
        raise CommandFailed(f"{path} has no message '{message}', but {listed(names) or 'none at all'}") from None
    except (decode_error, TypeError, ValueError) as error:
        raise CommandFailed(
            f"{path} is not a descriptor set, as protoc --include_imports --descriptor_set_out makes one: "
            f"{_first_line(error)}"
        ) from None
    return ProtobufCodec(message_class, schema_id=schema_id, is_pretty=is_pretty)


def _names(file: Any) -> list[str]:
    package = f"{file.package}." if file.package else ""
    return [f"{package}{each.name}" for each in file.message_type]


def _without_prefix(data: bytes) -> bytes:
    """No message opens with a zero byte; behind the prefix stands the path of the message within its file."""
    if not has_prefix(data):
        return data
    try:
        count, position = decode_varint(data, PREFIX_BYTES)
        if not 0 <= count <= len(data):
            raise InvalidRecords(ErrorCode.INVALID_RECORD, "a path of negative length")
        for _ in range(count):
            _, position = decode_varint(data, position)
    except (InvalidRecords, IndexError):
        raise ValueError("the path of the message behind the schema's id is broken") from None
    return data[position:]


def _message_index(descriptor: Any) -> bytes:
    """Return the path of a message within its file, with zigzag varints as Confluent's serializers write it."""
    path: list[int] = []
    while descriptor is not None:
        outer = descriptor.containing_type
        siblings = descriptor.file.message_types_by_name.values() if outer is None else outer.nested_types
        path.append([each.name for each in siblings].index(descriptor.name))
        descriptor = outer
    if path == [0]:
        return _FIRST_MESSAGE
    return b"".join(encode_zigzag(number) for number in [len(path), *reversed(path)])


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
