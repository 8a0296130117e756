"""Rows 34 and 35: a topic that belongs to the broker, created and written to by a stranger."""

from compat_tests.answers import TestAnswers
from compat_tests.conftest import FreshBroker
from pykbroker.protocol.messages.topics import CreatableTopic

from .record_cases import batch
from .scene import Scene

OFFSETS_TOPIC = "__consumer_offsets"


def test_a_user_creates_the_topic_of_committed_offsets(fresh_broker: FreshBroker, answers: TestAnswers) -> None:
    """Without an authorizer everybody may. The coordinator works with what it finds."""
    scene = Scene(fresh_broker())
    topic = CreatableTopic(name=OFFSETS_TOPIC, num_partitions=50, replication_factor=1)
    answers.expect("row 34", scene.create(topic), "NONE")
    assert scene.group()


def test_a_user_writes_junk_to_the_topic_of_committed_offsets(
    fresh_broker: FreshBroker, kind: str, answers: TestAnswers
) -> None:
    """Apache Kafka goes by the name that the client gives itself, and its coordinator then fails for good."""
    scene = Scene(fresh_broker())
    scene.group()
    found = [scene.produce(batch(), OFFSETS_TOPIC, client_id=name) for name in ("someone", "__admin_client")]
    refused = "INVALID_TOPIC_EXCEPTION"
    answers.expect("row 35", found, [refused, refused] if kind == "pykbroker" else [refused, "NONE"])
