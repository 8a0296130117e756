"""The records of `__transaction_state`: one key, the transactional id, and its newest state.

Keys and values carry their version as an int16 before the body, as Kafka's `TransactionLog` writes them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.messages.transaction_records import TransactionLogKey, TransactionLogValue
from pykbroker.protocol.schema import MessageT
from pykbroker.state_machine import BadRecord, UnknownRecord

KEY_VERSION = 0


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """A record of `__transaction_state`.

    value: None is a tombstone. value_version: 0 up to transaction.version 0, 1 (flexible) from 1 on.
    """

    key: TransactionLogKey
    value: TransactionLogValue | None
    value_version: int = 1

    def encode(self) -> tuple[bytes, bytes | None]:
        key = struct.pack(">h", KEY_VERSION) + encode(self.key, KEY_VERSION)
        if self.value is None:
            return key, None
        return key, struct.pack(">h", self.value_version) + encode(self.value, self.value_version)

    @property
    def size_bytes(self) -> int:
        key, value = self.encode()
        return len(key) + len(value or b"")


def decode_record(key: bytes | None, value: bytes | None) -> TransactionRecord:
    """Raises BadRecord."""
    if key is None:
        raise BadRecord("the record has no key")
    try:
        decoded_key = _whole(TransactionLogKey, _version(key, TransactionLogKey), key)
        if value is None:
            return TransactionRecord(decoded_key, None)
        version = _version(value, TransactionLogValue)
        return TransactionRecord(decoded_key, _whole(TransactionLogValue, version, value), version)
    except (MalformedMessage, struct.error) as error:
        raise BadRecord(f"malformed record: {error}") from error


def _version(data: bytes, type_: type[MessageT]) -> int:
    version: int
    (version,) = struct.unpack_from(">h", data)
    if not type_.__schema__.versions.includes(version):
        raise UnknownRecord(f"{type_.__name__} of version {version}")
    return version


def _whole(type_: type[MessageT], version: int, data: bytes) -> MessageT:
    message, end = decode(type_, version, data, 2)
    if end != len(data):
        raise BadRecord(f"{len(data) - end} bytes behind the end of {type_.__name__}")
    return message
