"""The metadata publisher keeps the image of what is committed on one node, and tells those who follow it.

Every node has one, whatever its roles. Records come from the raft driver; each listener has seen a change before
anybody is told that it is there (`applied_offset`). Kafka's counterparts are `MetadataLoader` and its publishers.

A large change takes many turns of the event loop. Readers see each batch of the log as a whole all the same: a large
one is replayed into a fork of the image, which takes the image's place when it has all of the batch. A leader's
snapshot replaces the image as a whole, and listeners get what differs (`metadata.image_difference`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from pykbroker.metadata.features import UnsupportedFeatureLevel, check_feature_levels
from pykbroker.metadata.image import ImageChanges, InconsistentMetadata, MetadataImage
from pykbroker.metadata.image_difference import difference
from pykbroker.storage.files.errors import CorruptLog, FileError

from ..runtime.metadata_errors import MetadataErrors
from ..runtime.signal import Signal
from ..runtime.startup_error import StartupError
from ..runtime.turns import Turn
from .metadata_log import MetadataBatch, MetadataLog, StartSnapshot
from .metadata_remedy import VERIFY, telling
from .raft_driver import RaftDriver

PARTITIONS_AT_ONCE = 64
"""Between portions others get their turn: a topic of thousands must not keep every connection waiting."""
BYTES_AT_ONCE = 16_384
"""Of the metadata log, where a record has some 80 bytes."""
_STEPS_PER_RECORD = 12
_BYTES_PER_STEP = 8
_STEPS_PER_PORTION = 1000

ImageListener = Callable[[MetadataImage, ImageChanges], None]
Preparation = Callable[[MetadataImage, ImageChanges], Awaitable[None]]


class MetadataPublisher:
    """The publisher replays the log into `image`. applied_offset: all listeners know what is in the metadata log below
    it.
    """

    def __init__(self, raft: RaftDriver, log: MetadataLog, *, remedy: str = VERIFY) -> None:
        """Begin with an empty image. remedy: what to do about a log that can't be applied, for the
        line that says so.
        """
        self.image = MetadataImage()
        self.applied_offset = 0
        self.errors = MetadataErrors()
        """Those who apply the image count theirs here."""
        self._raft = raft
        self._log = log
        self._remedy = remedy
        self._listeners: list[ImageListener] = []
        self._watchers: list[Callable[[], None]] = []
        self._prepare: Preparation | None = None
        self._replayed_offset = 0
        self._is_informed = False
        self._news = Signal()
        self._turn = Turn()
        raft.watch(self._on_raft_changed)

    @property
    def replayed_offset(self) -> int:
        """The offset below which the image has what is in the metadata log; its listeners may not know all of that."""
        return self._replayed_offset

    def subscribe(self, listener: ImageListener) -> None:
        """Call `listener` with the image whenever it changed, before the answer to the request that changed it.

        Many changes at once come in portions, while the image is ahead already.
        """
        self._listeners.append(listener)

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` whenever `applied_offset` has grown. It must not wait."""
        self._watchers.append(watcher)

    async def run(
        self, prepare: Preparation | None = None, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Follow the log until the surrounding scope is cancelled; started when all that was committed by then is
        applied.

        prepare: told before any listener, and waited for: with all that the log tells, and with every change later.
        Raises CorruptLog, FileError; StartupError, also later, where the cluster has another metadata.version.
        """
        while not self._raft.knows_high_watermark:
            await self._wait()
        changes = ImageChanges()
        while self._is_behind():
            changes.merge(await self._replay())
        if prepare is not None:
            await prepare(self.image, changes)
        await self._apply(changes)
        self._prepare = prepare
        task_status.started()
        while True:
            await self._wait()
            await self._apply(await self._replay())
            while self._is_behind():
                await self._turn.took(_STEPS_PER_PORTION)
                await self._apply(await self._replay())

    def _on_raft_changed(self) -> None:
        """The first news may be that there is nothing new."""
        if self._replayed_offset < self._raft.high_watermark or self._raft.knows_high_watermark != self._is_informed:
            self._is_informed = self._raft.knows_high_watermark
            self._news.set()

    async def _wait(self) -> None:
        await self._news.wait()

    def _is_behind(self) -> bool:
        return self._replayed_offset < self._raft.high_watermark or self._log.begins_anew

    async def _replay(self) -> ImageChanges:
        """Bring the image a piece closer to the high watermark. A snapshot that the log begins behind replaces it."""
        try:
            with telling(self._remedy):
                changes = await self._replay_committed()
            check_feature_levels(self.image)
        except (CorruptLog, FileError):
            self.errors.load += 1
            raise
        except UnsupportedFeatureLevel as error:
            self.errors.load += 1
            raise StartupError(str(error)) from error
        return changes

    async def _replay_committed(self) -> ImageChanges:
        try:
            snapshot = self._log.take_start()
            if snapshot is not None:
                return await self._replay_snapshot(snapshot)
            return await self._replay_batches()
        except InconsistentMetadata as error:
            raise CorruptLog(f"{self._log.directory}: {error}") from error

    async def _replay_snapshot(self, snapshot: StartSnapshot) -> ImageChanges:
        image = MetadataImage()
        for message in snapshot.messages:
            image.replay(message, snapshot.id.end_offset - 1)
            await self._turn.took(_STEPS_PER_RECORD)
        before, self.image = self.image, image
        self._replayed_offset = snapshot.id.end_offset
        return difference(before, image)

    async def _replay_batches(self) -> ImageChanges:
        """Replay as many batches as are replayed at once. The log is asked for no more behind a pause: by then it may
        begin behind another snapshot.
        """
        changes = ImageChanges()
        size_bytes = 0
        for batch in self._raft.committed(self._replayed_offset):
            size_bytes += batch.size_bytes
            if batch.size_bytes > BYTES_AT_ONCE:
                self.image = await self._with_large(batch, changes)
            else:
                for offset, message in batch.records:
                    changes.merge(self.image.replay(message, offset))
            self._log.note_applied(batch)
            self._replayed_offset = batch.next_offset
            if size_bytes >= BYTES_AT_ONCE:
                break
        await self._turn.took(size_bytes // _BYTES_PER_STEP)
        return changes

    async def _with_large(self, batch: MetadataBatch, changes: ImageChanges) -> MetadataImage:
        image = self.image.fork()
        for offset, message in batch.records:
            changes.merge(image.replay(message, offset))
            await self._turn.took(_STEPS_PER_RECORD)
        return image

    async def _apply(self, changes: ImageChanges) -> None:
        for portion in changes.portions(PARTITIONS_AT_ONCE):
            if self._prepare is not None and (portion.partitions or portion.deleted_topics):
                await self._prepare(self.image, portion)
            self._publish(portion)
            if changes.size > PARTITIONS_AT_ONCE:
                await trio.lowlevel.checkpoint()
        self._tell()

    def _publish(self, changes: ImageChanges) -> None:
        if changes:
            for listener in self._listeners:
                listener(self.image, changes)

    def _tell(self) -> None:
        self.applied_offset = self._replayed_offset
        for watcher in self._watchers:
            watcher()
