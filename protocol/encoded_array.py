"""An array of structs that is encoded while it is made: as bytes it takes a tenth of what its objects would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .compile import encode_structs
from .encoded_structs import SHARED_BYTES, EncodedStructs
from .schema import Message, Struct

LARGEST_ANSWER_BYTES: Final = 100 << 20
"""More than any client takes by default. Who names things again and again could ask for any size."""

_JOINED_BYTES: Final = 32 * 1024


class EncodedArray:
    """An array of one version of a message that is encoded while it grows. Large parts are not copied."""

    def __init__(self, message: type[Message], version: int) -> None:
        self.size_bytes = 0
        self._message = message
        self._version = version
        self._count = 0
        self._parts: list[bytes] = []
        self._small: list[bytes] = []
        self._small_bytes = 0

    @property
    def is_too_large(self) -> bool:
        return self.size_bytes > LARGEST_ANSWER_BYTES

    def add(self, structs: Sequence[Struct]) -> Sequence[bytes]:
        """Return their bytes, which may be added once more."""
        parts = encode_structs(self._message, structs, self._version)
        self.add_parts(parts, len(structs))
        return parts

    def add_parts(self, parts: Sequence[bytes], count: int = 1) -> None:
        self._count += count
        for part in parts:
            self.size_bytes += len(part)
            if len(part) >= SHARED_BYTES:
                self._join()
                self._parts.append(part)
            else:
                self._small.append(part)
                self._small_bytes += len(part)
                if self._small_bytes > _JOINED_BYTES:
                    self._join()

    def finish(self) -> EncodedStructs:
        self._join()
        return EncodedStructs(self._count, self._parts, self._version)

    def _join(self) -> None:
        if self._small:
            self._parts.append(b"".join(self._small))
            self._small.clear()
            self._small_bytes = 0
