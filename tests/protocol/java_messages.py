"""Kafka's generated Java classes as a second codec: `MessageCodec.java`, which Java compiles and runs.

A message travels there as the JSON of Kafka's `JsonConverter` classes, and as bytes in both directions. Their JSON has
no room for unknown tagged fields, so those are compared by bytes alone.
"""

from __future__ import annotations

import base64
import json
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_tests.apache_kafka import find_java
from pykbroker.protocol.schema import Message, Struct, parse_versions
from pykbroker.protocol.source import is_present, is_tagged
from pykbroker.protocol.uuids import uuid_to_text

from .kafka_schemas import JARS_WITH_SCHEMAS, FieldShape, MessageShape

_PROGRAM = Path(__file__).with_name("MessageCodec.java")
_OPTIONS = ("-XX:+UseSerialGC", "-Xmx1g", "-Dlog4j2.level=OFF")
_CONVERTER = "JsonConverter.class"
_TIMEOUT_S = 300


class JavaRefuses(AssertionError):
    """A class of Kafka's threw an exception, whose text this is."""


@dataclass(frozen=True, slots=True)
class Encode:
    """A task: the bytes of a message. name: of a Java class."""

    name: str
    version: int
    content: dict[str, Any]

    def line(self) -> str:
        return f"encode {self.name} {self.version} {json.dumps(self.content)}\n"


@dataclass(frozen=True, slots=True)
class Decode:
    """A task: the message that bytes stand for, as JSON, and the bytes that Java writes of it."""

    name: str
    version: int
    data: bytes

    def line(self) -> str:
        return f"decode {self.name} {self.version} {base64.b64encode(self.data).decode()}\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """data: bytes of the message, as Java writes it. content: None for an answer to Encode."""

    data: bytes
    content: dict[str, Any] | None = None


def class_names(libs: Path) -> dict[str, str]:
    """The Java class of each message, by the name in its schema, to which some add `Data`."""
    found: dict[str, str] = {}
    for jar in JARS_WITH_SCHEMAS:
        [path] = libs.glob(f"{jar}-[0-9]*.jar")
        with zipfile.ZipFile(path) as archive:
            for file in archive.namelist():
                if file.endswith(_CONVERTER) and "$" not in file:
                    name = file.removesuffix(_CONVERTER).replace("/", ".")
                    simple = name.rpartition(".")[2]
                    found[simple] = found[simple.removesuffix("Data")] = name
    return found


def ask(tasks: Sequence[Encode | Decode], libs: Path) -> Iterator[Answer]:
    """Yield an answer for each task, all from one JVM. Raises JavaRefuses at the first that Java has no answer for.

    libs: the directory of the jars of a release.
    """
    command = [find_java(), *_OPTIONS, "-cp", f"{libs}/*", str(_PROGRAM)]
    lines = "".join(task.line() for task in tasks)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=_TIMEOUT_S)
    for task, line in zip(tasks, done.stdout.splitlines(), strict=True):
        if not line.startswith("="):
            raise JavaRefuses(f"{task}: {line[1:]}")
        content, _, data = line[1:].rpartition("\t")
        yield Answer(base64.b64decode(data), json.loads(content) if content else None)


def kafka_json(message: Message, shape: MessageShape, version: int, *, as_written: bool = False) -> dict[str, Any]:
    """The JSON that Kafka's converter reads: the fields of the version, but for tagged ones that have their default.

    shape: of the release that reads it, which has fields that others have, too, under names of its own.
    as_written: what the converter writes instead, which of record batches is their size.
    """
    return _Json(version, as_written).struct(message, shape.fields)


@dataclass(frozen=True, slots=True)
class _Json:
    version: int
    as_written: bool

    def struct(self, value: Struct, shapes: Sequence[FieldShape]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        ours = [each for each in type(value).__schema__.fields if is_present(each, self.version)]
        theirs = [each for each in shapes if parse_versions(each.versions).includes(self.version)]
        for declared, shape in zip(ours, theirs, strict=True):
            given = getattr(value, declared.name)
            if is_tagged(declared, self.version) and given == declared.new_default():
                continue
            if self.as_written and shape.kind == "records" and given is not None:
                found[f"{shape.json_name}SizeInBytes"] = len(given)
            else:
                found[shape.json_name] = self._value(given, shape)
        return found

    def _value(self, value: Any, shape: FieldShape) -> Any:
        if value is None:
            return None
        if shape.kind.startswith("[]"):
            return [self._element(each, shape) for each in value]
        return self._element(value, shape)

    def _element(self, value: Any, shape: FieldShape) -> Any:
        match shape.kind.removeprefix("[]"):
            case "struct":
                return self.struct(value, shape.fields)
            case "uuid":
                return uuid_to_text(value)
            case "bytes" | "records":
                return base64.b64encode(value).decode()
            case _:
                return value
