"""The flags of `pykbroker produce`, checked: the topic, the source, the form of keys and values."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .command import CommandFailed, key_values, reject
from .connect import read_client_properties
from .line_reader import InvalidLine, LineReader

if TYPE_CHECKING:
    from pykbroker.protocol.records.batch import Header

    from .records.codecs import Codec
    from .records.outgoing import LineFormat, Parse

MOST_RECORDS_PER_S: Final = 1e9
LEAST_RECORDS_PER_S: Final = 1e-6


@dataclass(frozen=True)
class ProduceFlags:
    """The flags as click gives them; `key_…` and `value_…` are those of `records.codec_options`."""

    bootstrap_server: str
    command_config: Path | None
    topic: str
    key: str | None
    parse_key: bool
    key_separator: str | None
    headers: tuple[str, ...]
    partition: int | None
    file: Path | None
    by_lines: bool
    as_json: bool
    keep_partition: bool
    tombstone: bool
    rate: float | None
    reader_properties: tuple[str, ...]
    reader_config: Path | None
    producer_properties: tuple[str, ...]
    acks: str | None
    compression_codec: str | None
    batch_size: str | None
    timeout: str | None
    sync: bool
    key_format: str | None
    key_schema: Path | None
    key_message: str | None
    key_schema_id: int | None
    value_format: str | None
    value_schema: Path | None
    value_message: str | None
    value_schema_id: int | None

    @cached_property
    def properties(self) -> Mapping[str, str]:
        """The client's settings. Raises CommandFailed."""
        flags = {
            "acks": self.acks,
            "compression.type": self.compression_codec,
            "batch.size": self.batch_size,
            "linger.ms": self.timeout,
        }
        return {
            **read_client_properties(self.command_config),
            **{name: value for name, value in flags.items() if value is not None},
            **key_values(self.producer_properties, "--command-property"),
        }

    @property
    def is_whole_file(self) -> bool:
        """True where `--file` is one value."""
        return self.file is not None and not (self.by_lines or self.as_json)

    @property
    def is_one_tombstone(self) -> bool:
        return self.tombstone and self.key is not None

    @cached_property
    def key_codec(self) -> Codec:
        from .records.codec_options import CodecOptions

        return CodecOptions("key", self.key_format, self.key_schema, self.key_message, self.key_schema_id).codec()

    @cached_property
    def value_codec(self) -> Codec:
        from .records.codec_options import CodecOptions

        side = CodecOptions("value", self.value_format, self.value_schema, self.value_message, self.value_schema_id)
        return side.codec()

    @cached_property
    def line_format(self) -> LineFormat:
        """Raises CommandFailed."""
        from .records.outgoing import LineFormat

        try:
            reader = LineReader.from_properties(self._reader_properties)
            key = None if self.key is None else self.key_codec.from_line(os.fsencode(self.key))
        except InvalidLine as error:
            raise CommandFailed(str(error)) from None
        return LineFormat(reader, self.key_codec, self.value_codec, key, self._extra_headers, self.partition)

    def parse(self) -> Parse:
        """Return what makes a record of a line. Raises CommandFailed."""
        if not self.as_json:
            return self.line_format.tombstone if self.tombstone else self.line_format.parse
        from .records.envelope import EnvelopeFormat
        from .records.outgoing import EnvelopeLines

        envelope = EnvelopeFormat(self.key_codec, self.value_codec)
        return EnvelopeLines(envelope, self.keep_partition, self._extra_headers, self.partition).parse

    @property
    def _reader_properties(self) -> dict[str, str]:
        properties = {
            **read_client_properties(self.reader_config),
            **key_values(self.reader_properties, "--reader-property"),
        }
        if self.parse_key or self.key_separator is not None:
            properties["parse.key"] = "true"
        if self.key_separator is not None:
            properties["key.separator"] = self.key_separator
        return properties

    @property
    def _extra_headers(self) -> tuple[Header, ...]:
        """`name=value`, and `name` alone for a header whose value is null."""
        pairs = [(text, *text.partition("=")) for text in self.headers]
        return tuple((name, os.fsencode(value) if equals else None) for _, name, equals, value in pairs)

    def check(self) -> None:
        """Raise CommandFailed for flags that contradict each other or are no value of theirs."""
        if self.rate is not None and not LEAST_RECORDS_PER_S <= self.rate <= MOST_RECORDS_PER_S:
            most, least = f"{MOST_RECORDS_PER_S:.0f}", f"{LEAST_RECORDS_PER_S:f}"
            shown = "no number" if math.isnan(self.rate) else f"{self.rate:g}"
            raise CommandFailed(f"--rate is records a second, from {least} to {most}, not {shown}")
        if self.keep_partition and not self.as_json:
            raise CommandFailed("--keep-partition needs --json")
        if self.by_lines and self.file is None:
            raise CommandFailed("--lines needs --file; lines of standard input are records without it")
        if self.keep_partition and self.partition is not None:
            raise CommandFailed("--keep-partition and --partition exclude each other")
        reads_keys = {"--parse-key": self.parse_key, "--key-separator": self.key_separator}
        kafkas = {"--reader-property": self.reader_properties, "--reader-config": self.reader_config}
        if self.as_json:
            made = {"--key": self.key, "--tombstone": self.tombstone, "--lines": self.by_lines}
            reject({**reads_keys, **kafkas, **made}, "cannot be given with --json, whose lines are whole records")
        if self.key is not None:
            reject(reads_keys, "cannot be given with --key")
        if self.is_whole_file:
            reject({**reads_keys, **kafkas}, "needs --lines where there is a --file")
        if self.tombstone:
            value = {"--value-format": self.value_format, "--value-schema": self.value_schema}
            lines = {"--file": self.is_whole_file or (self.key is not None and self.file)}
            reject({**reads_keys, **kafkas, **value, **lines}, "cannot be given with --tombstone")
        self.parse()
