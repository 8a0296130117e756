"""The coordinator driver runs one shard for each partition of its internal topic that this node leads.

Kafka's counterpart is `CoordinatorRuntime`. What is coordinated is said by `group_coordinator` and
`transaction_coordinator`. The rules are these:

- A shard lives in one partition for one leader epoch. When the partition becomes led here its log is read first
  (`coordinator_loading`), while other shards are served; when it is led elsewhere the shard is closed, and whoever
  waits there learns NOT_COORDINATOR.
- A step of a shard is a request, or what is due by time. Its records are appended to the partition as one batch, and
  steps of one turn of the loop may share a batch (`shared_appends`).
- The answers of a step go out once the partition's high watermark is past its records and all that was appended before
  them, so nobody is told what could still be lost (`led_shard`). After `commit_timeout_ms` the answers are given up,
  and the effects are not.
- Where an append may be refused, a step is a trial, which is taken back with its records (`append_doubt`). A refusal
  that nobody expected leaves the shard ahead of its log; then the shard is closed and the log read again.
- Timers pause while it is certain that no record could be appended, and are tried again with a back-off where one was
  refused. Steps that nobody asks for wait as postponed ones, in their order.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import chain, islice
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

import trio

from pykbroker.java_hash import abs_java_hash
from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.topics import CreatableTopic
from pykbroker.replication.appended import Appended
from pykbroker.replication.partition import ACKS_ALL, Partition
from pykbroker.state_machine import Result, Token
from pykbroker.storage.files.errors import CorruptLog
from pykbroker.storage.log.log import AppendOrigin, AppendResult
from pykbroker.storage.segments.verification import Check

from ..runtime.causes import current_cause, tell_cause
from ..runtime.clock import Clock
from ..runtime.signal import Signal
from ..runtime.threads import Threads
from .append_doubt import LONGEST_RETRY_MS
from .cause_history import NOBODY, Asked, CauseHistory, origin_of
from .coordinated_shard import CoordinatedShard, LoggedRecord
from .coordinator_loading import CoordinatorLoading
from .coordinator_log import Replayer, encode_batches
from .leadership import Lead
from .led_shard import CoordinatorState, LedShard, MakeStep, ShardT
from .marker import Marker
from .shared_appends import AT_ONCE, HeldStep, SharedAppends

_log = logging.getLogger(__name__)

RequestT = TypeVar("RequestT")
ContextT = TypeVar("ContextT")

_ERRORS_OF_APPENDING = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
"""What clients are told of an append that was refused; anything else is UNKNOWN_SERVER_ERROR."""

# To get a member from its enumeration takes Python 3.11 as long as a call.
_ACTIVE: Final = CoordinatorState.ACTIVE
_COORDINATOR: Final = AppendOrigin.COORDINATOR
_POSTPONED_AT_ONCE = 100
_OWN_RECORDS_AT_ONCE = 500
"""Steps of one shard, and what they may write, before others have their turn."""
_SHOWN_CAUSE_CHARACTERS = 500


class Replicas(Protocol):
    """The replicas are what is needed here of the node's replica manager."""

    def append(
        self,
        partition: Partition,
        records: bytes | memoryview,
        now_ms: int,
        required_acks: int,
        origin: AppendOrigin = ...,
    ) -> AppendResult: ...

    async def flush(self, partition: Partition, end_offset: int) -> bool: ...
    async def verify(self, partition: Partition, check: Check) -> None: ...
    def quarantine(self, partition: Partition, damage: CorruptLog) -> None: ...


