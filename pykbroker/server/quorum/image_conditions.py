"""An image condition is waited for until this node's image of the metadata has something, such as a topic that the
controller has just created.

The controller may be elsewhere, and answers when its records are committed; here they arrive a moment later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import trio

from pykbroker.metadata.image import MetadataImage

from ..runtime.signal import Signal


class Followed(Protocol):
    """The followed metadata are those of the `MetadataPublisher`."""

    image: MetadataImage
    applied_offset: int

    @property
    def replayed_offset(self) -> int: ...

    def watch(self, watcher: Callable[[], None]) -> None: ...


class ImageConditions:
    """The conditions are looked at whenever the image has changed."""

    def __init__(self, metadata: Followed) -> None:
        self._metadata = metadata
        self._changed = Signal()
        metadata.watch(self._on_applied)

    async def until(self, condition: Callable[[MetadataImage], bool], timeout_s: float) -> bool:
        """Wait for the condition, and tell whether it came true in time. Listeners of the image have seen what made it
        so.
        """
        with trio.move_on_after(timeout_s):
            while not condition(self._metadata.image):
                await self._changed.next()
            return True
        return False

    async def listeners_told(self, timeout_s: float) -> bool:
        """Wait until the listeners of the image have seen what it has now, and tell whether they have in time.

        The image is ahead of them while directories of new partitions are made.
        """
        return await self.listeners_know(self._metadata.replayed_offset, timeout_s)

    async def listeners_know(self, offset: int, timeout_s: float) -> bool:
        """Wait until the listeners of the image have seen all that is in the metadata log below `offset`, and tell
        whether they have in time.
        """
        with trio.move_on_after(timeout_s):
            while self._metadata.applied_offset < offset:
                await self._changed.next()
            return True
        return False

    def _on_applied(self) -> None:
        self._changed.set()
