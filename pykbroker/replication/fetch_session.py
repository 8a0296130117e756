"""Incremental fetch sessions (KIP-227): which partitions a Fetch request reads, and which of them its answer names.

Pure: no clock, no Trio, no logs. The caller asks `FetchSessionCache.new_context` for a context, reads the partitions
that it lists, and hands the outcome to `FetchContext.finish`. Kafka's counterparts are `FetchManager`, `FetchSession`,
`FetchContext` and `FetchSessionCacheShard` (one shard here).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol, TypeAlias

from pykbroker.long_work import LongWork, whole
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest

from .partition import Partition
from .reads import FetchPartitionData
from .session_watch import PartitionKey, SessionWatch

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 2**31 - 1
MAX_SESSION_ID = 2**31 - 1
TOPIC_IDS_SINCE_VERSION = 13
MOST_PARTITIONS = 60_000
"""All sessions have no more: each partition takes some 450 bytes for as long as its session is kept."""

MOST_PARTITIONS_OF_ONE = 30_000
"""A session is read as a whole."""

PARTITIONS_AT_ONCE = 1000

MIN_EVICTION_AGE_MS = 120_000
"""A session that was used within this time gives way only to a larger one, and only once it is this old itself."""

TopicNames: TypeAlias = Callable[[bytes], str | None]


def next_epoch(epoch: int) -> int:
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == MAX_EPOCH else epoch + 1


@dataclass(slots=True, eq=False)
class CachedPartition:
    """One partition of a fetch: what was asked for last, and what the client was told last.

    `topic` is None for a topic id that this broker does not know (yet).
    """

    topic: str | None
    topic_id: bytes
    partition: int
    request: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1

    def update_response(self, data: FetchPartitionData) -> bool:
        """Remember what the client is told now; False where it would learn nothing new, so that it is left out."""
        must_respond = data.records_size > 0
        if self.high_watermark != data.high_watermark:
            self.high_watermark = data.high_watermark
            must_respond = True
        if self.log_start_offset != data.log_start_offset:
            self.log_start_offset = data.log_start_offset
            must_respond = True
        if data.error_code is not ErrorCode.NONE or data.diverging_epoch is not None:
            # An impossible value, so that the partition is answered again once the error is gone, or the reader has
            # truncated: it took no notice of the high watermark before.
            self.high_watermark = -1
            must_respond = True
        return must_respond or data.preferred_read_replica >= 0


Partitions: TypeAlias = dict[PartitionKey, CachedPartition]
PartitionAnswers: TypeAlias = Sequence[tuple[CachedPartition, FetchPartitionData]]


def _key(partition: CachedPartition, uses_topic_ids: bool) -> PartitionKey:
    name = partition.topic_id if uses_topic_ids else partition.topic
    assert name is not None, "without topic ids, every partition has a topic name"
    return name, partition.partition


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """The response as far as sessions decide it."""

    error_code: ErrorCode
    session_id: int
    partitions: PartitionAnswers = ()


class FetchContext(Protocol):
    """One Fetch request in flight."""

    @property
    def watched(self) -> WatchedContext | None:
        """Itself, where only what is unsettled of its session is read."""
        ...

    def partitions(self) -> Iterable[CachedPartition]:
        """Return what to read, in this order."""
        ...

    def finish(self, answers: PartitionAnswers, now_ms: int) -> FetchAnswer:
        """Choose what the answer names; to be called once, with an answer for every partition."""
        ...

    def finish_in_portions(self, answers: PartitionAnswers, now_ms: int) -> LongWork[FetchAnswer]:
        """Do the same for many answers, in `finish`'s place; yields the size of each portion."""
        ...

    def throttled(self) -> FetchAnswer:
        """The answer without partitions, in `finish`'s place: what was read is not for the client now."""
        ...


