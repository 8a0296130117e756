"""Makes a random message of any declared class, in any of its versions, from a seed.

Values at the edges are as likely as those between: nulls, empty and long strings, the ends of each number's range,
lengths at which a varint grows. Unknown tagged fields come along where the version is flexible, unless told otherwise.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from pykbroker.protocol.schema import Field, Message, Struct
from pykbroker.protocol.source import is_present, is_tagged

MessageT = TypeVar("MessageT", bound=Message)

_RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
_TEXTS = (
    "",
    "a",
    "topic-1",
    "ünï €",
    "\N{GRINNING FACE}",
    "x" * 126,
    "y" * 127,
    "z" * 128,
    "\0",
    "\N{REPLACEMENT CHARACTER}",
)


@dataclass(frozen=True, slots=True)
class Choices:
    """What a maker takes texts and sizes of bytes from. unknown_tags: how likely a struct has some. numbers,
    uuids: which are taken half of the time, numbers where they fit.
    """

    numbers: Sequence[int] = ()
    uuids: Sequence[bytes] = ()
    texts: Sequence[str] = _TEXTS
    sizes: Sequence[int] = (0, 1, 7, 126, 127, 128)
    unknown_tags: float = 0.2


USUAL = Choices()
LONG = Choices(texts=("", "x" * 16_382, "y" * 16_383, "€" * 10_922, "z" * 32_767), sizes=(0, 16_382, 16_383, 70_000))
"""Lengths at which a varint grows once more, and the longest that a string can have."""


def make_message(
    cls: type[MessageT], version: int, seed: int, most_elements: int = 2, choices: Choices = USUAL
) -> MessageT:
    maker = _Maker(Random(seed), version, cls.__schema__.flexible.includes(version), most_elements, choices)
    return maker.struct(cls)


class _Maker:
    def __init__(self, rng: Random, version: int, flexible: bool, most_elements: int, choices: Choices) -> None:
        self._rng = rng
        self._choices = choices
        self._version = version
        self._flexible = flexible
        self._most_elements = most_elements

    def struct(self, cls: Any) -> Any:
        values = {f.name: self._field(f) for f in cls.__schema__.fields if is_present(f, self._version)}
        made: Struct = cls(**values)
        if self._flexible and self._rng.random() < self._choices.unknown_tags:
            known = {f.tag for f in cls.__schema__.fields}
            tags = {self._rng.choice((0, 1, 5, 127, 128, 2**31 - 2)) for _ in range(self._rng.randrange(4))}
            made.unknown_tagged_fields = {tag: self._bytes() for tag in sorted(tags - known)}
        return made

    def _field(self, f: Field) -> Any:
        if f.nullable.includes(self._version) and self._rng.random() < 0.25:
            return None
        if is_tagged(f, self._version) and self._rng.random() < 0.4:
            return f.new_default()
        if f.is_array:
            return [self._element(f) for _ in range(self._rng.randint(0, self._most_elements))]
        return self._element(f)

    def _element(self, f: Field) -> Any:
        kind = f.element
        rng = self._rng
        if kind in _RANGES:
            low, high = _RANGES[kind]
            if self._choices.numbers and rng.random() < 0.5:
                return min(max(rng.choice(self._choices.numbers), low), high)
            return rng.choice((low, high, 0, 1, rng.randint(low, high)))
        match kind:
            case "bool":
                return rng.random() < 0.5
            case "float64":
                return struct.unpack(">d", struct.pack(">d", rng.uniform(-1e9, 1e9)))[0]
            case "string":
                return rng.choice(self._choices.texts)
            case "uuid":
                if self._choices.uuids and rng.random() < 0.5:
                    return rng.choice(self._choices.uuids)
                return rng.choice((bytes(16), rng.randbytes(16)))
            case "bytes" | "records":
                return self._bytes()
            case _:
                return self.struct(f.struct)

    def _bytes(self) -> bytes:
        return self._rng.randbytes(self._rng.choice(self._choices.sizes))
