"""Runs of coordinators, logs and clients, each with its own accidents; a failure names the run."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import pytest

from pykbroker.transactions.shard import TransactionShard
from tests.history.operations import format_history
from tests.simulations import Outcome, are_usual, run_good, seed_groups, skip_when_time_is_up

from .__main__ import main
from .simulation import simulate

USUAL = 30


pytestmark = [pytest.mark.usefixtures("seldom_collected", "quiet"), pytest.mark.flaky(reruns=0)]


def run(seed: int) -> Outcome:
    return run_good("tests.coordination", simulate, seed)


@seed_groups(USUAL)
def test_whatever_happens_nothing_acknowledged_is_lost_and_nothing_hangs(seeds: range) -> None:
    skip_when_time_is_up()
    seen: Counter[str] = Counter()
    for seed in seeds:
        with _counting_interrupted_decisions(seen):
            outcome = run(seed)
        seen["deaths"] += outcome.deaths
        seen.update(outcome.report.figures)
    if are_usual(seeds, USUAL):
        assert seen["deaths"] > USUAL
        for kind in ("txn ok", "txn fail", "txn info", "commit ok", "own ok", "send ok", "committed ok"):
            assert seen[kind] > USUAL // 2, f"the runs have hardly any {kind}"
        assert seen["interrupted decisions"], "no process died between a decision and its last marker"


def _counting_interrupted_decisions(seen: Counter[str]) -> Any:
    """What a coordinator finds decided and not complete when it loads its log."""
    start_timers = TransactionShard.start_timers

    def start_and_count(self: TransactionShard, now_ms: int, timestamp_ms: int) -> Any:
        result = start_timers(self, now_ms, timestamp_ms)
        seen["interrupted decisions"] += len(result.effects)
        return result

    return patch.object(TransactionShard, "start_timers", start_and_count)


def test_one_seed_gives_one_history() -> None:
    first = list(format_history(run(3).operations))
    assert list(format_history(run(3).operations)) == first
    assert list(format_history(run(4).operations)) != first
    assert len(first) > 100


def test_a_seed_is_played_again_by_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["3"]) == 0
    told = capsys.readouterr().out
    assert "the node died" in told
    assert "good: " in told
