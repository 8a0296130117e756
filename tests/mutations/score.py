"""The score of a run of mutants: how many each package's tests found, and which survived."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .mutant import PACKAGES, ROOT, Mutant
from .trial import Outcome, Verdict


@dataclass(frozen=True)
class Result:
    """A mutant and what became of it."""

    mutant: Mutant
    outcome: Outcome

    @property
    def is_expected(self) -> bool:
        """Found, or a survivor for a reason that the list gives."""
        return self.outcome.verdict is Verdict.FOUND or self.mutant.survives is not None

    def line(self) -> str:
        mutant, outcome = self.mutant, self.outcome
        return f"{outcome.verdict.value:9}{outcome.seconds:6.0f} s  {mutant.package}: {mutant.name}  {outcome.by}"

    def to_json(self) -> str:
        return json.dumps(
            {
                "package": self.mutant.package,
                "name": self.mutant.name,
                "file": self.mutant.path,
                "verdict": self.outcome.verdict.value,
                "by": self.outcome.by,
                "seconds": round(self.outcome.seconds, 1),
                "reason": self.mutant.survives,
                "output": self.outcome.output[-4000:],
            }
        )


def write(results: Iterable[Result], path: Path) -> None:
    path.write_text("".join(result.to_json() + "\n" for result in results))


def table(results: Sequence[Result]) -> str:
    """The score of each package as rows of a table, and the survivors. Mutants that are broken do not count."""
    rows = ["| package | mutants | found | score |", "|---|---|---|---|"]
    for package in PACKAGES:
        counted = [each for each in results if each.mutant.package == package and _counts(each)]
        if counted:
            found = sum(each.outcome.verdict is Verdict.FOUND for each in counted)
            rows.append(f"| {package} | {len(counted)} | {found} | {100 * found / len(counted):.0f} % |")
    survivors = [each for each in results if _counts(each) and each.outcome.verdict is not Verdict.FOUND]
    told = [
        f"- {each.mutant.package}, {each.outcome.verdict.value}: {each.mutant.name}"
        + (f" ({each.mutant.survives})" if each.mutant.survives else "")
        for each in survivors
    ]
    return "\n".join([*rows, "", *told])


def _counts(result: Result) -> bool:
    return result.outcome.verdict is not Verdict.BROKEN


def commit() -> str:
    """The commit that is examined, and whether the tree differs from it."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "no commit"
