"""One plain socket that speaks the least it has to: what a broker costs, without what a client library costs."""

from __future__ import annotations

import socket
import time

from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pykbroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from pykbroker.protocol.records.batch import Record, encode_batch

METADATA_VERSION = 8
PRODUCE_VERSION = 8


class Refused(Exception):
    """The broker answered with an error, such as that a new topic has no leader so far."""


class RawClient:
    """Raises OSError where the connection fails."""

    def __init__(self, address: tuple[str, int], *, timeout_s: float = 60) -> None:
        self._socket = socket.create_connection(address, timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create_topic(self, topic: str) -> None:
        """With the broker's defaults, by asking for it. Raises Refused until it has a leader."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)
        frame = self.call(encode_request(request, METADATA_VERSION, correlation_id=1, client_id="bench"))
        response, _ = decode(MetadataResponse, METADATA_VERSION, frame, 4)
        if not response.topics or response.topics[0].error_code:
            raise Refused(topic)

    def produce(self, request: bytes) -> None:
        """What `produce_request` made. Raises Refused."""
        response, _ = decode(ProduceResponse, PRODUCE_VERSION, self.call(request), 4)
        error = response.responses[0].partition_responses[0].error_code
        if error:
            raise Refused(ErrorCode(error).name)

    def call(self, request: bytes) -> bytes:
        """Sends one framed request; returns the response's frame, which opens with the correlation id."""
        self._socket.sendall(request)
        return self._receive(int.from_bytes(self._receive(4), "big"))

    def _receive(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._socket.recv(size)
            if not part:
                raise ConnectionResetError("the broker closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def produce_request(topic: str, value: bytes, *, partition: int = 0) -> bytes:
    """One record with acks=all, framed."""
    batch = encode_batch([Record(key=None, value=value, headers=(), timestamp=int(time.time() * 1000), offset=0)])
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
        ],
    )
    return encode_request(request, PRODUCE_VERSION, correlation_id=2, client_id="bench")
