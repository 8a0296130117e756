"""The persister of a node asks the share coordinator of each share partition, here or on another broker (KIP-932).

- The coordinator is the leader of the partition of `__share_group_state` that the metadata say at that moment. The
  topic is created where it is missing.
- What others lead goes through `share_state_queues`, which put together what waits for one broker. What this node leads
  itself is asked without a connection, of the same coordinator that answers others.
- Errors that pass are tried again with a back-off: the coordinator moves or loads, or does not know a topic yet that
  this node knows. After `PATIENCE_MS` the last error is the answer.
- Questions about one share partition that may change it are asked one after the other, in the order in which they come
  here: a write that is tried again never undoes a later one.

Kafka's counterparts are `DefaultStatePersister` and `PersisterStateManager`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import trio

from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.errors import ErrorCode
from pykbroker.sharing.persister import (
    Initialization,
    Outcome,
    PartitionState,
    Reading,
    SharePartitionKey,
    Writing,
)

from ..network.inter_broker import InterBroker
from .share_coordinator import ShareCoordinator
from .share_state_questions import (
    DELETE,
    INITIALIZE,
    READ,
    READ_SUMMARY,
    WRITE,
    AnswerT,
    AskedT,
    Question,
)
from .share_state_queues import ShareStateQueues

PATIENCE_MS: Final = 20_000
"""For how long errors that pass are tried again; the answer to the last try may come a request's timeout later."""
RETRY_BACKOFF_MS: Final = 50
RETRY_BACKOFF_MAX_MS: Final = 2_000

_LOOKED_UP_AT_ONCE = 500
_HERE: Final = -2
_NOWHERE: Final = -1

