"""docs/differential.md, made of what is recorded: `python -m compat_tests.differential --report` writes it.

A case is one request with both brokers' answers. Cases are counted by API, by version and by the error codes in Apache
Kafka's answer, each code once for each case.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from pykbroker.protocol.api_keys import api_name

from .asking import CLOSED, NO_ANSWER, WAITS
from .error_paths import EXPECTED, NOT_REACHED
from .intended import INTENDED
from .recordings import Chapter, chapters

PAGE: Final = Path(__file__).parents[2] / "docs" / "differential.md"
_HEAD: Final = """# Differential conformance

The same sequences of requests were sent to Apache Kafka {version} and to pykbroker, and each answer was compared field
by field. A sequence makes topics, groups and transactions of its own, and its requests refer to what earlier answers
told, such as a topic's id or a member's. Sequences are written down as stories, for every version of each request, and
drawn by Hypothesis from the schemas of the messages with good, borderline and bad values. Both listeners are asked, and
nodes with and without an authorizer.

Apache Kafka's answers are in `compat_tests/differential/recorded/`; `compat_tests/differential/test_recorded.py` asks
pykbroker the same, and `make differential` asks both what was never asked before. This page is written by
`python -m compat_tests.differential --report`.

**{cases:,} cases in {sequences:,} sequences: {same:,} agree in every field, and {meant:,} but for differences that are
meant.** Apache Kafka was asked everything twice: what it answers in two ways is not compared. Compared are decoded
values; ids, which each broker draws, by the order in which they were told, and times and sizes by being there.
"""


def page() -> str:
    recorded = list(chapters())
    counts = Counts(recorded)
    head = _HEAD.format(
        version="4.3.1",
        cases=counts.cases,
        sequences=sum(len(each.sequences) for each in recorded),
        same=counts.cases - counts.with_meant,
        meant=counts.with_meant,
    )
    return "\n".join([head, *_meant(counts), *_table(counts), *_missing(counts)]) + "\n"


class Counts:
    """Of all chapters. by_api: cases by API key, version and error code."""

    def __init__(self, recorded: Iterable[Chapter]) -> None:
        self.cases = 0
        self.with_meant = 0
        self.meant: Counter[str] = Counter()
        self.by_api: dict[int, dict[str, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
        for chapter in recorded:
            for each in chapter.sequences:
                for number, (step, answer) in enumerate(zip(each.sequence.steps, each.theirs, strict=True)):
                    self.cases += 1
                    self.with_meant += number in each.meant
                    self.meant.update(each.meant.get(number, "").split(", ") if number in each.meant else ())
                    for code in set(_codes(answer)) or {"NONE"}:
                        self.by_api[step.api_key][code][step.version] += 1


def _codes(answer: Any) -> Iterator[str]:
    """Yield the error codes of an answer; that there was none is one, too."""
    match answer:
        case str():
            if answer in (CLOSED, WAITS, NO_ANSWER):
                yield {CLOSED: "(closed)", WAITS: "(waits)", NO_ANSWER: "(no answer)"}[answer]
        case dict():
            for name, value in answer.items():
                if name.endswith("error_code") and isinstance(value, str):
                    yield value
                else:
                    yield from _codes_within(value)
        case list():
            for each in answer:
                yield from _codes_within(each)


def _codes_within(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        yield from _codes(value)


def _meant(counts: Counts) -> list[str]:
    lines = ["## Differences that are meant", "", "| difference | cases | reason |", "|---|---|---|"]
    lines += [f"| {each.name} | {counts.meant[each.name]} | {each.reason} |" for each in INTENDED]
    return [*lines, ""]


def _table(counts: Counts) -> list[str]:
    lines = [
        "## Cases by API, error code and version",
        "",
        "A row counts the cases in which Apache Kafka's answer has the code, as `version: cases`. `(waits)` is no "
        "answer within a second, `(no answer)` a Produce with acks=0.",
        "",
        "| API | code | cases | by version |",
        "|---|---|---|---|",
    ]
    for key, codes in sorted(counts.by_api.items()):
        for code, versions in sorted(codes.items(), key=lambda pair: (pair[0] != "NONE", pair[0])):
            shown = ", ".join(f"{version}: {versions[version]}" for version in sorted(versions))
            lines.append(f"| {api_name(key)} | {code} | {sum(versions.values())} | {shown} |")
    return [*lines, ""]


def missing_codes(counts: Counts) -> dict[int, list[str]]:
    """The errors that Kafka's handlers have and no case has, by API key."""
    return {key: sorted(codes - counts.by_api.get(key, {}).keys()) for key, codes in sorted(EXPECTED.items())}


def _missing(counts: Counts) -> list[str]:
    expected = sum(map(len, EXPECTED.values()))
    missing = missing_codes(counts)
    lines = [
        "## Errors that no case has",
        "",
        f"Of {expected} pairs of API and error that Apache Kafka's handlers have, "
        f"{expected - sum(map(len, missing.values()))} are met.",
        "",
        "| error | of | why not |",
        "|---|---|---|",
    ]
    by_code: dict[str, list[str]] = defaultdict(list)
    for key, codes in missing.items():
        for code in codes:
            by_code[code].append(api_name(key))
    lines += [
        f"| {code} | {', '.join(names)} | {NOT_REACHED.get(code, '**open**')} |"
        for code, names in sorted(by_code.items())
    ]
    return lines
