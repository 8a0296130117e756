"""Topics of coordinators that a client asks Metadata for before anybody has needed them."""

from collections.abc import Callable

import pytest

from pykbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

from .brokers import Broker
from .waiting import until
from .wire import Wire

PROPERTIES = {
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


def ask(wire: Wire, name: str, *, creates: bool) -> MetadataResponseTopic:
    asked = [MetadataRequestTopic(name=name)]
    answer = wire.call(MetadataRequest(topics=asked, allow_auto_topic_creation=creates), 12)
    assert isinstance(answer, MetadataResponse)
    (topic,) = answer.topics
    return topic


@pytest.mark.parametrize(("name", "partitions"), [("__consumer_offsets", 3), ("__transaction_state", 2)])
def test_a_coordinators_topic_is_created_as_the_coordinator_has_it(
    fresh_broker: Callable[..., Broker], name: str, partitions: int
) -> None:
    broker = fresh_broker(PROPERTIES)
    with Wire(broker.address) as wire:
        refused = ask(wire, name, creates=False)
        first = ask(wire, name, creates=True)
        until(lambda: not ask(wire, name, creates=False).error_code, f"{name} is there")
        told = ask(wire, name, creates=False)
    assert [(each.error_code, each.is_internal) for each in (refused, first)] == [(3, True), (3, True)]
    assert (told.is_internal, len(told.partitions)) == (True, partitions)
    assert [each.replica_nodes for each in told.partitions] == [[1]] * partitions
