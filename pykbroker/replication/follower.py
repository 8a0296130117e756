"""Following one leader broker: what to fetch from it, and what to do with its answers.

Pure: `Follower` makes requests and takes responses, whoever carries them. Kafka's counterparts are
`AbstractFetcherThread`, `ReplicaFetcherThread` and `RemoteLeaderEndPoint`. A log that took another way is found by the
diverging epochs in Fetch answers (KIP-595): the leader names an epoch and its end, and the follower cuts off what it
has beyond. Where the leader's log begins behind the follower's end, the follower's log begins anew there. What is asked
in one request stands in the leader's fetch session (`fetch_session_handler`); the next one names only what changed, so
that a thousand quiet partitions cost nothing.

Times are those of a monotonic clock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykbroker.storage.files.errors import FileError, NoRoom
from pykbroker.storage.log.truncation import Truncation
from pykbroker.storage.segments.trusted_batches import PIECE_BYTES, pieces_of_batches

from .due_truncation import DueTruncation
from .fetch_session_handler import FetchSessionHandler
from .fetch_settings import FetchSettings
from .followed_partition import FollowedPartition, FollowingState, PartitionKey
from .partition import Partition
from .quotas import ReplicaQuota
from .reads import NO_EPOCH, OffsetSpec

logger = logging.getLogger(__name__)

NAMED_AT_ONCE = 1000
"""One request names so many partitions at most, and the next ones, which follow at once, the others. To name one, here
and at the leader, takes some ten microseconds of the event loop."""
_FIRST_BACKOFF_MS = 5
"""A follower waits so long where leader and follower do not know the same metadata; twice as long each time, up to
`replica.fetch.backoff.ms`.
"""
_PARTITION_COST_BYTES = 4096
"""Beside the bytes of its records, in the count of what a turn has taken."""


class Follower:
    """This node follows these of the partitions that one broker leads.

    on_disk_failure: is told what happened to a partition's log. For one that is lost by it, `unfollow` follows.
    defer_truncations: they are to be carried out by whoever carries the requests.
    """

    def __init__(
        self,
        replica_id: int,
        settings: FetchSettings,
        on_disk_failure: Callable[[Partition, FileError], None],
        throttle: ReplicaQuota | None = None,
        *,
        defer_truncations: bool = False,
    ) -> None:
        self._replica_id = replica_id
        self._defer_truncations = defer_truncations
        self._due: list[DueTruncation] = []
        self._settings = settings
        self._on_disk_failure = on_disk_failure
        self._throttle = throttle or ReplicaQuota()
        self._session = FetchSessionHandler()
        self._followed: dict[PartitionKey, FollowedPartition] = {}
        self._changed: dict[PartitionKey, None] = {}
        """The session has to be told of these."""
        self._is_begun = False
        """All that is followed was put into `_changed` for a new session, of which no request has come yet."""
        self._in_session: dict[PartitionKey, None] = {}
        self._delayed: dict[PartitionKey, None] = {}
        self._seeking: dict[PartitionKey, None] = {}

    def __len__(self) -> int:
        return len(self._followed)

    def __contains__(self, partition: Partition) -> bool:
        followed = self._followed.get((partition.topic_id, partition.index))
        return followed is not None and followed.partition is partition

    @property
    def partitions(self) -> Iterable[FollowedPartition]:
        return self._followed.values()

    # Whom to follow

    def follow(self, partition: Partition) -> None:
        """Follow the partition from its log's end on, unless it is followed in its leader epoch already."""
        key = partition.topic_id, partition.index
        known = self._followed.get(key)
        if known is not None and known.partition is partition and known.leader_epoch == partition.leader_epoch:
            return
        self._drop(key)
        followed = FollowedPartition(partition, partition.leader_epoch)
        self._followed[key] = followed
        self._changed[key] = None

    def unfollow(self, partition: Partition) -> None:
        key = partition.topic_id, partition.index
        if partition in self:
            self._drop(key)
            self._changed[key] = None

    def _drop(self, key: PartitionKey) -> None:
        self._followed.pop(key, None)
        self._delayed.pop(key, None)
        self._seeking.pop(key, None)

    # Fetching

    def lacking_flush(self, now_ms: int) -> list[Partition]:
        """Return the partitions that are to be flushed before the next request, because of `flush.messages`: the leader
        counts on what a request tells. `next_request` is for the same now_ms, when there is nothing any more.
        """
        self._end_delays(now_ms)
        changed = [self._followed[key] for key in self._next_changes() if key in self._followed]
        return [each.partition for each in changed if each.is_ready and each.partition.lacks_flush]

    def not_flushed(self, partition: Partition, now_ms: int) -> None:
        """The partition is not asked for for a while."""
        followed = self._followed.get((partition.topic_id, partition.index))
        if followed is not None and followed.partition is partition:
            self._delay(followed, now_ms)

    def next_request(self, now_ms: int, broker_epoch: int) -> FetchRequest | None:
        """Return None where there is nothing to ask. In version 13 or later; `answered` or `failed` is to follow."""
        self._end_delays(now_ms)
        self._hold_back(now_ms)
        session = self._session
        if session.is_full and not self._is_begun:
            self._begin_session()
        waits = len(self._changed) <= NAMED_AT_ONCE
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=self._replica_id, replica_epoch=broker_epoch),
            max_wait_ms=self._settings.wait_max_ms if waits else self._wait_between_requests_ms(),
            min_bytes=self._settings.min_bytes,
            max_bytes=self._settings.response_max_bytes,
            session_id=session.id,
            session_epoch=session.epoch,
        )
        self._name_changes(request, now_ms)
        if not self._in_session and not request.forgotten_topics_data:
            return None
        self._is_begun = False
        return request

    @property
    def has_more_to_tell(self) -> bool:
        """Another request is due at once, even where this one has nothing to ask."""
        return bool(self._changed)

    def _next_changes(self) -> list[PartitionKey]:
        """Return what the next request tells of; the rest waits for those behind it."""
        return list(islice(self._changed, NAMED_AT_ONCE))

    def _wait_between_requests_ms(self) -> int:
        """Return how long to wait between requests; None where more is to be named at once.

        Without a session each request begins anew with those that have waited longest, and all together they take the
        time of one.
        """
        if not self._session.is_refused:
            return 0
        return self._settings.wait_max_ms * NAMED_AT_ONCE // len(self._changed)

    def _begin_session(self) -> None:
        self._is_begun = True
        self._in_session.clear()
        for key, followed in self._followed.items():
            followed.asked = None
            self._changed[key] = None

    def _name_changes(self, request: FetchRequest, now_ms: int) -> None:
        """Return what is new in the session, and what is not in it any more."""
        topics: dict[bytes, FetchTopic] = {}
        forgotten: dict[bytes, ForgottenTopic] = {}
        for key in self._next_changes():
            del self._changed[key]
            topic_id, index = key
            followed = self._followed.get(key)
            asked = self._ask(followed, now_ms) if followed is not None and followed.is_ready else None
            if followed is not None:
                if asked is not None and asked == followed.asked and key in self._in_session:
                    continue
                followed.asked = asked
            if asked is not None:
                self._in_session[key] = None
                topic = topics.get(topic_id)
                if topic is None:
                    topic = topics[topic_id] = FetchTopic(topic_id=topic_id)
                topic.partitions.append(asked)
            elif key in self._in_session:
                del self._in_session[key]
                forgotten.setdefault(topic_id, ForgottenTopic(topic_id=topic_id)).partitions.append(index)
        request.topics = list(topics.values())
        request.forgotten_topics_data = list(forgotten.values())

    def _ask(self, followed: FollowedPartition, now_ms: int) -> FetchPartition | None:
        partition = followed.partition
        log = partition.log
        latest_epoch = log.latest_epoch
        if not followed.is_begun and latest_epoch is None and log.log_end_offset > partition.high_watermark:
            # Messages of the old formats tell no epochs: only what is replicated is known to be the leader's too.
            offset = partition.high_watermark
            if not self._truncate(followed, offset, "its records tell no leader epochs", now_ms):
                return None
        followed.is_begun = True
        return FetchPartition(
            partition=partition.index,
            current_leader_epoch=followed.leader_epoch,
            fetch_offset=log.log_end_offset,
            last_fetched_epoch=NO_EPOCH if latest_epoch is None else latest_epoch,
            log_start_offset=log.log_start_offset,
            partition_max_bytes=self._settings.max_bytes,
        )

    def answered(self, response: FetchResponse, now_ms: int, wall_clock_ms: int) -> None:
        """Take over what is in it. wall_clock_ms: for new segments."""
        for _ in self.take_answer(response, now_ms, wall_clock_ms):
            pass

    def take_answer(self, response: FetchResponse, now_ms: int, wall_clock_ms: int) -> Iterator[None]:
        """Do as `answered`, in turns: an answer may hold 100,000 small batches. Between two turns everything may
        change, except that nothing is asked before the last one.
        """
        error_code = response.error_code
        was_full = self._session.is_full
        if not self._session.answered(error_code, response.session_id):
            if was_full or error_code not in _SESSION_ERRORS:
                logger.warning("broker refuses to be followed: %s", _error_name(error_code))
                self._delay_all(now_ms)
            return
        taken_bytes = 0
        for topic in response.responses:
            topic_id = bytes(topic.topic_id)
            for data in topic.partitions:
                yield from self._take_partition((topic_id, data.partition_index), data, now_ms, wall_clock_ms)
                # As if its batches were all small.
                taken_bytes += _PARTITION_COST_BYTES + 8 * len(data.records or b"")  # type: ignore[arg-type]
                if taken_bytes >= PIECE_BYTES:
                    taken_bytes = 0
                    yield

    def interrupted(self) -> None:
        """The answer is not waited for any more: everything is asked for again, at once."""
        self._session.broken()

    def failed(self, now_ms: int) -> None:
        """There is no answer: the connection broke, or there was none."""
        self._session.broken()
        self._delay_all(now_ms)

    def _take_partition(
        self, key: PartitionKey, data: PartitionData, now_ms: int, wall_clock_ms: int
    ) -> Iterator[None]:
        followed = self._followed.get(key)
        # What was truncated, moved or begun anew since the question was asked is not answered by this.
        if followed is None or not followed.is_ready or not followed.is_as_it_was_asked:
            return
        if data.error_code:
            self._refused(followed, data.error_code, now_ms)
        elif data.diverging_epoch.epoch >= 0:
            self._diverged(followed, data.diverging_epoch, now_ms)
        else:
            yield from self._append(followed, data, now_ms, wall_clock_ms)

    def _append(
        self, followed: FollowedPartition, data: PartitionData, now_ms: int, wall_clock_ms: int
    ) -> Iterator[None]:
        partition = followed.partition
        records = data.records
        has_news = False
        followed.refusals = 0
        if records:
            assert isinstance(records, bytes | memoryview), "what is received are bytes"
            if self._begins_within_a_batch(followed, data, records, now_ms, wall_clock_ms):
                return
            try:
                for number, piece in enumerate(pieces_of_batches(records)):
                    if number:
                        end_offset = partition.log.log_end_offset
                        yield
                        is_followed = self._followed.get(followed.key) is followed
                        if not is_followed or partition.log.log_end_offset != end_offset:
                            return  # the rest is not for this log any more
                    if partition.append_as_follower(piece) is not None:
                        has_news = True
                        self._changed[followed.key] = None
            except ApiError as rejected:
                logger.error(
                    "%s: cannot append at offset %d: %s", _name(partition), partition.log.log_end_offset, rejected
                )
                self._delay(followed, now_ms)
                return
            except FileError as failure:
                self._disk_failed(followed, failure, now_ms)
                return
            self._throttle.note(partition, len(records), now_ms)
        has_news |= partition.follow_watermarks(data.high_watermark, data.log_start_offset)
        followed.lag = max(data.high_watermark - partition.log.log_end_offset, 0)
        if has_news:
            self._changed[followed.key] = None
            partition.notify()

    def _begins_within_a_batch(
        self,
        followed: FollowedPartition,
        data: PartitionData,
        records: bytes | memoryview,
        now_ms: int,
        wall_clock_ms: int,
    ) -> bool:
        """The leader's log may start in the middle of a batch, and sends the whole: for that the log, which is empty,
        begins earlier, and the answer is taken over when it does.
        """
        log = followed.partition.log
        first_offset = int.from_bytes(records[:8], "big", signed=True)
        if log.log_start_offset != log.log_end_offset or not 0 <= first_offset < log.log_end_offset:
            return False
        data.records = bytes(records)  # the buffer that they stand in is another's soon

        def take_over() -> None:
            for _ in self._append(followed, data, now_ms, wall_clock_ms):
                pass

        self._begin_anew(followed, first_offset, take_over, now_ms, wall_clock_ms)
        return True

    # What goes wrong

    def _refused(self, followed: FollowedPartition, error_code: int, now_ms: int) -> None:
        match error_code:
            case ErrorCode.OFFSET_OUT_OF_RANGE:
                followed.state = FollowingState.SEEKING_END
                self._seeking[followed.key] = None
                self._changed[followed.key] = None
            case ErrorCode.FENCED_LEADER_EPOCH:
                logger.info(
                    "%s: the leader is in a later epoch than %d; waiting for the metadata",
                    _name(followed.partition),
                    followed.leader_epoch,
                )
                self._stop(followed)
            case _:
                level = logging.DEBUG if error_code in _PASSING else logging.ERROR
                logger.log(level, "%s: the leader answers %s", _name(followed.partition), _error_name(error_code))
                self._delay(followed, now_ms, self._soon_ms(followed, now_ms) if error_code in _PASSING else None)

    def _diverged(self, followed: FollowedPartition, diverging: EpochEndOffset, now_ms: int) -> None:
        """The leader's largest epoch up to this log's last one ends there: what is behind is not in its log."""
        epoch, end_offset = diverging.epoch, diverging.end_offset
        log = followed.partition.log
        own_epoch, own_end_offset = log.end_offset_for_epoch(epoch)
        if own_epoch == epoch:
            offset = min(own_end_offset, end_offset)
        elif own_epoch >= 0:
            # The next answer tells more: about an epoch that both know.
            offset = own_end_offset
        else:
            offset = end_offset
        why = f"the leader's epoch {epoch} ends at {end_offset}"
        self._truncate(followed, min(offset, log.log_end_offset), why, now_ms)

    # Truncations

    def truncations_due(self) -> list[DueTruncation]:
        """Each is handed out once, to be carried out at once, and told of by `truncated`."""
        due, self._due = self._due, []
        return due

    def truncated(self, due: DueTruncation, failure: FileError | None, now_ms: int) -> None:
        """The truncation is done, or the disk has refused it."""
        followed = due.followed
        if followed.state is not FollowingState.TRUNCATING or self._followed.get(followed.key) is not followed:
            return
        if failure is not None:
            followed.state = due.resumes
            if due.resumes is not FollowingState.FETCHING:
                self._seeking[followed.key] = None
            self._disk_failed(followed, failure, now_ms)
            return
        followed.state = FollowingState.FETCHING
        self._changed[followed.key] = None
        followed.partition.truncated()
        due.then()
        followed.partition.notify()

    def _truncate(self, followed: FollowedPartition, offset: int, why: str, now_ms: int) -> bool:
        """Return whether the truncation is done by now."""
        partition = followed.partition
        log_end_offset, high_watermark = partition.log.log_end_offset, partition.high_watermark

        def tell() -> None:
            if offset < high_watermark:
                logger.error(
                    "%s: truncated from %d to %d, below the high watermark of %d: replicated records are lost; %s",
                    _name(partition),
                    log_end_offset,
                    offset,
                    high_watermark,
                    why,
                )
            else:
                logger.info("%s: truncated from %d to %d; %s", _name(partition), log_end_offset, offset, why)

        return self._begin(followed, lambda: partition.begin_truncation(offset), tell, now_ms)

    def _begin_anew(
        self, followed: FollowedPartition, offset: int, then: Callable[[], None], now_ms: int, wall_clock_ms: int
    ) -> None:
        partition = followed.partition

        def begun() -> None:
            partition.begun_anew()
            then()

        self._begin(followed, lambda: partition.begin_anew(offset, wall_clock_ms), begun, now_ms)

    def _begin(
        self,
        followed: FollowedPartition,
        begin: Callable[[], Truncation | None],
        then: Callable[[], None],
        now_ms: int,
    ) -> bool:
        try:
            due = DueTruncation(followed, begin(), followed.state, then)
        except FileError as failure:
            self._disk_failed(followed, failure, now_ms)
            return False
        followed.state = FollowingState.TRUNCATING
        self._seeking.pop(followed.key, None)
        if self._defer_truncations and due.truncation is not None:
            self._due.append(due)
            return False
        self.truncated(due, due.run(), now_ms)
        return followed.is_ready

    def _disk_failed(self, followed: FollowedPartition, failure: FileError, now_ms: int) -> None:
        if isinstance(failure, NoRoom):
            self._delay(followed, now_ms)
        else:
            self._stop(followed)
        self._on_disk_failure(followed.partition, failure)

    def _stop(self, followed: FollowedPartition) -> None:
        followed.state = FollowingState.STOPPED
        self._seeking.pop(followed.key, None)
        self._changed[followed.key] = None

    # Out of range

    def next_offsets_request(self) -> ListOffsetsRequest | None:
        """Return what is asked before the next fetch, of partitions whose leader has nothing where this log ends."""
        topics: dict[str, ListOffsetsTopic] = {}
        count = 0
        for key in self._seeking:
            followed = self._followed[key]
            if followed.delayed_until_ms is not None:
                continue
            count += 1
            if count > NAMED_AT_ONCE:
                break
            name = followed.partition.topic
            is_end = followed.state is FollowingState.SEEKING_END
            topics.setdefault(name, ListOffsetsTopic(name=name)).partitions.append(
                ListOffsetsPartition(
                    partition_index=followed.partition.index,
                    current_leader_epoch=followed.leader_epoch,
                    timestamp=OffsetSpec.LATEST if is_end else OffsetSpec.EARLIEST,
                )
            )
        return ListOffsetsRequest(replica_id=self._replica_id, topics=list(topics.values())) if topics else None

    def offsets_answered(self, response: ListOffsetsResponse, now_ms: int, wall_clock_ms: int) -> None:
        sought = {}
        for key in self._seeking:
            followed = self._followed[key]
            sought[followed.partition.topic, followed.partition.index] = followed
        for topic in response.topics:
            for answer in topic.partitions:
                asked = sought.get((topic.name, answer.partition_index))
                if asked is not None:
                    self._take_offset(asked, answer, now_ms, wall_clock_ms)

    def _take_offset(
        self, followed: FollowedPartition, answer: ListOffsetsPartitionResponse, now_ms: int, wall_clock_ms: int
    ) -> None:
        if answer.error_code:
            self._refused(followed, answer.error_code, now_ms)
            return
        partition = followed.partition
        log_end_offset = partition.log.log_end_offset
        if followed.state is FollowingState.SEEKING_END:
            if answer.offset >= log_end_offset:
                followed.state = FollowingState.SEEKING_START
                return
            self._truncate(followed, answer.offset, f"the leader's log ends at {answer.offset}", now_ms)
        elif answer.offset > log_end_offset:
            tell = partial(
                logger.warning,
                "%s: begins anew at %d, where the leader's log does: this one ended at %d",
                _name(partition),
                answer.offset,
                log_end_offset,
            )
            self._begin_anew(followed, answer.offset, tell, now_ms, wall_clock_ms)
        else:
            followed.state = FollowingState.FETCHING
            del self._seeking[followed.key]
            self._changed[followed.key] = None

    # Waiting

    def next_deadline_ms(self) -> int | None:
        """Return when to ask again where `next_request` has nothing to ask now."""
        deadlines = [self._followed[key].delayed_until_ms for key in self._delayed]
        return min((each for each in deadlines if each is not None), default=None)

    def _soon_ms(self, followed: FollowedPartition, now_ms: int) -> int:
        """Producers wait until all follow a new leader, who may hear of it a moment after this node."""
        followed.refusals += 1
        return now_ms + min(_FIRST_BACKOFF_MS << min(followed.refusals - 1, 20), self._settings.backoff_ms)

    def _delay_all(self, now_ms: int) -> None:
        for followed in self._followed.values():
            self._delay(followed, now_ms)

    def _delay(self, followed: FollowedPartition, now_ms: int, until_ms: int | None = None) -> None:
        if followed.delayed_until_ms is None:
            followed.delayed_until_ms = now_ms + self._settings.backoff_ms if until_ms is None else until_ms
            self._delayed[followed.key] = None
            self._changed[followed.key] = None

    def _end_delays(self, now_ms: int) -> None:
        for key in list(self._delayed):
            followed = self._followed[key]
            if followed.delayed_until_ms is not None and followed.delayed_until_ms <= now_ms:
                followed.delayed_until_ms = None
                del self._delayed[key]
                self._changed[key] = None

    def _hold_back(self, now_ms: int) -> None:
        """A replica that is in sync is not held back: it would fall out of the ISR."""
        for key in self._next_changes():
            followed = self._followed.get(key)
            if followed is None or followed.is_in_sync or not followed.is_ready:
                continue
            if self._throttle.holds_back(followed.partition, now_ms):
                self._delay(followed, now_ms, self._throttle.free_at_ms(now_ms))


_SESSION_ERRORS = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)

_ERROR_CODES = frozenset(ErrorCode)

_PASSING = (
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.OFFSET_NOT_AVAILABLE,
)
"""Right after a change the two do not know the same metadata."""


def _error_name(code: int) -> str:
    return ErrorCode(code).name if code in _ERROR_CODES else f"error {code}"


def _name(partition: Partition) -> str:
    return f"{partition.topic}-{partition.index}"