@dataclass(slots=True, eq=False)
class FetchSession:
    id: int
    privileged: bool
    uses_topic_ids: bool
    created_ms: int
    cached: Partitions
    epoch: int = INITIAL_EPOCH + 1
    last_used_ms: int = 0
    size_when_used: int = 0
    evictable_by_all: bool = False
    watch: SessionWatch | None = None

    def key(self, partition: CachedPartition) -> PartitionKey:
        return _key(partition, self.uses_topic_ids)

    def touch(self, now_ms: int) -> None:
        self.last_used_ms = now_ms
        self.size_when_used = len(self.cached)
        self.evictable_by_all = now_ms - self.created_ms > MIN_EVICTION_AGE_MS

    def evictable_by(self, privileged: bool) -> bool:
        return self.evictable_by_all or (privileged and not self.privileged)

    @property
    def eviction_key(self) -> tuple[bool, int, int]:
        """Less is worth less: a consumer's before a follower's, then by the number of partitions."""
        return (self.privileged, self.size_when_used, self.id)

    def update_in_portions(self, request: FetchRequest, requested: Partitions) -> LongWork[None]:
        count = 0
        for key, partition in requested.items():
            self._name(key, partition)
            count += 1
            if not count % PARTITIONS_AT_ONCE:
                yield PARTITIONS_AT_ONCE
        for topic in request.forgotten_topics_data:
            name = topic.topic_id if self.uses_topic_ids else topic.topic
            for index in topic.partitions:
                self._forget((name, index))
                count += 1
                if not count % PARTITIONS_AT_ONCE:
                    yield PARTITIONS_AT_ONCE

    def _name(self, key: PartitionKey, partition: CachedPartition) -> None:
        known = self.cached.get(key)
        if known is None:
            self.cached[key] = partition
        else:
            known.request = partition.request
        if self.watch is not None:
            self.watch.named(key)

    def _forget(self, key: PartitionKey) -> None:
        if self.cached.pop(key, None) is not None and self.watch is not None:
            self.watch.forgotten(key)


def requested_in_portions(request: FetchRequest, uses_topic_ids: bool, topic_names: TopicNames) -> LongWork[Partitions]:
    """A partition that is named twice counts once, as it was named last. Yields the size of each portion."""
    partitions: Partitions = {}
    count = 0
    for topic in request.topics:
        topic_id = topic.topic_id
        name = topic_names(topic_id) if uses_topic_ids else topic.topic
        key = topic_id if uses_topic_ids else topic.topic
        for partition in topic.partitions:
            index = partition.partition
            partitions[key, index] = CachedPartition(name, topic_id, index, partition)
            count += 1
            if not count % PARTITIONS_AT_ONCE:
                yield PARTITIONS_AT_ONCE
    return partitions


class _ContextInPortions(ABC):
    __slots__ = ()

    @abstractmethod
    def finish_in_portions(self, answers: PartitionAnswers, now_ms: int) -> LongWork[FetchAnswer]: ...

    def finish(self, answers: PartitionAnswers, now_ms: int) -> FetchAnswer:
        return whole(self.finish_in_portions(answers, now_ms))

    def throttled(self) -> FetchAnswer:
        """No session is opened for it."""
        return FetchAnswer(ErrorCode.NONE, INVALID_SESSION_ID)


@dataclass(slots=True, eq=False)
class SessionlessContext(_ContextInPortions):
    """The context of a fetch without a session reads what the request lists and remembers nothing."""

    requested: Partitions
    watched: None = None

    def partitions(self) -> Iterable[CachedPartition]:
        return self.requested.values()

    def finish_in_portions(self, answers: PartitionAnswers, now_ms: int) -> LongWork[FetchAnswer]:
        yield from ()
        return FetchAnswer(ErrorCode.NONE, INVALID_SESSION_ID, answers)


@dataclass(slots=True, eq=False)
class ErrorContext(_ContextInPortions):
    """The request named a session that cannot serve it."""

    error_code: ErrorCode
    watched: None = None

    def partitions(self) -> Iterable[CachedPartition]:
        return ()

    def finish_in_portions(self, answers: PartitionAnswers, now_ms: int) -> LongWork[FetchAnswer]:
        yield from ()
        return FetchAnswer(self.error_code, INVALID_SESSION_ID)


@dataclass(slots=True, eq=False)
class FullContext(_ContextInPortions):
    """Answers every partition and opens a session for them, where there is room for one."""

    sessions: FetchSessionCache
    requested: Partitions
    uses_topic_ids: bool
    from_follower: bool
    watched: None = None

    def partitions(self) -> Iterable[CachedPartition]:
        return self.requested.values()

    def finish_in_portions(self, answers: PartitionAnswers, now_ms: int) -> LongWork[FetchAnswer]:
        """The session is opened at the end: others may take its room before, and none is taken for half of it."""
        cached: Partitions = {}
        for number, (partition, data) in enumerate(answers, 1):
            partition.update_response(data)
            cached[_key(partition, self.uses_topic_ids)] = partition
            if not number % PARTITIONS_AT_ONCE:
                yield PARTITIONS_AT_ONCE
        session = self.sessions.open(
            privileged=self.from_follower,
            uses_topic_ids=self.uses_topic_ids,
            size=len(answers),
            now_ms=now_ms,
        )
        if session is not None:
            session.cached = cached
            self.sessions.partitions += len(cached)
            session.touch(now_ms)
        yield from self.sessions.let_go()
        return FetchAnswer(ErrorCode.NONE, INVALID_SESSION_ID if session is None else session.id, answers)


