"""Time, chance and a network for members of a quorum: a heap of events, and messages that come late, twice or never.

Everything that happens follows from one seed. Messages pass through the real codecs, so nobody shares an object.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, TypeVar

from pykbroker.protocol.api_keys import response_type
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import UnsupportedVersion
from pykbroker.protocol.schema import Message
from pykbroker.raft.events import OutgoingRequest, RequestFailed, ResponseReceived

if TYPE_CHECKING:
    from .simulated_node import SimulatedNode

M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Faults:
    """Of the network, by chance: 0.0 is never. delay_ms: of a message, at most."""

    loss: float = 0.0
    duplication: float = 0.0
    delay_ms: float = 5.0
    slow: float = 0.0
    """How many messages take twenty times as long, so that others overtake them."""
    old_versions: float = 0.0
    """How many requests go out as by a peer that knows no later version."""


def through_the_wire(message: M, version: int) -> M:
    return decode(type(message), version, encode(message, version))[0]


class World:
    def __init__(self, seed: int, faults: Faults) -> None:
        self.rng = Random(seed)
        self.faults = faults
        self.now_ms = 0.0
        self.nodes: dict[int, SimulatedNode] = {}
        self.cuts: set[tuple[int, int]] = set()
        """From whom to whom nothing comes through."""
        self.has_directories = False
        """The voters stand in the log, with their directories."""
        self.log: list[str] | None = None
        self.seen: Counter[str] = Counter()
        """How often what happened."""
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, delay_ms: float, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (self.now_ms + delay_ms, self._count, what))

    def step(self) -> bool:
        if not self._heap:
            return False
        self.now_ms, _, what = heapq.heappop(self._heap)
        what()
        return True

    def note(self, *what: object) -> None:
        if self.log is not None:
            self.log.append(f"{self.now_ms:9.1f} {' '.join(map(str, what))}")

    # The network

    def send(self, source: SimulatedNode, outgoing: OutgoingRequest) -> None:
        """Every request is answered or fails, once; late answers are still delivered to whoever asked."""
        target = self._node_at(outgoing.destination.port)
        life, request_id = source.life, outgoing.request_id
        self.at(source.timeouts.request_ms, lambda: source.step(life, RequestFailed(request_id)))
        if target is None or not target.is_up:
            self.at(self._delay_ms(), lambda: source.step(life, RequestFailed(request_id, connection_refused=True)))
            return
        schema = type(outgoing.request).__schema__
        low, high = schema.stable_versions
        version = high
        if self.rng.random() < self.faults.old_versions:
            name = type(outgoing.request).__name__
            version = self.rng.randint(max(low, OLDEST.get(name, low)), high)
            if self.has_directories:
                version = max(version, OLDEST_WITH_DIRECTORIES.get(name, low))
        try:
            request = through_the_wire(outgoing.request, version)
        except UnsupportedVersion:
            refusal = unsupported_version(outgoing.request)
            if refusal is not None:
                self.at(self._delay_ms(), lambda: source.step(life, ResponseReceived(request_id, refusal)))
            return
        self.note(source.node_id, "->", target.node_id, request)

        def answer(response: Message) -> None:
            self._deliver(
                target.node_id, source.node_id, lambda: self._respond(source, life, request_id, response, version)
            )

        for _ in range(self._copies()):
            self._deliver(source.node_id, target.node_id, lambda: target.receive(request, version, answer))

    def _respond(self, source: SimulatedNode, life: int, request_id: int, response: Message, version: int) -> None:
        self.note(source.node_id, "<-", response)
        source.step(life, ResponseReceived(request_id, through_the_wire(response, version)))

    def _deliver(self, source: int, target: int, what: Callable[[], None]) -> None:
        if (source, target) in self.cuts:
            self.seen["messages cut off"] += 1
        elif self.rng.random() < self.faults.loss:
            self.seen["messages lost"] += 1
        else:
            self.at(self._delay_ms(), what)

    def _copies(self) -> int:
        if self.rng.random() >= self.faults.duplication:
            return 1
        self.seen["messages doubled"] += 1
        return 2

    def _delay_ms(self) -> float:
        delay_ms = self.rng.random() * self.faults.delay_ms
        if self.rng.random() >= self.faults.slow:
            return delay_ms
        self.seen["messages overtaken"] += 1
        return delay_ms * 20

    def _node_at(self, port: int) -> SimulatedNode | None:
        return self.nodes.get(port)


OLDEST = {"FetchRequest": 15}
"""What the nodes of Kafka 3.9 send at least."""

OLDEST_WITH_DIRECTORIES = {
    "VoteRequest": 1,
    "BeginQuorumEpochRequest": 1,
    "EndQuorumEpochRequest": 1,
    "FetchSnapshotRequest": 1,
    "FetchRequest": 17,
}
"""Of voters in the log, which are not served before 3.9. An older Vote does not say which directory is meant, and
whoever came back with an empty one would give the vote of the one that is lost.
"""


def unsupported_version(request: Message) -> Message | None:
    """What a client of a peer makes of a request that no version of the peer can carry."""
    assert type(request).__schema__.api_key is not None
    response = response_type(type(request).__schema__.api_key)()
    response.error_code = 35  # type: ignore[attr-defined]
    return response
