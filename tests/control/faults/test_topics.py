"""The topics that requests name."""

from __future__ import annotations

import pytest

from pykbroker.control.faults.topics import can_name_topics, topics_of
from pykbroker.protocol.messages.acls import DescribeAclsRequest
from pykbroker.protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.fetch import FetchRequest, FetchTopic, ForgottenTopic
from pykbroker.protocol.messages.groups import HeartbeatRequest
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.share_groups import FetchTopic as ShareFetchTopic
from pykbroker.protocol.messages.share_groups import ShareFetchRequest
from pykbroker.protocol.messages.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTopology,
    TopicInfo,
)
from pykbroker.protocol.messages.topics import DeleteTopicsRequest
from pykbroker.protocol.messages.transactions import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from pykbroker.protocol.schema import Message, Struct
from tests.control.faults.samples import FULL, cases

ORDERS_ID = bytes(15) + b"\1"
NAMES = {ORDERS_ID: "orders"}


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        (MetadataRequest(topics=[MetadataRequestTopic(name="a")]), {"a"}),
        (MetadataRequest(topics=[MetadataRequestTopic(topic_id=ORDERS_ID)]), {"orders"}),
        (MetadataRequest(topics=None), set()),
        (FetchRequest(topics=[FetchTopic(topic="a"), FetchTopic(topic_id=bytes(15) + b"\2")]), {"a"}),
        (FetchRequest(forgotten_topics_data=[ForgottenTopic(topic_id=ORDERS_ID)]), {"orders"}),
        (DeleteTopicsRequest(topic_names=["a", "b"]), {"a", "b"}),
        (HeartbeatRequest(group_id="a"), set()),
        (MetadataRequest(topics=[MetadataRequestTopic(name="x" * 250)]), set()),
        (DescribeConfigsRequest(), set()),
        (
            DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(resource_type=2, resource_name="a"),
                    DescribeConfigsResource(resource_type=4, resource_name="1"),
                ]
            ),
            {"a"},
        ),
        (DescribeAclsRequest(resource_type_filter=2, resource_name_filter="a"), {"a"}),
        (AddPartitionsToTxnRequest(v3_and_below_topics=[AddPartitionsToTxnTopic(name="a")]), {"a"}),
        (ConsumerGroupHeartbeatRequest(subscribed_topic_names=["a", "b"]), {"a", "b"}),
        (ShareFetchRequest(topics=[ShareFetchTopic(topic_id=ORDERS_ID)]), {"orders"}),
        (StreamsGroupHeartbeatRequest(topology=None), set()),
        (
            StreamsGroupHeartbeatRequest(
                topology=StreamsGroupHeartbeatRequestTopology(
                    subtopologies=[
                        StreamsGroupHeartbeatRequestSubtopology(
                            subtopology_id="0",
                            source_topics=["a"],
                            state_changelog_topics=[TopicInfo(name="b")],
                            repartition_sink_topics=["c"],
                            repartition_source_topics=[TopicInfo(name="d")],
                        )
                    ]
                )
            ),
            {"a", "b", "c", "d"},
        ),
    ],
)
def test_topics_are_found_by_name_and_by_id(request_: Message, names: set[str]) -> None:
    assert topics_of(request_, NAMES.get) == names


def test_names_of_groups_users_and_configurations_are_no_topics() -> None:
    found = {case.api_key: topics_of(case.request(), lambda _: None) for case in cases() if case.sample == FULL}
    assert not any(name.startswith(("group", "user", "member", "config")) for names in found.values() for name in names)


def test_an_api_can_name_topics_where_one_of_its_requests_does() -> None:
    naming: set[int] = set()
    for case in cases():
        request = case.request()
        _make_topics_of_resources(request)
        if case.sample == FULL and topics_of(request, lambda _: "a"):
            naming.add(case.api_key)
    assert naming == {case.api_key for case in cases() if can_name_topics(type(case.request()))}


def _make_topics_of_resources(part: Struct) -> None:
    for each in type(part).__schema__.fields:
        value = getattr(part, each.name)
        if each.name in ("resource_type", "resource_type_filter"):
            setattr(part, each.name, 2)
        for entry in value if isinstance(value, list) else [value]:
            if isinstance(entry, Struct):
                _make_topics_of_resources(entry)
