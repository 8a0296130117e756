"""One run: a node, a network, a recorder, and what clients need to act."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from pykbroker.protocol.schema import Message
from pykbroker.server.network.transport import Address
from pykbroker.sim.network import SimulatedNetwork, SimulatedTransport
from pykbroker.sim.node import SimulatedNode
from tests.history.operations import Value
from tests.history.recorder import Recorder
from tests.server.serving import Client

from .sizes import LATEST, TRIMMED, Sizes

T = TypeVar("T")

PORT = 9092
HOST = "127.0.0.1"

SOURCE, COPY = "source-0", "copy-0"
ORDERS = ("orders-0", "orders-1")

CONFIGURATION = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "1500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.assignment.interval.ms": "50",
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "500",
}

COORDINATORS = (0, 1)
"""Kinds of FindCoordinator: of groups, of transactions."""

_TOPIC_RESOURCE = 2
_INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
_RECORD_KEYS = 5
"""Of each compacted partition: few, so that each is written again and again."""

RETRIABLE = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)

WITHOUT_EFFECT = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    )
)
"""Retriable, and it is certain that nothing happened."""


class Lost(Exception):
    """No answer will come, and nobody knows what became of the request."""


class Gone(Exception):
    """The client gives up, or dies: it does nothing more."""


def topic_of(key: str) -> tuple[str, int]:
    topic, _, index = key.rpartition("-")
    return topic, int(index)


class Wire:
    """A client's connections, which are opened anew when they are lost."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._name = name
        self._clients: dict[Address, Client] = {}

    async def ask(self, request: Message, version: int, *, timeout_s: float = 3.0) -> Any:
        """Raises Lost."""
        return await self.attempt(lambda: self._stage.ask(self, request, version), timeout_s=timeout_s)

    async def attempt(self, attempt: Callable[[], Awaitable[T]], *, timeout_s: float = 3.0) -> T:
        """Whatever asks by `ask_at`. Raises Lost."""
        with trio.move_on_after(timeout_s):
            try:
                return await attempt()
            except (OSError, EOFError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
                self.cut()
                raise Lost from error
        self.cut()
        raise Lost

    async def ask_at(self, address: Address, request: Message, version: int) -> Any:
        """What goes wrong is raised as it is."""
        client = self._clients.get(address)
        if client is None:
            client = self._clients[address] = Client(await self._stage.connect(address))
            self._stage.opened(client.transport)
        return await client.ask(request, version)

    def cut(self) -> None:
        clients, self._clients = self._clients, {}
        for client in clients.values():
            client.transport.reset()  # type: ignore[attr-defined]


class Stage:
    """quiet: no more faults, and clients that are not needed for the end stop."""

    replication_factor = 1
    clocks_ms = 0
    """How far apart clocks may be, which compare the times of records."""
    pace = 1.0
    """How much slower than usual all clients are; a run that lasts for long has not more of everything."""
    are_fetched_marks_kept = True
    """What Fetch tells of the high watermark and the last stable offset never goes back."""

    def __init__(self, seed: int, nursery: trio.Nursery, overrides: Mapping[str, str] | None = None) -> None:
        self.seed = seed
        self.sizes = Sizes.of(seed)
        self.rng = random.Random(seed)
        self.nursery = nursery
        self.network = SimulatedNetwork(
            random.Random(self.rng.random()), longest_delay_ms=self.rng.choice((0.5, 2.0, 20.0))
        )
        self.topics = self.sizes.topics(self.delete_retention_ms)
        self.keys = tuple(f"{name}-{index}" for name, topic in self.topics.items() for index in range(topic.partitions))
        self._add_nodes({**CONFIGURATION, **self.sizes.properties, **(overrides or {})})
        self.recorder = Recorder(now_ns=self._now_ns)
        self.topic_ids: dict[str, bytes] = {}
        self.is_quiet = False
        self.deaths = 0
        self._events = 0
        self._values = 0
        self._open: list[SimulatedTransport] = []

    def _add_nodes(self, overrides: Mapping[str, str]) -> None:
        self.node = SimulatedNode(self.rng, self.network, port=PORT, overrides=overrides)

    def _now_ns(self) -> int:
        """Virtual time; no two events have the same."""
        self._events += 1
        return int(trio.current_time() * 1e9) + self._events

    def new_value(self) -> str:
        self._values += 1
        return f"v{self._values}"

    def new_value_for(self, key: str) -> Value:
        """In a compacted partition: the record's key, its value or None for a tombstone, and what makes it unique."""
        if topic_of(key)[0] != LATEST:
            return self.new_value()
        number = self.new_number()
        return f"k{self.rng.randrange(_RECORD_KEYS)}", None if self.rng.random() < 0.2 else f"p{number}", number

    def new_records_each(self, key: str) -> int:
        """How many records each value of a batch is."""
        most = self.sizes.most_records
        return 1 if most == 1 or topic_of(key)[0] == LATEST or self.rng.random() < 0.5 else self.rng.randint(1, most)

    def keys_of(self, *topics: str) -> list[str]:
        return [key for key in self.keys if topic_of(key)[0] in topics]

    def new_number(self) -> int:
        self._values += 1
        return self._values

    def chance(self, probability: float) -> bool:
        """Of something that goes wrong: never when all is quiet."""
        return not self.is_quiet and self.rng.random() < probability

    async def pause(self, longest_ms: float) -> None:
        await trio.sleep(self.rng.uniform(0, longest_ms) / 1000 * (1.0 if self.is_quiet else self.pace))

    # Connections

    async def connect(self, address: Address) -> SimulatedTransport:
        return await self.network.connect(*address)

    async def ask(self, wire: Wire, request: Message, version: int) -> Any:
        """Wherever it has to be asked."""
        return await wire.ask_at(Address(HOST, PORT), request, version)

    async def leader_of(self, wire: Wire, key: str) -> tuple[Address, int]:
        """And its epoch, or -1."""
        return Address(HOST, PORT), -1

    def forget_leaders(self) -> None:
        """Who leads is asked for again."""

    def opened(self, transport: Any) -> None:
        self._open = [each for each in self._open if not each.is_closed] + [transport]

    def cut_a_connection(self) -> None:
        if self._open:
            self.rng.choice(self._open).reset()

    # What there has to be

    async def prepare(self) -> None:
        """Topics and coordinators, before anything goes wrong."""
        wire = Wire(self, "admin")
        topics = [
            CreatableTopic(
                name=name,
                num_partitions=topic.partitions,
                replication_factor=self.replication_factor,
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()],
            )
            for name, topic in self.topics.items()
        ]
        created = await wire.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
        assert all(topic.error_code == 0 for topic in created.topics), created
        self.topic_ids = {topic.name: topic.topic_id for topic in created.topics}
        await self.find_coordinators(wire)
        if self.sizes.internal_rolls_bytes is not None:
            await self._let_internal_topics_roll(wire, self.sizes.internal_rolls_bytes)
        wire.cut()
        self._tell_what_may_be_missing()

    async def _let_internal_topics_roll(self, wire: Wire, segment_bytes: int) -> None:
        change = IncrementalAlterConfigsRequestAlterableConfig(
            name="internal.segment.bytes", config_operation=0, value=str(segment_bytes)
        )
        resources = [
            IncrementalAlterConfigsRequestAlterConfigsResource(
                resource_type=_TOPIC_RESOURCE, resource_name=name, configs=[change]
            )
            for name in _INTERNAL_TOPICS
        ]
        altered = await wire.ask(IncrementalAlterConfigsRequest(resources=resources), 1)
        assert all(each.error_code == 0 for each in altered.responses), altered

    @property
    def delete_retention_ms(self) -> int:
        """How long tombstones and markers stay: longer than a replica is away, or than it takes to see that they go."""
        return 120_000 if self.replication_factor > 1 else 1_000

    def _tell_what_may_be_missing(self) -> None:
        proc = self.recorder.new_process()
        if trimmed := self.keys_of(TRIMMED):
            keeps = {name: kept - self.clocks_ms * (name == "keeps_ms") for name, kept in self.sizes.keeps.items()}
            # Until the next checkpoint: with the deleted segments, which a crash may bring back, or with the records
            # that DeleteRecords named; or as a replica had it that lagged behind.
            self.recorder.tell(proc, "trimmed", keys=trimmed, start_returns=True, **keeps)
        if latest := self.keys_of(LATEST):
            kept_ms = max(0, self.delete_retention_ms - 2 * self.clocks_ms)
            self.recorder.tell(proc, "compacted", keys=latest, delete_retention_ms=kept_ms)

    async def find_coordinators(self, wire: Wire) -> None:
        """Until they are there; their topics are created when somebody asks first."""
        for key_type in COORDINATORS:
            while True:
                request = FindCoordinatorRequest(coordinator_keys=["any"], key_type=key_type)
                found = await wire.ask(request, 4)
                code = ErrorCode(found.coordinators[0].error_code)
                if code is ErrorCode.NONE:
                    break
                assert code is ErrorCode.COORDINATOR_NOT_AVAILABLE, code
                await trio.sleep(0.05)
