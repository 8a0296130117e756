"""One metadata log, one image: what any node publishes at an offset all publish there.

- StateMachineSafety: the images that nodes publish at an offset are equal, be they from the log or a snapshot.
- MonotonicImage: the offset that a process has published never goes back.
- SameAnswers: when all is quiet Metadata and DescribeTopicPartitions tell of topics, partitions and brokers what the
  image has, whichever broker is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import trio

from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.messages.metadata import DescribeTopicPartitionsRequest, MetadataRequest
from pykbroker.server.network.transport import Address
from pykbroker.server.quorum.metadata_publisher import MetadataPublisher
from tests.replication.simulation.invariants import ensure
from tests.server.serving import Client

from ..nodes import BROKER_PORT, host
from ..stage import ClusterStage
from .lives import Lives

_ANSWERS_WITHIN_S = 10.0


class Images:
    """published: by offset, who published first what the image was there."""

    def __init__(self) -> None:
        self.published: dict[int, tuple[int, MetadataImage]] = {}
        self.comparisons = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        tell = MetadataPublisher._tell

        def check_and_tell(publisher: MetadataPublisher) -> None:
            before = publisher.applied_offset
            tell(publisher)
            self.check(publisher._raft.node_id, before, publisher.applied_offset, publisher.image)

        with patch.object(MetadataPublisher, "_tell", check_and_tell):
            yield

    def check(self, node_id: int, before: int, offset: int, image: MetadataImage) -> None:
        ensure(before <= offset, "MonotonicImage", f"node {node_id} has published {before}, and {offset} then")
        known = self.published.get(offset)
        if known is None:
            self.published[offset] = node_id, image.view()
            return
        first, expected = known
        self.comparisons += 1
        if image != expected:
            differing = set(map(repr, expected.records())) ^ set(map(repr, image.records()))
            what = "\n".join(sorted(differing))
            ensure(False, "StateMachineSafety", f"nodes {first} and {node_id} differ at offset {offset}:\n{what}")


async def check_answers(stage: ClusterStage, lives: Lives) -> None:
    """Raises AssertionError; TooSlowError where somebody does not answer."""
    for node_id, life in lives.items():
        with trio.fail_after(_ANSWERS_WITHIN_S):
            client = Client(await stage.connect(Address(host(node_id), BROKER_PORT)))
            answered: Any = await client.ask(MetadataRequest(topics=None), 12)
            described: Any = await client.ask(DescribeTopicPartitionsRequest(topics=[]), 0)
            client.transport.close()
        expected = _expected(life.image)
        told = {
            (topic.name, each.partition_index): _shown(topic, each)
            for topic in answered.topics
            for each in topic.partitions
        }
        ensure(told == expected, "SameAnswers", f"Metadata of node {node_id}:", told, "the image:", expected)
        told = {
            (topic.name, each.partition_index): _shown(topic, each)
            for topic in described.topics
            for each in topic.partitions
        }
        ensure(told == expected, "SameAnswers", f"DescribeTopicPartitions of node {node_id}:", told, expected)
        brokers = {each.node_id: (each.host, each.port) for each in answered.brokers}
        alive = {each.id: (each.endpoints[0].host, each.endpoints[0].port) for each in life.image.live_brokers}
        ensure(brokers == alive, "SameAnswers", f"Metadata of node {node_id}:", brokers, "the image:", alive)


def _expected(image: MetadataImage) -> dict[tuple[str, int], tuple[object, ...]]:
    return {
        (topic.name, index): (topic.topic_id, state.leader, state.leader_epoch, list(state.replicas), list(state.isr))
        for topic in image.topics.values()
        for index, state in topic.partitions.items()
    }


def _shown(topic: Any, partition: Any) -> tuple[object, ...]:
    nodes = list(partition.replica_nodes), list(partition.isr_nodes)
    return bytes(topic.topic_id), partition.leader_id, partition.leader_epoch, *nodes
