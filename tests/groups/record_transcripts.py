"""Writes the transcripts, as Apache Kafka answers.

    python -m tests.groups.record_transcripts HOST:PORT LOG_DIR [SCENARIO ...]

The broker must be a fresh Apache Kafka of one node, with `scenarios.CONFIG` in its server.properties; LOG_DIR is where
it keeps its logs.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Awaitable, Collection, Mapping
from itertools import count
from pathlib import Path

import trio

from compat_tests.referee.conversations import note_version
from pykbroker.metadata.image import GROUP_RESOURCE
from pykbroker.protocol.api_keys import response_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.framing import encode_request, response_header_version
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.group_admin import DescribeGroupsRequest, DescribeGroupsResponse
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from pykbroker.protocol.records.batch import iter_batches, iter_records
from pykbroker.protocol.schema import Message

from . import (  # noqa: F401 - registers their scenarios
    classic_scenarios,
    consumer_scenarios,
    migration_scenarios,
    share_scenarios,
    streams_scenarios,
)
from .scenarios import SCENARIOS, TOPICS
from .session import Session

TRANSCRIPTS = Path(__file__).parent / "transcripts"
_ANSWER_TIMEOUT_S = 20
_APPEND_LINGER_MS = 100


class RealBroker:
    """Any broker, by its sockets."""

    def __init__(self, host: str, port: int, log_dir: Path, nursery: trio.Nursery) -> None:
        self._address = host, port
        self._log_dir = log_dir
        self._nursery = nursery
        self._streams: dict[str, trio.SocketStream] = {}
        self._correlation_ids = count(1)
        self.topic_ids: dict[str, bytes] = {}

    async def call(self, client: str, request: Message, version: int) -> Message:
        return await self.start(client, request, version)

    def start(self, client: str, request: Message, version: int) -> Awaitable[Message]:
        done = trio.Event()
        answers: list[Message] = []

        async def exchange() -> None:
            with trio.fail_after(_ANSWER_TIMEOUT_S):
                answers.append(await self._exchange(client, request, version))
            done.set()

        async def wait() -> Message:
            await done.wait()
            return answers[0]

        self._nursery.start_soon(exchange)
        return wait()

    async def sleep(self, ms: int) -> None:
        await trio.sleep(ms / 1000)

    async def make_topic(self, name: str, partitions: int) -> None:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        await self.call("x", CreateTopicsRequest(topics=[topic]), 5)
        await self._learn_topics([*self.topic_ids, name])

    async def add_partitions(self, name: str, total: int) -> None:
        topic = CreatePartitionsTopic(name=name, count=total, assignments=None)
        await self.call("x", CreatePartitionsRequest(topics=[topic], timeout_ms=5000), 3)

    async def drop_topic(self, name: str) -> None:
        """Its id keeps its name."""
        await self.call("x", DeleteTopicsRequest(topic_names=[name], timeout_ms=5000), 5)

    async def configure_group(self, group: str, configs: Mapping[str, str]) -> None:
        alterations = [
            IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=0, value=value)
            for name, value in configs.items()
        ]
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=group, configs=alterations
        )
        await self.call("x", IncrementalAlterConfigsRequest(resources=[resource]), 1)
        await self.sleep(200)

    def records(self) -> list[tuple[bytes | None, bytes | None]]:
        return [
            (record.key, record.value)
            for path in sorted(self._log_dir.glob("__consumer_offsets-*/*.log"))
            for batch in iter_batches(path.read_bytes(), allow_partial=True)
            for record in iter_records(batch)
        ]

    async def _exchange(self, client: str, request: Message, version: int) -> Message:
        if client not in self._streams:
            self._streams[client] = await trio.open_tcp_stream(*self._address)
        stream = self._streams[client]
        await stream.send_all(encode_request(request, version, next(self._correlation_ids), client))
        (size,) = struct.unpack(">i", await _receive(stream, 4))
        frame = await _receive(stream, size)
        api_key = request.__schema__.api_key
        assert api_key is not None
        body = 5 if response_header_version(api_key, version) else 4
        response, end = decode(response_type(api_key), version, frame, body)
        assert end == len(frame)
        return response

    async def create_topics(self) -> None:
        topics = [CreatableTopic(name=name, num_partitions=3, replication_factor=1) for name in TOPICS]
        await self.call("x", CreateTopicsRequest(topics=topics), 5)
        await self._learn_topics(TOPICS)
        await self.call("x", FindCoordinatorRequest(key="any"), 3)
        while not await self._is_loaded():
            await self.sleep(100)

    async def _learn_topics(self, names: Collection[str]) -> None:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
        while not self.topic_ids.keys() >= set(names):
            response = await self.call("x", asked, 12)
            assert isinstance(response, MetadataResponse)
            self.topic_ids = {each.name or "": each.topic_id for each in response.topics if not each.error_code}

    async def _is_loaded(self) -> bool:
        """Whether every partition of `__consumer_offsets` is served; these names meet them all."""
        response = await self.call("x", DescribeGroupsRequest(groups=[f"any-{number}" for number in range(20)]), 0)
        assert isinstance(response, DescribeGroupsResponse)
        return not any(group.error_code for group in response.groups)


async def _receive(stream: trio.SocketStream, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = await stream.receive_some(size - len(data))
        if not chunk:
            raise EOFError("the broker closed the connection")
        data += chunk
    return bytes(data)


async def record(host: str, port: int, log_dir: Path, names: list[str]) -> None:
    for name in names or SCENARIOS:
        async with trio.open_nursery() as nursery:
            broker = RealBroker(host, port, log_dir, nursery)
            await broker.create_topics()
            session = Session(broker)
            await SCENARIOS[name](session)
            await broker.sleep(_APPEND_LINGER_MS)
            session.tell_records()
        (TRANSCRIPTS / f"{name}.txt").write_text("\n".join(session.lines) + "\n")
        sys.stdout.write(f"{name}: {len(session.lines)} lines\n")


if __name__ == "__main__":
    address, log_dir, *chosen = sys.argv[1:]
    host, _, port = address.rpartition(":")
    trio.run(record, host, int(port), Path(log_dir), chosen)
    if not chosen:
        note_version(TRANSCRIPTS)
