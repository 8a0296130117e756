"""How many answers to Metadata a broker gives: large ones about all topics, and small ones to many clients."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.askers import SECONDS, ask_for, asking
from benchmarks.bench import Bench, Figures, Measure
from compat_tests.waiting import until
from pykbroker.protocol.compile import decode
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

TOPICS = 1_000
TOPIC_PARTITIONS = 10
TOPICS_AT_ONCE = 100
LARGE_CLIENTS = 4
"""Who ask about all topics: enough that the broker never rests, few enough that nobody waits for long."""
MANY_CLIENTS = 200
VERSION = 12
RESPONSE_BODY = 4 + 5
"""Behind the size, the correlation id and the tagged fields of the header."""


def all_topics(bench: Bench) -> Figures:
    """1,000 topics with 10 partitions each, asked for as a whole."""
    names = [f"metadata-{number}" for number in range(max(round(TOPICS * bench.scale), 10))]
    admin = AdminClient({"bootstrap.servers": bench.broker.bootstrap, "log_level": 3})
    for start in range(0, len(names), TOPICS_AT_ONCE):
        topics = [NewTopic(name, TOPIC_PARTITIONS, 1) for name in names[start : start + TOPICS_AT_ONCE]]
        for future in admin.create_topics(topics, request_timeout=60).values():
            future.result(90)
    # Kafka answers the controller's way: its broker hears of the topics a moment later.
    until(lambda: set(names) <= set(admin.list_topics(timeout=30).topics), "the broker knows all topics")
    request = encode_request(MetadataRequest(topics=None), VERSION, 1, "bench")
    return _ask(bench, [request] * LARGE_CLIENTS, len(names))


def many_clients(bench: Bench) -> Figures:
    """200 clients, each of which asks about the topic that it works with, as clients do every five minutes."""
    asked = [MetadataRequestTopic(name="metadata-0")]
    request = encode_request(MetadataRequest(topics=asked, allow_auto_topic_creation=False), VERSION, 1, "bench")
    return _ask(bench, [request] * MANY_CLIENTS, 1)


def _ask(bench: Bench, requests: list[bytes], topics: int) -> Figures:
    def check(answer: bytes) -> None:
        response, _ = decode(MetadataResponse, VERSION, answer, RESPONSE_BODY)
        told = [
            topic for topic in response.topics if topic.error_code == 0 and len(topic.partitions) == TOPIC_PARTITIONS
        ]
        assert len(told) >= topics, f"{len(told)} of {topics} topics were told"

    with asking(bench.broker.address, requests, check) as selector:
        return bench.with_cpu(lambda: {"requests/s": ask_for(selector, max(SECONDS * bench.scale, 1.0))})


METADATA: dict[str, Measure] = {"Metadata of 1,000 x 10": all_topics, "Metadata, 200 clients": many_clients}