@dataclass(slots=True, eq=False)
class IncrementalContext(_ContextInPortions):
    """The context of an incremental fetch reads what the session holds, or what is unsettled, and answers changes.

    A partition that gave records goes to the end of the order, so that the next request's bytes go to others first.
    """

    session: FetchSession
    request_epoch: int
    topic_names: TopicNames

    @property
    def watched(self) -> WatchedContext | None:
        return None if self.session.watch is None else WatchedContext(self, self.session, self.session.watch)

    @property
    def is_overtaken(self) -> bool:
        """A request with the same session came on another connection while this one waited."""
        return self.session.epoch != next_epoch(self.request_epoch)

    def partitions(self) -> Iterable[CachedPartition]:
        session = self.session
        if session.watch is None:
            wanted: Iterable[CachedPartition] = session.cached.values()
        else:
            wanted = [session.cached[key] for key in session.watch.unsettled()]
        for partition in wanted:
            if partition.topic is None:
                partition.topic = self.topic_names(partition.topic_id)
            yield partition

    def finish_in_portions(self, answers: PartitionAnswers, now_ms: int) -> LongWork[FetchAnswer]:
        session = self.session
        changed = []
        given = []
        for start in range(0, len(answers), PARTITIONS_AT_ONCE):
            if start:
                yield PARTITIONS_AT_ONCE
            if self.is_overtaken:
                break
            cached = session.cached
            for answer in answers[start : start + PARTITIONS_AT_ONCE]:
                partition, data = answer
                if not partition.update_response(data):
                    continue
                changed.append(answer)
                if data.records_size > 0:
                    key = session.key(partition)
                    given.append(key)
                    if key in cached:
                        cached[key] = cached.pop(key)
        if self.is_overtaken:
            return FetchAnswer(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id)
        if session.watch is not None:
            session.watch.answered(given)
        return FetchAnswer(ErrorCode.NONE, session.id, changed)

    def throttled(self) -> FetchAnswer:
        error = ErrorCode.INVALID_FETCH_SESSION_EPOCH if self.is_overtaken else ErrorCode.NONE
        return FetchAnswer(error, self.session.id)


@dataclass(slots=True, eq=False)
class WatchedContext:
    """A request of a follower's session, as long as no other one speaks for it."""

    context: IncrementalContext
    session: FetchSession
    watch: SessionWatch

    @property
    def is_overtaken(self) -> bool:
        """A later request speaks for the session, or it is closed: what is read for this one says nothing any more."""
        return self.watch.is_closed or self.context.is_overtaken

    def was_read(
        self, partition: CachedPartition, hosted: Partition, data: FetchPartitionData, replica_id: int
    ) -> None:
        """Watch what was read; at once behind the read, so that no change is missed."""
        key = self.session.key(partition)
        if not self.is_overtaken and self.session.cached.get(key) is partition:
            self.watch.was_read(key, hosted, data, replica_id, partition.request.fetch_offset)


