"""A cluster of both brokers whose nodes log in at each other: rights are the same whichever node is asked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from compat_tests.apache_kafka.broker import ApacheKafka
from compat_tests.brokers import BrokerProcess, Pykbroker
from compat_tests.mixed_nodes import together, voter_properties
from compat_tests.same_answers.interview import batch
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from pykbroker.protocol.schema import Message

from .users import ADMIN, ALICE, Listeners, log_in

pytestmark = pytest.mark.java

TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED = 29, 31
NODES: tuple[type[BrokerProcess], ...] = (Pykbroker, ApacheKafka, Pykbroker)


class Node:
    def __init__(self, broker: BrokerProcess, listeners: Listeners) -> None:
        self.broker = broker
        self._listeners = listeners

    def ask(self, user: str, request: Message, version: int) -> Any:
        with Wire(self._listeners.address(user)) as wire:
            log_in(wire, user)
            return wire.call(request, version)

    def create_topic(self, user: str, name: str) -> int:
        topics = [CreatableTopic(name=name, num_partitions=3, replication_factor=3)]
        answer = self.ask(user, CreateTopicsRequest(topics=topics, timeout_ms=20_000), 7)
        code: int = answer.topics[0].error_code
        return code

    def allow(self, user: str, *names: str) -> set[int]:
        creations = [
            AclCreation(
                resource_type=2,
                resource_name=name,
                principal=f"User:{ALICE}",
                host="*",
                operation=2,
                permission_type=3,
            )
            for name in names
        ]
        return {each.error_code for each in self.ask(user, CreateAclsRequest(creations=creations), 3).results}

    def forbid(self, user: str, name: str) -> set[int]:
        wanted = DeleteAclsFilter(
            resource_type_filter=2,
            resource_name_filter=name,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        return {each.error_code for each in self.ask(user, DeleteAclsRequest(filters=[wanted]), 3).filter_results}

    def partitions(self, user: str, name: str) -> dict[int, tuple[int, int]]:
        """The leader and the number of in-sync replicas of each partition; nothing where they may not be described."""
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        (topic,) = self.ask(user, wanted, 9).topics
        return {each.partition_index: (each.leader_id, len(each.isr_nodes)) for each in topic.partitions}

    def produce(self, user: str, name: str, index: int) -> int:
        data = [PartitionProduceData(index=index, records=batch(b"v"))]
        request = ProduceRequest(
            acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=name, partition_data=data)]
        )
        code: int = self.ask(user, request, 9).responses[0].partition_responses[0].error_code
        return code


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    brokers = [kind(tmp_path / f"node-{number}") for number, kind in enumerate(NODES, 1)]
    made = []
    for number, broker in enumerate(brokers, 1):
        listeners = Listeners(broker.port, broker.controller_port)
        broker.properties |= listeners.properties(voter_properties(number, brokers))
        made.append(Node(broker, listeners))
    with together(brokers):
        yield made


def is_replicated(node: Node, name: str) -> bool:
    return all(in_sync == len(NODES) for _, in_sync in node.partitions(ALICE, name).values())


def test_rights_are_those_of_the_cluster_whichever_node_is_asked(nodes: list[Node]) -> None:
    until(lambda: nodes[0].create_topic(ADMIN, "first") in (0, 36), "the nodes are a cluster")
    for number, node in enumerate(nodes):
        name = f"topic-{number}"
        assert node.create_topic(ALICE, name) == TOPIC_AUTHORIZATION_FAILED
        assert node.allow(ALICE, name) == {CLUSTER_AUTHORIZATION_FAILED}
        assert node.create_topic(ADMIN, name) == 0
        assert node.allow(ADMIN, name) == {0}
        for each in nodes:
            until(lambda each=each, name=name: len(each.partitions(ALICE, name)) == 3, "every node knows of her rights")
        until(partial(is_replicated, node, name), "the nodes replicate")
        for index, (leader, _) in node.partitions(ALICE, name).items():
            assert nodes[leader - 1].produce(ALICE, name, index) == 0
        assert node.forbid(ALICE, name) == {CLUSTER_AUTHORIZATION_FAILED}
        assert node.forbid(ADMIN, name) == {0}
        for each in nodes:
            until(lambda each=each, name=name: not each.partitions(ALICE, name), "every node has forgotten her rights")
            assert each.produce(ALICE, name, 0) == TOPIC_AUTHORIZATION_FAILED
