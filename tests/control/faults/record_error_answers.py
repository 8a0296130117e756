"""Writes `kafkas_error_answers.jsonl`: what Apache Kafka's `AbstractRequest.getErrorResponse` makes of sample requests.

    python -m tests.control.faults.record_error_answers

Needs a JDK and the jars of Kafka, of both releases.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from compat_tests.apache_kafka.jars import class_path
from compat_tests.apache_kafka.java import find_java
from compat_tests.personalities.releases import jars_of
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.compile import encode
from pykbroker.protocol.errors import ErrorCode
from tests.control.faults.samples import Case, cases

NEW_IN_4_4 = {
    (ApiKey.API_VERSIONS, 5),
    (ApiKey.TXN_OFFSET_COMMIT, 6),
    (ApiKey.DELETE_GROUPS, 3),
    (ApiKey.STREAMS_GROUP_HEARTBEAT, 1),
    (ApiKey.STREAMS_GROUP_DESCRIBE, 1),
    (ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, 0),
    (ApiKey.UNREGISTER_CONTROLLER, 0),
}
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
    """What 4.3.1 makes of the requests, and 4.4 of those that are new there."""
    newer = [case for case in asked if is_new(case)]
    older = [case for case in asked if not is_new(case)]
    answers = dict(zip(older, _ask(older, class_path()), strict=True))
    if newer:
        answers |= zip(newer, _ask(newer, f"{jars_of('4.4').directory()}/*"), strict=True)
    return [answers[case] for case in asked]


def is_new(case: Case) -> bool:
    """Whether 4.4 is asked; who has an unknown version is told which there are, and they are more than in 4.3.1."""
    names_versions = case.api_key == ApiKey.API_VERSIONS and case.error is ErrorCode.UNSUPPORTED_VERSION
    return names_versions or (case.api_key, case.version) in NEW_IN_4_4


def _ask(asked: Sequence[Case], jars: str) -> list[str]:
    lines = "".join(
        f"{case.api_key} {case.version} {int(case.error)} {encode(case.request(), case.version).hex()}\n"
        for case in asked
    )
    options = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=OFF")
    command = [find_java(), *options, "-cp", jars, str(PROGRAM)]
    done = subprocess.run(command, input=lines, text=True, stdout=subprocess.PIPE, timeout=120, check=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    main()