@dataclass(slots=True, eq=False)
class FetchSessionCache:
    """A broker has at most `max_slots` sessions (`max.incremental.fetch.session.cache.slots`).

    Unlike in Kafka, there is a bound for what they hold together, too: of those that a new one may replace, the largest
    gives way.
    """

    rng: Random
    max_slots: int = 1000
    max_partitions: int = MOST_PARTITIONS
    evictions: int = 0
    partitions: int = 0
    _by_id: dict[int, FetchSession] = field(default_factory=dict)
    """Sessions are in the order of their last use, the longest unused first."""
    _closed: list[SessionWatch] = field(default_factory=list)
    """Closed sessions of which something may still be watched."""

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, session_id: int) -> FetchSession | None:
        return self._by_id.get(session_id)

    def new_context(
        self,
        request: FetchRequest,
        version: int,
        topic_names: TopicNames,
        now_ms: int,
        *,
        from_follower: bool = False,
    ) -> FetchContext:
        return whole(self.new_context_in_portions(request, version, topic_names, now_ms, from_follower=from_follower))

    def new_context_in_portions(
        self,
        request: FetchRequest,
        version: int,
        topic_names: TopicNames,
        now_ms: int,
        *,
        from_follower: bool = False,
    ) -> LongWork[FetchContext]:
        """Do the same for a large request; yields the size of each portion. A request that comes in between with the
        epoch that this one named is refused: the session is in the next epoch from the beginning.
        """
        context = yield from self._new_context(request, version, topic_names, now_ms, from_follower=from_follower)
        if isinstance(context, IncrementalContext) and context.session.watch is not None:
            yield from context.session.watch.let_go()
        if self._closed:
            yield from self.let_go()
        return context

    def _new_context(
        self, request: FetchRequest, version: int, topic_names: TopicNames, now_ms: int, *, from_follower: bool
    ) -> LongWork[FetchContext]:
        uses_topic_ids = version >= TOPIC_IDS_SINCE_VERSION
        requested: Partitions = {}  # as in most requests of a session
        if request.topics:
            requested = yield from requested_in_portions(request, uses_topic_ids, topic_names)
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            # A full request closes the session that it names; with the final epoch it does not open another.
            self._close(request.session_id)
            if request.session_epoch == FINAL_EPOCH:
                return SessionlessContext(requested)
            return FullContext(self, requested, uses_topic_ids, from_follower)
        session = self._by_id.get(request.session_id)
        if session is None:
            return ErrorContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return ErrorContext(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return ErrorContext(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = next_epoch(session.epoch)
        names_partitions = bool(requested or request.forgotten_topics_data)
        if names_partitions and not (yield from self._update(session, request, requested)):
            return ErrorContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if not session.cached:
            self._close(session.id)
            return SessionlessContext(requested)
        session.touch(now_ms)
        if session.watch is not None:
            session.watch.begin(session.cached, request.replica_state.replica_epoch, now_ms)
        self._by_id[session.id] = self._by_id.pop(session.id)
        return IncrementalContext(session, request.session_epoch, topic_names)

    def open(self, *, privileged: bool, uses_topic_ids: bool, size: int, now_ms: int) -> FetchSession | None:
        """A new, empty session; None where every slot is taken by one that is worth more. `let_go` is to follow."""
        if len(self._by_id) >= self.max_slots and not self._evict(privileged, size, now_ms):
            return None
        if size > MOST_PARTITIONS_OF_ONE or not self._make_room(privileged, size):
            return None
        session_id = self.rng.randint(1, MAX_SESSION_ID)
        while session_id in self._by_id:
            session_id = self.rng.randint(1, MAX_SESSION_ID)
        session = FetchSession(session_id, privileged, uses_topic_ids, now_ms, {})
        if privileged:
            session.watch = SessionWatch()
        self._by_id[session_id] = session
        return session

    def _update(self, session: FetchSession, request: FetchRequest, requested: Partitions) -> LongWork[bool]:
        """Return whether the session is still there: it is closed where there is no room for what is new in it."""
        before = counted = len(session.cached)
        for steps in session.update_in_portions(request, requested):
            self.partitions += len(session.cached) - counted
            counted = len(session.cached)
            yield steps
            if self._by_id.get(session.id) is not session:
                return False  # closed meanwhile, and what it held is counted no more
        self.partitions += len(session.cached) - counted
        size = len(session.cached)
        if size > before and (size > MOST_PARTITIONS_OF_ONE or not self._make_room(session.privileged, 0, session)):
            self._close(session.id)
            return False
        return True

    def _make_room(self, privileged: bool, size: int, growing: FetchSession | None = None) -> bool:
        """Return whether so many more partitions find room, once larger sessions gave theirs up: consumers' first.

        growing: a session that has them already.
        """
        wanted = privileged, size if growing is None else len(growing.cached)
        while self.partitions + size > self.max_partitions:
            others = [each for each in self._by_id.values() if privileged or not each.privileged]
            greediest = max(others, key=lambda each: (not each.privileged, len(each.cached)), default=None)
            if greediest is None or greediest is growing:
                return False
            if (greediest.privileged, len(greediest.cached)) < wanted and greediest.privileged == privileged:
                return False
            self._close(greediest.id)
            self.evictions += 1
        return True

    def _close(self, session_id: int) -> None:
        session = self._by_id.pop(session_id, None)
        if session is not None:
            self.partitions -= len(session.cached)
            if session.watch is not None:
                session.watch.close()
                self._closed.append(session.watch)

    def let_go(self) -> LongWork[None]:
        """Let go of what closed sessions watched. Several tasks may do so at the same time."""
        while self._closed:
            watch = self._closed[-1]
            yield from watch.let_go()
            if self._closed and self._closed[-1] is watch:
                self._closed.pop()

    def _evict(self, privileged: bool, size: int, now_ms: int) -> bool:
        oldest = next(iter(self._by_id.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > MIN_EVICTION_AGE_MS:
            victim = oldest
        else:
            candidates = [session for session in self._by_id.values() if session.evictable_by(privileged)]
            if not candidates:
                return False
            victim = min(candidates, key=lambda session: session.eviction_key)
            if (privileged, size, 0) < victim.eviction_key:
                return False
        self._close(victim.id)
        self.evictions += 1
        return True
