"""UUIDs as Kafka has them: 16 raw bytes on the wire and in records, 22 characters of URL-safe base64 in text.

Follows `org.apache.kafka.common.Uuid` and, for the reserved values, `DirectoryId`.
"""

from __future__ import annotations

import base64
import binascii
from random import Random
from typing import Final

from .schema import NO_UUID

ZERO_UUID: Final = NO_UUID
METADATA_TOPIC_ID: Final = (1).to_bytes(16, "big")

MIGRATING_DIRECTORY: Final = NO_UUID
UNASSIGNED_DIRECTORY: Final = (1).to_bytes(16, "big")
LOST_DIRECTORY: Final = (2).to_bytes(16, "big")
RESERVED_DIRECTORIES: Final = frozenset((UNASSIGNED_DIRECTORY, LOST_DIRECTORY, MIGRATING_DIRECTORY))

_RESERVED_BELOW: Final = 100


def uuid_to_text(uuid: bytes) -> str:
    assert len(uuid) == 16, f"a UUID has 16 bytes, this has {len(uuid)}"
    return base64.urlsafe_b64encode(uuid)[:22].decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """Raises ValueError for text that does not stand for 16 bytes."""
    try:
        uuid = base64.b64decode(text.encode("ascii") + b"==", altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(f"{text!r} is not a UUID in base64") from error
    if len(uuid) != 16:
        raise ValueError(f"{text!r} stands for {len(uuid)} bytes, a UUID has 16")
    return uuid


def random_uuid(rng: Random) -> bytes:
    """A version 4 UUID, none of Kafka's reserved ones, and none whose text a command line would take for an option."""
    while True:
        bits = rng.getrandbits(128)
        bits = bits & ~(0xF << 76) | 0x4 << 76
        bits = bits & ~(0x3 << 62) | 0x2 << 62
        uuid = bits.to_bytes(16, "big")
        if bits >= _RESERVED_BELOW and not uuid_to_text(uuid).startswith("-"):
            return uuid
