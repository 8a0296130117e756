"""The topics that requests name."""

from __future__ import annotations

import pytest

from pykbroker.control.faults.topics import topics_of
from pykbroker.protocol.messages.configs import DescribeConfigsRequest
from pykbroker.protocol.messages.fetch import FetchRequest, FetchTopic, ForgottenTopic
from pykbroker.protocol.messages.groups import HeartbeatRequest
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.topics import DeleteTopicsRequest
from pykbroker.protocol.schema import Message
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
    ],
)
def test_topics_are_found_by_name_and_by_id(request_: Message, names: set[str]) -> None:
    assert topics_of(request_, NAMES.get) == names


def test_names_of_groups_users_and_configurations_are_no_topics() -> None:
    found = {case.api_key: topics_of(case.request(), lambda _: None) for case in cases() if case.sample == FULL}
    assert not any(name.startswith(("group", "user", "member", "config")) for names in found.values() for name in names)
