"""The longest proofs take turns in `.ci/run`: one of each set for a commit, each for some commit, and each is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.turns import SETS, left_out, number_of_this_commit

ROOT = Path(__file__).parents[1]
COPIES = "compat_tests/exactly_once/test_copies.py"
PROOFS = [proof for proofs in SETS for proof in proofs]


def test_one_of_each_set_is_run_and_all_come_round() -> None:
    run: set[str] = set()
    for number in range(12):
        out = left_out(SETS, number)
        assert len(out) == sum(len(proofs) - 1 for proofs in SETS)
        run |= set(PROOFS) - set(out)
    assert run == set(PROOFS)


@pytest.mark.parametrize("proof", PROOFS)
def test_each_is_there(proof: str) -> None:
    path, _, test = proof.partition("::")
    source = (ROOT / path).read_text()
    name, _, ids = test.removesuffix("]").partition("[")
    assert f"def {name}" in source
    for each in ids.split("-") if "pykbroker-" in ids else [ids]:
        assert each in ("", "pykbroker") or re.search(rf'"{each}"', source), each


@pytest.mark.parametrize("taking", [{"PYKBROKER_TAKE_TURNS": "1"}, {}], ids=["taking turns", "all"])
def test_a_run_that_takes_turns_leaves_the_others_out(taking: dict[str, str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYKBROKER_TAKE_TURNS"} | taking
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", COPIES]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    found = [line for line in done.stdout.splitlines() if "test_the_copy_is_the_original" in line]
    index = number_of_this_commit() % 2
    assert len(found) == (1 if taking else 2), done.stdout
    assert f"::test_the_copy_is_the_original[pykbroker-{('confluent', 'java')[index]}]" in "\n".join(found)
