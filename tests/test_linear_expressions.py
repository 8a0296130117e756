"""Expressions from outside: those that would take long to compile are refused before anything is compiled."""

from __future__ import annotations

import time

import pytest

from pykbroker.linear_expressions import full_match, too_costly

LONGEST, PROGRAM = 32_768, 1 << 19
MOST_MS = 50.0

COSTLY = {
    "classes of Unicode": "\\pL" * 10_900,
    "classes of Unicode in brackets": "[\\pL\\PN]" * 3_000,
    "classes of Unicode by name": "\\p{Greek}|" * 3_000,
    "optional parts": "a?" * 16_000,
    "optional parts, lazy": "a??" * 10_000,
    "optional parentheses": "(\\(?)" * 6_000,
    "repeats of optional parts": "a{0,1000}" * 10,
    "repeats": "a{1000}" * 4_000,
    "repeats without an end": "a{999,}" * 4_000,
}
"""The first took 700 ms of the event loop, the repeats of optional parts, in 90 bytes, 130 ms."""


@pytest.mark.parametrize("expression", COSTLY.values(), ids=COSTLY)
def test_what_takes_long_to_compile_is_refused_at_once(expression: str) -> None:
    assert too_costly(expression) is not None
    took = []
    for _ in range(5):
        began = time.thread_time()
        with pytest.raises(ValueError, match="more than"):
            full_match(expression, longest=LONGEST, most_program_bytes=PROGRAM)
        took.append((time.thread_time() - began) * 1000)
    assert min(took) < MOST_MS


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("[\\pL\\pN.-]{0,20}", "topic-1"),
        ("|".join(f"topic-{number}" for number in range(2_000)), "topic-1999"),
        ("(?:a|b)?(?i)[k-z]{3}\\.?", "aXYZ"),
        ("a" * 32_768, "a" * 32_768),
        ("\\\\p" * 200, "\\p" * 200),
        ("(?:x)" * 3_000, "x" * 3_000),
        ("a{1000}", "a" * 1_000),
    ],
    ids=["usual", "names", "flags", "longest", "a backslash and a letter", "groups", "one repeat"],
)
def test_what_people_write_is_matched(expression: str, text: str) -> None:
    matches = full_match(expression, longest=LONGEST, most_program_bytes=2 * PROGRAM)
    assert matches(text)
    assert not matches(text + "!")
