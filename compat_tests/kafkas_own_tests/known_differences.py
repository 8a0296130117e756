"""Tests that need not pass on pykbroker, each with its reason: `known_differences.toml`."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass

from .class_run import method_of
from .harness import HERE

FILE = HERE / "known_differences.toml"


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """text: the reason in a sentence. classes: not run. tests: `Class#method`, or `Class#method[invocation]`."""

    name: str
    text: str
    classes: frozenset[str]
    tests: frozenset[str]


@functools.cache
def known_differences() -> tuple[KnownDifference, ...]:
    return tuple(
        KnownDifference(name, entry["text"], frozenset(entry.get("classes", ())), frozenset(entry.get("tests", ())))
        for name, entry in tomllib.loads(FILE.read_text()).items()
    )


def why_class_is_left_out(test_class: str) -> KnownDifference | None:
    return next((each for each in known_differences() if test_class in each.classes), None)


def why_test_may_fail(test_class: str, test: str) -> KnownDifference | None:
    names = {f"{test_class}#{test}", f"{test_class}#{method_of(test)}"}
    return why_class_is_left_out(test_class) or next((each for each in known_differences() if names & each.tests), None)
