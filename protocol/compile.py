"""Messages to bytes and back. The codec of a message and version is generated at its first use.

`decode` takes bytes from a peer and trusts none of them: it raises MalformedMessage for whatever does not fit the
schema, and makes no more objects than its budget allows. `encode` takes messages of our own: a value that does not
fit is a bug, reported as ValueError with the path of the value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, Final, cast

from .decoder import compile_decoder
from .diagnose import find_problem
from .encoder import compile_encoder, compile_struct_encoder
from .error_messages import shorten_error_messages
from .errors import MalformedMessage, UnsupportedVersion
from .schema import Codec, Message, MessageT, RecordsRegion, Struct, StructType

__all__ = ["OBJECTS_LIMIT", "RecordsRegion", "decode", "encode", "encode_parts", "encode_structs", "prepare"]

OBJECTS_LIMIT: Final = 250_000
"""Array elements and unknown tagged fields that one message may hold, nested ones included (some 50 MB at most)."""


def decode(
    cls: type[MessageT],
    version: int,
    data: bytes | bytearray | memoryview,
    offset: int = 0,
    *,
    objects_limit: int = OBJECTS_LIMIT,
) -> tuple[MessageT, int]:
    """Return the message that begins at `offset` (in bytes), and where it ends. What follows is the caller's business.

    `records` fields are slices of `data`; everything else is copied out of it. objects_limit: how many elements of
    arrays may be made. Raises MalformedMessage, and UnsupportedVersion where the message does not have the version.
    """
    decoder = cls.__schema__.decoders.get(version) or _decoder(cls, version)
    try:
        return decoder(memoryview(data), offset, objects_limit)  # type: ignore[no-any-return]
    except (struct.error, IndexError) as error:
        raise MalformedMessage(f"{cls.__name__} version {version} is cut short") from error
    except MalformedMessage as error:
        error.add_note(f"in {cls.__name__} version {version}")
        raise


def encode(message: Message, version: int) -> bytes:
    """Return the bytes of a message whose records, if it has any, are in memory.

    Raises UnsupportedVersion, and ValueError with the path of a value that the version has no room for.
    """
    parts = encode_parts(message, version)
    in_memory = [part for part in parts if isinstance(part, bytes)]
    assert len(in_memory) == len(parts), f"{type(message).__name__} holds a RecordsRegion: use encode_parts"
    return b"".join(in_memory)


def encode_parts(message: Message, version: int) -> list[bytes | RecordsRegion]:
    """Return the bytes of a message in order, with each RecordsRegion and large part of EncodedStructs by itself.

    Texts of errors that are too long for a Kafka string are cut, in the message as well.
    """
    cls = type(message)
    encoder = cls.__schema__.encoders.get(version) or _encoder(cls, version)
    out: list[Any] = []
    regions: list[int] = []
    try:
        encoder(message, out, regions)
        return _join(out, regions) if regions else [b"".join(out)]
    except (struct.error, AttributeError, TypeError, ValueError) as error:
        if shorten_error_messages(message):
            return encode_parts(message, version)
        problem = find_problem(message, version)
        if problem is None:
            raise
        raise ValueError(problem) from error


def encode_structs(message: type[Message], structs: Iterable[Struct], version: int) -> list[bytes]:
    """The bytes of elements of one of the message's arrays, without their number; they hold no RecordsRegion.

    They are for an `EncodedStructs`, which stands in the array's place in the messages that share them.
    """
    out: list[Any] = []
    regions: list[int] = []
    encoder: Codec | None = None
    for each in structs:
        if encoder is None:
            encoder = _struct_encoder(type(each), message, version)
        before = len(out)
        try:
            encoder(each, out, regions)
        except (struct.error, AttributeError, TypeError, ValueError) as error:
            if shorten_error_messages(each):
                del out[before:]
                encoder(each, out, regions)
                continue
            problem = find_problem(each, version)
            if problem is None:
                raise
            raise ValueError(problem) from error
    return cast("list[bytes]", _join(out, regions))


def _struct_encoder(cls: StructType, message: type[Message], version: int) -> Codec:
    encoders = message.__schema__.struct_encoders
    encoder = encoders.get((cls, version))
    if encoder is None:
        _check_version(message, version)
        encoder = encoders[cls, version] = compile_struct_encoder(cls, message, version)
    return encoder


def _join(out: list[Any], regions: list[int]) -> list[bytes | RecordsRegion]:
    if not regions:
        return [b"".join(out)]
    parts: list[bytes | RecordsRegion] = []
    start = 0
    for place in regions:
        if start < place:
            parts.append(b"".join(out[start:place]))
        parts.append(out[place])
        start = place + 1
    if start < len(out):
        parts.append(b"".join(out[start:]))
    return parts


def prepare(cls: type[Message], version: int) -> None:
    """Generate the codecs of a version ahead of its first use."""
    _decoder(cls, version)
    _encoder(cls, version)


def _decoder(cls: type[Message], version: int) -> Codec:
    _check_version(cls, version)
    return cls.__schema__.decoders.setdefault(version, compile_decoder(cls, version))


def _encoder(cls: type[Message], version: int) -> Codec:
    _check_version(cls, version)
    return cls.__schema__.encoders.setdefault(version, compile_encoder(cls, version))


def _check_version(cls: type[Message], version: int) -> None:
    versions = cls.__schema__.versions
    if not versions.includes(version):
        raise UnsupportedVersion(f"{cls.__name__} has no version {version}, only {versions}")
