"""A broker that answers as a test tells it to, over Trio's memory streams."""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import trio
import trio.testing

from pykbroker.client.cluster import Cluster
from pykbroker.protocol import framing
from pykbroker.protocol.api_keys import request_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pykbroker.protocol.schema import Message

Handler = Callable[[Any, int], Message | None]
"""Gets the request and its version; None is no answer."""

HOST, PORT = "broker", 9092
TOPIC_ID = bytes(range(16))


class FakeBroker:
    """`requests` holds what came, in order; `refuses` the addresses that accept no connection."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.requests: list[Message] = []
        self.refuses: set[tuple[str, int]] = set()
        self.connections = 0
        self._nursery = nursery
        self._handlers: dict[type[Message], Handler] = {}
        self._versions: dict[int, tuple[int, int]] = {}
        self.serve(ApiVersionsRequest, self._api_versions)

    def serve(self, kind: type[Message], handler: Handler, versions: tuple[int, int] | None = None) -> None:
        schema = kind.__schema__
        assert schema.api_key is not None
        self._handlers[kind] = handler
        self._versions[schema.api_key] = versions or (schema.versions.low, schema.versions.high)

    def serve_topics(self, **partition_counts: int) -> None:
        """One node, which leads every partition of these topics; topic ids are told."""
        self.serve(MetadataRequest, lambda request, version: metadata_of(partition_counts, request))

    def of_type(self, kind: type[Message]) -> list[Any]:
        return [request for request in self.requests if isinstance(request, kind)]

    async def open(self, host: str, port: int) -> trio.abc.Stream:
        if (host, port) in self.refuses:
            raise ConnectionRefusedError(111, "refused")
        self.connections += 1
        client, server = trio.testing.memory_stream_pair()
        self._nursery.start_soon(self._run, server)
        return client

    def cluster(self) -> Cluster:
        return Cluster([(HOST, PORT)], open_stream=self.open)

    async def _run(self, stream: trio.abc.Stream) -> None:
        frames = framing.FrameSplitter(2**30)
        try:
            while data := await stream.receive_some():
                for frame in frames.feed(data):
                    answer = self._answer(frame)
                    if answer is not None:
                        await stream.send_all(answer)
        except trio.BrokenResourceError:
            return

    def _answer(self, frame: bytes) -> bytes | None:
        header, start = framing.decode_request_header(frame)
        kind = request_type(header.api_key)
        request, _ = decode(kind, header.api_version, frame, start)
        self.requests.append(request)
        response = self._handlers[kind](request, header.api_version)
        if response is None:
            return None
        parts = framing.encode_response(header.correlation_id, response, header.api_version)
        return b"".join(part for part in parts if isinstance(part, bytes))

    def _api_versions(self, request: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
        rows = [
            ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in self._versions.items()
        ]
        return ApiVersionsResponse(api_keys=rows)


def metadata_of(partition_counts: dict[str, int], request: MetadataRequest) -> MetadataResponse:
    wanted = partition_counts if request.topics is None else [topic.name for topic in request.topics]
    counts = defaultdict(int, partition_counts)
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host=HOST, port=PORT)],
        cluster_id="fake",
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name=name,
                topic_id=TOPIC_ID,
                error_code=0 if counts[name] else 3,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=index, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1]
                    )
                    for index in range(counts[name])
                ],
            )
            for name in wanted
        ],
    )


def with_broker(scenario: Callable[[FakeBroker], Awaitable[None]]) -> None:
    """Runs a scenario in virtual time: back-off costs nothing."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await scenario(FakeBroker(nursery))
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
