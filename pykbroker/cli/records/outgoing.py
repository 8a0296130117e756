"""A line as a record that is to be sent: by the settings of Kafka's reader, as an envelope, or as a tombstone's key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pykbroker.protocol.records.batch import Header

from ..line_reader import InvalidLine, LineReader
from .codecs import TEXT, Codec
from .envelope import EnvelopeFormat


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to send. timestamp_ms, partition: None where the producer chooses."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None
    partition: int | None = None


Parse = Callable[[bytes, int], Outgoing]
"""A line and its number, from 1 on. Raises InvalidLine."""


@dataclass(frozen=True, slots=True)
class LineFormat:
    """Lines as keys and values. key: of every record. extra_headers: of every record, behind those of the line."""

    reader: LineReader
    key_codec: Codec = TEXT
    value_codec: Codec = TEXT
    key: bytes | None = None
    extra_headers: tuple[Header, ...] = ()
    partition: int | None = None

    def parse(self, line: bytes, number: int) -> Outgoing:
        parsed = self.reader.parse(line, number)
        headers = parsed.headers + self.extra_headers
        key, value = parsed.key, parsed.value
        if key is not None and self.key_codec is not TEXT:
            key = _encoded(key, self.key_codec, "key", number)
        if value is not None and self.value_codec is not TEXT:
            value = _encoded(value, self.value_codec, "value", number)
        return Outgoing(self.key if key is None else key, value, headers, None, self.partition)

    def tombstone(self, line: bytes, number: int) -> Outgoing:
        """Return the tombstone of the key that the line is."""
        return Outgoing(_encoded(line, self.key_codec, "key", number), None, self.extra_headers, None, self.partition)


@dataclass(frozen=True, slots=True)
class EnvelopeLines:
    """Lines as `consume --json` prints them. keeps_partition: a record goes to the partition that it came from."""

    envelope: EnvelopeFormat
    keeps_partition: bool
    extra_headers: tuple[Header, ...] = ()
    partition: int | None = None

    def parse(self, line: bytes, number: int) -> Outgoing:
        try:
            found = self.envelope.parse(line)
        except InvalidLine as error:
            raise InvalidLine(f"Line {number}: {error}") from None
        if self.keeps_partition and found.partition is None:
            raise InvalidLine(f"Line {number}: no partition, which --keep-partition needs")
        partition = found.partition if self.keeps_partition else self.partition
        return Outgoing(found.key, found.value, found.headers + self.extra_headers, found.timestamp_ms, partition)


def _encoded(text: bytes, codec: Codec, side: str, number: int) -> bytes:
    try:
        return codec.from_line(text)
    except InvalidLine as error:
        raise InvalidLine(f"Line {number}: {side}: {error}") from None
