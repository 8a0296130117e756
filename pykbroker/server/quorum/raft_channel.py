"""The raft channel sends raft's requests to other nodes, and gives the event that each comes to.

Kafka's counterpart is `KafkaNetworkChannel`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio

from pykbroker.client.errors import ClientError, ConnectionRefused, UnsupportedByBroker
from pykbroker.protocol.api_keys import response_type
from pykbroker.protocol.errors import ErrorCode, UnsupportedVersion
from pykbroker.protocol.messages.fetch import FetchRequest
from pykbroker.protocol.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from pykbroker.protocol.messages.quorum import VoteRequest
from pykbroker.protocol.schema import Message
from pykbroker.raft.events import Destination, OutgoingRequest, RequestFailed, ResponseReceived

from ..network.node_connections import NodeAddress, NodeConnections
from .foreign_peers import ForeignPeers
from .unreachable_peers import UnreachablePeers

_log = logging.getLogger(__name__)

_PRE_VOTE_VERSION = 2
_FOREIGN_RETRY_S = 1.0
_CONTROLLERS = 2


class RaftChannel:
    """The channel has two connections to each peer: a peer answers a connection's requests one by one, and a vote does
    not wait for a fetch that waits for records.

    One request is under way on each (`max.in.flight.requests.per.connection` of Kafka's `KafkaRaftManager`), and the
    newest one waits for its turn. Raft has given up those before it: a node that stands for election again and again
    does not fill the connection to a peer that stands still.

    foreign: who answered last that it is of another cluster. on_foreign: called when there is another one.
    """

    def __init__(self, connections: NodeConnections, cluster_id: str | None = None) -> None:
        self.foreign = ForeignPeers(cluster_id)
        self.on_foreign: Callable[[], None] | None = None
        self._connections = connections
        self._lines: dict[tuple[Destination, str], _Line] = {}
        self._unreachable = UnreachablePeers()

    async def ask(self, outgoing: OutgoingRequest) -> ResponseReceived | RequestFailed:
        """Return what the request came to; it has failed where a later one to the same peer took its turn."""
        purpose = "fetch" if isinstance(outgoing.request, FetchRequest) else ""
        at = outgoing.destination, purpose
        line = self._lines.setdefault(at, _Line())
        if not await line.take():
            return RequestFailed(outgoing.request_id)
        try:
            return await self._ask_in_turn(outgoing, purpose)
        finally:
            line.give_back()
            if line.is_idle:
                self._lines.pop(at, None)

    async def _ask_in_turn(self, outgoing: OutgoingRequest, purpose: str) -> ResponseReceived | RequestFailed:
        request, to = outgoing.request, outgoing.destination
        node = f"controller {to.node_id}" if to.node_id >= 0 else f"bootstrap server {to.host}:{to.port}"
        try:
            response = await self._ask(NodeAddress(node, to.host, to.port), request, purpose)
        except ClientError as error:
            _log.debug("%s to %s: %s", type(request).__name__, node, error)
            self._unreachable.failed(to, node, error)
            await self._connections.close(node, purpose)
            return RequestFailed(outgoing.request_id, connection_refused=isinstance(error, ConnectionRefused))
        self._unreachable.answered(to, node)
        if getattr(response, "error_code", 0) == ErrorCode.INCONSISTENT_CLUSTER_ID:
            return await self._is_foreign(outgoing, node)
        self.foreign.discard(to)
        return ResponseReceived(outgoing.request_id, response)

    async def _is_foreign(self, outgoing: OutgoingRequest, node: str) -> RequestFailed:
        """Tell of a peer of another cluster, and wait: there is no hurry until somebody mends the set-up."""
        to = outgoing.destination
        if to not in self.foreign:
            self.foreign.add(to, node, None)
            self.foreign.add(to, node, await self._cluster_id_of(NodeAddress(node, to.host, to.port)))
            own = self.foreign.own_cluster_id
            _log.error("%s, and this node of %s: check their directories", self.foreign.describe(to), own)
            if self.on_foreign is not None:
                self.on_foreign()
        await trio.sleep(_FOREIGN_RETRY_S)
        return RequestFailed(outgoing.request_id)

    async def _cluster_id_of(self, destination: NodeAddress) -> str | None:
        """Return None where the controller does not tell."""
        request = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
        try:
            answer = await self._connections.request(destination, request, DescribeClusterResponse)
        except (ClientError, UnsupportedVersion):
            return None
        return None if answer.error_code else answer.cluster_id

    async def _ask(self, destination: NodeAddress, request: Message, purpose: str) -> Message:
        key = request.__schema__.api_key
        assert key is not None
        answer = response_type(key)
        try:
            if isinstance(request, VoteRequest):
                connection = await self._connections.connection(destination, purpose)
                is_pre_vote = any(each.pre_vote for topic in request.topics for each in topic.partitions)
                if is_pre_vote and connection.version_of(VoteRequest) < _PRE_VOTE_VERSION:
                    return _unsupported(answer)
            return await self._connections.request(destination, request, answer, purpose=purpose)
        except (UnsupportedByBroker, UnsupportedVersion) as error:
            _log.warning(
                "%s supports no version of %s that this node sends: %s", destination.node, type(request).__name__, error
            )
            return _unsupported(answer)

    async def aclose(self) -> None:
        await self._connections.aclose()


class _Line:
    """The line to a peer is held by one request, and one more waits for it."""

    def __init__(self) -> None:
        self._held = trio.Lock()
        self._waiting = trio.CancelScope()

    async def take(self) -> bool:
        """Return False where a later request waits in place of this one."""
        self._waiting.cancel()
        with trio.CancelScope() as self._waiting:
            await self._held.acquire()
            return True
        return False

    def give_back(self) -> None:
        self._held.release()

    @property
    def is_idle(self) -> bool:
        return not self._held.locked()


def _unsupported(answer: type[Message]) -> Message:
    response = answer()
    response.error_code = ErrorCode.UNSUPPORTED_VERSION  # type: ignore[attr-defined]
    return response
