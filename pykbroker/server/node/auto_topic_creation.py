"""The broker has the controller create topics that clients ask Metadata for, and internal topics of streams groups.

The client does not wait: it is told that the topic is not there and asks again, so that no request hangs while there is
no controller. Topics of Metadata get this broker's `num.partitions` and `default.replication.factor` where the file
gives them; why one cannot be created stands in this broker's log alone. The controller hears for whom a topic is
created, and whose quota of `controller_mutation_rate` (KIP-599) it counts for. Why an internal topic of a streams group
cannot be created (KIP-1071) is remembered for a while, for the members of the group. Kafka's counterpart is
`AutoTopicCreationManager`.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from pykbroker.client.errors import code_of
from pykbroker.config import BrokerConfig
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.framing import RequestHeader
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

from ..network.handlers import CloseConnection, ConnectionState, RequestContext, ServedApis
from ..quorum.controller_channel import ControllerChannel
from ..runtime.clock import Clock
from ..runtime.log_lines import RateLimitedLog, printable
from ..runtime.signal import Signal

_log = logging.getLogger(__name__)

MOST_PENDING: Final = 10_000
"""Names that wait for the controller; what is asked for beyond them is not created before it is asked for again."""

MOST_CLIENT_CHARACTERS: Final = 1 << 20
"""Of the ids and principals of clients whose topics wait, together; more than that wait for one client alone."""

MOST_ERRORS: Final = 1_000
"""Reasons why internal topics cannot be created; the oldest give way."""

_CREATED_OR_THERE: Final = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


@dataclass(frozen=True, slots=True)
class _Client:
    """The client for which topics are created, as it is kept: neither its request nor its connection."""

    node: object
    listener: ServedApis
    listener_name: str
    address: str
    principal: str
    by_token: bool
    correlation_id: int
    client_id: str | None

    @staticmethod
    def of(context: RequestContext[object]) -> _Client:
        connection, header = context.connection, context.header
        return _Client(
            context.node,
            context.listener,
            connection.listener_name,
            connection.client_address,
            connection.principal,
            connection.by_token,
            header.correlation_id,
            header.client_id,
        )

    @property
    def characters(self) -> int:
        return len(self.principal) + len(self.client_id or "")

    def asking(self) -> RequestContext[object]:
        """Return the context that a CreateTopics of this client would have."""
        version = CreateTopicsRequest.__schema__.stable_versions.high
        header = RequestHeader(ApiKey.CREATE_TOPICS, version, self.correlation_id, self.client_id)
        connection = ConnectionState(self.listener_name, self.address, self.principal, by_token=self.by_token)
        return RequestContext(self.node, header, self.listener, connection)


@dataclass(frozen=True, slots=True)
class _Creation:
    """A request on its way. remembered_ms: for how long its errors are remembered; 0 where they are not."""

    request: CreateTopicsRequest
    client: _Client
    remembered_ms: int


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
        self._creations: deque[_Creation] = deque()
        self._client_characters = 0
        """Of the clients of those creations, and of the one under way."""
        self._errors: OrderedDict[str, tuple[str, int]] = OrderedDict()
        """By topic, the newest last: the error, and until when it counts."""
        self._news = Signal()

    def create(
        self,
        names: Iterable[str],
        internal: Callable[[str], CreatableTopic | None] = lambda name: None,
        *,
        client: RequestContext[object],
    ) -> None:
        """Soon. A name that is on its way already does not go twice, and no more are looked at than there is
        room for. Invalid names are not for here. internal: how a coordinator's topic is to be created. client: in whose
        name."""
        room = MOST_PENDING - len(self._pending)
        new = dict.fromkeys(islice((name for name in names if name not in self._pending), room))
        if not new:
            return
        self._send([internal(name) or self._topic(name) for name in new], client, remembered_ms=0)

    def create_internal(
        self, topics: Collection[CreatableTopic], remembered_ms: int, *, client: RequestContext[object]
    ) -> None:
        """Soon. A topic that could not be created is not tried again for as long as its error is remembered."""
        room = MOST_PENDING - len(self._pending)
        new = (each for each in topics if each.name not in self._pending and self._error_of(each.name) is None)
        self._send(list(islice(new, room)), client, remembered_ms)

    def errors_of(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return the internal topics that could not be created, with the reasons."""
        found = ((name, self._error_of(name)) for name in names)
        return [(name, error) for name, error in found if error is not None]

    def _error_of(self, name: str) -> str | None:
        error, until_ms = self._errors.get(name, (None, 0))
        return error if self._clock.monotonic_ms() < until_ms else None

    def _send(self, topics: list[CreatableTopic], context: RequestContext[object], remembered_ms: int) -> None:
        if not topics:
            return
        client = _Client.of(context)
        characters = self._client_characters + client.characters
        if self._client_characters and characters > MOST_CLIENT_CHARACTERS:
            return
        self._client_characters = characters
        self._pending.update(topic.name for topic in topics)
        self._creations.append(_Creation(CreateTopicsRequest(topics=topics), client, remembered_ms))
        self._news.set()

    async def run(self) -> None:
        """Send what is asked for until the surrounding scope is cancelled. One client's names go in one request, the
        clients one after the other.
        """
        while True:
            await self._news.wait()
            while self._creations:
                creation = self._creations.popleft()
                try:
                    await self._ask_for(creation)
                finally:
                    self._pending.difference_update(topic.name for topic in creation.request.topics)
                    self._client_characters -= creation.client.characters

    async def _ask_for(self, creation: _Creation) -> None:
        try:
            response = await self._controller.forward(creation.client.asking(), creation.request)
        except CloseConnection as reason:
            self._refusals.warning("topics are not created for a client: %s", reason)
        else:
            self._note_refusals(response, creation.remembered_ms)

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
