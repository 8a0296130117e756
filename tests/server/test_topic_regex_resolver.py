"""Topics that regular expressions match are looked for in threads, and once for everybody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
import trio
import trio.testing

from pykbroker.groups.consumer import regular_expressions
from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.messages.metadata_records import TopicRecord
from pykbroker.server.coordinators import topic_regex_resolver
from pykbroker.server.coordinators.group_coordinator import CONSUMER_OFFSETS
from pykbroker.server.coordinators.topic_regex_resolver import TopicRegexResolver
from pykbroker.sim.threads import SimulatedThreads
from tests.api.api_node import in_virtual_time
from tests.groups.consumer_requests import consumer_beat
from tests.groups.world import World, run_simulated


class Looking:
    """runs: what was done in threads."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.runs: list[Any] = []
        self._threads = SimulatedThreads(Random(1))
        self.regexes = TopicRegexResolver(lambda: self.image, self)
        for name in ("orders", "payments"):
            self.create(name)

    def create(self, name: str) -> None:
        self.image.replay(TopicRecord(name=name, topic_id=name.encode().ljust(16)), self.image.offset + 1)

    async def run(self, fn: Callable[..., Any], *arguments: Any) -> Any:
        self.runs.append(arguments[0])
        return await self._threads.run(fn, *arguments)


def while_looking(main: Callable[[Looking], Awaitable[None]]) -> None:
    async def run() -> None:
        looking = Looking()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(looking.regexes.run)
            await main(looking)
            nursery.cancel_scope.cancel()

    in_virtual_time(run)


def test_an_expression_is_looked_for_once_for_everybody_and_every_state_of_the_topics() -> None:
    async def main(looking: Looking) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(60):
                nursery.start_soon(looking.regexes.prepare, "o.*")
        version = looking.image.offset
        assert looking.regexes.find("o.*", version) == (version, frozenset({"orders"}))
        assert looking.runs == ["o.*"]
        looking.create("offers")
        await looking.regexes.prepare("o.*")
        assert looking.regexes.find("o.*", version + 1) == (version + 1, frozenset({"orders", "offers"}))
        assert looking.runs == ["o.*"] * 2

    while_looking(main)


def test_who_asks_too_early_hears_of_it_later() -> None:
    async def main(looking: Looking) -> None:
        assert looking.regexes.find("p.*", 1) is None
        await trio.sleep(1)
        assert looking.regexes.find("p.*", 1) == (looking.image.offset, frozenset({"payments"}))

    while_looking(main)


def test_what_is_no_expression_is_not_looked_for() -> None:
    async def main(looking: Looking) -> None:
        await looking.regexes.prepare("(")
        assert looking.runs == []

    while_looking(main)


def test_as_many_expressions_are_kept_and_wait_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_regex_resolver, "MOST_KEPT", 3)
    monkeypatch.setattr(topic_regex_resolver, "MOST_WANTED", 5)

    async def main(looking: Looking) -> None:
        asked = [f"o.*{number}" for number in range(10)]
        assert [looking.regexes.find(each, 1) for each in asked] == [None] * 10
        await trio.sleep(1)
        assert sorted(looking.runs) == asked[:5]
        known = [each for each in asked if looking.regexes.find(each, 1) is not None]
        assert len(known) == 3

    while_looking(main)


def test_nothing_is_matched_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heartbeat that brings an expression has its topics; what is due later is there a heartbeat later."""
    matching = regular_expressions.matching_topics
    in_thread: list[bool] = [False]
    matched: list[str] = []

    def match(expression: str, names: Any) -> frozenset[str]:
        assert in_thread[0], "matched on the event loop"
        matched.append(expression)
        return matching(expression, names)

    monkeypatch.setattr(regular_expressions, "matching_topics", match)
    world = World({"offsets.topic.num.partitions": "1", "group.consumer.assignment.interval.ms": "0"})
    run_in_thread = world.threads.run

    async def run(fn: Any, *arguments: Any) -> Any:
        def flagged() -> Any:
            in_thread[0] = True
            try:
                return fn(*arguments)
            finally:
                in_thread[0] = False

        return await run_in_thread(flagged)

    monkeypatch.setattr(world.threads, "run", run)

    async def main() -> None:
        world.create_topic("orders", 1)
        world.create_topic(CONSUMER_OFFSETS, 1)
        async with world.running():
            await world.sleep(100)
            answer: Any = await world.call("a", consumer_beat("g", "m", 0, regex="o.*"), 1)
            assert [each.partitions for each in answer.assignment.topic_partitions] == [[0]]
            world.create_topic("offers", 1)
            await world.sleep(20_000)
            epoch = answer.member_epoch
            told = []
            for _ in range(2):
                answer = await world.call("a", consumer_beat("g", "m", epoch), 1)
                epoch = answer.member_epoch
                told.append(answer.assignment is not None and len(answer.assignment.topic_partitions))
                await world.sleep(1_000)
            assert told == [False, 2]
        assert matched == ["o.*"] * 2

    run_simulated(main)


@pytest.mark.parametrize("expression", [r"[\pL\pN.-]{0,900}", "a" * 40_000])
def test_what_takes_long_to_compile_is_refused(expression: str) -> None:
    reason = regular_expressions.invalid_reason(expression)
    assert reason is not None
    assert len(reason) < 2_000


def test_what_people_write_is_taken() -> None:
    names = "|".join(f"team-{number}[.]orders-{number}.*" for number in range(300))
    for expression in (r"[\pL\pN.-]{0,20}", "(.{0,30}){0,30}", names, r"^(?i)orders[-_.]\d{4}-\d{2}$"):
        assert regular_expressions.invalid_reason(expression) is None
