"""Ranges of addresses as hosts of ACLs (KIP-1276), from metadata.version 4.4-IV1 on."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.acls.users import ADMIN, ALICE, Listeners, log_in
from compat_tests.answers import TestAnswers
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from pykbroker.protocol.schema import Message

from .conftest import FreshNode
from .nodes import NEWEST, OLDEST

ANY, TOPIC, LITERAL, DESCRIBE, DENY, ALLOW = 1, 2, 3, 8, 2, 3
HOSTS = (
    *("10.0.0.0/8", "10.0.0.1/8", "010.0.0.0/08", "0.0.0.0/0", "10.0.0.5/32", "10.0.0.0/33", "300.0.0.0/33"),
    *("10.0.0.256/8", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/100", "0010.0.0.0/8", "10.0.0.0/8/8", " 10.0.0.0/8"),
    *("1.2.3/8", "host/8", "/8", "/", "10.0.0.0/8\n", "10.0.0.0/\u0663"),
    *("fe80::/10", "fe80::1/10", "FE80:0::/+10", "[fe80::]/010", "::/0", "::10.0.0.1/120", "1:2:3:4:5:6:7:8/00128"),
    *("fe80::/129", "::1/-1", "fe80::/x", "fe80::/", "fe80::/10/10", "fe80::/99999999999", "fe80::/ 10"),
    *("host:name/8", ":/", ":/8", "1:2:3/64", "::ffff:0:0/96", "::ffff:10.0.0.0/104", "fe80::1::/10", "zz::/10"),
    *("10.0.0.1", "::1", "host.example", "*"),
)


def creation(host: str, permission: int = ALLOW, principal: str = f"User:{ALICE}", name: str = "books") -> AclCreation:
    return AclCreation(
        resource_type=TOPIC,
        resource_name=name,
        resource_pattern_type=LITERAL,
        principal=principal,
        host=host,
        operation=DESCRIBE,
        permission_type=permission,
    )


class Users:
    """Sockets of users who have logged in at a node with an authorizer."""

    def __init__(self, fresh_node: FreshNode, release: str) -> None:
        self.node = fresh_node.make(release=release)
        self._listeners = Listeners(self.node.port, self.node.controller_port)
        self.node.properties |= self._listeners.properties()
        self.node.start()

    def call(self, request: Message, version: int, user: str = ADMIN) -> Any:
        with Wire(self._listeners.address(user)) as wire:
            log_in(wire, user)
            return wire.call(request, version)

    def create(self, *creations: AclCreation) -> list[tuple[int, str | None]]:
        answer = self.call(CreateAclsRequest(creations=list(creations)), 3)
        return [(each.error_code, each.error_message) for each in answer.results]

    def hosts(self, host: str | None = None) -> list[str]:
        request = DescribeAclsRequest(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=None,
            host_filter=host,
            operation=ANY,
            permission_type=ANY,
        )
        answer = self.call(request, 3)
        return sorted(acl.host for resource in answer.resources for acl in resource.acls)

    def delete(self, host: str | None) -> list[str]:
        wanted = DeleteAclsFilter(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=None,
            host_filter=host,
            operation=ANY,
            permission_type=ANY,
        )
        (found,) = self.call(DeleteAclsRequest(filters=[wanted]), 3).filter_results
        return sorted(each.host for each in found.matching_acls)

    def sees(self, topic: str, user: str = ALICE) -> bool:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        (found,) = self.call(request, 9, user).topics
        return not found.error_code


@pytest.mark.parametrize("release", [OLDEST, NEWEST])
def test_ranges_are_taken_and_refused(fresh_node: FreshNode, answers: TestAnswers, release: str) -> None:
    users = Users(fresh_node, release)
    for host in HOSTS:
        answers.same(f"the host {host!r}", users.create(creation(host)))
    answers.same("in the order of checks", users.create(creation("10.0.0.0/99", principal="nobody")))
    taken = [host for host in HOSTS if users.create(creation(host)) == [(0, "")]]
    until(lambda: users.hosts() == sorted(taken), "all are there, as they were written")
    for host in ("10.0.0.0/8", "10.0.0.1", "10.1.1.1/8"):
        answers.same(f"found by {host}", users.hosts(host))
        answers.same(f"deleted by {host}", users.delete(host))


def test_no_host_is_no_pattern(fresh_node: FreshNode, answers: TestAnswers) -> None:
    answers.same("the host ''", Users(fresh_node, NEWEST).create(creation("")))


def test_a_range_allows_and_denies_the_clients_in_it(fresh_node: FreshNode) -> None:
    users = Users(fresh_node, NEWEST)
    made = users.call(
        CreateTopicsRequest(topics=[CreatableTopic(name="books", num_partitions=1, replication_factor=1)]), 7
    )
    assert not made.topics[0].error_code
    until(lambda: users.sees("books", ADMIN), "the topic is there")
    users.create(creation("10.0.0.0/8"), creation("::/0"))
    until(lambda: users.hosts() == ["10.0.0.0/8", "::/0"], "the ACLs are there")
    assert not users.sees("books")
    users.create(creation("127.0.0.99/8"))
    until(lambda: users.sees("books"), "clients of 127.0.0.0/8 see the topic")
    users.create(creation("0.0.0.0/0", DENY))
    until(lambda: not users.sees("books"), "nobody sees it")
    users.create(creation("127.0.0.1"))
    assert not users.sees("books"), "a denial wins"
    users.delete("0.0.0.0/0")
    until(lambda: users.sees("books"), "they see it again")
