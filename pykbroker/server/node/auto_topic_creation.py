"""The broker has the controller create topics that clients ask Metadata for and that are not there yet.

The client does not wait: it is told UNKNOWN_TOPIC_OR_PARTITION and asks again, so that no Metadata hangs while there is
no controller. Topics get this broker's `num.partitions` and `default.replication.factor` where the file gives them. Why
a topic cannot be created stands in this broker's log alone. Kafka's counterpart is `AutoTopicCreationManager`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

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
        self._pending: set[str] = set()
        self._requests: deque[CreateTopicsRequest] = deque()
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
        self._pending.update(new)
        self._requests.append(CreateTopicsRequest(topics=[internal(name) or self._topic(name) for name in new]))
        self._news.set()

    async def run(self) -> None:
        """Send what is asked for until the surrounding scope is cancelled. One client's names go in one request, the
        clients one after the other.
        """
        while True:
            await self._news.wait()
            while self._requests:
                request = self._requests.popleft()
                try:
                    self._tell_refusals(await self._controller.submit(request))
                finally:
                    self._pending.difference_update(topic.name for topic in request.topics)

    def _topic(self, name: str) -> CreatableTopic:
        return CreatableTopic(name=name, num_partitions=self._partitions, replication_factor=self._replication_factor)

    def _tell_refusals(self, response: CreateTopicsResponse) -> None:
        for topic in response.topics:
            if topic.error_code not in _CREATED_OR_THERE:
                error, reason = ErrorCode(topic.error_code).name, printable(topic.error_message)
                self._refusals.warning("topic %s is not created: %s: %s", printable(topic.name), error, reason)


def _if_given(config: BrokerConfig, key: str) -> int:
    """Return what this broker's properties say; -1, the controller's value, where they say nothing."""
    return config.int(key) if key in config.originals else -1
