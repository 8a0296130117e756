"""The broker has the controller create topics that clients ask Metadata for, and internal topics of streams groups.

The client does not wait: it is told that the topic is not there and asks again, so that no request hangs while there is
no controller. Topics of Metadata get this broker's `num.partitions` and `default.replication.factor` where the file
gives them; why one cannot be created stands in this broker's log alone. Why an internal topic of a streams group cannot
be created (KIP-1071) is remembered for a while, for the members of the group. Kafka's counterpart is
`AutoTopicCreationManager`.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import Final

from pykbroker.client.errors import code_of
from pykbroker.config import BrokerConfig
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

from ..quorum.controller_channel import ControllerChannel
from ..runtime.clock import Clock
from ..runtime.log_lines import RateLimitedLog, printable
from ..runtime.signal import Signal

_log = logging.getLogger(__name__)

MOST_PENDING: Final = 10_000
"""Names that wait for the controller; what is asked for beyond them is not created before it is asked for again."""

MOST_ERRORS: Final = 1_000
"""Reasons why internal topics cannot be created; the oldest give way."""

_CREATED_OR_THERE: Final = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


class AutoTopicCreation:
    """The creation of topics takes names from Metadata requests and sends them to the controller, one client's after
    the other's.
    """

    def __init__(self, config: BrokerConfig, controller: ControllerChannel, clock: Clock) -> None:
        self._controller = controller
        self._refusals = RateLimitedLog(_log, clock)
        self._partitions = _if_given(config, "num.partitions")
        self._replication_factor = _if_given(config, "default.replication.factor")
        self._clock = clock
        self._pending: set[str] = set()
        self._requests: deque[tuple[CreateTopicsRequest, int]] = deque()
        """Each with how long, in milliseconds, its errors are remembered; 0 where they are not."""
        self._errors: OrderedDict[str, tuple[str, int]] = OrderedDict()
        """By topic, the newest last: the error, and until when it counts."""
        self._news = Signal()

    def create(
        self, names: Iterable[str], internal: Callable[[str], CreatableTopic | None] = lambda name: None
    ) -> None:
        """Soon. A name that is on its way already does not go twice, and no more are looked at than there is
        room for. Invalid names are not for here. internal: how a coordinator's topic is to be created."""
        room = MOST_PENDING - len(self._pending)
        new = dict.fromkeys(islice((name for name in names if name not in self._pending), room))
        if not new:
            return
        self._send([internal(name) or self._topic(name) for name in new], remembered_ms=0)

    def create_internal(self, topics: Collection[CreatableTopic], remembered_ms: int) -> None:
        """Soon. A topic that could not be created is not tried again for as long as its error is remembered."""
        room = MOST_PENDING - len(self._pending)
        new = (each for each in topics if each.name not in self._pending and self._error_of(each.name) is None)
        self._send(list(islice(new, room)), remembered_ms)

    def errors_of(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return the internal topics that could not be created, with the reasons."""
        found = ((name, self._error_of(name)) for name in names)
        return [(name, error) for name, error in found if error is not None]

    def _error_of(self, name: str) -> str | None:
        error, until_ms = self._errors.get(name, (None, 0))
        return error if self._clock.monotonic_ms() < until_ms else None

    def _send(self, topics: list[CreatableTopic], remembered_ms: int) -> None:
        if topics:
            self._pending.update(topic.name for topic in topics)
            self._requests.append((CreateTopicsRequest(topics=topics), remembered_ms))
            self._news.set()

    async def run(self) -> None:
        """Send what is asked for until the surrounding scope is cancelled. One client's names go in one request, the
        clients one after the other.
        """
        while True:
            await self._news.wait()
            while self._requests:
                request, remembered_ms = self._requests.popleft()
                try:
                    self._note_refusals(await self._controller.submit(request), remembered_ms)
                finally:
                    self._pending.difference_update(topic.name for topic in request.topics)

    def _topic(self, name: str) -> CreatableTopic:
        return CreatableTopic(name=name, num_partitions=self._partitions, replication_factor=self._replication_factor)

    def _note_refusals(self, response: CreateTopicsResponse, remembered_ms: int) -> None:
        for topic in response.topics:
            if topic.error_code not in _CREATED_OR_THERE:
                error, reason = code_of(topic.error_code), printable(topic.error_message)
                self._refusals.warning("topic %s is not created: %s: %s", printable(topic.name), error.name, reason)
                if remembered_ms > 0:
                    words = topic.error_message or error.description
                    self._remember(topic.name, words, remembered_ms)

    def _remember(self, name: str, error: str, remembered_ms: int) -> None:
        self._errors.pop(name, None)
        self._errors[name] = error, self._clock.monotonic_ms() + remembered_ms
        while len(self._errors) > MOST_ERRORS:
            self._errors.popitem(last=False)


def _if_given(config: BrokerConfig, key: str) -> int:
    """Return what this broker's properties say; -1, the controller's value, where they say nothing."""
    return config.int(key) if key in config.originals else -1
