"""Tests that need not pass on pykbroker, each with its reason: `known_differences.toml`."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass

from .class_run import method_of
from .harness import HERE

KEYS = ("classes", "methods", "tests")
FILE = HERE / "known_differences.toml"


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """text: the reason in a sentence. classes: not run. methods: `Class#method`, not run, since it would end the JVM or
    wait for long. tests: `Class#method` or `Class#method[invocation]`, run, and may fail.
    """

    name: str
    text: str
    classes: frozenset[str]
    methods: frozenset[str]
    tests: frozenset[str]
    is_fault: bool = False
    """Whether the tests count as failed among those of what pykbroker offers."""


@functools.cache
def known_differences() -> tuple[KnownDifference, ...]:
    return tuple(
        KnownDifference(
            name, entry["text"], *(frozenset(entry.get(key, ())) for key in KEYS), entry.get("is_fault", False)
        )
        for name, entry in tomllib.loads(FILE.read_text()).items()
    )


def why_class_is_left_out(test_class: str) -> KnownDifference | None:
    return next((each for each in known_differences() if test_class in each.classes), None)


def why_test_may_fail(test_class: str, test: str) -> KnownDifference | None:
    names = {f"{test_class}#{test}", f"{test_class}#{method_of(test)}"}
    return why_class_is_left_out(test_class) or next((each for each in known_differences() if names & each.tests), None)


def methods_not_run(test_class: str) -> dict[str, KnownDifference]:
    """By name."""
    named = [(each.partition("#"), known) for known in known_differences() for each in known.methods]
    return {method: known for (name, _, method), known in named if name == test_class}
