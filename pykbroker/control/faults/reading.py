"""Requests as faults read them: decoded, with the topics that they name; in a thread where that is long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pykbroker.protocol.api_keys import ApiKey, request_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ErrorCode, TooManyElements
from pykbroker.protocol.framing import RequestHeader, encode_response
from pykbroker.protocol.messages.fetch import FetchPartition, FetchTopic
from pykbroker.protocol.schema import NO_UUID, Message
from pykbroker.replication.fetch_session import TOPIC_IDS_SINCE_VERSION, FetchSession
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.node import Node
from pykbroker.server.runtime.threads import Threads

from .error_answers import error_answer, is_of_partitions, version_of_answer
from .match import Match
from .topics import topics_of

if TYPE_CHECKING:
    from pykbroker.sharing.sessions import ShareSession

FEW_ENTRIES: Final = 1000
_COPIED_AT_ONCE_BYTES: Final = 4 * 1024 * 1024
_LOOKS_AT_ONCE: Final = 5_000
"""Of names at patterns, in a millisecond or two."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A request and what it names. is_long: it has more entries than the event loop looks at in one turn."""

    header: RequestHeader
    message: Message
    topics: frozenset[str]
    is_long: bool


class RequestReader:
    """The reader of one node's requests. node: None before it runs."""

    def __init__(self, node: Node | None, threads: Threads) -> None:
        self._broker = _broker_of(node)
        self._threads = threads

    async def read(self, frame: memoryview, header: RequestHeader, body: int) -> ReadRequest:
        """Raises MalformedMessage."""
        if len(frame) <= _COPIED_AT_ONCE_BYTES:
            try:
                return self._read(frame, header, body, FEW_ENTRIES)
            except TooManyElements:
                pass
        return await self._threads.run(self._read, frame, header, body, None)

    async def fitting(self, matches: Sequence[Match], topics: frozenset[str]) -> list[bool]:
        """Tell of each match whether it means a request that names these topics."""
        patterns = sum(each.topic is not None and not each.topic.is_exact for each in matches)
        if patterns * len(topics) <= _LOOKS_AT_ONCE:
            return _fitting(matches, topics)
        return await self._threads.run(_fitting, matches, topics)

    async def error_answer(self, request: ReadRequest, error: ErrorCode, message: str) -> list[bytes] | None:
        """Return the frame that says the error; None where the client wants no answer."""
        if request.is_long:
            return await self._threads.run(_encoded_error, request, error, message, self._session(request))
        return _encoded_error(request, error, message, self._session(request))

    def _read(self, frame: memoryview, header: RequestHeader, body: int, limit: int | None) -> ReadRequest:
        version = header.api_version
        kind = request_type(header.api_key)
        if limit is None:
            message, _ = decode(kind, version, frame, body)
        else:
            message, _ = decode(kind, version, frame, body, objects_limit=limit)
        request = ReadRequest(header, message, topics_of(message, self._name_of), limit is None)
        session = self._session(request)
        if session is None:
            return request
        found: Iterable[str | None]
        if isinstance(session, FetchSession):
            count, found = len(session.cached), [each.topic for each in list(session.cached.values())]
        else:
            topic_ids = dict.fromkeys(each.topic_id for each in list(session.partitions))
            count, found = len(session.partitions), map(self._name_of, topic_ids)
        names = frozenset(name for name in found if name is not None)
        return ReadRequest(header, message, request.topics | names, request.is_long or count > FEW_ENTRIES)

    def _session(self, request: ReadRequest) -> FetchSession | ShareSession | None:
        """Return the session of a Fetch or ShareFetch that names only what is new; None for other requests."""
        message: Any = request.message
        if self._broker is None:
            return None
        if request.header.api_key == ApiKey.FETCH and message.session_id and message.session_epoch > 0:
            return self._broker.fetch_sessions.get(message.session_id)
        if request.header.api_key == ApiKey.SHARE_FETCH and message.share_session_epoch > 0:
            return self._broker.share_partitions.session_of(message.group_id or "", message.member_id or "")
        return None

    def _name_of(self, topic_id: bytes) -> str | None:
        return None if self._broker is None else self._broker.partitions.topic_name(topic_id)


def _broker_of(node: Node | None) -> Broker | None:
    parts = None if node is None else node.parts
    role = None if parts is None else parts.broker_role
    return None if role is None else role.broker


def _fitting(matches: Sequence[Match], topics: frozenset[str]) -> list[bool]:
    return [each.fits_topics(topics) for each in matches]


def _encoded_error(
    request: ReadRequest, error: ErrorCode, message: str, session: FetchSession | ShareSession | None
) -> list[bytes] | None:
    header = request.header
    named = request.message
    if session is not None and is_of_partitions(header.api_key, error):
        if isinstance(session, FetchSession):
            named = _with_session(named, header.api_version, session)
        else:
            named = _with_share_session(named, session)
    answer = error_answer(named, header.api_version, error, message)
    if answer is None:
        return None
    version = version_of_answer(header.api_key, header.api_version, error)
    parts = encode_response(header.correlation_id, answer, version)
    return [part for part in parts if isinstance(part, bytes)]


def _with_session(message: Any, version: int, session: FetchSession) -> Message:
    """Return a Fetch that names all partitions of its session: each of them is to have the error."""
    by_topic: dict[str | bytes, FetchTopic] = {}
    for cached in list(session.cached.values()):
        key = cached.topic_id if version >= TOPIC_IDS_SINCE_VERSION else cached.topic
        if key is None or key == NO_UUID:
            continue
        topic = by_topic.get(key)
        if topic is None:
            topic = by_topic[key] = FetchTopic(topic=cached.topic or "", topic_id=cached.topic_id)
        topic.partitions.append(FetchPartition(partition=cached.partition))
    return type(message)(session_id=message.session_id, topics=list(by_topic.values()))  # type: ignore[no-any-return]


def _with_share_session(message: Any, session: ShareSession) -> Message:
    """Return a ShareFetch that names all partitions of its session, with what it says of their records."""
    from pykbroker.protocol.messages import share_groups

    by_topic: dict[bytes, dict[int, share_groups.FetchPartition]] = {}
    for at in list(session.partitions):
        named = share_groups.FetchPartition(partition_index=at.partition)
        by_topic.setdefault(at.topic_id, {})[at.partition] = named
    for topic in message.topics:
        for each in topic.partitions:
            by_topic.setdefault(bytes(topic.topic_id), {})[each.partition_index] = each
    topics = [
        share_groups.FetchTopic(topic_id=topic_id, partitions=list(partitions.values()))
        for topic_id, partitions in by_topic.items()
    ]
    return type(message)(topics=topics)  # type: ignore[no-any-return]
