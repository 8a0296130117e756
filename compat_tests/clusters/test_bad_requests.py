"""The table of requests that no node sends, each to both kinds of clusters; none of them changes who leads what."""

from __future__ import annotations

from compat_tests.answers import TestAnswers
from compat_tests.clients import READERS, WRITERS, Message
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

from .bad_requests import CASES, ENDS, Scene
from .cluster import Cluster
from .topics import create_replicated_topic
from .view import NoAnswer

TOPIC = "attacked"
MESSAGES = [Message(b"%d" % number) for number in range(10)]


def test_bad_requests_are_refused_and_change_nothing(cluster: Cluster, cluster_kind: str, answers: TestAnswers) -> None:
    create_replicated_topic(cluster, TOPIC)
    cluster.wait_until_in_sync(TOPIC)
    voters = cluster.quorum().voters.keys()
    scene = _scene(cluster)
    for case in CASES:
        expected = case.expected(cluster_kind)
        if expected == ENDS:
            continue
        # Where there is another leader meanwhile, as on a slow machine, the question was not the one that was meant.
        while (answer := case.answer(scene)) != expected and (now := _scene(cluster)) != scene:
            scene = now
        answers.expect(case.name, answer, expected)
    assert cluster.quorum().voters.keys() == voters
    assert all(node.process is not None and node.process.poll() is None for node in cluster.nodes.values())
    WRITERS["confluent-kafka"](cluster.bootstrap, TOPIC, MESSAGES)
    assert len(READERS["confluent-kafka"](cluster.bootstrap, TOPIC, 1, len(MESSAGES))) == len(MESSAGES)


def _scene(cluster: Cluster) -> Scene:
    scenes: list[Scene] = []

    def is_led() -> bool:
        broker = cluster.leader(TOPIC)
        try:
            quorum = cluster.quorum()
        except NoAnswer:
            return False
        if quorum.leader < 0:
            return False
        scenes.append(Scene(cluster, quorum.leader, broker, quorum.epoch, _topic_id(cluster, broker)))
        return True

    until(is_led, "the quorum has a leader")
    return scenes[-1]


def _topic_id(cluster: Cluster, broker: int) -> bytes:
    with Wire(cluster.nodes[broker].address) as wire:
        answer = wire.call(MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)]), 12)
    assert isinstance(answer, MetadataResponse)
    return bytes(answer.topics[0].topic_id)
