"""Which test goes to which worker: groups stay together, and one of four workers begins with what computes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from compat_tests.side_by_side import SideBySide

WAITING = [f"compat_tests/test_topics.py::test_{number}" for number in range(8)]
CLUSTER = [f"compat_tests/clusters/test_leaders.py::test_{number}" for number in range(6)]
COMPUTING = [f"tests/protocol/test_framing.py::test_{number}" for number in range(8)]
COLLECTED = [*CLUSTER, *WAITING, *COMPUTING]


class Worker:
    """Of xdist's controller of a worker, what a scheduler asks for."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.shutting_down = False
        self.given: list[int] = []
        self.done = 0

    def send_runtest_some(self, indices: list[int]) -> None:
        assert not self.shutting_down
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def tests(self) -> list[str]:
        return [COLLECTED[index] for index in self.given]


def hand_out(count: int) -> list[Worker]:
    """All tests go to `count` workers, and each takes as long as the others."""
    option = SimpleNamespace(loadscopereorder=False)
    config: Any = SimpleNamespace(getvalue=lambda name: ["popen"] * count, option=option)
    scheduler, workers = SideBySide(config), [Worker(number) for number in range(count)]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, COLLECTED)
    scheduler.schedule()
    while waiting := [worker for worker in workers if worker.done < len(worker.given)]:
        for worker in waiting:
            scheduler.mark_test_complete(worker, worker.given[worker.done])
            worker.done += 1
    return workers


def test_every_test_is_run_once() -> None:
    for count in (1, 2, 4, 8):
        assert sorted(test for worker in hand_out(count) for test in worker.tests) == sorted(COLLECTED)


def test_a_group_stays_in_one_worker() -> None:
    holding = [worker for worker in hand_out(4) if set(CLUSTER) & set(worker.tests)]
    assert [set(CLUSTER) <= set(worker.tests) for worker in holding] == [True]


def test_one_of_four_workers_begins_with_what_computes() -> None:
    first, _, _, fourth = hand_out(4)
    assert first.tests[0] in CLUSTER
    assert fourth.tests[0] == COMPUTING[-1]
    assert fourth.tests[:4] == COMPUTING[:-5:-1]
