"""Writes `kafkas_error_answers.jsonl`: what Apache Kafka's `AbstractRequest.getErrorResponse` makes of sample requests.

    python -m tests.control.faults.record_error_answers

Needs a JDK and Kafka's jars.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from compat_tests.apache_kafka.jars import class_path
from compat_tests.apache_kafka.java import find_java
from pykbroker.protocol.compile import encode
from pykbroker.protocol.errors import ErrorCode
from tests.control.faults.samples import Case, cases

RECORDED = Path(__file__).with_name("kafkas_error_answers.jsonl")
PROGRAM = Path(__file__).with_name("KafkasErrorAnswers.java")


def main() -> None:
    asked = list(cases())
    lines = [json.dumps([*case, answer]) for case, answer in zip(asked, ask_kafka(asked), strict=True)]
    RECORDED.write_text("".join(f"{line}\n" for line in lines))
    sys.stdout.write(f"{len(lines)} answers in {RECORDED}\n")


def recorded() -> Iterator[tuple[Case, str]]:
    """Each case, and the body of Kafka's response in hexadecimal; "-" for none."""
    for line in RECORDED.read_text().splitlines():
        api_key, version, sample, error, answer = json.loads(line)
        yield Case(api_key, version, sample, ErrorCode(error)), answer


def ask_kafka(asked: Sequence[Case]) -> list[str]:
    lines = "".join(
        f"{case.api_key} {case.version} {int(case.error)} {encode(case.request(), case.version).hex()}\n"
        for case in asked
    )
    options = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=OFF")
    command = [find_java(), *options, "-cp", class_path(), str(PROGRAM)]
    done = subprocess.run(command, input=lines, text=True, stdout=subprocess.PIPE, timeout=120, check=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    main()
