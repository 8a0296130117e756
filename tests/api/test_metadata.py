"""Metadata: what is the same for many clients is made once, and a request of many names shares the loop."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from pykbroker.api.authorization import NOT_ASKED
from pykbroker.api.metadata import metadata
from pykbroker.config.authorizer import AuthorizerConfig
from pykbroker.metadata import encoded_topics
from pykbroker.metadata.encoded_topics import EncodedTopicsOfNode
from pykbroker.protocol.compile import encode_parts
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.framing import RequestHeader, encode_request
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionRecord,
    UnregisterBrokerRecord,
)
from pykbroker.protocol.schema import RecordsRegion
from pykbroker.server.network.dispatch import Dispatcher
from pykbroker.server.network.handlers import ANONYMOUS, ConnectionState
from pykbroker.server.network.remembered_answers import RememberedAnswers
from pykbroker.server.network.seeking_clients import SeekingClients
from pykbroker.server.network.transport import Address
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import HANDLERS
from pykbroker.server.node.node_authorizer import NodeAuthorizer
from pykbroker.server.runtime.clock import SystemClock
from pykbroker.server.runtime.threads import OnTheLoop

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


def metadata_frames(chance: random.Random, node: ApiNode) -> Iterator[bytes]:
    """Requests in all versions, without their sizes: about some topics, all of them, and such as are not there."""
    for version in VERSIONS:
        names = chance.choice([(), ("topic-0",), ("topic-1", "topic-0"), ("topic-0", "nobody")])
        topics = [MetadataRequestTopic(name=name) for name in names] or (None if version else [])
        if version >= 12 and names and chance.random() < 0.5 and (known := node.image.topic("topic-0")):
            topics = [MetadataRequestTopic(name=None, topic_id=known.topic_id)]
        request = MetadataRequest(
            topics=topics,
            allow_auto_topic_creation=version < 4 or chance.random() < 0.5,
            include_topic_authorized_operations=version >= 8 and chance.random() < 0.5,
            include_cluster_authorized_operations=8 <= version <= 10 and chance.random() < 0.5,
        )
        yield encode_request(request, version, chance.randint(0, 1 << 30), chance.choice(["one", "two", None]))[4:]


def dispatcher_of(node: ApiNode) -> Dispatcher[Broker]:
    return Dispatcher(node.broker, HANDLERS.broker, OnTheLoop(), disk_failed=lambda failure: None)


def connection() -> ConnectionState:
    return ConnectionState("PLAINTEXT", "127.0.0.1", seeking=SeekingClients(SystemClock()))


async def whole_answer(dispatcher: Dispatcher[Broker], frame: bytes) -> bytes:
    parts = await dispatcher.answer(memoryview(frame), connection())
    assert parts is not None
    return b"".join(part for part in parts if isinstance(part, bytes))


@pytest.mark.parametrize("seed", range(6))
def test_a_repeated_answer_is_the_one_that_a_handler_would_give(tmp_path: Path, seed: int) -> None:
    """After any changes: what is given at once is what somebody is told who asks for the first time."""
    node = ApiNode(tmp_path, {"auto.create.topics.enable": "false"})
    chance, at_once = random.Random(seed), 0
    for number, partitions in enumerate((1, 2, 30)):
        node.create_topic(f"topic-{number}", partitions, leader=2)
    remembering = dispatcher_of(node)

    async def run() -> None:
        nonlocal at_once
        for _ in range(12):
            frames = list(metadata_frames(chance, node))
            for frame in frames:
                await whole_answer(remembering, frame)
            for is_changed in (False, True):
                if is_changed:
                    chance.choice(CHANGES)(node, chance)
                for frame in frames:
                    given = remembering.answer_at_once(memoryview(frame), connection())
                    if given is not None:
                        at_once += 1
                        assert given == await whole_answer(dispatcher_of(node), frame)

    in_virtual_time(run)
    assert at_once > 50


@pytest.mark.parametrize("has_rights", [False, True])
def test_a_repeated_question_is_noted_and_nothing_is_repeated_where_clients_have_rights(
    tmp_path: Path, *, has_rights: bool
) -> None:
    node = ApiNode(tmp_path, {"auto.create.topics.enable": "false"})
    node.create_topic("topic-0", leader=1)
    node.replay(UnregisterBrokerRecord(broker_id=2, broker_epoch=node.image.brokers[2].epoch))
    if has_rights:
        everybody = AuthorizerConfig(frozenset({ANONYMOUS}), False, frozenset())
        node.broker.authorizer = NodeAuthorizer(everybody, SystemClock())
    frame = memoryview(encode_request(MetadataRequest(topics=[MetadataRequestTopic(name="topic-0")]), 12, 1, "c")[4:])

    async def run() -> None:
        dispatcher, asking = dispatcher_of(node), connection()
        assert asking.seeking is not None
        await dispatcher.answer(frame, asking)
        for _ in range(3):
            is_repeated = dispatcher.answer_at_once(frame, asking) is not None
            assert is_repeated != has_rights
        if not has_rights:
            (client,) = asking.seeking._clients.values()
            assert client.questions == 4
            elsewhere = connection()
            elsewhere.reached = Address("192.0.2.1", 1)
            assert dispatcher.answer_at_once(frame, elsewhere) is None

    in_virtual_time(run)


def test_what_is_remembered_has_a_bound() -> None:
    most = 20_000
    remembered = RememberedAnswers(None, most)
    header = RequestHeader(3, 12, 1, None)
    for number in range(1000):
        question = encode_request(MetadataRequest(topics=[MetadataRequestTopic(name=f"{number}")]), 12, 1, None)[4:]
        remembered.keep(question, header, bytes(500), lambda _: 1, 1, lambda _: None)
        assert remembered.held_bytes <= most
        assert remembered.find(memoryview(question), connection()) is not None
    remembered.keep(bytes(2000), header, bytes(500), lambda _: 1, 1, lambda _: None)
    remembered.keep(bytes(20), header, bytes(50_000), lambda _: 1, 1, lambda _: None)
    assert remembered.find(memoryview(bytes(2000)), connection()) is None
    assert remembered.find(memoryview(bytes(20)), connection()) is None
    assert remembered.find(memoryview(bytes(3)), connection()) is None


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
