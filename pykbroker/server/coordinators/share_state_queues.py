"""Share state queues bring questions about share partitions to other brokers: a queue for each of these brokers.

What waits in a queue for one group and is of one kind goes in one request, as much as it may hold, and few requests to
a broker are in flight, each on a connection of its own. So a broker that is slow or dead keeps those waiting that need
it, and no others. Questions that nobody waits for any more are not sent. Kafka's counterpart is the `SendThread` of
`PersisterStateManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import trio

from pykbroker.client.errors import ClientError
from pykbroker.protocol.errors import ErrorCode

from ..network.inter_broker import InterBroker
from ..runtime.deferred_answer import DeferredAnswer
from ..runtime.signal import Signal
from .share_state_questions import READ, AnswerT, AskedT, Question, answers_in

_log = logging.getLogger(__name__)

REQUESTS_IN_FLIGHT: Final = 3
"""To one broker; a question whose replication takes long keeps one of them."""
MOST_ENTRIES: Final = 5_000
"""Share partitions and batches in one request, but for a single share partition that has more."""
MOST_READINGS: Final = 50
"""Share partitions whose batches are read in one request."""
TIMEOUT_MS: Final = 10_000
"""Of one request. A coordinator gives up its replicas sooner."""

_AnyQuestion: TypeAlias = Question[Any, Any]


@dataclass(eq=False, slots=True)
class Queued:
    """A part of a question waits to be sent and answered. answer: None where it is not known what became of it."""

    question: _AnyQuestion
    group_id: str
    asked: Sequence[Any]
    size: int
    answer: DeferredAnswer[list[Any] | None] = field(default_factory=DeferredAnswer)


class ShareStateQueue:
    """The queue of one broker: what waits, by kind and group, which take turns."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[_AnyQuestion, str], dict[Queued, None]] = {}
        self._more = Signal()

    def put(self, queued: Queued) -> None:
        self._waiting.setdefault((queued.question, queued.group_id), {})[queued] = None
        self._more.set()

    def withdraw(self, queued: Queued) -> None:
        """Send it no more, where it waits still."""
        like = self._waiting.get((queued.question, queued.group_id))
        if like is not None and queued in like:
            del like[queued]
            if not like:
                del self._waiting[queued.question, queued.group_id]

    def all(self) -> list[Queued]:
        """Return all that waits."""
        return [queued for like in self._waiting.values() for queued in like]

    async def take(self) -> list[Queued]:
        """Return what goes in the next request, when there is anything."""
        while not self._waiting:
            await self._more.next()
        kind = next(iter(self._waiting))
        like = self._waiting.pop(kind)
        taken: list[Queued] = []
        room = _most_of(kind[0])
        for queued in like:
            if taken and queued.size > room:
                break
            room -= queued.size
            taken.append(queued)
        for queued in taken:
            del like[queued]
        if like:
            self._waiting[kind] = like  # behind the others, which have their turn first
        return taken


class ShareStateQueues:
    """The queues of this node begin when a broker is asked first, and last as long as `run`."""

    def __init__(self, inter_broker: InterBroker) -> None:
        self._inter_broker = inter_broker
        self._queues: dict[int, ShareStateQueue] = {}
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send what is asked for until the surrounding scope is cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                try:
                    task_status.started()
                    await trio.sleep_forever()
                finally:
                    self._nursery = None
        finally:
            for queue in self._queues.values():
                for queued in queue.all():
                    queued.answer.complete(None)

    async def ask(self, node_id: int, question: Question[AskedT, AnswerT], asked: Sequence[AskedT]) -> list[AnswerT]:
        """Return the broker's answer for each; NETWORK_EXCEPTION where it is not known what became of it."""
        queue = self._queue(node_id)
        places: list[list[int]] = []
        parts: list[Queued] = []
        for part in _parts(question, asked):
            some = [asked[place] for place in part]
            size = sum(map(question.weight, some))
            queued = Queued(question, question.key(some[0]).group_id, some, size)
            places.append(part)
            parts.append(queued)
            if queue is not None:
                queue.put(queued)
        error_code = ErrorCode.NETWORK_EXCEPTION
        answers = [question.failed(question.key(each), error_code, error_code.description) for each in asked]
        if queue is None:
            return answers
        try:
            for part, queued in zip(places, parts, strict=True):
                given = await queued.answer.wait()
                for place, answer in zip(part, given or (), strict=given is not None):
                    answers[place] = answer
        finally:
            for queued in parts:
                queue.withdraw(queued)
        return answers

    def _queue(self, node_id: int) -> ShareStateQueue | None:
        """Return the broker's queue; None where this node does not send anything any more."""
        queue = self._queues.get(node_id)
        if self._nursery is None:
            return None
        if queue is None:
            queue = self._queues[node_id] = ShareStateQueue()
            for number in range(REQUESTS_IN_FLIGHT):
                self._nursery.start_soon(self._send_all, node_id, queue, f"share state {number}")
        return queue

    async def _send_all(self, node_id: int, queue: ShareStateQueue, purpose: str) -> None:
        while True:
            await self._send(node_id, await queue.take(), purpose)

    async def _send(self, node_id: int, taken: Sequence[Queued], purpose: str) -> None:
        question, group_id = taken[0].question, taken[0].group_id
        request = question.message(group_id, [each for queued in taken for each in queued.asked])
        try:
            response = await self._inter_broker.request(
                node_id, request, question.response_type, purpose=purpose, timeout_ms=TIMEOUT_MS
            )
            for queued in taken:
                queued.answer.complete(answers_in(question, response, queued.asked))
        except ClientError as error:
            _log.debug("broker %d cannot be asked to %s: %s", node_id, question.verb, error)
        finally:
            for queued in taken:
                queued.answer.complete(None)


def _most_of(question: _AnyQuestion) -> int:
    return MOST_READINGS if question is READ else MOST_ENTRIES


def _parts(question: Question[AskedT, AnswerT], asked: Sequence[AskedT]) -> Iterator[list[int]]:
    """Return the places of what is asked in parts of one group, each of which has room in a request."""
    by_group: dict[str, list[int]] = {}
    for place, each in enumerate(asked):
        by_group.setdefault(question.key(each).group_id, []).append(place)
    for places in by_group.values():
        part: list[int] = []
        room = _most_of(question)
        for place in places:
            weight = question.weight(asked[place])
            if part and weight > room:
                yield part
                part, room = [], _most_of(question)
            part.append(place)
            room -= weight
        yield part
