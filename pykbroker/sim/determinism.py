"""Deterministic runs of a Trio program: one seed gives one order of events, in every process.

Trio shuffles the tasks of each step on purpose. Its own tests fix that with two private names, and this is the only
file that touches its private parts; `check` fails where a new Trio has changed their meaning. Real threads, sockets,
the system's clocks and the order of sets of objects stay outside of what runs here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, TypeVarTuple, Unpack

import trio
from trio.testing import MockClock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def run_deterministic(
    function: Callable[[Unpack[Ts]], Awaitable[T]],
    *args: *Ts,
    seed: int,
    instruments: tuple[trio.abc.Instrument, ...] = (),
) -> T:
    """`trio.run` in virtual time: a wait costs nothing, and the scheduler's choices follow from `seed`."""
    with _scheduling(seed):
        return trio.run(function, *args, clock=MockClock(autojump_threshold=0), instruments=instruments)


def check() -> None:
    """Raise where Trio's scheduler does not follow the seed."""
    orders = [run_deterministic(_order_of_tasks, seed=seed) for seed in (1, 1, 2)]
    if orders[0] != orders[1]:
        raise AssertionError(f"trio {trio.__version__} schedules differently under the same seed")
    if orders[0] == orders[2]:
        raise AssertionError(
            f"trio {trio.__version__} does not shuffle by the seed: its scheduler's names have changed"
        )


def run_queue() -> deque[trio.lowlevel.Task]:
    """The tasks that will run in the scheduler's next turn; it tells its instruments after it has appended one."""
    runner = trio._core._run.GLOBAL_RUN_CONTEXT.runner  # pyright: ignore[reportAttributeAccessIssue]
    return runner.runq  # type: ignore[no-any-return, unused-ignore]


_left_behind: dict[str, Any] | None = None
"""What Trio knows of the run in the thread, while `away_from_trio` lasts."""


@contextmanager
def away_from_trio() -> Iterator[None]:
    """Hide Trio's run, as it is hidden in worker threads: what needs it raises RuntimeError."""
    global _left_behind
    run = trio._core._run.GLOBAL_RUN_CONTEXT.__dict__
    _left_behind = run.copy()
    run.clear()
    try:
        yield
    finally:
        run.update(_left_behind)
        _left_behind = None


@contextmanager
def back_in_trio() -> Iterator[None]:
    """Show Trio's run again within `away_from_trio`, for what the world around a simulated thread does."""
    global _left_behind
    left_behind = _left_behind
    assert left_behind is not None
    run = trio._core._run.GLOBAL_RUN_CONTEXT.__dict__
    run.update(left_behind)
    _left_behind = None
    try:
        yield
    finally:
        run.clear()
        _left_behind = left_behind


def virtual_time_s() -> float:
    """Trio's time, also within `away_from_trio`."""
    return trio.current_time() if _left_behind is None else _left_behind["runner"].current_time()


async def _order_of_tasks() -> list[int]:
    order: list[int] = []

    async def note(number: int) -> None:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
            order.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(note, number)
    return order


@contextmanager
def _scheduling(seed: int) -> Iterator[None]:
    scheduler = trio._core._run
    random_state = scheduler._r.getstate()
    was_allowed = scheduler._ALLOW_DETERMINISTIC_SCHEDULING
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
    scheduler._r.seed(seed)
    try:
        yield
    finally:
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = was_allowed  # type: ignore[misc]
        scheduler._r.setstate(random_state)
