"""A led shard is one shard of a coordinator in the partition that it lives in, for one leader epoch: it knows who waits
for what.

The shard is in one of three states:

- LOADING: its log is being read. Requests are answered with COORDINATOR_LOAD_IN_PROGRESS, and steps that nobody asks
  for are postponed.
- ACTIVE: `open` came when the log was read. Steps are made, and the shard watches its partition.
- CLOSED: `close` came, since the partition is led elsewhere, or the log did not take a step. Whoever waits learns the
  error. A closed shard stays closed; a successor loads the log anew.

What follows from a step waits for an `Appended`: the end of all that was appended by then, and the leader epoch. When
the partition's high watermark is past it, and it is flushed where its topic wants that, the step's effects are carried
out, and then its answers go out. Effects of all steps that are due come before answers, in their order, so that no
answer overtakes an effect of its step. An effect may bring about the next step of the same shard: the outermost call
sees to what is due then. Answers that wait for too long are given up; effects are not, since what is committed later
has its effects then. Nothing is due any more once the leader was demoted.

Where an append would be refused, timers pause, and steps that nobody asks for are postponed.

Not handled here: appends, loading and unloading (`coordinator_driver`), and what a step is (`coordinated_shard`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeAlias, TypeVar

import trio

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.replication.appended import Appended
from pykbroker.replication.partition import Partition
from pykbroker.state_machine import Completion, Result, Token

from ..runtime.deferred_answer import CalledBack, DeferredAnswer
from ..runtime.deferred_event_queue import DeferredEventQueue
from ..runtime.signal import Signal
from .append_doubt import AppendDoubt
from .coordinated_shard import CoordinatedShard
from .shared_appends import HeldStep

ShardT = TypeVar("ShardT", bound=CoordinatedShard[Any, Any])
MakeStep: TypeAlias = Callable[[ShardT, int, int], Result[Any]]
"""Makes a step of a shard at a time by the monotonic and by the wall clock."""


class CoordinatorState(Enum):
    """The state says whether the shard has read its log, and whether it is led."""

    LOADING = "loading"
    ACTIVE = "active"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class _Deferred:
    """A deferred event follows from a step, once everything that was appended by then is committed."""

    appended: Appended

    @property
    def end_offset(self) -> int:
        return self.appended.end_offset

    @property
    def is_due(self) -> bool:
        return self.appended.is_committed


@dataclass(frozen=True, slots=True)
class _Effect(_Deferred):
    """An effect is carried out before the answers of its step."""

    effect: object


@dataclass(frozen=True, slots=True)
class _Answers(_Deferred):
    """The answers of steps that share an append go out together. deadline_ms: when they are given up."""

    deadline_ms: int
    steps: Sequence[HeldStep]


class LedShard(Generic[ShardT]):
    """The led shard has two queues, of effects and of answers, and the callers that wait by their tokens.

    carry_out: what is to be done with an effect that is due; it may bring about the next step of this shard. resume:
    called when appends are possible again and timers are paused. ahead_ms: by how much the shard's monotonic clock is
    ahead of the node's. postponed: steps that are to be made as soon as their
    records can be appended.
    """

    def __init__(
        self,
        partition: Partition,
        shard: ShardT,
        commit_timeout_ms: int,
        carry_out: Callable[[LedShard[ShardT], object], None],
        resume: Callable[[], None] = lambda: None,
        ahead_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self.partition = partition
        self.name = f"{partition.topic}-{partition.index}"
        self.shard = shard
        self.state = CoordinatorState.LOADING
        self.loaded = trio.Event()
        self.is_reload = False
        self.loaded_timestamp_ms: int | None = None
        """When its log was read, by the wall clock."""
        self.doubt = AppendDoubt(partition)
        self.postponed: deque[MakeStep[ShardT]] = deque()
        self.is_paused = False
        self.is_timers_turn = False
        """The postponed step that comes next has done a part already."""
        self.is_tidied_up = False
        """Somebody is about to do what the ends of transactions leave to be done."""
        self._resume = resume
        self._ahead_ms = ahead_ms
        self._commit_timeout_ms = commit_timeout_ms
        self._carry_out = carry_out
        self._appended = Appended(partition, 0)
        self._effects = DeferredEventQueue[_Effect]()
        self._answers = DeferredEventQueue[_Answers]()
        self._waiting: dict[Token, DeferredAnswer[object] | CalledBack[object]] = {}
        self._is_settling = False
        self._is_held_back = False
        self._outcomes = Signal()

    def open(self) -> None:
        self.state = CoordinatorState.ACTIVE
        self._appended = Appended(self.partition, self.partition.log.log_end_offset)
        self.partition.watchers[self] = None
        self.loaded.set()

    def close(self, error_code: ErrorCode) -> None:
        """End the shard: whoever still waits here learns `error_code`."""
        self.state = CoordinatorState.CLOSED
        self.partition.watchers.pop(self, None)
        self._effects.take_all()
        self._answers.take_all()
        self.loaded.set()
        self._outcomes.set()
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            answer.fail(ApiError(error_code))

    def await_answer(self, token: Token) -> DeferredAnswer[object]:
        # Not DeferredAnswer[object](): a call by way of an alias takes longer than the class does.
        answer: DeferredAnswer[object] = DeferredAnswer()
        self._waiting[token] = answer
        return answer

    def call_back(self, token: Token, then: Callable[[object, Exception | None], None]) -> None:
        """Have a function called with the answer (`CalledBack`)."""
        self._waiting[token] = CalledBack(then)

    def forget(self, token: Token) -> None:
        """Forget a caller that no longer waits for the answer; what the request did stays."""
        self._waiting.pop(token, None)

    def refuse(self, completed: Sequence[Completion], error_code: ErrorCode) -> None:
        for completion in completed:
            self.refuse_one(completion.token, error_code)

    def refuse_one(self, token: Token, error_code: ErrorCode) -> None:
        answer = self._waiting.pop(token, None)
        if answer is not None:
            answer.fail(ApiError(error_code))

    def appended(self, appended: Appended) -> None:
        self._appended = appended

    def complete(self, steps: Sequence[HeldStep]) -> None:
        """Answer steps, behind all of their effects, as soon as all that was appended so far is committed.

        steps: in the order in which they were made.
        """
        answered: list[HeldStep] = []
        has_effects = False
        for step in steps:
            if step.result.completed:
                answered.append(step)
            for effect in step.result.effects:
                has_effects = True
                self._effects.add(_Effect(self._appended, effect))
        if answered:
            self._answers.add(_Answers(self._appended, answered[-1].now_ms + self._commit_timeout_ms, answered))
        if answered or has_effects:
            self._settle()

    def partition_changed(self, partition: Partition) -> None:
        assert partition is self.partition
        if self.is_paused and not self.doubt.is_certain:
            self.is_paused = False
            self._resume()
        self._settle()

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Let nothing become due within: a step is half done, and the next one has to wait for it."""
        assert not self._is_held_back
        self._is_held_back = True
        try:
            yield
        finally:
            self._is_held_back = False
        self._settle()

    @property
    def end_offset(self) -> int:
        return self._appended.end_offset

    @property
    def wants_flush(self) -> bool:
        """Tell whether somebody waits for a flush: nobody is answered before the records are on the disk."""
        answers, effect = self._answers.first, self._effects.first
        if answers is not None and answers.appended.lacks_flush:
            return True
        return effect is not None and effect.appended.lacks_flush

    def _settle(self) -> None:
        """Carry out and answer what is due. An effect may append to this very partition: the call that is at work here
        already sees to what is due then, so that no answer overtakes an effect of its step.
        """
        if self._is_settling or self._is_held_back:
            return
        self._is_settling = True
        try:
            if self._effects.first is not None:
                for due in self._effects.take_while(lambda first: first.is_due):
                    self._carry_out(self, due.effect)
            for answers in self._answers.take_while(lambda first: first.is_due):
                self._answer(answers.steps)
        finally:
            self._is_settling = False
            self._outcomes.set()

    def _answer(self, steps: Sequence[HeldStep]) -> None:
        for step in steps:
            for token, response in step.result.completed:
                answer = self._waiting.pop(token, None)
                if answer is not None:
                    answer.complete(response, step.cause)

    def next_deadline_ms(self) -> int | None:
        answers, own_ms = self._answers.first, self._next_own_step_ms()
        if answers is None:
            return own_ms
        return answers.deadline_ms if own_ms is None else min(own_ms, answers.deadline_ms)

    def next_timer_ms(self) -> int | None:
        """Return when the shard has something to do by time, by the node's clock."""
        deadline_ms = self.shard.next_deadline_ms()
        return None if deadline_ms is None else deadline_ms - self._ahead_ms()

    @property
    def newest_append(self) -> Appended:
        return self._appended

    async def until_committed(self, appended: Appended) -> None:
        """Return when the append is committed, and had its effects, or the shard is closed."""
        while self.state is CoordinatorState.ACTIVE and not appended.is_committed:
            await self._outcomes.next()

    def _next_own_step_ms(self) -> int | None:
        if self.doubt.is_certain:
            return None
        deadline_ms = 0 if self.postponed else self.next_timer_ms()
        return None if deadline_ms is None else max(deadline_ms, self.doubt.next_attempt_ms)

    def give_up_uncommitted(self, now_ms: int) -> None:
        """Give up answers only: what is committed later has its effects then."""
        for answers in self._answers.take_while(lambda first: first.deadline_ms <= now_ms):
            for step in answers.steps:
                self.refuse(step.result.completed, ErrorCode.COORDINATOR_NOT_AVAILABLE)
