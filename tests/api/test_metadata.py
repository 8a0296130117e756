"""Metadata: what is the same for many clients is made once, and a request of many names shares the loop."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from pykbroker.api.authorization import NOT_ASKED
from pykbroker.api.metadata import metadata
from pykbroker.metadata import encoded_topics
from pykbroker.metadata.encoded_topics import EncodedTopicsOfNode
from pykbroker.protocol.compile import encode_parts
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.metadata_records import BrokerRegistrationChangeRecord, PartitionRecord
from pykbroker.protocol.schema import RecordsRegion

from .api_node import ApiNode, in_virtual_time
from .turns_taken import LONGEST_TURN_S, handle

VERSIONS = range(14)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many structs were encoded, call by call."""
    calls: list[int] = []
    encode = encoded_topics.encode_structs

    def count(message: Any, structs: Any, version: int) -> list[bytes]:
        calls.append(len(structs))
        return encode(message, structs, version)

    monkeypatch.setattr(encoded_topics, "encode_structs", count)
    return calls


def ask(node: ApiNode, *names: str, version: int = 13) -> Any:
    """All topics, where none is named."""
    topics = [MetadataRequestTopic(name=name) for name in names] or (None if version else [])
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=version < 4)
    return in_virtual_time(lambda: node.call(metadata, request, version))


def parts_of_answer(node: ApiNode) -> list[bytes | RecordsRegion]:
    async def run() -> list[bytes | RecordsRegion]:
        response, _ = await handle(node.broker, metadata, MetadataRequest(topics=None), 13)
        return encode_parts(response, 13)

    return in_virtual_time(run)


def test_a_topic_that_did_not_change_is_not_encoded_again(node: ApiNode, encoded: list[int]) -> None:
    node.create_topic("large", 1000, leader=2)
    node.create_topic("small", leader=2)
    ask(node)
    encoded.clear()
    ask(node)
    ask(node, "small", "large")
    assert encoded == []


def test_of_a_large_topic_what_has_changed_is_encoded_again(node: ApiNode, encoded: list[int]) -> None:
    node.create_topic("large", 1000, leader=2)
    node.create_topic("small", leader=2)
    ask(node)
    encoded.clear()
    node.change_partition("large", 700, leader=-1)
    (large,) = ask(node, "large").topics
    assert [each.leader_id for each in large.partitions[699:702]] == [2, -1, 2]
    assert encoded == [encoded_topics.PARTITIONS_AT_ONCE, 1]


def test_answers_share_the_bytes_of_a_large_topic(node: ApiNode) -> None:
    node.create_topic("large", 1000, leader=2)
    first, second = parts_of_answer(node), parts_of_answer(node)
    shared = [part for part in first if any(part is other for other in second)]
    own = [part for part in first if not any(part is other for other in second)]
    assert sum(len(part) for part in shared if isinstance(part, bytes)) > 1000 * 20
    assert sum(len(part) for part in own if isinstance(part, bytes)) < 1000


def add_partition(node: ApiNode, chance: random.Random) -> None:
    name = chance.choice(sorted(node.image.topics))
    topic = node.image.topics[name]
    node.replay(
        PartitionRecord(
            topic_id=topic.topic_id, partition_id=len(topic.partitions), replicas=[2], isr=[2], leader=2, leader_epoch=0
        )
    )


@pytest.mark.parametrize(
    ("isr", "leader", "version", "told"),
    [
        ([1, 3], 1, 0, ([1], [1], ErrorCode.REPLICA_NOT_AVAILABLE)),
        ([1], 1, 0, ([1], [1], ErrorCode.REPLICA_NOT_AVAILABLE)),
        ([3], 3, 0, ([1], [], ErrorCode.LEADER_NOT_AVAILABLE)),
        ([1, 3], 1, 1, ([1, 3], [1, 3], ErrorCode.NONE)),
    ],
)
def test_version_0_leaves_out_who_cannot_be_reached(
    tmp_path: Path, isr: list[int], leader: int, version: int, told: tuple[list[int], list[int], ErrorCode]
) -> None:
    """Broker 3 is not there."""
    node = ApiNode(tmp_path, {"auto.create.topics.enable": "false"})
    node.create_topic("events", leader=1)
    node.change_partition("events", 0, replicas=[1, 3], isr=isr, leader=leader)
    (topic,) = ask(node, "events", version=version).topics
    (partition,) = topic.partitions
    assert (partition.replica_nodes, partition.isr_nodes, partition.error_code) == told


