"""Long requests take their turns one after another, and everybody else comes in between."""

from __future__ import annotations

import trio

from pykbroker.server.runtime.fair_queue import FairShare
from pykbroker.server.runtime.turns import STEPS_IN_FIRST_TURN, STEPS_PER_TURN, LongRequests, Turn

LONG_REQUESTS = 50
TURNS_OF_EACH = 4


async def long_request(turn: Turn, name: str, turns: list[str]) -> None:
    await turn.took(STEPS_IN_FIRST_TURN)
    for _ in range(TURNS_OF_EACH):
        turns.append(name)
        await turn.took(STEPS_PER_TURN)


def test_a_short_request_waits_for_one_long_one_at_most() -> None:
    turns: list[str] = []
    waited: list[int] = []

    async def short_requests() -> None:
        while len(turns) < LONG_REQUESTS * TURNS_OF_EACH:
            before = len(turns)
            await trio.lowlevel.checkpoint()
            waited.append(len(turns) - before)

    async def scenario() -> None:
        others = LongRequests()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(short_requests)
            for number in range(LONG_REQUESTS):
                nursery.start_soon(long_request, Turn(others, FairShare()), f"request {number}", turns)

    trio.run(scenario)
    assert len(turns) == LONG_REQUESTS * TURNS_OF_EACH
    assert max(waited) <= 2  # Trio mixes the tasks of a round: one of this round, and one of the next


def test_a_client_of_many_long_requests_does_not_come_first() -> None:
    turns: list[str] = []

    async def greedy(others: LongRequests, client: FairShare) -> None:
        for _ in range(10):
            await long_request(Turn(others, client), "greedy", turns)

    async def scenario() -> None:
        others = LongRequests()
        async with trio.open_nursery() as nursery:
            client = FairShare()
            for _ in range(5):
                nursery.start_soon(greedy, others, client)
            for _ in range(5):
                await trio.lowlevel.checkpoint()
            nursery.start_soon(long_request, Turn(others, FairShare()), "modest", turns)

    trio.run(scenario)
    modest = [number for number, name in enumerate(turns) if name == "modest"]
    assert modest[-1] - modest[0] <= 3 * TURNS_OF_EACH


def test_a_cancelled_request_gives_its_turn_to_the_next() -> None:
    turns: list[str] = []

    async def scenario() -> None:
        others = LongRequests()
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(long_request, Turn(others, FairShare()), f"request {number}", turns)
            await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        turns.clear()
        await long_request(Turn(others, FairShare()), "later", turns)

    trio.run(scenario)
    assert turns == ["later"] * TURNS_OF_EACH
