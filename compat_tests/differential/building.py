"""A step of a sequence as a message, and as the frame that carries it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from pykbroker.protocol.api_keys import request_type
from pykbroker.protocol.schema import NO_UUID, Field, Message, Struct, StructType

from .record_batches import encoded_batches
from .sequences import Step

UNKNOWN_UUID: Final = bytes.fromhex("6b6e6f776e2062792020206e6f626f64")


class Learned(Protocol):
    """The values that earlier answers told."""

    def value(self, kind: str, number: int) -> Any:
        """Return the value of that number, from 1 on; None where none was told."""


class Builder:
    """Builds the requests of one sequence. prefix: what stands for `~` in names."""

    def __init__(self, prefix: str, learned: Learned) -> None:
        self._prefix = prefix
        self._learned = learned

    def request(self, step: Step) -> Message:
        built = self._struct(request_type(step.api_key), step.tree, step.version)
        assert isinstance(built, Message)
        return built

    def _struct(self, of: StructType, tree: Mapping[str, Any], version: int) -> Struct:
        """Fields that the version lacks are left out."""
        fields = {each.name: each for each in of.__schema__.fields}
        values = {
            name: self._value(fields[name], value, version)
            for name, value in tree.items()
            if fields[name].versions.includes(version)
        }
        built = of(**values)
        assert isinstance(built, Struct)
        return built

    def _value(self, field: Field, value: Any, version: int) -> Any:
        if value is None:
            return None
        if field.is_array:
            return [self._element(field, each, version) for each in value]
        return self._element(field, value, version)

    def _element(self, field: Field, value: Any, version: int) -> Any:
        if field.element == "struct":
            return None if value is None else self._struct(field.struct, value, version)
        return self._scalar(field.element, value)

    def _scalar(self, kind: str, value: Any) -> Any:
        match value:
            case {"ref": [str(of), int(number)]}:
                return self._referred(kind, of, number)
            case {"hex": str(digits)}:
                return bytes.fromhex(digits)
            case {"uuid": "none"}:
                return NO_UUID
            case {"uuid": _}:
                return UNKNOWN_UUID
            case {"batches": list(batches)}:
                return self._batches(batches)
            case str() if kind == "bytes":
                return value.encode()
            case str():
                return value.replace("~", self._prefix)
        return value

    def _batches(self, batches: Sequence[Mapping[str, Any]]) -> bytes:
        return encoded_batches(
            [
                {
                    key: self._scalar("int64", value) if isinstance(value, Mapping) else value
                    for key, value in each.items()
                }
                for each in batches
            ]
        )

    def _referred(self, kind: str, of: str, number: int) -> Any:
        value = self._learned.value(of, number)
        match kind:
            case "uuid":
                return value if isinstance(value, bytes) and len(value) == len(NO_UUID) else UNKNOWN_UUID
            case "string":
                return value if isinstance(value, str) else f"no {of}"
            case "bytes":
                return value if isinstance(value, bytes) else b"none"
        return value if isinstance(value, int) else 987654
