"""Lives of a log directory that a seed draws: which logs there are, with which settings, and what happens to them when.

What a broker never does is not drawn: records below the high watermark, which retention, DeleteRecords and compaction
have seen, are not truncated; epochs do not go back; a producer has one transaction at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from pykbroker.protocol.records.control import ControlRecordType
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.storage.log.log import LogConfig
from tests.storage.batches import config
from tests.storage.crash_life import COMPACTED, SMALL, JournalingDisk, Life

DRAWN = "drawn:"
"""Before the seed in the name of a run."""

_MOST_LOGS = 4
_COMPACTED_AND_DELETED = replace(
    COMPACTED, cleanup_policy=config(cleanup_policy="compact,delete").cleanup_policy, retention_ms=-1
)


@dataclass(slots=True)
class _LogState:
    """What the one who draws knows of a log. committed: up to where nothing is truncated any more."""

    is_compacted: bool
    is_deleting: bool
    is_small: bool
    epoch: int = 0
    as_follower: bool = False
    committed: int = 0
    open_transactions: set[int] = field(default_factory=set)


class DrawnLife:
    """`life` is the life so far; `go_on` draws its next steps."""

    def __init__(self, seed: str, *, disk: JournalingDisk | None = None, path: str | None = None) -> None:
        self._rng = rng = Random(f"a life of {seed}")
        place = {} if path is None else {"path": path}
        self.life = Life(seed, disk=disk, closes_together=rng.random() < 0.3, **place)
        self._logs: dict[TopicPartition, _LogState] = {}
        self._created = 0
        self._uses_transactions = rng.random() < 0.5
        steps = _STEPS.copy()
        for each in rng.sample(list(steps), rng.randrange(5)):
            # Some lives lack what others have, and so go further in what they have.
            if each is not DrawnLife._append:
                del steps[each]
        self._steps = list(steps)
        self._weights = [steps[each] * rng.choice((1, 1, 2)) for each in self._steps]

    def go_on(self, steps: int) -> None:
        self._create()
        for _ in range(steps):
            [step] = self._rng.choices(self._steps, self._weights)
            step(self)

    # Appends

    def _any(self) -> tuple[TopicPartition, _LogState]:
        at = self._rng.choice(sorted(self._logs))
        return at, self._logs[at]

    def _append(self) -> None:
        at, log = self._any()
        for _ in range(self._rng.choice((1, 1, 2, 5))):
            producer = self._rng.choice((None, 0, 1, 2))
            if producer is not None and producer in log.open_transactions and self._rng.random() < 0.5:
                self._end_transaction(at, log, producer)
                continue
            begins = self._uses_transactions and not log.is_compacted and self._rng.random() < 0.5
            is_transactional = producer is not None and (begins or producer in log.open_transactions)
            if producer is not None and is_transactional:
                log.open_transactions.add(producer)
            self.life.append(
                at,
                self._rng.choice((1, 1, 2, 3) if log.is_small else (1, 2, 3, 20)),
                epoch=log.epoch,
                producer=producer,
                as_follower=log.as_follower,
                is_transactional=is_transactional,
            )

    def _end_transaction(self, at: TopicPartition, log: _LogState, producer: int) -> None:
        log.open_transactions.discard(producer)
        control = self._rng.choice((ControlRecordType.COMMIT, ControlRecordType.ABORT, ControlRecordType.ABORT))
        self.life.end_transaction(at, producer, control, epoch=log.epoch, as_follower=log.as_follower)

    def _new_epoch(self) -> None:
        """Another leader is elected: this replica leads, or follows and drops what the leader does not have."""
        at, log = self._any()
        log.epoch += self._rng.choice((1, 1, 3))
        log.as_follower = self._rng.random() < 0.5
        if log.as_follower:
            self._truncate(at, log)
        else:
            self.life.lead(at, log.epoch)

    def _truncate(self, at: TopicPartition, log: _LogState) -> None:
        promise = self.life.current[at]
        least = max(log.committed, self.life.log(at).log_start_offset)
        batches = promise.life.versions[promise.version]
        ends = [batch.next_offset for batch in batches if batch.next_offset >= least]
        if ends:
            self._begin_version(at, log, lambda: self.life.truncate(at, self._rng.choice(ends)))

    def _begin_anew(self) -> None:
        at, log = self._any()
        log.epoch += 1
        log.as_follower = True
        offset = self.life.log(at).log_end_offset + self._rng.choice((1, 10, 1000))
        self._begin_version(at, log, lambda: self.life.begin_anew(at, offset))
        log.committed = offset

    def _begin_version(self, at: TopicPartition, log: _LogState, truncate: Callable[[], None]) -> None:
        truncate()
        log.open_transactions = set()
        for batch in self.life.current[at].life.versions[-1]:
            if batch.control is not None:
                log.open_transactions.discard(batch.producer_id)
            elif batch.is_transactional:
                log.open_transactions.add(batch.producer_id)

    # What makes durable

    def _flush(self) -> None:
        self.life.flush(self._any()[0])

    def _roll(self) -> None:
        self.life.roll(self._any()[0])

    def _checkpoint(self) -> None:
        self.life.checkpoint()

    def _checkpoint_high_watermarks(self) -> None:
        self.life.checkpoint_high_watermarks()

    # What takes away

    def _delete_records(self) -> None:
        at, log = self._any()
        start, end = self.life.log(at).log_start_offset, self.life.log(at).log_end_offset
        if log.is_deleting and start < end:
            log.committed = end
            self.life.delete_records(at, self._rng.randint(start + 1, end))

    def _retain(self) -> None:
        at, log = self._any()
        if log.is_deleting:
            log.committed = self.life.log(at).log_end_offset
            self.life.retain(at, self._rng.choice((-1, 0, 300, 1000)))

    def _clean(self) -> None:
        at, log = self._any()
        if log.is_compacted:
            log.committed = self.life.log(at).log_end_offset
            self.life.clean(at)

    def _remove_deleted(self) -> None:
        self.life.remove_deleted()

    # Topics and starts

    def _create(self) -> None:
        names = [TopicPartition(topic, index) for topic in ("a", "b") for index in range(2)]
        free = [each for each in names if each not in self._logs]
        if free:
            at = self._rng.choice(free)
            settings, log = self._draw_settings()
            self._logs[at] = log
            self.life.create(at.topic, settings, at.partition)

    def _draw_settings(self) -> tuple[LogConfig, _LogState]:
        rng = self._rng
        settings = rng.choice((SMALL, SMALL, COMPACTED, _COMPACTED_AND_DELETED))
        settings = replace(
            settings,
            segment_bytes=rng.choice((300, 420, 420, 2000, 100_000)),
            index_interval_bytes=rng.choice((1, 1, 300, 4096)),
        )
        settings = replace(settings, preallocate=settings.segment_bytes <= 2000 and rng.random() < 0.2)
        return settings, _LogState(settings.compact, settings.delete, settings.segment_bytes < 2000)

    def _delete(self) -> None:
        if len(self._logs) > 1:
            at, _ = self._any()
            del self._logs[at]
            self.life.delete(at)

    def _kill(self) -> None:
        self.life.kill()
        self.life.start()

    def _stop(self) -> None:
        self.life.stop()
        self.life.start()


_STEPS: dict[Callable[[DrawnLife], None], int] = {
    DrawnLife._append: 24,
    DrawnLife._new_epoch: 3,
    DrawnLife._begin_anew: 1,
    DrawnLife._flush: 6,
    DrawnLife._roll: 2,
    DrawnLife._checkpoint: 4,
    DrawnLife._checkpoint_high_watermarks: 2,
    DrawnLife._delete_records: 2,
    DrawnLife._retain: 2,
    DrawnLife._clean: 4,
    DrawnLife._remove_deleted: 3,
    DrawnLife._create: 2,
    DrawnLife._delete: 1,
    DrawnLife._kill: 1,
    DrawnLife._stop: 1,
}
"""How often each is drawn, as a share of all."""


def draw(seed: str, *, disk: JournalingDisk | None = None, path: str | None = None, steps: int | None = None) -> Life:
    drawn = DrawnLife(seed, disk=disk, path=path)
    drawn.go_on(Random(seed).choice((12, 20, 30, 60)) if steps is None else steps)
    return drawn.life
