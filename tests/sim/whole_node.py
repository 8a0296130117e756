"""A workload on one simulated node, as a list of what a client saw and when."""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import cast

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pykbroker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.network import SimulatedNetwork
from pykbroker.sim.node import SimulatedNode
from tests.server.serving import Client

TOPIC = "orders"
PORT = 9092

Scenario = Callable[["World"], Awaitable[None]]


class World:
    """One node, its network, and a trace of what clients are told."""

    def __init__(self, seed: int, nursery: trio.Nursery, overrides: Mapping[str, str] | None = None) -> None:
        self.rng = random.Random(seed)
        self.network = SimulatedNetwork(random.Random(self.rng.random()))
        self.node = SimulatedNode(self.rng, self.network, port=PORT, overrides=overrides)
        self.trace: list[str] = []
        self.nursery = nursery

    def note(self, *what: object) -> None:
        self.trace.append(" ".join(map(str, (self.node.clock.monotonic_ms() - self._start_ms, *what))))

    async def start(self) -> None:
        self._start_ms = self.node.clock.monotonic_ms()
        self.note(await self.node.start(self.nursery))

    async def connect(self) -> Client:
        return Client(await self.network.connect("127.0.0.1", PORT))

    async def create_topic(self, client: Client) -> None:
        """The topic can be written to when this returns: its leader has its log, or has no room for it."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=True)
        with trio.fail_after(30):
            while True:
                response = cast(MetadataResponse, await client.ask(request, 9))
                self.note("metadata", response.topics[0].error_code, response.topics[0].topic_id.hex())
                if response.topics[0].error_code == 0:
                    # Clients hear of the leader, from Kafka too, before it leads: threads that make logs stand still.
                    answer = await self._fetch(client, 0)
                    if answer.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
                        return
                await trio.sleep(0.1)

    async def produce(self, client: Client, values: list[bytes]) -> int:
        """The offset of the first record."""
        answer = await self._produce(client, values)
        assert answer.error_code == 0, ErrorCode(answer.error_code)
        return answer.base_offset

    async def try_to_produce(self, client: Client, values: list[bytes], index: int = 0) -> ErrorCode:
        return ErrorCode((await self._produce(client, values, index)).error_code)

    async def _produce(self, client: Client, values: list[bytes], index: int = 0) -> PartitionProduceResponse:
        records = encode_batch([Record(key=None, value=value, timestamp=self.node.clock.now_ms()) for value in values])
        request = ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=index, records=records)])
            ],
        )
        response = cast(ProduceResponse, await client.ask(request, 9))
        answer = response.responses[0].partition_responses[0]
        self.note("produce", answer.error_code, answer.base_offset)
        return answer

    async def _fetch(self, client: Client, offset: int) -> PartitionData:
        request = FetchRequest(
            max_wait_ms=10,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[
                FetchTopic(
                    topic=TOPIC,
                    partitions=[FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)],
                )
            ],
        )
        response = cast(FetchResponse, await client.ask(request, 11))
        data = response.responses[0].partitions[0]
        self.note("fetch", data.error_code, data.high_watermark)
        return data

    async def read_all(self, client: Client) -> list[bytes]:
        values: list[bytes] = []
        while True:
            data = await self._fetch(client, len(values))
            assert data.error_code == 0, ErrorCode(data.error_code)
            if not data.records:
                return values
            for batch in iter_batches(bytes(data.records)):
                batch.ensure_valid()
                for record in iter_records(batch):
                    assert record.offset == len(values)
                    values.append(bytes(record.value or b""))


def run_world(scenario: Scenario, seed: int, overrides: Mapping[str, str] | None = None) -> list[str]:
    """Run it in the world of this seed; returns the trace. overrides: the node's configuration."""

    async def main() -> list[str]:
        async with trio.open_nursery() as nursery:
            world = World(seed, nursery, overrides)
            await world.start()
            await scenario(world)
            nursery.cancel_scope.cancel()
        return world.trace

    return run_deterministic(main, seed=seed)


async def produce_crash_and_read(world: World) -> None:
    """Some clients at once, a crash in the middle, and what is left of it."""

    async def produce(number: int) -> None:
        client = await world.connect()
        for step in range(10):
            await world.produce(client, [b"%d-%d-%d" % (number, step, i) for i in range(world.rng.randint(1, 5))])
            await trio.sleep(world.rng.uniform(0, 0.01))
        client.transport.close()

    client = await world.connect()
    await world.create_topic(client)
    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(produce, number)
    await world.read_all(client)
    await world.node.crash()
    client.transport.close()
    await world.start()
    client = await world.connect()
    for value in await world.read_all(client):
        world.note(value)
    await world.produce(client, [b"after"])
    await world.node.stop()


if __name__ == "__main__":
    trace = run_world(produce_crash_and_read, int(sys.argv[1]))
    print(len(trace), hashlib.sha256("\n".join(trace).encode()).hexdigest())  # noqa: T201
