"""A directory of Kafka 4.4 in pykbroker and back, and one quorum of both."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.apache_kafka.broker import CLUSTER_ID
from compat_tests.brokers import BrokerProcess, Pykbroker
from compat_tests.clients import READERS, WRITERS, Message
from compat_tests.conftest import assert_all_went_well
from compat_tests.mixed_nodes import voter_properties
from compat_tests.waiting import DEADLINE_S, until
from pykbroker.protocol.messages.acls import AclCreation, CreateAclsRequest, DescribeAclsRequest

from .asking import call, finalized, listeners_of, update
from .nodes import OLDEST, FormattedKafka44, Kafka44, Pykbroker44

pytestmark = [
    pytest.mark.java,
    pytest.mark.usefixtures("kafka_4_4"),
    pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session"),
]

TOPIC = "books"
MESSAGES = [Message(b"value %d" % number, timestamp_ms=1_700_000_000_000 + number) for number in range(50)]
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ANY, OF_TOPICS, LITERAL, DESCRIBE, ALLOW = 1, 2, 3, 8, 3


def create_acl(node: BrokerProcess, host: str) -> None:
    acl = AclCreation(
        resource_type=OF_TOPICS,
        resource_name=TOPIC,
        resource_pattern_type=LITERAL,
        principal="User:alice",
        host=host,
        operation=DESCRIBE,
        permission_type=ALLOW,
    )
    (answered,) = call(node.address, CreateAclsRequest(creations=[acl]), 3).results
    assert not answered.error_code, answered


def hosts(node: BrokerProcess) -> list[str]:
    request = DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    answer = call(node.address, request, 3)
    return sorted(acl.host for resource in answer.resources for acl in resource.acls)


def test_a_directory_of_kafka_4_4_is_taken_over_and_goes_back(tmp_path: Path, kind: str) -> None:
    data = {"log.dirs": str(tmp_path / "data"), "node.id": "1", **AUTHORIZER}
    first = Kafka44(tmp_path / "first", data)
    first.start()
    written = WRITERS["confluent-kafka"](first.bootstrap, TOPIC, MESSAGES)
    create_acl(first, "10.0.0.0/8")
    until(lambda: hosts(first) == ["10.0.0.0/8"], "the ACL is there")
    first.stop()
    second = Pykbroker(tmp_path / "second", data)
    second.start()
    for address in listeners_of(second).values():
        until(lambda at=address: finalized(at) == 33, "the level is that of the directory")
    assert READERS["kafka-python"](second.bootstrap, TOPIC, 1, len(MESSAGES)) == written
    assert hosts(second) == ["10.0.0.0/8"]
    create_acl(second, "fe80::/10")
    until(lambda: hosts(second) == ["10.0.0.0/8", "fe80::/10"], "the ACL is there")
    second.stop()
    assert_all_went_well(second)
    third = FormattedKafka44(tmp_path / "third", data)
    third.start()
    assert hosts(third) == ["10.0.0.0/8", "fe80::/10"]
    assert finalized(third.address) == 33
    assert READERS["kafka-python"](third.bootstrap, TOPIC, 1, len(MESSAGES)) == written
    third.stop()


def test_a_quorum_of_both_goes_up_to_4_4(tmp_path: Path, kind: str) -> None:
    nodes: list[BrokerProcess] = [
        Pykbroker44(tmp_path / "1", release=OLDEST),
        Kafka44(tmp_path / "2", release=OLDEST),
        Pykbroker44(tmp_path / "3", release=OLDEST),
    ]
    for number, node in enumerate(nodes, 1):
        node.properties |= voter_properties(number, nodes) | AUTHORIZER
        node.set_up()
    try:
        for node in nodes:
            node.launch()
        for node in nodes:
            node.wait_until_it_answers()
        admin = AdminClient({"bootstrap.servers": nodes[0].bootstrap})
        until(lambda: len(admin.list_topics(timeout=30).brokers) == len(nodes), "all brokers are there")
        assert admin.list_topics(timeout=30).cluster_id == CLUSTER_ID
        until(lambda: update(nodes[0].address, 33)[0] == 0, "all controllers have registered, and the level is 33")
        for node in nodes:
            for address in listeners_of(node).values():
                until(lambda at=address: finalized(at) == 33, "every node has the level")
        create_acl(nodes[0], "127.0.0.0/8")
        for node in nodes:
            until(lambda of=node: hosts(of) == ["127.0.0.0/8"], "every node has the ACL")
        new = NewTopic(TOPIC, 1, len(nodes))
        admin.create_topics([new])[TOPIC].result(DEADLINE_S)
        written = WRITERS["confluent-kafka"](nodes[1].bootstrap, TOPIC, MESSAGES)
        assert READERS["kafka-python"](nodes[2].bootstrap, TOPIC, 1, len(MESSAGES)) == written
        for node in nodes:
            node.stop()
            node.start()
        until(lambda: all(finalized(node.address) == 33 for node in nodes), "the level is still there")
    finally:
        for node in nodes:
            node.kill()
    for node in nodes:
        assert_all_went_well(node)
