"""The elements of an array of structs that were encoded before the message that holds them.

Many answers say the same of a thousand partitions: what is encoded once is kept, and shared by the answers that are on
their way. It is good for one version of one message; `compile.encode_structs` makes the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar, cast

from .schema import Struct

SHARED_BYTES: Final = 1024
"""A part of this size is handed to the transport as it is; smaller ones are copied into what stands around them."""

StructT = TypeVar("StructT", bound=Struct)


class EncodedStructs:
    """Encoded elements that stand in an array's place when a message is encoded. `parts` hold `count` of them."""

    __slots__ = ("count", "parts", "version")

    def __init__(self, count: int, parts: Sequence[bytes], version: int) -> None:
        self.count = count
        self.parts = parts
        self.version = version

    def __len__(self) -> int:
        return self.count

    def parts_in(self, version: int) -> Sequence[bytes]:
        if version != self.version:
            raise ValueError(f"encoded for version {self.version}, not {version}")
        return self.parts

    def of(self, _kind: type[StructT]) -> list[StructT]:
        """Itself, as the field of a message is declared. Only an encoder may look at it."""
        return cast("list[StructT]", self)