def change_leader(node: ApiNode, chance: random.Random) -> None:
    name = chance.choice(sorted(node.image.topics))
    index = chance.choice(list(node.image.topics[name].partitions))
    node.change_partition(name, index, leader=chance.choice([-1, 2, 3]), isr=[2])


def create_again(node: ApiNode, chance: random.Random) -> None:
    name = chance.choice(sorted(node.image.topics))
    node.delete_topic(name)
    node.create_topic(name, chance.choice([1, 3, 600]), leader=2)


def fence_or_unfence(node: ApiNode, chance: random.Random) -> None:
    fenced = chance.choice([-1, 1])
    epoch = node.image.brokers[2].epoch
    node.replay(BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=epoch, fenced=fenced))


def take_a_view(node: ApiNode, chance: random.Random) -> None:
    node.image.view()


CHANGES: tuple[Callable[[ApiNode, random.Random], None], ...] = (
    add_partition,
    change_leader,
    create_again,
    fence_or_unfence,
    take_a_view,
)


@pytest.mark.parametrize("seed", range(4))
def test_what_was_kept_says_the_same_as_what_is_made_anew(tmp_path: Path, seed: int) -> None:
    node = ApiNode(tmp_path, {"auto.create.topics.enable": "false"})
    chance = random.Random(seed)
    for number, partitions in enumerate((1, 2, 600)):
        node.create_topic(f"topic-{number}", partitions, leader=2)
    for _ in range(20):
        chance.choice(CHANGES)(node, chance)
        version = chance.choice(VERSIONS)
        names = chance.choice([(), ("topic-2", "nobody", "topic-0")])
        kept = ask(node, *names, version=version)
        node.broker.encoded_topics = EncodedTopicsOfNode()
        assert ask(node, *names, version=version) == kept
        ask(node, version=chance.choice(VERSIONS))


def test_a_request_of_many_unknown_names_shares_the_loop(node: ApiNode) -> None:
    names = [MetadataRequestTopic(name=f"{number:05}") for number in range(50_000)]

    async def run() -> None:
        request = MetadataRequest(topics=names + names[:100], allow_auto_topic_creation=False)
        response, turns = await handle(node.broker, metadata, request, 13)
        assert len(response.topics) == len(names), "as in Kafka, a name that is repeated is answered once"
        assert turns.longest_s < LONGEST_TURN_S
        assert len(turns.durations_s) > 50
        assert sum(map(len, encode_parts(response, 13))) < 50 * len(names)  # type: ignore[arg-type]

    in_virtual_time(run)


def test_the_first_answer_of_a_large_cluster_shares_the_loop(node: ApiNode) -> None:
    node.create_topic("large", 10_000, leader=2)
    for number in range(500):
        node.create_topic(f"small-{number}", leader=2)

    async def run() -> None:
        response, turns = await handle(node.broker, metadata, MetadataRequest(topics=None), 13)
        assert len(response.topics) == 501
        assert turns.longest_s < 0.1
        assert len(turns.durations_s) > 15
        again, turns = await handle(node.broker, metadata, MetadataRequest(topics=None), 13)
        assert len(turns.durations_s) == 1
        assert again.topics is response.topics

    in_virtual_time(run)


def test_many_who_ask_for_all_topics_at_once_share_one_answer(node: ApiNode) -> None:
    for number in range(300):
        node.create_topic(f"small-{number}", leader=2)
    topics = []

    async def run() -> None:
        async def once() -> None:
            response, _ = await handle(node.broker, metadata, MetadataRequest(topics=None), 13)
            topics.append(response.topics)

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(once)

    in_virtual_time(run)
    assert len(topics) == 20
    assert all(each is topics[0] for each in topics)


def test_a_topic_that_goes_between_two_turns_is_not_told_of(node: ApiNode) -> None:
    """And what comes and goes meanwhile does not make the answer one that is kept."""
    for number in range(2000):
        node.create_topic(f"topic-{number}", leader=2)

    async def run() -> None:
        kept = node.broker.encoded_topics.of("PLAINTEXT", 13, NOT_ASKED)
        find = kept.find

        def find_and_delete(image: Any, topic: Any) -> Any:
            if topic.name == "topic-100":
                node.delete_topic("topic-1999")
                node.create_topic("late", leader=2)
            return find(image, topic)

        kept.find = find_and_delete  # type: ignore[method-assign]
        response, _ = await handle(node.broker, metadata, MetadataRequest(topics=None), 13)
        assert len(response.topics) == 1999
        assert kept.find_all(node.image) is None

    in_virtual_time(run)
    assert {each.name for each in ask(node, "topic-1999", "late").topics if not each.error_code} == {"late"}
    assert [each.error_code for each in ask(node, "topic-1999").topics] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
