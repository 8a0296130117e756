"""The stage of `tests.coordination` with three nodes: its clients find leaders and coordinators as real ones do."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import trio

from pykbroker.java_hash import abs_java_hash
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatResponse
from pykbroker.protocol.messages.fetch import FetchRequest
from pykbroker.protocol.messages.group_offsets import OffsetFetchRequest
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykbroker.protocol.messages.offsets import DeleteRecordsRequest, ListOffsetsRequest
from pykbroker.protocol.messages.produce import ProduceRequest
from pykbroker.protocol.messages.transactions import TxnOffsetCommitRequest
from pykbroker.protocol.schema import Message
from pykbroker.server.coordinators.group_coordinator import CONSUMER_OFFSETS
from pykbroker.server.network.transport import Address
from pykbroker.sim.network import SimulatedTransport
from tests.coordination.stage import Lost, Stage, Wire, topic_of
from tests.server.serving import Client

from .nodes import BROKER_PORT, CLOCKS_MS, NODE_IDS, SimulatedCluster, host
from .oracles.lives import Lives
from .plan import Plan

CLIENTS = "clients"
"""The machine that all clients are on."""

_GROUP, _TRANSACTION = 0, 1
_SEARCH_S = 0.02
_STEADY_S = 4.0


class ClusterStage(Stage):
    """What one client has found out the others know too; it is forgotten after a while, and when somebody is lost."""

    replication_factor = 3
    are_fetched_marks_kept = False
    """A new leader may not know yet how far the old one had come; ListOffsets does not answer until it does (KIP-207).
    """

    clocks_ms = CLOCKS_MS + 1_000
    """Apart from a client's, which shows no other time: their rates differ too."""

    def __init__(self, seed: int, nursery: trio.Nursery, plan: Plan, lives: Lives) -> None:
        """lives: what the nodes know. No client does, but for `_is_replaced`."""
        self.plan = plan
        self.pace = plan.pace
        self._lives = lives
        super().__init__(seed, nursery)

    def _add_nodes(self, overrides: Mapping[str, str]) -> None:
        self.cluster = SimulatedCluster(random.Random(self.rng.random()), self.network, self.plan, overrides)
        self._leaders: dict[tuple[str, int], tuple[int, int]] = {}
        self._newest_epochs: dict[tuple[str, int], int] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self._forget_at = 0.0

    async def connect(self, address: Address) -> SimulatedTransport:
        return await self.network.of(CLIENTS).connect(*address)

    # Who is to be asked

    async def ask(self, wire: Wire, request: Message, version: int) -> Any:
        self._forget_what_is_old()
        try:
            return await self._ask(wire, request, version)
        except (OSError, EOFError, trio.BrokenResourceError, trio.ClosedResourceError, trio.Cancelled):
            self._forget_at = 0.0
            raise

    def _forget_what_is_old(self) -> None:
        if trio.current_time() >= self._forget_at:
            self._leaders, self._coordinators = {}, {}
            self._forget_at = trio.current_time() + 0.3

    def forget_leaders(self) -> None:
        self._forget_at = 0.0

    async def leader_of(self, wire: Wire, key: str) -> tuple[Address, int]:
        self._forget_what_is_old()
        leader, epoch = await self._leader(wire, topic_of(key))
        return _address(leader), epoch

    async def _ask(self, wire: Wire, request: Message, version: int) -> Any:
        match request:
            case ProduceRequest():
                [topic] = request.topic_data
                [partition] = topic.partition_data
                return await self._ask_leader(wire, (topic.name, partition.index), request, version)
            case FetchRequest():
                return await self._ask_all(
                    wire, request, version, lambda topic: topic.topic, lambda each: each.partition
                )
            case DeleteRecordsRequest():
                [topic] = request.topics
                [partition] = topic.partitions
                return await self._ask_leader(wire, (topic.name, partition.partition_index), request, version)
            case ListOffsetsRequest():
                return await self._ask_all(
                    wire, request, version, lambda topic: topic.name, lambda each: each.partition_index
                )
            case _:
                return await self._ask_coordinator(wire, request, version)

    async def _ask_leader(self, wire: Wire, key: tuple[str, int], request: Message, version: int) -> Any:
        leader, _ = await self._leader(wire, key)
        return await wire.ask_at(_address(leader), request, version)

    async def _ask_all(
        self, wire: Wire, request: Any, version: int, name: Callable[[Any], str], index: Callable[[Any], int]
    ) -> Any:
        """Each leader for its partitions; one answer of them all.

        With the epoch in which it leads, as far as is known: who led before may not have all of it any more.
        """
        parts: dict[int, list[Any]] = {}
        for topic in request.topics:
            for partition in topic.partitions:
                leader, epoch = await self._leader(wire, (name(topic), index(partition)))
                parts.setdefault(leader, []).append((topic, _copy(partition, current_leader_epoch=epoch)))
        merged: Any = None
        for leader, wanted in parts.items():
            part = _copy(request, topics=[_copy(topic, partitions=[partition]) for topic, partition in wanted])
            answer = await wire.ask_at(_address(leader), part, version)
            if merged is None:
                merged = answer
            elif isinstance(request, FetchRequest):
                merged.responses += answer.responses
            else:
                merged.topics += answer.topics
        return merged

    async def _ask_coordinator(self, wire: Wire, request: Any, version: int) -> Any:
        key: tuple[int, str]
        if isinstance(request, OffsetFetchRequest):
            key = _GROUP, request.groups[0].group_id
        elif not isinstance(request, TxnOffsetCommitRequest) and getattr(request, "transactional_id", None) is not None:
            key = _TRANSACTION, request.transactional_id
        elif hasattr(request, "group_id"):
            key = _GROUP, request.group_id
        else:
            return await wire.ask_at(self._anybody(), request, version)
        coordinator = await self._coordinator(wire, key)
        answer = await wire.ask_at(_address(coordinator), request, version)
        if _is_answered_by_memory(answer) and self._is_replaced(coordinator, key[1]):
            raise EOFError
        return answer

    def _is_replaced(self, node_id: int, group: str) -> bool:
        """Whether a node answers for a group that another one coordinates, of which it has not heard.

        It has nothing to ask before it tells a member that it knows no such group: so that may be older than what its
        successor has confirmed; as from Apache Kafka's coordinator. Members are safe, since it can neither let anybody
        join nor assign anything; others take such an answer for a lost one here. Committed offsets are another matter
        (`server.coordinators.leadership`).
        """
        known: dict[int, tuple[int, int]] = {}
        for each, life in self._lives.items():
            topic = life.image.topic(CONSUMER_OFFSETS)
            if topic is not None:
                partition = topic.partitions[abs_java_hash(group) % len(topic.partitions)]
                known[each] = partition.leader_epoch, partition.leader
        latest = max(known.values(), default=(-1, node_id))
        return latest[1] != node_id or known.get(node_id) != latest

    def _anybody(self) -> Address:
        return _address(self.rng.choice(NODE_IDS))

    async def _leader(self, wire: Wire, key: tuple[str, int]) -> tuple[int, int]:
        """And its epoch, which is none before one that was told already: nodes may lag behind (KIP-320)."""
        while key not in self._leaders:
            response: MetadataResponse = await wire.ask_at(self._anybody(), MetadataRequest(topics=None), 9)
            for topic in response.topics:
                for partition in topic.partitions:
                    found, epoch = (topic.name or "", partition.partition_index), partition.leader_epoch
                    if partition.leader_id >= 0 and epoch >= self._newest_epochs.get(found, epoch):
                        self._leaders[found] = partition.leader_id, epoch
                        self._newest_epochs[found] = epoch
            if key not in self._leaders:
                await trio.sleep(_SEARCH_S)
        return self._leaders[key]

    async def _coordinator(self, wire: Wire, key: tuple[int, str]) -> int:
        while key not in self._coordinators:
            request = FindCoordinatorRequest(coordinator_keys=[key[1]], key_type=key[0])
            found = (await wire.ask_at(self._anybody(), request, 4)).coordinators[0]
            if found.error_code == ErrorCode.NONE:
                self._coordinators[key] = found.node_id
            else:
                await trio.sleep(_SEARCH_S)
        return self._coordinators[key]

    # What nodes say of themselves

    async def is_in_sync_everywhere(self, node_id: int) -> bool:
        """In all partitions of its own, as far as it knows. Whoever asks sits in front of it, where no link is cut."""
        with trio.move_on_after(1):
            try:
                client = Client(await self.network.connect(*_address(node_id)))
                response: MetadataResponse = await client.ask(MetadataRequest(topics=None), 9)  # type: ignore[assignment]
            except (OSError, EOFError, trio.BrokenResourceError):
                return False
            client.transport.close()
            partitions = [partition for topic in response.topics for partition in topic.partitions]
            return all(node_id in each.isr_nodes for each in partitions if node_id in each.replica_nodes)
        return False

    # When all is quiet

    async def wait_until_replicated(self, within_s: float) -> None:
        """Every partition has a leader, and all its replicas are in sync, for long enough. Raises TooSlowError.

        Heartbeats that hang on a link that is mended by now may have a broker fenced some time later.
        """
        wire = Wire(self, "admin")
        is_steady_at = trio.current_time() + _STEADY_S
        with trio.fail_after(within_s):
            while trio.current_time() < is_steady_at:
                if not await self._is_replicated(wire):
                    is_steady_at = trio.current_time() + _STEADY_S
                await trio.sleep(0.2)
        self._forget_at = 0.0
        wire.cut()

    async def _is_replicated(self, wire: Wire) -> bool:
        try:
            response = await wire.ask(MetadataRequest(topics=None), 9)
        except Lost:
            return False
        partitions = [partition for topic in response.topics for partition in topic.partitions]
        return all(each.leader_id >= 0 and len(each.isr_nodes) == len(each.replica_nodes) for each in partitions)


def _is_answered_by_memory(answer: object) -> bool:
    return isinstance(answer, ConsumerGroupHeartbeatResponse) and answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def _copy(message: Any, **changes: Any) -> Any:
    copied = copy(message)
    for name, value in changes.items():
        setattr(copied, name, value)
    return copied


def _address(node_id: int) -> Address:
    return Address(host(node_id), BROKER_PORT)
