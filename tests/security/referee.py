"""Java and Apache Kafka's own classes as the referee: `TlsReferee.java`, which Java compiles and runs."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import javaproperties

from compat_tests.apache_kafka import class_path, find_java

_PROGRAM = Path(__file__).with_name("TlsReferee.java")
_FEW_AUTHORITIES = f"-Djavax.net.ssl.trustStore={_PROGRAM.with_name('stores') / 'trust.jks'}"
"""Java reads all of its own anew for each listener without a trust store."""
_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=OFF", _FEW_AUTHORITIES)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was returned, or the exceptions that were thrown."""

    text: str
    is_refusal: bool


def ask(questions: Sequence[Sequence[str | bytes | Mapping[str, str]]]) -> list[Answer]:
    """Return an answer for each question, a word and its arguments, from one JVM."""
    command = [find_java(), *_OPTIONS, "-cp", class_path(), str(_PROGRAM)]
    lines = "".join(f"{question[0]} {' '.join(map(_encoded, question[1:]))}\n" for question in questions)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False, timeout=120)
    answers = [
        Answer(bytes.fromhex(line[1:]).decode(), line.startswith("!"))
        for line in done.stdout.splitlines()
        if line.startswith(("=", "!"))
    ]
    assert len(answers) == len(questions), done.stderr
    return answers


def _encoded(argument: str | bytes | Mapping[str, str]) -> str:
    if isinstance(argument, Mapping):
        argument = javaproperties.dumps(dict(argument), timestamp=None)
    return argument.hex() if isinstance(argument, bytes) else argument.encode().hex()
