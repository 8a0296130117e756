"""Every message in every version has the bytes that Kafka's Java classes write for the same content, and is read there.

The contents are drawn from seeds. `java_messages.json` keeps a digest of what Java wrote for each message and version,
so that our bytes are compared where there is no Java, too. With PYKBROKER_RECORD_JAVA_MESSAGES=1 the test that asks
Java writes that file.

Two releases are asked. The declared schemas are those of Kafka 4.4: 4.4.0 is the referee of all of them in all their
versions, and what it writes is recorded. 4.3.1 is asked for each message and version that it knows, and has to write
the same; but for `StreamsGroupMetadataValue`, to whose only version 4.4 adds fields.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from compat_tests.apache_kafka import JarsMissing
from compat_tests.personalities.releases import jars_of
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.schema import Message, parse_versions

from .declared import declared_messages
from .java_messages import Decode, Encode, ask, class_names, kafka_json
from .kafka_schemas import MessageShape, read_schemas
from .maker import LONG, USUAL, Choices, make_message

RECORDED = Path(__file__).with_name("java_messages.json")
RECORD = os.environ.get("PYKBROKER_RECORD_JAVA_MESSAGES") == "1"
NEWEST = "4.4"
CHANGED_IN_OLD_VERSIONS = {"4.3": {"StreamsGroupMetadataValue"}}
"""By release: messages to whose versions a later release adds fields that this one does not know."""
_DIGEST_CHARACTERS = 16

WITHOUT_UNKNOWN_TAGS = Choices(unknown_tags=0)
LONG_WITHOUT_UNKNOWN_TAGS = Choices(texts=LONG.texts, sizes=LONG.sizes, unknown_tags=0)


def contents(cls: type[Message], version: int, usual: Choices, long: Choices) -> Iterator[Message]:
    """The defaults, twelve random contents, and one of long texts."""
    yield cls()
    for seed in range(12):
        yield make_message(cls, version, seed, most_elements=seed % 4, choices=usual)
    yield make_message(cls, version, 12, most_elements=1, choices=long)


def digest(written: Iterator[bytes]) -> str:
    found = hashlib.sha256()
    for each in written:
        found.update(len(each).to_bytes(4, "big") + each)
    return found.hexdigest()[:_DIGEST_CHARACTERS]


def recorded() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(RECORDED.read_text())
    return found


@pytest.mark.parametrize("name", sorted(declared_messages()))
def test_our_bytes_are_those_that_java_wrote(name: str) -> None:
    cls = declared_messages()[name]
    versions = cls.__schema__.versions
    ours = {
        str(version): digest(
            encode(each, version) for each in contents(cls, version, WITHOUT_UNKNOWN_TAGS, LONG_WITHOUT_UNKNOWN_TAGS)
        )
        for version in range(versions.low, versions.high + 1)
    }
    assert ours == recorded()[name]


def test_nothing_is_recorded_of_messages_that_are_gone() -> None:
    assert list(recorded()) == sorted(declared_messages())


@dataclass(frozen=True, slots=True)
class Referee:
    """A release of Kafka. shapes: its schemas, by their names. names: its Java classes, by the same."""

    release: str
    libs: Path
    shapes: dict[str, MessageShape]
    names: dict[str, str]

    def messages_and_versions(self) -> list[tuple[type[Message], int]]:
        """All that the release is asked for: whatever it knows, but for what a later one changed in old versions."""
        known = {name: parse_versions(shape.versions) for name, shape in self.shapes.items()}
        for name in CHANGED_IN_OLD_VERSIONS.get(self.release, ()):
            del known[name]
        return [
            (declared_messages()[name], version)
            for name, versions in known.items()
            for version in range(versions.low, versions.high + 1)
        ]


@pytest.fixture(scope="module", params=[NEWEST, "4.3"])
def referee(request: pytest.FixtureRequest) -> Referee:
    try:
        libs = jars_of(request.param).directory()
    except JarsMissing as reason:
        pytest.skip(str(reason))
    return Referee(request.param, libs, read_schemas(libs), class_names(libs))


@pytest.mark.java
@pytest.mark.jdk
def test_java_writes_our_bytes_for_the_same_content(referee: Referee) -> None:
    """Its bytes are also decoded here, to the content that it was given."""
    made = [
        (cls, version, message)
        for cls, version in referee.messages_and_versions()
        for message in contents(cls, version, WITHOUT_UNKNOWN_TAGS, LONG_WITHOUT_UNKNOWN_TAGS)
    ]
    tasks = [
        Encode(referee.names[cls.__name__], version, kafka_json(message, referee.shapes[cls.__name__], version))
        for cls, version, message in made
    ]
    different, theirs = [], {}
    for (cls, version, message), answer in zip(made, ask(tasks, referee.libs), strict=True):
        theirs.setdefault((cls.__name__, version), []).append(answer.data)
        if answer.data != encode(message, version) or decode(cls, version, answer.data) != (message, len(answer.data)):
            different.append(f"{message!r} in version {version}: Java writes {answer.data.hex()}")
    assert not different, different[0]
    digests: dict[str, dict[str, str]] = {name: {} for name in sorted(name for name, _ in theirs)}
    for (name, version), written in sorted(theirs.items()):
        digests[name][str(version)] = digest(iter(written))
    if referee.release == NEWEST:
        if RECORD:
            RECORDED.write_text(json.dumps(digests, indent=1) + "\n")
        assert digests == recorded()
    else:
        newest = recorded()
        assert digests == {name: {version: newest[name][version] for version in digests[name]} for name in digests}


@pytest.mark.java
@pytest.mark.jdk
def test_java_reads_our_bytes_as_the_same_content(referee: Referee) -> None:
    """Unknown tagged fields come along, and Java writes all of it again as it was."""
    made = [
        (cls, version, message)
        for cls, version in referee.messages_and_versions()
        for message in contents(cls, version, USUAL, LONG)
    ]
    tasks = [Decode(referee.names[cls.__name__], version, encode(message, version)) for cls, version, message in made]
    different = [
        f"{message!r} in version {version}: Java reads {answer.content} and writes {answer.data.hex()}"
        for (cls, version, message), task, answer in zip(made, tasks, ask(tasks, referee.libs), strict=True)
        if answer.data != task.data
        or answer.content != kafka_json(message, referee.shapes[cls.__name__], version, as_written=True)
    ]
    assert not different, different[0]
