"""A sequence on which the brokers disagree, without the steps that the disagreement does not need."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from .asking import Asker
from .comparison import differences
from .intended import judged
from .sequences import Sequence, Step

Complaint = tuple[int, str]
"""API key, and the path of the first field that differs."""

_NAMES: Final = itertools.count()


def shrunk(sequence: Sequence, complaint: Complaint, complaints: Callable[[Sequence], set[Complaint]]) -> Sequence:
    """Return the sequence without each step whose absence leaves the complaint. complaints: those about a sequence."""
    steps = sequence.steps
    for at in reversed(range(len(sequence.steps))):
        shorter = renamed(sequence, (*steps[:at], *steps[at + 1 :]))
        if complaint in complaints(shorter):
            steps = shorter.steps
    return replace(sequence, steps=steps)


def renamed(sequence: Sequence, steps: tuple[Step, ...]) -> Sequence:
    """Return a sequence whose names nobody has used: what an earlier try left does not count."""
    return Sequence(f"s{95_000 + next(_NAMES) % 5_000:05d}", steps)


def complaints_of(theirs: Asker, ours: Asker) -> Callable[[Sequence], set[Complaint]]:
    """Return a function that asks two brokers a sequence."""

    def ask(sequence: Sequence) -> set[Complaint]:
        expected = theirs.ask(sequence)
        return set(_complaints(sequence, expected, ours.ask(sequence, expected)))

    return ask


def _complaints(sequence: Sequence, theirs: list[object], ours: list[object]) -> Iterator[Complaint]:
    for step, their, our in zip(sequence.steps, theirs, ours, strict=True):
        verdict = judged(step, list(differences(their, our)))
        if verdict.open:
            yield step.api_key, verdict.open[0].path
        if verdict.ends:
            return