class CoordinatorDriver(ABC, Generic[ShardT, RequestT, ContextT]):
    """The driver has the shards of one kind of coordinator on a node. It is to be subscribed to its topic at the
    replica manager.

    image: the newest committed metadata; the number of partitions in it decides where a key lives. ahead_ms: by how
    much the shards' monotonic clock is ahead of the node's.
    """

    topic: ClassVar[str]

    def __init__(
        self,
        replicas: Replicas,
        *,
        image: Callable[[], MetadataImage],
        clock: Clock,
        threads: Threads,
        commit_timeout_ms: int,
        append_linger_ms: int = AT_ONCE,
        ahead_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self._commit_timeout_ms = commit_timeout_ms
        self._replicas = replicas
        self._image = image
        self._clock = clock
        self._ahead_ms = ahead_ms
        self.history = CauseHistory()
        self._shards: dict[int, LedShard[ShardT]] = {}
        self._loading = CoordinatorLoading[ShardT](replicas, threads, self.decode_record)
        self._work = Signal()
        self._did_what_is_due = Signal()
        self._next_wake_ms = math.inf
        self._last_token = 0
        self._held: SharedAppends[LedShard[ShardT]] = SharedAppends(append_linger_ms, self._append_held)
        self._nursery: trio.Nursery | None = None
        """Where logs are read, and flushes run that answers wait for."""

    # What is coordinated

    @abstractmethod
    def new_shard(self, partition: Partition) -> ShardT:
        """Make the shard of a partition that is led here from now on, with nothing in it."""

    @abstractmethod
    def decode_record(self, key: bytes | None, value: bytes | None) -> LoggedRecord:
        """Raises BadRecord."""

    @abstractmethod
    def describe(self, shard: ShardT) -> str:
        """Return what there is in the shard, such as "3 groups"; empty for nothing."""

    @abstractmethod
    def new_topic(self, most_replicas: int) -> CreatableTopic:
        """Return the topic as Kafka creates it, but with no more replicas than that: one node works out of the box."""

    def carry_out(self, led: LedShard[ShardT], effect: object) -> None:
        """Carry out an effect of a shard whose records are committed."""
        raise AssertionError(f"no effects are known here, and {effect} is one")

    def level_of(self, result: Result[Any], *, is_history: bool) -> int:
        """Return the level at which the cause of a step is logged."""
        return logging.INFO

    def is_history(self, result: Result[Any]) -> bool:
        """Tell whether the causes of a step are kept for who asks why."""
        return True

    def logged(self, shard: ShardT) -> Callable[[Any, int], None] | None:
        """Return what is told of each record of the shard that stands in the log, and of its offset, in the order of
        the log; None where nobody wants to know.
        """
        return None

    async def run_beside(self) -> None:
        """Run what else has to run as long as the driver does."""

    # Where a key lives

    def partition_for(self, key: str) -> int | None:
        """The partition of the topic that a key's records are in; None where the topic is missing."""
        topic = self._image().topic(self.topic)
        return None if topic is None else abs_java_hash(key) % len(topic.partitions)

    async def wait_until_active(self, index: int) -> bool:
        """Wait while the partition's log is being read; False where this node does not serve it."""
        while (led := self._shards.get(index)) is not None and led.state is CoordinatorState.LOADING:
            await led.loaded.wait()
        return led is not None and led.state is CoordinatorState.ACTIVE

    def lead_of(self, key: str) -> Lead | None:
        """Return the lead of the partition that a key's records are in, to be had before they are read; None where
        nothing of it is served here.
        """
        index = self.partition_for(key)
        led = None if index is None else self._shards.get(index)
        return None if led is None else Lead(led.partition)

    @property
    def active_partitions(self) -> list[int]:
        return [index for index, led in self._shards.items() if led.state is CoordinatorState.ACTIVE]

    @property
    def loading_partitions(self) -> list[int]:
        return [index for index, led in self._shards.items() if led.state is CoordinatorState.LOADING]

    def shard(self, index: int) -> ShardT | None:
        """The rules and state of an active partition, to look at."""
        led = self._shards.get(index)
        return led.shard if led is not None and led.state is CoordinatorState.ACTIVE else None

    def loaded_timestamp_ms(self, index: int) -> int | None:
        """Return since when the partition is led and served here, by the wall clock; None where it is not."""
        led = self._shards.get(index)
        return None if led is None or led.state is not CoordinatorState.ACTIVE else led.loaded_timestamp_ms

    # Requests

    async def submit(self, key: str, request: RequestT, context: ContextT) -> Any:
        """Return the response to a request about one key. Raises ApiError.

        A caller that is cancelled meanwhile loses the answer, not the effect.
        """
        index = self.partition_for(key)
        if index is None:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        return await self.submit_to_partition(index, request, context)

    async def submit_to_partition(self, index: int, request: RequestT, context: ContextT) -> Any:
        """Return the response of one shard. Raises ApiError."""
        led = self._active(index)
        if isinstance(led, ErrorCode):
            raise ApiError(led)
        token = self._new_token()
        answer = led.await_answer(token)
        try:
            self._handle(led, request, token, context)
            return await answer.wait()
        finally:
            led.forget(token)

    def begin(
        self, key: str, request: RequestT, context: ContextT, then: Callable[[Any, Exception | None], None]
    ) -> None:
        """Submit a request about one key whose answer no task waits for. Raises ApiError where it is refused at once.

        then: is called with the response or with the ApiError, once, and raises nothing (`CalledBack`).
        """
        index = self.partition_for(key)
        led = ErrorCode.NOT_COORDINATOR if index is None else self._active(index)
        if isinstance(led, ErrorCode):
            raise ApiError(led)
        self._last_token += 1
        token = Token(self._last_token)
        led.call_back(token, then)
        try:
            self._handle(led, request, token, context)
        except BaseException:
            led.forget(token)
            raise

    def tell(self, led: LedShard[ShardT], request: RequestT, context: ContextT) -> None:
        """Submit a request whose answer nobody waits to hear; a shard that is closed hears nothing more."""
        if led.state is not CoordinatorState.ACTIVE:
            return
        token = self._new_token()

        def make(shard: ShardT, now_ms: int, timestamp_ms: int) -> Result[Any]:
            return shard.handle(request, token, now_ms, context, timestamp_ms)

        if self.attempt(led, make) is None:
            self.postpone(led, make)

    def complete_transaction(self, index: int, marker: Marker) -> Appended | ErrorCode:
        """A transaction that has records in the partition ends: they count from now on, or never did.

        Returns the marker's append, which is to be committed before anybody hears of it.
        """
        led = self._active(index)
        if isinstance(led, ErrorCode):
            return led
        if not self._append_held(led):
            return ErrorCode.NOT_COORDINATOR
        timestamp_ms = self._clock.now_ms()
        try:
            appended = self._append_batch(led, marker.encode(timestamp_ms), timestamp_ms)
        except ApiError as error:
            return error.code
        led.shard.end_transaction(marker.producer_id, marker.is_commit)
        if not led.is_tidied_up and led.shard.tidy_up() and self._nursery is not None:
            led.is_tidied_up = True
            self._nursery.start_soon(self._tidy_up, led)
        return appended

    async def _tidy_up(self, led: LedShard[ShardT]) -> None:
        """Tidy up beside everything that the shard does, also where it cannot append anything."""
        while led.state is CoordinatorState.ACTIVE and led.shard.tidy_up():
            await trio.lowlevel.checkpoint()
        led.is_tidied_up = False

    def _active(self, index: int) -> LedShard[ShardT] | ErrorCode:
        led = self._shards.get(index)
        if led is not None and led.state is _ACTIVE:
            return led
        if led is None or led.state is CoordinatorState.CLOSED:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def _new_token(self) -> Token:
        self._last_token += 1
        return Token(self._last_token)

    # Steps

    def _handle(self, led: LedShard[ShardT], request: RequestT, token: Token, context: ContextT) -> None:
        now_ms, timestamp_ms, asked = self._clock.monotonic_ms(), self._clock.now_ms(), Asked(request, context)
        if not led.doubt.exists(now_ms):
            result = led.shard.handle(request, token, now_ms + self._ahead_ms(), context, timestamp_ms)
            self._take(led, result, asked, now_ms, timestamp_ms)
        elif self._append_held(led):

            def make(shard: ShardT, now_ms: int, timestamp_ms: int) -> Result[Any]:
                return shard.handle(request, token, now_ms, context, timestamp_ms)

            self._try(led, make, token, asked, now_ms, timestamp_ms)

    def attempt(self, led: LedShard[ShardT], make: MakeStep[ShardT]) -> Result[Any] | None:
        """Make a step that nobody asks for. None where nothing came of it: the shard is as it was,
        or its log is read.
        """
        if led.state is not CoordinatorState.ACTIVE or led.postponed:
            return None
        return self._make_step(led, make)

    def postpone(self, led: LedShard[ShardT], make: MakeStep[ShardT]) -> None:
        """Put the step behind all that is postponed already, to be made when the log is read and takes records."""
        current = self._shards.get(led.partition.index)
        if current is not None and current.partition is led.partition:
            current.postponed.append(make)
            self._work.set()

    def _make_step(self, led: LedShard[ShardT], make: MakeStep[ShardT]) -> Result[Any] | None:
        """Make a step that nobody asks for. None where it did not happen."""
        now_ms, timestamp_ms = self._clock.monotonic_ms(), self._clock.now_ms()
        if led.doubt.exists(now_ms):
            return self._try(led, make, None, None, now_ms, timestamp_ms) if self._append_held(led) else None
        result = make(led.shard, now_ms + self._ahead_ms(), timestamp_ms)
        self._take(led, result, None, now_ms, timestamp_ms)
        return result if led.state is CoordinatorState.ACTIVE else None

    def _take(
        self, led: LedShard[ShardT], result: Result[Any], asked: Asked | None, now_ms: int, timestamp_ms: int
    ) -> None:
        """Append the records of a step, and have its effects and answers follow once they are committed."""
        self._tell(led, result, asked, timestamp_ms)
        step = HeldStep(result, now_ms, current_cause())
        if self._held.wants(led, step):
            self._held.hold(led, step)
        elif self._append_held(led):
            self._append_steps(led, [step], timestamp_ms)
        else:
            led.refuse(result.completed, ErrorCode.NOT_COORDINATOR)

    def _tell(self, led: LedShard[ShardT], result: Result[Any], asked: Asked | None, timestamp_ms: int) -> None:
        """Tell the causes of a step, and keep those that are history.

        They are kept at once, as the step is in the shard; the history goes with the shard where the log refuses it.
        """
        if not result.cause:
            return
        tell_cause(led.name, result.cause)
        is_history = self.is_history(result)
        if _log.isEnabledFor(level := self.level_of(result, is_history=is_history)):
            _log.log(level, "%s: %s", led.name, _one_line(result.cause))
        if is_history and result.causes:
            self._keep_causes(led, result, asked, timestamp_ms)

    def _keep_causes(self, led: LedShard[ShardT], result: Result[Any], asked: Asked | None, timestamp_ms: int) -> None:
        if result.causes:
            origin = NOBODY if asked is None else origin_of(asked.request, asked.context)
            self.history.keep(led.partition.index, result.causes, origin, timestamp_ms)

    def _try(
        self,
        led: LedShard[ShardT],
        make: MakeStep[ShardT],
        token: Token | None,
        asked: Asked | None,
        now_ms: int,
        timestamp_ms: int,
    ) -> Result[Any] | None:
        """Make a step that may be refused: only its caller hears of that, and nothing else has changed.

        token, asked: of whoever asks for it, who is told where it is refused.
        """
        log = led.partition.log
        end_offset_before = log.log_end_offset
        with led.held_back():
            led.shard.begin_trial()
            result = make(led.shard, now_ms + self._ahead_ms(), timestamp_ms)
            refusal = self._append_results(led, [result], timestamp_ms)
            led.shard.end_trial(is_kept=refusal is None)
            if refusal is None:
                self._tell(led, result, asked, timestamp_ms)
                self._complete(led, [HeldStep(result, now_ms, current_cause())])
        if refusal is None:
            return result
        self._tell_refusal(led, [result], refusal)
        if token is not None:
            led.refuse_one(token, _error_of_appending(refusal))
        if not led.doubt.is_certain:
            led.doubt.refused(now_ms)
        if log.log_end_offset != end_offset_before and led.state is CoordinatorState.ACTIVE:
            self._reload(led)  # a part of a step that needs several batches is there
        return None

    def _append_held(self, led: LedShard[ShardT]) -> bool:
        """Append what is held. False where that failed: what was made after it stands on what did not happen."""
        steps = self._held.take(led)
        if led.state is CoordinatorState.ACTIVE and steps:
            self._append_steps(led, steps, self._clock.now_ms())
        return led.state is CoordinatorState.ACTIVE

    def _append_steps(self, led: LedShard[ShardT], steps: Sequence[HeldStep], timestamp_ms: int) -> None:
        """Append all of the steps or none, but where they are more than one batch can hold. They are in the shard
        already.
        """
        results = [step.result for step in steps]
        refusal = self._append_results(led, results, timestamp_ms)
        if refusal is None:
            self._complete(led, steps)
            return
        self._tell_refusal(led, results, refusal)
        for result in results:
            led.refuse(result.completed, _error_of_appending(refusal))
        led.doubt.refused(self._clock.monotonic_ms())
        self._reload(led)

    def _complete(self, led: LedShard[ShardT], steps: Sequence[HeldStep]) -> None:
        led.complete(steps)
        if led.wants_flush and self._nursery is not None:
            self._nursery.start_soon(self._flush, led)
        deadline_ms = led.next_deadline_ms()
        if deadline_ms is not None and deadline_ms < self._next_wake_ms:
            self._work.set()

    def _tell_refusal(self, led: LedShard[ShardT], results: Sequence[Result[Any]], error_code: ErrorCode) -> None:
        # Whoever found the disk full or failed, or too few in sync, has said so; clients try again and again.
        is_told = error_code in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_ENOUGH_REPLICAS)
        level = logging.DEBUG if is_told else logging.ERROR
        causes = "; ".join(result.cause for result in results)
        _log.log(level, "%s: cannot append: %s; %s", led.name, error_code.name, _one_line(causes))

    def _append_results(
        self, led: LedShard[ShardT], results: Sequence[Result[Any]], timestamp_ms: int
    ) -> ErrorCode | None:
        """Append the records of the results, and return what was wrong."""
        steps = [result.records for result in results if result.records]
        prepared = results[0].prepared  # nobody shares the append of such a step
        if not steps and not prepared:
            return None
        max_bytes = led.partition.log.config.max_message_bytes
        encoded = encode_batches(steps, timestamp_ms, max_bytes, results[0].producer) if steps else []
        batches = [*prepared, *encoded]
        if any(len(batch) > max_bytes for batch in batches):
            return ErrorCode.MESSAGE_TOO_LARGE  # before a part of them is there
        try:
            for batch in batches:
                self._append_batch(led, batch, timestamp_ms)
        except ApiError as error:
            return error.code
        self._tell_offsets(led, steps)
        return None

    def _tell_offsets(self, led: LedShard[ShardT], steps: Sequence[Sequence[Any]]) -> None:
        """The records of the steps are the last ones in the log."""
        logged = self.logged(led.shard)
        if logged is not None:
            first_offset = led.partition.log.log_end_offset - sum(map(len, steps))
            for offset, record in enumerate(chain.from_iterable(steps), first_offset):
                logged(record, offset)

    def _append_batch(self, led: LedShard[ShardT], batch: bytes, timestamp_ms: int) -> Appended:
        """Raises `ApiError`."""
        result = self._replicas.append(led.partition, batch, timestamp_ms, ACKS_ALL, _COORDINATOR)
        appended = Appended(led.partition, result.last_offset + 1)
        led.appended(appended)
        return appended

    async def look_now(self) -> None:
        """Have the shards look at once for what they look for now and then, and catch up with it."""
        for led in self._active_shards():
            led.shard.look_now()
        await self.catch_up()

    async def catch_up(self) -> None:
        """Return when nothing is left to do of what is due by now, and what was written for it is committed."""
        looking = self._active_shards()
        self._work.set()
        while any(self._is_due(led) for led in looking):
            await self._did_what_is_due.next()
        appended = [(led, led.newest_append) for led in looking if self._append_held(led)]
        for led, each in appended:
            await led.until_committed(each)

    def _active_shards(self) -> list[LedShard[ShardT]]:
        return [led for led in self._shards.values() if led.state is CoordinatorState.ACTIVE]

    def _is_due(self, led: LedShard[ShardT]) -> bool:
        """Tell whether the shard has timers that are due, also where they are paused."""
        if led.state is not CoordinatorState.ACTIVE:
            return False
        deadline_ms = led.next_timer_ms()
        return deadline_ms is not None and deadline_ms <= self._clock.monotonic_ms()

    # Leadership

    def on_election(self, partition: Partition) -> None:
        """Load the partition, which is led here from now on or in a new leader epoch."""
        self._unload(partition.index)
        self._load(partition)

    def on_resignation(self, index: int) -> None:
        """Unload the partition: another node leads it, or it is gone; perhaps it never was led here."""
        self._unload(index)

    def _unload(self, index: int) -> None:
        led = self._shards.pop(index, None)
        if led is not None:
            content = self.describe(led.shard)
            _log.log(logging.INFO if content else logging.DEBUG, "%s: %s unloaded", led.name, content or "nothing")
            self._held.take(led)
            led.close(ErrorCode.NOT_COORDINATOR)
            self.history.forget(index)

    def _load(self, partition: Partition) -> LedShard[ShardT]:
        led = LedShard(
            partition,
            self.new_shard(partition),
            self._commit_timeout_ms,
            self.carry_out,
            resume=self._work.set,
            ahead_ms=self._ahead_ms,
        )
        self._shards[partition.index] = led
        if self._nursery is not None:
            self._nursery.start_soon(self._load_shard, led)
        return led

    def _reload(self, led: LedShard[ShardT]) -> None:
        """Read the partition's log again: what the log does not have did not happen."""
        self._held.take(led)
        self.history.forget(led.partition.index)
        led.close(ErrorCode.NOT_COORDINATOR)
        successor = self._load(led.partition)
        successor.is_reload = True
        successor.doubt, successor.postponed = led.doubt, led.postponed

    # The tasks

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Load what is elected and run the timers, until the surrounding scope is cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                try:
                    nursery.start_soon(self._held.run)
                    nursery.start_soon(self.run_beside)
                    for led in self._shards.values():
                        nursery.start_soon(self._load_shard, led)
                    task_status.started()
                    while True:
                        await self._expire()
                        self._did_what_is_due.set()
                        await self._wait_for_work()
                finally:
                    # Leaders are still elected while the tasks end: nobody may begin one in a nursery that closes.
                    self._nursery = None
        finally:
            for index in list(self._shards):
                self._unload(index)
            self._did_what_is_due.set()

    async def _flush(self, led: LedShard[ShardT]) -> None:
        """Flush what answers wait for. Where that fails the answers are given up in time, or the partition is not led
        here any more.
        """
        if await self._replicas.flush(led.partition, led.end_offset) and led.state is CoordinatorState.ACTIVE:
            led.partition_changed(led.partition)

    async def _expire(self) -> None:
        """Make the steps that are due. Others have their turn behind each shard that has made steps: all of them may be
        due at the same time.
        """
        now_ms = self._clock.monotonic_ms()
        for led in list(self._shards.values()):
            if led.state is CoordinatorState.ACTIVE:
                led.give_up_uncommitted(now_ms)
                if self._make_own_steps(led, now_ms):
                    await trio.lowlevel.checkpoint()

    def _make_own_steps(self, led: LedShard[ShardT], now_ms: int) -> bool:
        """Make what is postponed, then what is due, and tell whether there was anything; with many records the rest
        waits for the next time. Timers pause while it is certain that no record could be appended.
        """
        led.is_paused = led.doubt.is_certain
        if led.is_paused or now_ms < led.doubt.next_attempt_ms:
            return False
        makes = self._own_steps(led, now_ms)
        records = 0
        for make in makes:
            result = self._make_step(led, make)
            if result is None:
                led.doubt.own_attempt_refused(now_ms)
                return True
            if led.postponed and led.postponed[0] is make and not result.is_unfinished:
                led.postponed.popleft()
            records += len(result.records)
            led.is_timers_turn = result.is_unfinished
            if result.is_unfinished or records >= _OWN_RECORDS_AT_ONCE:
                break
        if makes:
            led.doubt.own_attempt_made()
        return bool(makes)

    def _own_steps(self, led: LedShard[ShardT], now_ms: int) -> list[MakeStep[ShardT]]:
        """Choose the steps. Between two parts of a long step timers have their turn: sessions end in time."""
        makes: list[MakeStep[ShardT]] = list(islice(led.postponed, _POSTPONED_AT_ONCE))
        deadline_ms = led.next_timer_ms()
        if deadline_ms is None or deadline_ms > now_ms:
            return makes
        if led.is_timers_turn:
            return [_expire_due]
        return makes if len(makes) < len(led.postponed) else [*makes, _expire_due]

    async def _wait_for_work(self) -> None:
        active = [led for led in self._shards.values() if led.state is CoordinatorState.ACTIVE]
        deadlines = [led.next_deadline_ms() for led in active]
        self._next_wake_ms = min((deadline for deadline in deadlines if deadline is not None), default=math.inf)
        wait_ms = max(self._next_wake_ms - self._clock.monotonic_ms(), 0)
        if any(led.is_paused for led in active):
            wait_ms = min(wait_ms, LONGEST_RETRY_MS)  # the topic's settings may change what is enough
        await self._work.wait(wait_ms / 1000)

    async def _load_shard(self, led: LedShard[ShardT]) -> None:
        replayer = Replayer(led.shard, led.name, self.logged(led.shard))
        if await self._loading.load(led, replayer) and await self._prepare_timers(led):
            self._activate(led, replayer)
        elif led.state is CoordinatorState.LOADING:
            self._unload(led.partition.index)

    async def _prepare_timers(self, led: LedShard[ShardT]) -> bool:
        """Prepare the timers in turns. False where the shard was closed meanwhile."""
        for _ in led.shard.prepare_timers(self._clock.monotonic_ms() + self._ahead_ms()):
            await trio.lowlevel.checkpoint()
            if led.state is not CoordinatorState.LOADING:
                return False
        return True

    def _activate(self, led: LedShard[ShardT], replayer: Replayer) -> None:
        led.open()
        led.loaded_timestamp_ms = self._clock.now_ms()
        content = self.describe(led.shard)
        counts = content or "nothing", replayer.replayed, replayer.skipped
        level = logging.INFO if (content or any(counts[1:])) and not led.is_reload else logging.DEBUG
        _log.log(level, "%s: %s loaded from %d records, %d skipped", led.name, *counts)
        started = self._make_step(led, _start_timers)
        if (started is None or started.is_unfinished) and led.state is CoordinatorState.ACTIVE:
            led.postponed.appendleft(_start_timers)
        elif led.state is CoordinatorState.ACTIVE:
            self._make_own_steps(led, self._clock.monotonic_ms())
        self._work.set()


def _start_timers(shard: CoordinatedShard[Any, Any], now_ms: int, timestamp_ms: int) -> Result[Any]:
    return shard.start_timers(now_ms, timestamp_ms)


def _expire_due(shard: CoordinatedShard[Any, Any], now_ms: int, timestamp_ms: int) -> Result[Any]:
    return shard.expire(now_ms, timestamp_ms)


def _error_of_appending(error_code: ErrorCode) -> ErrorCode:
    return _ERRORS_OF_APPENDING.get(error_code, ErrorCode.UNKNOWN_SERVER_ERROR)


def _one_line(cause: str) -> str:
    """Member ids and reasons come from clients: nobody writes our log but us."""
    return ascii(cause)[1:-1][:_SHOWN_CAUSE_CHARACTERS]
