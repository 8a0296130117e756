"""Recorded sequences, asked of pykbroker, and what came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from compat_tests.brokers import BrokerProcess

from .asking import CANNOT_BE_ENCODED, Asker
from .comparison import FieldDifference, described, differences
from .intended import Verdict, judged
from .nodes import asker
from .recordings import RecordedSequence
from .sequences import Step


@dataclass(frozen=True, slots=True)
class Disagreement:
    """number: of the step in its sequence."""

    sequence: str
    number: int
    step: Step
    found: FieldDifference

    def __str__(self) -> str:
        return f"{self.sequence} step {self.number}: {described(self.step, self.found)}"


@dataclass(slots=True)
class Outcome:
    """cases: pairs of answers that were compared. meant: cases by the names of the differences that they have."""

    cases: int = 0
    meant: Counter[str] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)


def replay(node: BrokerProcess, scene: str, recorded: Iterable[RecordedSequence]) -> Outcome:
    """Ask a node that runs."""
    outcome = Outcome()
    asking = asker(node, scene)
    try:
        for each in recorded:
            for number, verdict in verdicts(asking, each):
                outcome.cases += 1
                outcome.meant.update({meant.name for meant in verdict.meant})
                step = each.sequence.steps[number]
                outcome.disagreements += [
                    Disagreement(each.sequence.name, number, step, found) for found in verdict.open
                ]
    finally:
        asking.close()
    return outcome


def verdicts(asking: Asker, recorded: RecordedSequence) -> Iterator[tuple[int, Verdict]]:
    """Yield the cases of a sequence up to the first that leaves another state behind."""
    ours = asking.ask(recorded.sequence, recorded.theirs)
    for number, (step, their, our) in enumerate(zip(recorded.sequence.steps, recorded.theirs, ours, strict=True)):
        if their == our == CANNOT_BE_ENCODED:
            continue
        verdict = judged(step, list(differences(their, our)))
        yield number, verdict
        if verdict.ends:
            return