PASSING: Final = frozenset(
    (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
)


class SharePersister:
    """The persister is a `Persister` as long as `run` lasts. ensure_topic: has the coordinators' topic created, unless
    it is there.
    """

    def __init__(
        self,
        node_id: int,
        coordinator: ShareCoordinator,
        inter_broker: InterBroker,
        *,
        image: Callable[[], MetadataImage],
        ensure_topic: Callable[[], Awaitable[ErrorCode]],
    ) -> None:
        self._node_id = node_id
        self._coordinator = coordinator
        self._queues = ShareStateQueues(inter_broker)
        self._image = image
        self._ensure_topic = ensure_topic
        self._creating = trio.Lock()
        self._order = _Order()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send what others are asked, until the surrounding scope is cancelled."""
        await self._queues.run(task_status=task_status)

    async def initialize(self, initializations: Sequence[Initialization]) -> list[Outcome]:
        with self._order.of([each.key for each in initializations]) as earlier:
            await earlier.wait()
            return await self._ask(INITIALIZE, initializations)

    async def read(self, readings: Sequence[Reading]) -> list[PartitionState]:
        with self._order.of([each.key for each in readings]) as earlier:
            await earlier.wait()
            return await self._ask(READ, readings)

    async def write(self, writings: Sequence[Writing]) -> list[Outcome]:
        with self._order.of([each.key for each in writings]) as earlier:
            await earlier.wait()
            return await self._ask(WRITE, writings)

    async def delete(self, keys: Sequence[SharePartitionKey]) -> list[Outcome]:
        with self._order.of(keys) as earlier:
            await earlier.wait()
            return await self._ask(DELETE, keys)

    async def read_summary(self, readings: Sequence[Reading]) -> list[PartitionState]:
        return await self._ask(READ_SUMMARY, readings)

    async def _ask(self, question: Question[AskedT, AnswerT], asked: Sequence[AskedT]) -> list[AnswerT]:
        answers = [_not_yet(question, each) for each in asked]
        missing = list(range(len(asked)))
        end = trio.current_time() + PATIENCE_MS / 1000
        backoff_ms = RETRY_BACKOFF_MS
        while missing:
            await self._try(question, asked, missing, answers, end)
            missing = [place for place in missing if self._may_pass(answers[place])]
            if not missing or trio.current_time() + backoff_ms / 1000 > end:
                break
            await trio.sleep(backoff_ms / 1000)
            backoff_ms = min(2 * backoff_ms, RETRY_BACKOFF_MAX_MS)
        return answers

    async def _try(
        self,
        question: Question[AskedT, AnswerT],
        asked: Sequence[AskedT],
        places: Sequence[int],
        answers: list[AnswerT],
        end: float,
    ) -> None:
        """Ask once for each of the places, and put the answers there."""
        await self._create_topic(end)
        by_node = await self._by_node([(place, question.key(asked[place])) for place in places])
        async with trio.open_nursery() as nursery:
            for node_id, there in by_node.items():
                nursery.start_soon(self._ask_node, question, asked, node_id, there, answers)

    async def _ask_node(
        self,
        question: Question[AskedT, AnswerT],
        asked: Sequence[AskedT],
        node_id: int,
        places: Sequence[int],
        answers: list[AnswerT],
    ) -> None:
        wanted = [asked[place] for place in places]
        if node_id == _NOWHERE:
            given = [_not_yet(question, each) for each in wanted]
        elif node_id == _HERE:
            given = await self._coordinator.answer(question, wanted)
        else:
            given = await self._queues.ask(node_id, question, wanted)
        for place, answer in zip(places, given, strict=True):
            answers[place] = answer

    async def _create_topic(self, end: float) -> None:
        """Have the topic created once, however many need it. end: when this is given up."""
        if self._image().topic(self._coordinator.topic) is not None:
            return
        with trio.move_on_at(end):
            async with self._creating:
                if self._image().topic(self._coordinator.topic) is None:
                    await self._ensure_topic()

    async def _by_node(self, keys: Sequence[tuple[int, SharePartitionKey]]) -> dict[int, list[int]]:
        """Return the places of keys by the broker that coordinates them, as the metadata have it."""
        by_node: dict[int, list[int]] = {}
        for number, (place, key) in enumerate(keys, 1):
            by_node.setdefault(self._node_of(key), []).append(place)
            if number % _LOOKED_UP_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        return by_node

    def _node_of(self, key: SharePartitionKey) -> int:
        index = self._coordinator.partition_of(key)
        state = None if index is None else self._image().partition(self._coordinator.topic, index)
        if state is None or state.leader < 0:
            return _NOWHERE
        return _HERE if state.leader == self._node_id else state.leader

    def _may_pass(self, answer: Outcome | PartitionState) -> bool:
        """Tell whether it is worth while to ask again: a topic that this node does not know either is gone."""
        if answer.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return answer.key.partition < self._coordinator.partition_count(answer.key.topic_id)
        return answer.error_code in PASSING


def _not_yet(question: Question[AskedT, AnswerT], asked: AskedT) -> AnswerT:
    error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return question.failed(question.key(asked), error_code, error_code.description)


class _Place:
    """The place of a question in the order. earlier: the questions about the same share partitions before it, in whose
    place it stands, too, once it is given up.
    """

    def __init__(self, earlier: Sequence[_Place]) -> None:
        self.earlier = earlier
        self.is_over = trio.Event()

    async def wait(self) -> None:
        """Return when all earlier ones are answered, or given up, and those before them, too."""
        while self.earlier:
            await self.earlier[0].is_over.wait()
            first, *others = self.earlier
            self.earlier = [*(each for each in first.earlier if each not in others), *others]


class _Order:
    """The order of questions by share partition: each waits for those that were there before it. One that is given up
    while it waits lets nobody pass those that it has waited for.
    """

    def __init__(self) -> None:
        self._last: dict[SharePartitionKey, _Place] = {}

    @contextmanager
    def of(self, keys: Sequence[SharePartitionKey]) -> Iterator[_Place]:
        """Have a place in the order of each of the keys, until this is over."""
        before = {key: self._last[key] for key in keys if key in self._last}
        own = _Place(list(dict.fromkeys(before.values())))
        for key in keys:
            self._last[key] = own
        try:
            yield own
        finally:
            own.is_over.set()
            for key in keys:
                if self._last.get(key) is own:
                    self._give_back(key, before.get(key))

    def _give_back(self, key: SharePartitionKey, place: _Place | None) -> None:
        if place is None or place.is_over.is_set():
            del self._last[key]
        else:
            self._last[key] = place
