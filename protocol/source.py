"""Python source under construction, and the facts about Kafka's types that both code generators share."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from .schema import Codec, Field, Schema, StructType

FIXED: Final = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
}
"""Types of one size: their `struct` code, and the size."""


class Source:
    """Lines of one function, the constants they use, and fresh names for its variables."""

    def __init__(self, signature: str) -> None:
        self._lines = [f"def {signature}:"]
        self._depth = 1
        self._variables = 0
        self.constants: dict[str, Any] = {}

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def variable(self, stem: str) -> str:
        self._variables += 1
        return f"{stem}{self._variables}"

    def constant(self, stem: str, value: Any) -> str:
        for name, known in self.constants.items():
            if known is value:
                return name
        name = f"{stem}_{len(self.constants)}"
        self.constants[name] = value
        return name

    def struct_method(self, codes: str, method: str) -> str:
        """The name of a bound `struct.Struct` method for these codes."""
        name = f"{method}_{codes.replace('?', 't')}"
        if name not in self.constants:
            self.constants[name] = getattr(struct.Struct(">" + codes), method)
        return name

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def compile(self, function: str, origin: str) -> Codec:
        exec(compile(self.text(), origin, "exec"), self.constants)  # noqa: S102 - compiled from declarations
        compiled: Codec = self.constants[function]
        return compiled


def is_present(field: Field, version: int) -> bool:
    return field.versions.includes(version)


def is_tagged(field: Field, version: int) -> bool:
    return field.versions.includes(version) and field.tagged.includes(version)


def plain_fields(schema: Schema, version: int) -> list[Field]:
    """The fields that stand in the body of this version, in order."""
    return [f for f in schema.fields if is_present(f, version) and not is_tagged(f, version)]


def tagged_fields(schema: Schema, version: int) -> list[Field]:
    """The known fields of the tagged section, by ascending tag."""
    return sorted((f for f in schema.fields if is_tagged(f, version)), key=lambda f: f.tag or 0)


def smallest_element(field: Field, version: int, flexible: bool) -> int:
    """The fewest bytes that one element of an array, or the value itself, can take."""
    kind = field.element
    if kind in FIXED:
        return FIXED[kind][1]
    if kind == "struct":
        return smallest_struct(field.struct, version, flexible)
    return 1 if flexible else 2 if kind == "string" else 4


def smallest_struct(cls: StructType, version: int, flexible: bool) -> int:
    size = 1 if flexible else 0
    for f in plain_fields(cls.__schema__, version):
        if f.is_array:
            size += 1 if flexible else 4
        elif f.kind == "struct" and f.nullable.includes(version):
            size += 1
        else:
            size += smallest_element(f, version, flexible and f.flexible)
    return size
