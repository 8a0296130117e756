"""What is waited for until the image of the metadata, or those who follow it, have it."""

from __future__ import annotations

from collections.abc import Callable

import trio

from pykbroker.metadata.image import MetadataImage
from pykbroker.server.quorum.image_conditions import ImageConditions
from tests.api.api_node import in_virtual_time


class FakePublisher:
    def __init__(self) -> None:
        self.image = MetadataImage()
        self.replayed_offset = 0
        self.applied_offset = 0
        self._watchers: list[Callable[[], None]] = []

    def watch(self, watcher: Callable[[], None]) -> None:
        self._watchers.append(watcher)

    def apply(self, offset: int) -> None:
        self.applied_offset = offset
        for watcher in self._watchers:
            watcher()


def test_listeners_are_waited_for_until_they_have_what_the_image_had_when_the_wait_began() -> None:
    async def main() -> None:
        publisher = FakePublisher()
        conditions = ImageConditions(publisher)
        publisher.replayed_offset = 7
        async with trio.open_nursery() as nursery:
            told: list[float] = []

            async def wait() -> None:
                assert await conditions.listeners_told(5)
                told.append(trio.current_time())

            begin = trio.current_time()
            nursery.start_soon(wait)
            await trio.sleep(1)
            publisher.replayed_offset = 9
            publisher.apply(5)
            await trio.sleep(1)
            assert told == []
            publisher.apply(7)
            await trio.sleep(1)
            assert told == [begin + 2]

    in_virtual_time(main)


def test_the_wait_for_listeners_ends_at_once_where_they_know_all_and_with_its_time_where_they_do_not() -> None:
    async def main() -> None:
        publisher = FakePublisher()
        conditions = ImageConditions(publisher)
        begin = trio.current_time()
        assert await conditions.listeners_told(5)
        assert trio.current_time() == begin
        publisher.replayed_offset = 1
        assert not await conditions.listeners_told(5)
        assert trio.current_time() == begin + 5

    in_virtual_time(main)
