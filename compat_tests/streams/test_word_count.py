"""A Kafka Streams application with `group.protocol=streams`: two processes share its tasks, then one goes on alone."""

from pathlib import Path

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.conftest import FreshBroker
from compat_tests.topics import create_topic
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.group_admin import ListGroupsRequest, ListGroupsResponse

from .word_count import (
    INPUT,
    LINES,
    OUTPUT,
    SETTINGS,
    START_S,
    Counts,
    application,
    describe,
    is_shared_by,
    produce,
    shares,
)

pytestmark = pytest.mark.java


def test_two_processes_share_the_tasks_and_one_goes_on_with_the_state_of_both(
    fresh_broker: FreshBroker, tmp_path: Path, answers: TestAnswers
) -> None:
    broker = fresh_broker(SETTINGS)
    create_topic(broker, INPUT, partitions=4)
    create_topic(broker, OUTPUT, partitions=2)
    counts = Counts(broker)
    with application(broker, tmp_path / "one") as one, application(broker, tmp_path / "two") as two:
        until(lambda: is_shared_by(broker, 2), "two processes share the tasks", START_S)
        described = describe(broker)
        answers.same("shares", shares(described))
        assert described.topology is not None
        answers.same(
            "topology",
            [
                [
                    each.subtopology_id,
                    each.source_topics,
                    [(topic.name, topic.partitions) for topic in each.repartition_source_topics],
                    [(topic.name, topic.partitions) for topic in each.state_changelog_topics],
                ]
                for each in described.topology.subtopologies or ()
            ],
        )
        produce(broker)
        until(lambda: counts.newest().get("every") == LINES, "both count", START_S)
        one.kill()
        produce(broker)
        until(lambda: counts.newest().get("every") == 2 * LINES, "the other goes on where the killed one was", START_S)
        until(lambda: is_shared_by(broker, 1), "the killed one is out", START_S)
        answers.same("shares of one", shares(describe(broker)))
        two.stop()
        assert "closed" in two.said, two.said
        assert not [line for line in one.said + two.said if line.startswith("failed")]
    answers.same("counts", sorted(counts.newest().items()))
    counts.close()
    until(lambda: describe(broker).group_state == "Empty", "the last one has left")
    with Wire(broker.address) as wire:
        listed = wire.call(ListGroupsRequest(types_filter=["streams"]), 5)
    assert isinstance(listed, ListGroupsResponse)
    answers.same("listed", [(each.group_id, each.group_type, each.protocol_type) for each in listed.groups])
