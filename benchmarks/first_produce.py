"""The shortest way from a starting process to an acknowledged record: a plain socket and three requests."""

from __future__ import annotations

import socket
import time

from benchmarks.brokers import spawn
from compat_tests.brokers import START_DEADLINE_S, BrokerFailed, BrokerProcess
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

TOPIC = "first"
METADATA_VERSION = 8
PRODUCE_VERSION = 8


def time_to_first_produce_s(broker: BrokerProcess) -> float:
    """Starts the broker and tries until one record is acknowledged by acks=all. Raises BrokerFailed."""
    started = time.perf_counter()
    spawn(broker)
    while True:
        try:
            with socket.create_connection(broker.address, timeout=10) as connection:
                _create_topic(connection)
                _produce(connection)
                return time.perf_counter() - started
        except (ConnectionError, _NotYet):
            if time.perf_counter() - started > START_DEADLINE_S or (
                broker.process and broker.process.poll() is not None
            ):
                raise BrokerFailed(f"{broker.kind} acknowledged nothing:\n{broker.log_tail()}") from None
            time.sleep(0.002)


class _NotYet(Exception):
    """The broker answers, but the topic has no leader so far."""


def _create_topic(connection: socket.socket) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=True)
    frame = _call(connection, encode_request(request, METADATA_VERSION, correlation_id=1, client_id="bench"))
    response, _ = decode(MetadataResponse, METADATA_VERSION, frame, 4)
    if not response.topics or response.topics[0].error_code:
        raise _NotYet


def _produce(connection: socket.socket) -> None:
    batch = encode_batch([Record(key=None, value=b"first", headers=(), timestamp=int(time.time() * 1000), offset=0)])
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])],
    )
    frame = _call(connection, encode_request(request, PRODUCE_VERSION, correlation_id=2, client_id="bench"))
    response, _ = decode(ProduceResponse, PRODUCE_VERSION, frame, 4)
    error = response.responses[0].partition_responses[0].error_code
    if error:
        raise _NotYet(ErrorCode(error).name)


def _call(connection: socket.socket, request: bytes) -> bytes:
    """Sends one framed request; returns the response's frame, which opens with the correlation id."""
    connection.sendall(request)
    return _receive(connection, int.from_bytes(_receive(connection, 4), "big"))


def _receive(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(size)
        if not part:
            raise ConnectionResetError("the broker closed the connection")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
