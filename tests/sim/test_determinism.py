from __future__ import annotations

import trio

from pykbroker.sim.determinism import check, run_deterministic


def test_trios_scheduler_follows_the_seed() -> None:
    check()


def test_virtual_time_costs_nothing() -> None:
    async def a_day() -> float:
        start = trio.current_time()
        await trio.sleep(86_400)
        return trio.current_time() - start

    assert run_deterministic(a_day, seed=1) == 86_400


def test_trio_schedules_as_before_afterwards() -> None:
    allowed = trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING
    run_deterministic(trio.sleep, 1.0, seed=1)
    assert trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING is allowed
