"""A cluster seen from outside: connections on demand, metadata, coordinators, and the second try.

Every call is tried again, with back-off, while its failure is retriable and its time is not over. Nothing runs in the
background; a `Cluster` may be used by several tasks at once.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pykbroker.protocol.schema import Message
from pykbroker.protocol.topic_partition import TopicPartition

from .addresses import parse_bootstrap_servers as parse_bootstrap_servers
from .connection import DEFAULT_REQUEST_TIMEOUT_MS, Connection, UnpackingThreads
from .errors import ClientError, ConnectionLost, KafkaError, NoBrokerReachable, NotKafka, TimedOut, UnknownTopic, check
from .metadata import ClusterMetadata, Node, TopicMetadata, from_response
from .sasl import authenticate

if TYPE_CHECKING:
    from pykbroker.security.sasl.credentials import Credentials

T = TypeVar("T")
ResponseT = TypeVar("ResponseT", bound=Message)
Open = Callable[[str, int], Awaitable[trio.abc.Stream]]
"""The seam for a network that is not the system's."""
LookCloser = Callable[[str, int], Awaitable[str]]
"""Says what answers at an address where no broker does, in a few words; empty where that is not known."""

DEFAULT_API_TIMEOUT_MS = 60_000
CONNECTION_SETUP_TIMEOUT_MS = 10_000
RETRY_BACKOFF_MS = 100
RETRY_BACKOFF_MAX_MS = 1_000
TOPIC_CREATION_TIMEOUT_MS = 5_000
UNKNOWN_TOPIC_TIMEOUT_MS = 1_000
"""How long a topic that was just created may stay unknown to the broker that is asked."""

MOST_COORDINATORS = 1_000
"""Remembered; whoever lives as long as a broker, and is asked for any name, must not keep all of them."""

GROUP_COORDINATOR = 0
TRANSACTION_COORDINATOR = 1
_COORDINATOR_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


async def open_tcp(host: str, port: int) -> trio.abc.Stream:
    return await trio.open_tcp_stream(host, port)


async def open_in_time(open_stream: Open, host: str, port: int) -> trio.abc.Stream:
    """Open a stream within CONNECTION_SETUP_TIMEOUT_MS, the handshake of TLS included. Raises OSError."""
    try:
        with trio.move_on_after(CONNECTION_SETUP_TIMEOUT_MS / 1000):
            return await open_stream(host, port)
    except UnicodeError:
        raise OSError("no host may have such a name") from None
    raise TimeoutError("no answer")


