"""Runs of three nodes, each with its own accidents, and mistakes that they find; a failure names the run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from pykbroker.replication.partition import Partition
from pykbroker.server.quorum.metadata_log import MetadataLog
from pykbroker.server.replicas.log_moves import LogMoves
from pykbroker.storage.log.log import Log
from tests.history.operations import format_history
from tests.loops import no_holds
from tests.simulations import Outcome, are_usual, run_good, seed_groups, skip_when_time_is_up

from .__main__ import main
from .bugs import HUNT
from .simulation import simulate

USUAL = 10


pytestmark = [pytest.mark.usefixtures("seldom_collected", "quiet"), pytest.mark.flaky(reruns=0)]


def run(seed: int) -> Outcome:
    return run_good("tests.cluster", simulate, seed)


@seed_groups(USUAL)
def test_whatever_happens_nothing_acknowledged_is_lost_and_nothing_hangs(seeds: range) -> None:
    skip_when_time_is_up()
    seen: Counter[str] = Counter()
    for seed in seeds:
        with _counting_effects(seen):
            outcome = run(seed)
        seen["troubles"] += len(outcome.told)
        seen["deaths"] += outcome.deaths
        seen.update(outcome.report.figures)
    if are_usual(seeds, USUAL):
        assert seen["troubles"] > 2 * USUAL
        assert seen["deaths"] >= USUAL // 5
        for kind in ("txn ok", "commit ok", "send ok", "committed ok"):
            assert seen[kind] > USUAL, f"the runs have hardly any {kind}"
        for effect in _EFFECTS:
            assert seen[effect], f"no run has {effect}: what the plans draw has no effect"


_EFFECTS: dict[str, tuple[type, str]] = {
    "segments that are compacted": (Log, "finish_replacement"),
    "segments that retention deletes": (Log, "put_old_segments_aside"),
    "logs that move": (LogMoves, "_take_over"),
    "logs that begin anew": (Log, "begin_anew"),
    "metadata that begins with a leader's snapshot": (MetadataLog, "complete_snapshot"),
}
"""What is to happen in large runs, and what does it: its result is true then."""


@contextmanager
def _counting_effects(seen: Counter[str]) -> Iterator[None]:
    def counting(effect: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def act_and_count(*arguments: Any, **keywords: Any) -> Any:
            result = act(*arguments, **keywords)
            seen[effect] += bool(result)
            return result

        return act_and_count

    with ExitStack() as patched:
        for effect, (owner, name) in _EFFECTS.items():
            patched.enter_context(patch.object(owner, name, counting(effect, getattr(owner, name))))
        yield


def test_one_seed_gives_one_history() -> None:
    first = list(format_history(run(2).operations))
    assert list(format_history(run(2).operations)) == first
    assert len(first) > 100


def test_a_seed_is_played_again_by_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["2"]) == 0
    assert "good: " in capsys.readouterr().out


@pytest.mark.parametrize("bug", HUNT.seeds)
def test_a_planted_bug_is_found(bug: str) -> None:
    HUNT.check(bug)


def test_there_are_enough_of_them() -> None:
    assert len(HUNT.seeds) >= 12


def test_a_node_that_holds_the_event_loop_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, for long enough for this bound and not for that of all tests."""
    apply_state, held = Partition.apply_state, []

    def hold(self: Partition, *arguments: Any) -> bool:
        if not held:
            held.append(self)
            end_s = time.thread_time() + 0.12
            while time.thread_time() < end_s:
                pass
        return apply_state(self, *arguments)

    monkeypatch.setattr(Partition, "apply_state", hold)
    with pytest.raises(AssertionError, match="held for more than 100 ms"), no_holds(monkeypatch, 100):
        simulate(0)
