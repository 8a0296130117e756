"""What nodes ask of each other: by whom, whom, which API, and what came of it. Nothing repeats without progress.

- HotLoop: what brings nothing is not asked more than `MOST_IN_VAIN` times within 100 ms of virtual time, by one node of
  one other, whatever goes wrong. A fetch brings something where its answer names a partition, and a request that is a
  client's brings something to that client; other requests between nodes are never as many.
- Repeats: in a quiet cluster there are fetches that wait, heartbeats, and nothing else; none of them comes faster than
  its interval.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from pykbroker.client.connection import Connection
from pykbroker.client.errors import ClientError
from pykbroker.protocol.errors import ErrorCode
from pykbroker.server.network.node_connections import NodeAddress, NodeConnections
from pykbroker.sim.determinism import virtual_time_s
from tests.replication.simulation.invariants import ensure

MOST_IN_VAIN = 60
_WITHIN_S = 0.1

CONNECT = "connect"
_OF_CLIENTS = ("Envelope", "AddPartitionsToTxn", "WriteTxnMarkers")
_LISTS = ("responses", "topics", "partitions", "markers")


@dataclass(frozen=True, slots=True)
class Asked:
    """who: the client id, which names node and purpose."""

    who: str
    whom: str
    what: str

    def __str__(self) -> str:
        return f"{self.what} from {self.who} to {self.whom}"


class Traffic:
    """counts: of requests and attempts to connect that have ended, with what they ended."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[Asked, str]] = Counter()
        self.hot: list[str] = []
        self._in_vain: dict[Asked, deque[float]] = defaultdict(lambda: deque(maxlen=MOST_IN_VAIN))

    @contextmanager
    def watching(self) -> Iterator[None]:
        request, connect = Connection.request, NodeConnections._connect

        async def request_and_tell(connection: Connection, message: Any, *arguments: Any, **keywords: Any) -> Any:
            asked = Asked(connection._client_id, connection.peer, type(message).__name__.removesuffix("Request"))
            try:
                response = await request(connection, message, *arguments, **keywords)
            except ClientError as error:
                self.note(asked, type(error).__name__)
                raise
            self.note(asked, outcome_of(response), has_news=_has_news(asked, response))
            return response

        async def connect_and_tell(connections: NodeConnections, destination: NodeAddress) -> Connection:
            asked = Asked(connections._client_id, destination.node, CONNECT)
            try:
                connection = await connect(connections, destination)
            except ClientError as error:
                self.note(asked, type(error).__name__)
                raise
            self.note(asked, "")
            return connection

        with (
            patch.object(Connection, "request", request_and_tell),
            patch.object(NodeConnections, "_connect", connect_and_tell),
        ):
            yield

    def note(self, asked: Asked, outcome: str, *, has_news: bool = False) -> None:
        """outcome: an error, or nothing."""
        self.counts[asked, outcome] += 1
        if outcome or not has_news:
            times, now_s = self._in_vain[asked], virtual_time_s()
            if len(times) == MOST_IN_VAIN and now_s - times[0] < _WITHIN_S:
                what = outcome or "nothing new"
                self.hot.append(f"{asked}: {MOST_IN_VAIN + 1} times {what} from {times[0]:.3f} to {now_s:.3f}")
                times.clear()
            times.append(now_s)

    def check_hot_loops(self) -> None:
        ensure(not self.hot, "HotLoop", "; ".join(self.hot[:3]))


def _has_news(asked: Asked, response: Any) -> bool:
    return asked.what in _OF_CLIENTS or (asked.what == "Fetch" and bool(response.responses))


def outcome_of(response: Any) -> str:
    """The error codes in it, by name; nothing where there are none."""
    codes = sorted(set(_error_codes(response)))
    return ", ".join(ErrorCode(code).name for code in codes)


def _error_codes(answer: Any) -> Iterator[int]:
    code = getattr(answer, "error_code", 0)
    if code:
        yield code
    for name in _LISTS:
        nested: Sequence[Any] = getattr(answer, name, None) or ()
        for each in nested:
            yield from _error_codes(each)