class Cluster:
    """An async context manager, which closes its connections at the end. credentials: for listeners with SASL.

    threads: where long answers are unpacked, None for the event loop. look_closer: asked where no bootstrap server is a
    broker that can be used.
    """

    def __init__(
        self,
        bootstrap_servers: Sequence[tuple[str, int]],
        *,
        client_id: str = "pykbroker",
        request_timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS,
        api_timeout_ms: int = DEFAULT_API_TIMEOUT_MS,
        open_stream: Open = open_tcp,
        credentials: Credentials | None = None,
        threads: UnpackingThreads | None = None,
        look_closer: LookCloser | None = None,
    ) -> None:
        self._credentials = credentials
        self._threads = threads
        self._look_closer = look_closer
        self.metadata = ClusterMetadata()
        self._bootstrap_servers = list(bootstrap_servers)
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._api_timeout_ms = api_timeout_ms
        self._open_stream = open_stream
        self._connections: dict[tuple[str, int], Connection] = {}
        self._opening: dict[tuple[str, int], trio.Lock] = {}
        self._coordinators: dict[tuple[int, str], Node] = {}
        self._was_connected = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with trio.CancelScope(shield=True):  # a checkpoint that is cancelled would leave the other ones open
            for connection in list(self._connections.values()):  # a task may open one meanwhile
                await connection.aclose()

    # ---- connections

    async def node_connection(self, node: Node) -> Connection:
        """Raises NoBrokerReachable, which is worth another try once the cluster has moved its leaders."""
        try:
            return await self._connection(node.host, node.port)
        except OSError as error:
            raise NoBrokerReachable(
                f"Cannot reach broker {node.node_id} at {node}: {_why(error)}", retriable=True
            ) from None

    async def any_connection(self) -> Connection:
        """Return an open connection, or connect to a known node or a bootstrap server, in this order."""
        for connection in self._connections.values():
            if not connection.is_closed and not connection.is_outlived:
                return connection
        known = [(node.host, node.port) for node in self.metadata.nodes.values()]
        failures: dict[tuple[str, int], Exception] = {}
        for host, port in dict.fromkeys([*known, *self._bootstrap_servers]):
            try:
                return await self._connection(host, port)
            except (OSError, ConnectionLost, NotKafka, TimedOut) as error:
                failures[host, port] = error
        # Nobody is looked at closer, which takes its time, while another one may answer.
        told = [await self._told(host, port, error) for (host, port), error in failures.items()]
        raise NoBrokerReachable(f"No broker can be reached ({'; '.join(told)})", retriable=self._was_connected)

    async def _told(self, host: str, port: int, error: Exception) -> str:
        if isinstance(error, OSError):
            closer = await self._closer(host, port) if isinstance(error, ConnectionAbortedError) else ""
            return f"{_shown(host, port)}: {closer or _why(error)}"
        closer = await self._closer(host, port)
        return f"{_shown(host, port)}: {closer}" if closer else str(error)

    async def _closer(self, host: str, port: int) -> str:
        """Return what answers there instead of a broker that this client can use, at its first connection alone."""
        return "" if self._look_closer is None or self._was_connected else await self._look_closer(host, port)

    async def connection_of_its_own(self) -> Connection:
        """Return a new connection to the first broker that can be reached; its user closes it, and nobody else has it.

        Raises NoBrokerReachable.
        """
        peer = (await self.any_connection()).peer
        host, _, port = peer.rpartition(":")
        try:
            return await self._open(host.removeprefix("[").removesuffix("]"), int(port))
        except OSError as error:
            raise NoBrokerReachable(f"No broker can be reached ({peer}: {_why(error)})", retriable=True) from None

    async def _connection(self, host: str, port: int) -> Connection:
        address = (host, port)
        async with self._opening.setdefault(address, trio.Lock()):
            existing = self._connections.get(address)
            if existing is not None and not existing.is_closed:
                if not existing.is_outlived:
                    return existing
                await existing.aclose()
            connection = await self._open(host, port)
            self._connections[address] = connection
            self._was_connected = True
            return connection

    async def _open(self, host: str, port: int) -> Connection:
        stream = await open_in_time(self._open_stream, host, port)
        connection = Connection(
            stream,
            peer=_shown(host, port),
            client_id=self._client_id,
            request_timeout_ms=self._request_timeout_ms,
            threads=self._threads,
        )
        try:
            await connection.negotiate()
            if self._credentials is not None:
                connection.lives_for(await authenticate(connection, self._credentials))
        except BaseException:
            await connection.aclose()
            raise
        return connection

    # ---- requests

    async def retrying(self, attempt: Callable[[], Awaitable[T]], timeout_ms: int | None = None) -> T:
        """The first outcome of `attempt` that is not a retriable failure, or the last failure when time is over."""
        deadline = trio.current_time() + (timeout_ms or self._api_timeout_ms) / 1000
        backoff_ms = RETRY_BACKOFF_MS
        while True:
            try:
                return await attempt()
            except ClientError as error:
                if not error.retriable or trio.current_time() + backoff_ms / 1000 >= deadline:
                    raise
            await trio.sleep(backoff_ms / 1000)
            backoff_ms = min(2 * backoff_ms, RETRY_BACKOFF_MAX_MS)

    async def request(
        self,
        request: Message,
        response_type: type[ResponseT],
        *,
        node: Node | None = None,
        at_most: int | None = None,
        verify: Callable[[ResponseT], None] | None = None,
    ) -> ResponseT:
        """Ask `node`, or any broker. `verify` raises for the error codes of the answer (see `errors.check`)."""

        async def attempt() -> ResponseT:
            connection = await (self.any_connection() if node is None else self.node_connection(node))
            return await _ask(connection, request, response_type, at_most, verify)

        return await self.retrying(attempt)

    async def controller_request(
        self,
        request: Message,
        response_type: type[ResponseT],
        *,
        verify: Callable[[ResponseT], None] | None = None,
    ) -> ResponseT:
        """Ask the node that the metadata calls the controller (a KRaft cluster names any broker, which forwards)."""

        async def attempt() -> ResponseT:
            metadata = await self._fetch_metadata([], allow_auto_topic_creation=False)
            node = metadata.nodes.get(metadata.controller_id)
            connection = await (self.any_connection() if node is None else self.node_connection(node))
            return await _ask(connection, request, response_type, None, verify)

        return await self.retrying(attempt)

    async def group_request(
        self,
        group_id: str,
        request: Message,
        response_type: type[ResponseT],
        *,
        at_most: int | None = None,
        timeout_ms: int | None = None,
        verify: Callable[[ResponseT], None] | None = None,
    ) -> ResponseT:
        """Ask the group's coordinator, wherever it moves. `timeout_ms` is for answers that are long in coming."""
        return await self.coordinator_request(
            group_id,
            request,
            response_type,
            key_type=GROUP_COORDINATOR,
            at_most=at_most,
            timeout_ms=timeout_ms,
            verify=verify,
        )

    async def coordinator_request(
        self,
        key: str,
        request: Message,
        response_type: type[ResponseT],
        *,
        key_type: int,
        at_most: int | None = None,
        timeout_ms: int | None = None,
        verify: Callable[[ResponseT], None] | None = None,
    ) -> ResponseT:
        """Ask the coordinator of a group or of a transactional id, as `group_request` does."""

        async def attempt() -> ResponseT:
            try:
                connection = await self.node_connection(await self.coordinator(key, key_type))
                return await _ask(connection, request, response_type, at_most, verify, timeout_ms)
            except (ConnectionLost, NoBrokerReachable):
                self._coordinators.pop((key_type, key), None)
                raise
            except KafkaError as error:
                if error.error_code in _COORDINATOR_MOVED:
                    self._coordinators.pop((key_type, key), None)
                raise

        return await self.retrying(attempt)

    async def coordinator(self, key: str, key_type: int = GROUP_COORDINATOR) -> Node:
        known = self._coordinators.get((key_type, key))
        if known is not None:
            return known
        connection = await self.any_connection()
        version = connection.version_of(FindCoordinatorRequest)
        if version >= 4:
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            rows = (await connection.request(request, FindCoordinatorResponse)).coordinators
            if not rows:
                raise ConnectionLost(f"{connection.peer} named no coordinator of '{key}'")
            check(rows[0].error_code, rows[0].error_message)
            node = Node(rows[0].node_id, rows[0].host, rows[0].port)
        else:
            older = FindCoordinatorRequest(key=key, key_type=key_type)
            response = await connection.request(older, FindCoordinatorResponse)
            check(response.error_code, response.error_message)
            node = Node(response.node_id, response.host, response.port)
        self._remember((key_type, key), node)
        return node

    async def coordinators(self, keys: Collection[str], key_type: int = GROUP_COORDINATOR) -> dict[Node, list[str]]:
        """The keys that each node coordinates, asked for together (KIP-699). A key whose coordinator cannot be told
        at the moment is left out; so is every unknown one where the broker takes one key at a time.
        """
        known = {key: node for key in keys if (node := self._coordinators.get((key_type, key))) is not None}
        unknown = [key for key in keys if key not in known]
        connection = await self.any_connection()
        if unknown and connection.version_of(FindCoordinatorRequest) >= 4:
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=unknown)
            for row in (await connection.request(request, FindCoordinatorResponse)).coordinators:
                if not row.error_code:
                    known[row.key] = Node(row.node_id, row.host, row.port)
                    self._remember((key_type, row.key), known[row.key])
        found: dict[Node, list[str]] = {}
        for key in keys:
            if key in known:
                found.setdefault(known[key], []).append(key)
        return found

    def _remember(self, key: tuple[int, str], node: Node) -> None:
        """Remember a coordinator; the one that is remembered for longest goes where there are too many."""
        self._coordinators.pop(key, None)
        if len(self._coordinators) >= MOST_COORDINATORS:
            del self._coordinators[next(iter(self._coordinators))]
        self._coordinators[key] = node

    # ---- metadata

    async def refresh(
        self, topics: Iterable[str] | None = None, *, allow_auto_topic_creation: bool = False
    ) -> ClusterMetadata:
        """Ask for these topics (None: for all); what is known of others stays."""
        wanted = None if topics is None else set(topics)
        names = None if wanted is None else sorted(wanted)

        async def attempt() -> ClusterMetadata:
            return await self._fetch_metadata(names, allow_auto_topic_creation)

        answer = await self.retrying(attempt)
        if wanted is not None:
            known = {name: topic for name, topic in self.metadata.topics.items() if name not in wanted}
            answer = replace(answer, topics={**known, **answer.topics})
        self.metadata = answer
        return answer

    async def _fetch_metadata(self, topics: list[str] | None, allow_auto_topic_creation: bool) -> ClusterMetadata:
        connection = await self.any_connection()
        rows = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        creation = allow_auto_topic_creation or connection.version_of(MetadataRequest) < 4
        request = MetadataRequest(topics=rows, allow_auto_topic_creation=creation)
        response = await connection.request(request, MetadataResponse)
        check(response.error_code)
        return from_response(response)

    async def topic(self, name: str, *, allow_auto_topic_creation: bool = False) -> TopicMetadata:
        """Return what is known of a topic, or ask anew until every partition has a leader. Raises UnknownTopic."""
        known = self.metadata.topics.get(name)
        return known or await self._await_topic(name, allow_auto_topic_creation)

    async def _await_topic(self, name: str, allow_auto_topic_creation: bool) -> TopicMetadata:
        async def attempt() -> TopicMetadata:
            metadata = await self.refresh([name], allow_auto_topic_creation=allow_auto_topic_creation)
            error = metadata.errors.get(name)
            if error is not None:
                raise KafkaError(error)
            return metadata.topics[name]

        try:
            creating = allow_auto_topic_creation
            return await self.retrying(attempt, TOPIC_CREATION_TIMEOUT_MS if creating else UNKNOWN_TOPIC_TIMEOUT_MS)
        except KafkaError as error:
            if error.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise UnknownTopic(f"Topic '{name}' does not exist", name) from None
            raise KafkaError(error.error_code, f"Topic '{name}': {error}") from None

    async def leader(self, of: TopicPartition) -> Node:
        """Raises UnknownTopic, and LEADER_NOT_AVAILABLE (retriable) while there is none."""
        topic = await self.topic(of.topic)
        if of.partition not in topic.partitions:
            raise UnknownTopic(f"Topic '{of.topic}' has no partition {of.partition}")
        node = self.metadata.leader(of)
        if node is None:
            await self.refresh([of.topic])
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"Partition {of} has no leader")
        return node


async def _ask(
    connection: Connection,
    request: Message,
    response_type: type[ResponseT],
    at_most: int | None,
    verify: Callable[[ResponseT], None] | None,
    timeout_ms: int | None = None,
) -> ResponseT:
    version = connection.version_of(type(request), at_most)
    response = await connection.request(request, response_type, version=version, timeout_ms=timeout_ms)
    if verify is not None:
        verify(response)
    return response


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _why(error: OSError) -> str:
    """trio packs the failures of a host's addresses into one; the first cause says enough."""
    group = error.__cause__
    cause = group.exceptions[0] if isinstance(group, BaseExceptionGroup) else error
    if isinstance(cause, OSError) and cause.errno is not None and cause.errno > 0:
        return os.strerror(cause.errno)
    return str(getattr(cause, "strerror", None) or cause)
