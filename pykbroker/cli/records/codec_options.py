"""The options that say what keys and values are: a format by name, or a schema in a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from ..command import CommandFailed
from .codecs import CODECS, TEXT, Codec, JsonCodec
from .confluent_prefix import MOST_SCHEMA_ID

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

MOST_SCHEMA_BYTES = 16 * 1024 * 1024
PROTO_SUFFIX = ".proto"


@dataclass(frozen=True, slots=True)
class CodecOptions:
    """The options of `side`, which is "key" or "value". schema_id: written in front of the data."""

    side: str
    format: str | None = None
    schema: Path | None = None
    message: str | None = None
    schema_id: int | None = None

    @property
    def is_given(self) -> bool:
        return self.format is not None or self.schema is not None

    def codec(self, *, is_pretty: bool = False) -> Codec:
        """Return the codec. is_pretty: documents are shown on several lines. Raises CommandFailed."""
        flag = f"--{self.side}-schema"
        if self.schema is None:
            for name, value in (("message", self.message), ("schema-id", self.schema_id)):
                if value is not None:
                    raise CommandFailed(f"--{self.side}-{name} needs {flag}")
            if self.format is None:
                return TEXT
            return JsonCodec(is_pretty=True) if self.format == "json" and is_pretty else CODECS[self.format]
        if self.format is not None:
            raise CommandFailed(f"--{self.side}-format and {flag} exclude each other: a schema is a format")
        text = _read(self.schema)
        is_proto = self.schema.suffix.lower() == PROTO_SUFFIX
        if self.message is not None or is_proto:
            from .protobuf import protobuf_codec

            if is_proto:
                from .proto_file import compiled

                text = compiled(self.schema, needed_by=f"{flag} with a .proto file")
            return protobuf_codec(
                self.schema, text, self.message, flag=flag, schema_id=self.schema_id, is_pretty=is_pretty
            )
        from .avro import avro_codec

        return avro_codec(self.schema, text, flag=flag, schema_id=self.schema_id, is_pretty=is_pretty)


def codec_options(function: CommandT) -> CommandT:
    """`--key-format`, `--key-schema`, `--key-message`, and the same of values."""
    for side in ("value", "key"):
        for option in (
            click.option(
                f"--{side}-message",
                metavar="NAME",
                help=f"The {side}s' message, as in shop.Order, where --{side}-schema is of Protobuf.",
            ),
            click.option(
                f"--{side}-schema",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help=f"{side.capitalize()}s have this schema: Avro, Protobuf's .proto, or a descriptor set of it.",
            ),
            click.option(
                f"--{side}-format",
                type=click.Choice(list(CODECS)),
                help=f"What {side}s are; text is bytes as they are.",
            ),
        ):
            function = option(function)
    return function


def schema_id_options(function: CommandT) -> CommandT:
    """`--key-schema-id` and `--value-schema-id`."""
    for side in ("value", "key"):
        function = click.option(
            f"--{side}-schema-id",
            type=click.IntRange(0, MOST_SCHEMA_ID),
            metavar="ID",
            help=f"Write the prefix of a schema registry before {side}s: 0 and this id.",
        )(function)
    return function


def _read(path: Path) -> bytes:
    from pykbroker.client.https import FetchFailed
    from pykbroker.client.small_files import read_small_file

    try:
        return read_small_file(str(path), MOST_SCHEMA_BYTES)
    except FetchFailed as error:
        raise CommandFailed(str(error)) from None
