"""The snapshot generator writes the image down as a snapshot when one is due, and lets go of the log that older
snapshots needed.

The generator follows the image as a listener of the publisher. A snapshot is written in a thread from a view, while
requests change the image. Kafka's counterparts are `SnapshotGenerator`, `SnapshotEmitter` and the cleaner of
`KafkaRaftClient`.
"""

from __future__ import annotations

import logging
import math

import trio

from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.raft.snapshots import RetentionLimits, SnapshotSchedule, StoredSnapshot, is_oldest_superfluous
from pykbroker.storage.files.errors import NoRoom

from ..runtime.clock import Clock
from ..runtime.signal import Signal
from ..runtime.threads import Threads
from .metadata_log import MetadataLog

CLEANING_INTERVAL_MS = 60_000
"""How often snapshots are looked at for their age; a full disk gets as long before the next attempt."""

_logger = logging.getLogger(__name__)


class SnapshotGenerator:
    """The generator belongs to one metadata log. delete_delay_ms: how long the files stay that are out of use."""

    def __init__(
        self,
        log: MetadataLog,
        schedule: SnapshotSchedule,
        limits: RetentionLimits,
        *,
        delete_delay_ms: int,
        clock: Clock,
        threads: Threads,
    ) -> None:
        self._log = log
        self._schedule = schedule
        self._limits = limits
        self._delete_delay_ms = delete_delay_ms
        self._clock = clock
        self._threads = threads
        self._image: MetadataImage | None = None
        self._next_cleaning_ms = clock.monotonic_ms() + CLEANING_INTERVAL_MS
        self._planned_ms: int | None = None
        """When the next snapshot will be due, as far as `run` knows."""
        self._is_earlier = Signal()
        self._deleted: list[tuple[int, list[str]]] = []
        """Files out of use, with the time when they are to be removed."""

    def apply(self, image: MetadataImage, _changes: ImageChanges) -> None:
        """Note the image that the publisher tells of; whatever it tells is committed."""
        self._image = image
        if self._deadline_ms() != self._planned_ms:
            self._is_earlier.set()

    async def run(self) -> None:
        """Write and clean up until the surrounding scope is cancelled. Raises DiskFailed."""
        while True:
            try:
                await self._do_what_is_due(self._clock.monotonic_ms())
            except NoRoom as refusal:
                _logger.error(
                    "no snapshot of the metadata is written and no older one removed until there is room: %s", refusal
                )
                await trio.sleep(CLEANING_INTERVAL_MS / 1000)
            await self._wait()

    # When

    async def _do_what_is_due(self, now_ms: int) -> None:
        deadline_ms = self._deadline_ms()
        if deadline_ms is not None and deadline_ms <= now_ms:
            await self._write()
            self._next_cleaning_ms = now_ms
        if self._next_cleaning_ms <= now_ms:
            self._next_cleaning_ms = now_ms + CLEANING_INTERVAL_MS
            await self._clean()
        await self._remove_deleted(now_ms)

    def _deadline_ms(self) -> int | None:
        """Return when the next snapshot is due, if nothing more comes."""
        image, ids = self._image, self._log.snapshots.ids
        if image is None or image.in_transaction or (ids and image.offset < ids[-1].end_offset):
            return None
        return self._schedule.deadline_ms(max(self._log.uncovered_bytes, 1))

    async def _wait(self) -> None:
        self._planned_ms = self._deadline_ms()
        deadlines = [due_ms for due_ms, _ in self._deleted]
        if self._planned_ms is not None:
            deadlines.append(self._planned_ms)
        if len(self._log.snapshots.ids) > 1:
            deadlines.append(self._next_cleaning_ms)
        wait_s = (min(deadlines) - self._clock.monotonic_ms()) / 1000 if deadlines else math.inf
        await self._is_earlier.wait(max(wait_s, 0))

    # What

    async def _write(self) -> None:
        assert self._image is not None
        log, view = self._log, self._image.view()
        covered_bytes = log.uncovered_bytes
        head = log.begin_snapshot(view.offset, self._clock.now_ms())
        started_ms = self._clock.monotonic_ms()
        size_bytes = await self._threads.run(log.write_snapshot, head, view.records())
        log.uncovered_bytes -= covered_bytes
        now_ms = self._clock.monotonic_ms()
        self._schedule.restart(now_ms)
        path = log.snapshots.path(head.id)
        _logger.info("metadata snapshot %s: %d bytes, %d ms", path, size_bytes, now_ms - started_ms)

    async def _clean(self) -> None:
        if len(self._log.snapshots.ids) < 2:
            return
        stored: list[StoredSnapshot] = await self._threads.run(self._log.prepare_cleaning)
        now_ms = self._clock.now_ms()
        while is_oldest_superfluous(stored, self._log.size_bytes, self._limits, now_ms):
            del stored[0]
            paths = self._log.begin_at(stored[0].id, now_ms)
            self._deleted.append((self._clock.monotonic_ms() + self._delete_delay_ms, paths))
            _logger.info("the metadata log begins at snapshot %s now", self._log.snapshots.path(stored[0].id))

    async def _remove_deleted(self, now_ms: int) -> None:
        due = [paths for due_ms, paths in self._deleted if due_ms <= now_ms]
        self._deleted = [(due_ms, paths) for due_ms, paths in self._deleted if due_ms > now_ms]
        for paths in due:
            await self._threads.run(self._log.remove, paths)
