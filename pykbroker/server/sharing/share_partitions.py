"""The share partitions and share sessions of a node, as the handlers of ShareFetch and ShareAcknowledge see them.

A share partition is loaded when a session of its group first asks for it, and goes when its partition is led elsewhere,
when the persister has another state of it, and when the group's last session here has ended. What a member has acquired
goes back when its session ends, be it that its connection has. Kafka's counterpart is `SharePartitionManager`.

A node without share groups has an empty one: what it takes to serve them is imported with the first request.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

from pykbroker.config import BrokerConfig
from pykbroker.config.group_keys import DEAD_LETTER_TOPIC
from pykbroker.metadata.features import DEAD_LETTERS_SINCE, SHARE_VERSION, feature_level
from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.sharing.persister import PartitionState, Persister, Reading, SharePartitionKey

from ..network.inter_broker import InterBroker
from ..quorum.image_conditions import ImageConditions
from ..replicas.replica_manager import ReplicaManager
from ..runtime.clock import Clock
from ..runtime.deferred_answer import DeferredAnswer
from ..runtime.signal import Signal
from ..runtime.threads import Threads
from ..runtime.turns import Turn
from .share_traffic import ShareTraffic

if TYPE_CHECKING:
    from pykbroker.config.group_keys import GroupValues
    from pykbroker.sharing.partition.values import Acknowledgement, Acquired, DeadLetters, Limits
    from pykbroker.sharing.sessions import SessionKey, ShareSession, ShareSessions, TopicIdPartition

    from .dead_letter_queues import DeadLetterQueues
    from .led_share_partition import LedSharePartition

logger = logging.getLogger(__name__)

Outcome: TypeAlias = ApiError | DeferredAnswer[None] | None
"""The outcome of acknowledgements: why they were refused, or what is being written; None where that is nothing."""

MOST_SHARE_PARTITIONS: Final = 100_000
"""Of one node: an idle one takes about a kilobyte. Kafka has no such bound."""

_MOST_LOADERS: Final = 100
"""The tasks that load share partitions for one request."""

_STEPS_OF_BEGINNING: Final = 10
_STEPS_OF_RELEASE: Final = 10
_FEW_SESSIONS: Final = 16
_STEPS_OF_EXPIRY: Final = 20
_SPARE_TIMERS: Final = 256
_TIMER_ROUND_MS: Final = 10
"""Locks whose time is over within it end together."""


class SharePartitions:
    """The share partitions of one node. persister: keeps their states. image: the newest metadata, of which the
    conditions are. inter_broker: brings dead letters to their topics. writes_letters: whether there are any; without
    them, records that would get one are settled at once.
    """

    def __init__(
        self,
        config: BrokerConfig,
        replicas: ReplicaManager,
        persister: Persister,
        inter_broker: InterBroker,
        conditions: ImageConditions,
        *,
        image: Callable[[], MetadataImage],
        clock: Clock,
        threads: Threads,
        writes_letters: bool = True,
    ) -> None:
        self.replicas = replicas
        self.clock = clock
        self.threads = threads
        self.traffic = ShareTraffic()
        self._config = config
        self._persister = persister
        self._inter_broker = inter_broker
        self._conditions = conditions
        self._image = image
        self._writes_letters = writes_letters
        self._letters: DeadLetterQueues | None = None
        self._led: dict[SharePartitionKey, LedSharePartition] = {}
        self._of_group: dict[str, dict[SharePartitionKey, LedSharePartition]] = {}
        self._draining: dict[SharePartitionKey, LedSharePartition] = {}
        """What has ended and is being written still: whoever comes next does not read before."""
        self._sessions: ShareSessions | None = None
        self._timers: list[tuple[int, int, LedSharePartition]] = []
        self._sequence = count()
        self._timers_changed = Signal()
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write what changes, and end locks whose time is over, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                task_status.started()
                await self._run_timers()
            finally:
                self._nursery = None
                self._letters = None

    # Groups

    @property
    def sessions(self) -> ShareSessions:
        """The share sessions of this node's clients."""
        if self._sessions is None:
            from pykbroker.sharing.sessions import ShareSessions

            self._sessions = ShareSessions(lambda: self._config.int("group.share.max.share.sessions"))
        return self._sessions

    def group_values(self, group_id: str) -> GroupValues:
        """The settings of a group, as they are now."""
        from pykbroker.config.group_keys import group_values

        image = self._image()
        return group_values(image.group_config(group_id), self._config, image.broker_config(self._config.node_id))

    def limits(self, group_id: str) -> Limits:
        """The limits of a group, as they are now."""
        from pykbroker.sharing.partition.values import Limits

        values = self.group_values(group_id)
        has_queues = feature_level(self._image(), SHARE_VERSION) >= DEAD_LETTERS_SINCE
        return Limits(
            record_lock_duration_ms=values.int("share.record.lock.duration.ms"),
            max_record_locks=values.int("share.partition.max.record.locks"),
            delivery_count_limit=values.int("share.delivery.count.limit"),
            renew_enabled=values.bool("share.renew.acknowledge.enable"),
            has_dead_letters=has_queues and bool(values.str(DEAD_LETTER_TOPIC).strip()),
        )

    def find(self, key: SharePartitionKey) -> LedSharePartition | None:
        """Return a share partition that was asked for before; None where it is not here."""
        return self._led.get(key)

    def __len__(self) -> int:
        return len(self._led)

    def all(self) -> list[LedSharePartition]:
        """Return the share partitions that are here now."""
        return list(self._led.values())

    def of_group(self, group_id: str) -> list[LedSharePartition]:
        """Return those of one group."""
        return list(self._of_group.get(group_id, {}).values())

    def session_of(self, group_id: str, member_id: str) -> ShareSession | None:
        """Return the share session of a member; None where it has none here."""
        if self._sessions is None:
            return None
        from pykbroker.sharing.sessions import SessionKey

        return self._sessions.get(SessionKey(group_id, member_id))

    @property
    def session_counts(self) -> tuple[int, int]:
        """The number of share sessions, and of the partitions that they have together."""
        sessions = self._sessions
        return (0, 0) if sessions is None else (len(sessions), sessions.partitions)

    # Loading

    async def load(self, keys: Iterable[SharePartitionKey], turn: Turn) -> list[LedSharePartition | ApiError]:
        """Return the share partitions of one request, in its order; those that are new are being loaded now.

        Errors as Kafka's: NOT_LEADER_OR_FOLLOWER and others of a partition that is not led here. Beyond the bound on
        share partitions of a node, SHARE_SESSION_LIMIT_REACHED.
        """
        found: list[LedSharePartition | ApiError] = []
        new: list[LedSharePartition] = []
        try:
            for key in keys:
                led: LedSharePartition | ApiError | None = self._led.get(key)
                if led is None:
                    led = self._begin(key)
                    if not isinstance(led, ApiError):
                        new.append(led)
                found.append(led)
                await turn.took(_STEPS_OF_BEGINNING)
        finally:  # others may wait for those that are begun, also where the request is cut off with its listener
            self._load_soon(new)
        return found

    def _load_soon(self, new: Sequence[LedSharePartition]) -> None:
        """Load each for itself where they are few: one that has to wait for its coordinator keeps no other waiting."""
        portion = len(new) // _MOST_LOADERS + 1
        for number in range(0, len(new), portion):
            if self._nursery is not None:
                self._nursery.start_soon(self._load, new[number : number + portion])

    def _begin(self, key: SharePartitionKey) -> LedSharePartition | ApiError:
        from .led_share_partition import LedSharePartition

        partition = self.replicas.get_partition_by_id(key.topic_id, key.partition)
        if isinstance(partition, ErrorCode):
            return ApiError(partition)
        if not partition.is_leader:
            return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if len(self._led) >= MOST_SHARE_PARTITIONS:
            return ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED, "too many share partitions")
        if self._nursery is None:  # the node ends
            return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        led = LedSharePartition(
            key,
            partition,
            self._persister,
            traffic=self.traffic,
            monotonic_ms=self.clock.monotonic_ms,
            spawn=self._spawn_writer,
            on_end=self._forget,
            on_letters=self._write_letters,
            schedule=self.schedule,
        )
        self._led[key] = led
        self._of_group.setdefault(key.group_id, {})[key] = led
        return led

    async def _load(self, new: Sequence[LedSharePartition]) -> None:
        for led in new:
            before = self._draining.get(led.key)
            if before is not None:
                await before.drained()
        began_ms = self.clock.monotonic_ms()
        states = await self._persister.read([Reading(led.key, led.leader_epoch) for led in new])
        turn = Turn()
        for led, state in zip(new, states, strict=True):
            await self._begin_with(led, state, turn)
            self.traffic.load_times.record((self.clock.monotonic_ms() - began_ms) * 1_000_000)
            await trio.lowlevel.checkpoint()

    async def _begin_with(self, led: LedSharePartition, state: PartitionState, turn: Turn) -> None:
        from .led_share_partition import client_error, has_start_offset
        from .start_offsets import start_offset

        try:
            if state.error_code is not ErrorCode.NONE:
                raise client_error(state.error_code, state.error_message)
            offset = state.start_offset
            if not has_start_offset(state):
                reset = self.group_values(led.key.group_id).offset_reset
                offset = await start_offset(self.replicas, led.partition, reset, self.clock.now_ms())
            await led.begin(state, offset, turn)
            share = led.active
            if share is not None:
                self._write_letters(led, share.unwritten_letters(self.limits(led.key.group_id).delivery_count_limit))
        except ApiError as error:
            logger.info("%r was not loaded: %s", led, error)
            led.end(error)

    def _spawn_writer(self, led: LedSharePartition) -> None:
        if self._nursery is not None:  # else the node ends, and nobody waits for an answer any more
            self._nursery.start_soon(self._write, led)

    def _write_letters(self, led: LedSharePartition, letters: list[DeadLetters]) -> None:
        if not letters or self._nursery is None:  # who leads the partition next finds those records ARCHIVING
            return
        if not self._writes_letters:
            for each in letters:
                change = None if led.active is None else led.active.archived(each.first_offset, each.last_offset)
                if change:
                    led.persist(change)
            return
        if self._letters is None:
            from .dead_letter_queues import DeadLetterQueues

            self._letters = DeadLetterQueues(
                self._config,
                self.replicas,
                self._inter_broker,
                self._conditions,
                self._nursery,
                self.traffic,
                image=self._image,
                values=self.group_values,
                clock=self.clock,
                threads=self.threads,
            )
        self._letters.add(led, letters)

    async def _write(self, led: LedSharePartition) -> None:
        try:
            await led.write()
        finally:
            if self._draining.get(led.key) is led:
                del self._draining[led.key]

    def _forget(self, led: LedSharePartition) -> None:
        key = led.key
        self._led.pop(key, None)
        if led.is_writing:
            self._draining[key] = led
        of_group = self._of_group.get(key.group_id)
        if of_group is not None:
            of_group.pop(key, None)
            if not of_group:
                del self._of_group[key.group_id]
                self.traffic.forget_group(key.group_id)

    # What members say

    async def begin_to_acknowledge(
        self,
        group_id: str,
        member_id: str,
        acknowledgements: Sequence[tuple[TopicIdPartition, Sequence[Acknowledgement]]],
        turn: Turn,
    ) -> list[Outcome]:
        """Return for each partition why it was refused, or what is to be waited for (`outcome_of`).

        UNKNOWN_TOPIC_OR_PARTITION where no share partition is here.
        """
        limits = self.limits(group_id)
        outcomes: list[Outcome] = []
        for at, batches in acknowledgements:
            outcomes.append(await self._acknowledge(group_id, member_id, at, batches, limits, turn))
            await turn.took(_STEPS_OF_RELEASE)
        return outcomes

    async def _acknowledge(
        self,
        group_id: str,
        member_id: str,
        at: TopicIdPartition,
        batches: Sequence[Acknowledgement],
        limits: Limits,
        turn: Turn,
    ) -> Outcome:
        led = self._led.get(SharePartitionKey(group_id, *at))
        if led is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return ApiError(code, code.description)
        share = led.active
        if share is None:
            return ApiError(
                ErrorCode.INVALID_RECORD_STATE,
                "Batch record not found. The request batch offsets are not found in the cache.",
            )
        steps = share.acknowledge_steps(member_id, batches, limits, self.clock.monotonic_ms())
        change = None
        try:
            change = await turn.through(steps)
        except ApiError as error:
            return error
        finally:
            steps.close()
            if change is None:  # it is taken back, and what was locked until now may be free
                self.schedule(led)
                led.notify()
        if led.active is not share:
            # It has ended between two steps. Whoever came then has read the state without this change.
            assert led.error is not None
            return led.error
        if not change:
            self.traffic.count_acknowledged(batches)
            self.schedule(led)
            return None
        answer: DeferredAnswer[None] = DeferredAnswer()
        led.persist(change, answer, batches)
        self.schedule(led)
        return answer

    async def end_session(self, key: SessionKey, turn: Turn) -> None:
        """End a member's session; what it has acquired is handed out again. Nobody waits until that is persisted."""
        session = self.sessions.remove(key)
        if session is not None:
            with trio.CancelScope(shield=True):  # what is released by half would be nobody's
                await self._release(session, turn)

    async def _release(self, session: ShareSession, turn: Turn) -> None:
        key = session.key
        limits = self.limits(key.group_id)
        for at in list(session.partitions):
            led = self._led.get(SharePartitionKey(key.group_id, *at))
            share = None if led is None else led.active
            if led is None or share is None:
                await turn.took(1)
                continue
            change = await turn.through(share.release_steps(key.member_id, limits))
            if change and led.active is share:
                led.persist(change)
            await turn.took(_STEPS_OF_RELEASE)

    def owns(self, owner: object, key: SessionKey) -> bool:
        """Tell whether a session is the connection's still."""
        session = self.sessions.get(key)
        return session is not None and session.owner is owner

    def has_group(self, group_id: str) -> bool:
        """Tell whether the group has share partitions or sessions here."""
        return group_id in self._of_group or self.sessions.has_members(group_id)

    def connection_closed(self, owner: object, keys: Iterable[SessionKey], group_ids: Iterable[str]) -> None:
        """End the sessions that began on a connection and were not begun anew on another one.

        Others may begin theirs in their place at once; what was acquired is given back in turns. group_ids: of all
        groups that had sessions on the connection; what has no member any more is forgotten.
        """
        if self._nursery is None:
            return
        ended: list[ShareSession] = []
        for key in keys:
            if self.owns(owner, key):
                session = self.sessions.remove(key)
                assert session is not None
                ended.append(session)
        self._nursery.start_soon(self._release_all, ended, list(group_ids))

    async def _release_all(self, ended: Sequence[ShareSession], group_ids: Sequence[str]) -> None:
        turn = Turn()
        for session in ended:
            await self._release(session, turn)
        for group_id in group_ids:
            await self._drop_group(group_id, turn)

    async def _drop_group(self, group_id: str, turn: Turn) -> None:
        """Forget what a group has here, as none of its members is there any more."""
        for led in list(self._of_group.get(group_id, {}).values()):
            if self.sessions.has_members(group_id):
                return
            led.end(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            await turn.took(_STEPS_OF_RELEASE)

    def give_back(self, member_id: str, key: SharePartitionKey, acquired: Sequence[Acquired]) -> None:
        """Take back what the member was about to be given: its answer is withheld."""
        led = self._led.get(key)
        share = None if led is None else led.active
        if led is not None and share is not None:
            share.give_back(member_id, acquired)
            led.notify()

    def fetched(self, group_id: str, asked: int, gave: int) -> None:
        """Count a ShareFetch. asked: the number of its partitions. gave: of those that gave records."""
        if group_id in self._of_group:  # else nothing would ever forget it
            self.traffic.count_fetch(group_id, asked, gave)

    # By time

    def schedule(self, led: LedSharePartition) -> None:
        """Records were acquired, or locks renewed: call `expire` when their time is over."""
        share = led.active
        due_ms = None if share is None else share.next_deadline_ms()
        if due_ms is None or (led.timer_ms is not None and led.timer_ms <= due_ms):
            return
        led.timer_ms = due_ms
        if len(self._timers) > 2 * len(self._led) + _SPARE_TIMERS:
            self._timers = [each for each in self._timers if each[2].timer_ms == each[0] and each[2].active is not None]
            heapify(self._timers)
        is_first = not self._timers or due_ms < self._timers[0][0]
        heappush(self._timers, (due_ms, next(self._sequence), led))
        if is_first:
            self._timers_changed.set()

    async def _run_timers(self) -> None:
        turn = Turn()
        while True:
            now_ms = self.clock.monotonic_ms()
            while self._timers and self._timers[0][0] <= now_ms:
                due_ms, _, led = heappop(self._timers)
                if led.timer_ms == due_ms:
                    led.timer_ms = None
                    await self._expire(led, turn)
                await turn.took(_STEPS_OF_EXPIRY)
            wait_ms = math.inf
            if self._timers:
                wait_ms = max(self._timers[0][0] - self.clock.monotonic_ms(), _TIMER_ROUND_MS)
            await self._timers_changed.wait(wait_ms / 1000)

    async def _expire(self, led: LedSharePartition, turn: Turn) -> None:
        share = led.active
        if share is None:
            return
        steps = share.expire_steps(self.limits(led.key.group_id), self.clock.monotonic_ms())
        change = await turn.through(steps)
        if led.active is not share:
            return
        if change:
            led.lock_timeouts += sum(batch.last_offset - batch.first_offset + 1 for batch in change.batches)
            led.persist(change)
            led.notify()
        self.schedule(led)


async def outcome_of(outcome: Outcome) -> ApiError | None:
    """Return when acknowledgements of a partition are persisted, or why they are not."""
    if outcome is None or isinstance(outcome, ApiError):
        return outcome
    try:
        await outcome.wait()
    except ApiError as error:
        return error
    return None


class SessionsOfConnection:
    """The share sessions that began on one connection: they end with it (`ConnectionState.share_sessions_end`).

    Sessions that have ended are forgotten now and then, but not the groups that have something here still: perhaps
    theirs was the last one.
    """

    def __init__(self, shares: SharePartitions) -> None:
        self._shares = shares
        self._keys: dict[SessionKey, None] = {}
        self._group_ids: dict[str, None] = {}
        self._most = _FEW_SESSIONS

    def __len__(self) -> int:
        """Return how many sessions and groups are remembered."""
        return len(self._keys) + len(self._group_ids)

    def add(self, key: SessionKey) -> None:
        self._keys[key] = None
        self._group_ids[key.group_id] = None
        if len(self) > self._most:
            self._keys = {each: None for each in self._keys if self._shares.owns(self, each)}
            self._group_ids = {each: None for each in self._group_ids if self._shares.has_group(each)}
            self._most = 2 * len(self) + _FEW_SESSIONS

    def __call__(self) -> None:
        self._shares.connection_closed(self, self._keys, self._group_ids)
