"""ACLs created, described and deleted by their APIs: the same entries, codes and texts as Apache Kafka's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.brokers import Broker, BrokerProcess
from compat_tests.conftest import FreshBroker
from compat_tests.waiting import until
from compat_tests.wire import Closed, Wire
from pykbroker.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from pykbroker.protocol.schema import Message

from .users import AUTHORIZER

OPEN_TO_ALL = AUTHORIZER | {"super.users": "User:ANONYMOUS"}
VERSIONS = (1, 2, 3)
CREATION = {
    "resource_type": 2,
    "resource_name": "orders",
    "resource_pattern_type": 3,
    "principal": "User:alice",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
EVERYTHING = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
CREATIONS: list[dict[str, Any]] = [
    *({"resource_type": each} for each in (-1, 0, 1, 2, 3, 5, 6, 7, 8, 99)),
    {"resource_type": 4},
    {"resource_type": 4, "resource_name": "kafka-cluster"},
    {"resource_type": 4, "resource_name": "kafka-cluster", "resource_pattern_type": 4},
    {"resource_type": 4, "resource_name": "kafka", "resource_pattern_type": 4},
    {"resource_type": 4, "resource_name": ""},
    {"resource_type": 4, "resource_name": "*"},
    *({"resource_pattern_type": each} for each in (0, 1, 2, 4, 5)),
    *({"operation": each} for each in (0, 1, *range(2, 17), 77)),
    *({"permission_type": each} for each in (0, 1, 2, 9)),
    *({"resource_name": each} for each in ("", "*", "not a topic!", "é", "n" * 300)),
    *({"principal": each} for each in ("", "bob", "User:", ":bob", "User:a:b", "Group:b", "User:*")),
    *({"host": each} for each in ("", "10.0.0.1", "::1", "host.example")),
    {"resource_type": 99, "principal": "bob", "operation": 99},
    {"principal": "bob", "permission_type": 9},
]
FILTERS: list[dict[str, Any]] = [
    *({"resource_type_filter": each} for each in (0, 1, 2, 3, 99)),
    *({"resource_name_filter": each} for each in ("orders", "nothing", "", "*")),
    *({"pattern_type_filter": each, "resource_name_filter": "orders"} for each in (0, 1, 2, 3, 4, 5)),
    {"pattern_type_filter": 2, "resource_name_filter": "orders-of-today"},
    {"pattern_type_filter": 2, "resource_name_filter": "*"},
    {"pattern_type_filter": 2, "resource_type_filter": 3},
    *({"principal_filter": each} for each in ("User:alice", "User:*", "bob", "")),
    *({"host_filter": each} for each in ("*", "10.0.0.1")),
    *({"operation": each} for each in (0, 2, 3, 4, 99)),
    *({"permission_type": each} for each in (0, 2, 3, 9)),
]


class Asking:
    """One broker, on one of its listeners."""

    def __init__(self, broker: Broker, *, on_controller: bool = False) -> None:
        self._address = broker.address
        if on_controller:
            assert isinstance(broker, BrokerProcess)
            self._address = "127.0.0.1", broker.controller_port

    def ask(self, request: Message, version: int) -> Any:
        try:
            with Wire(self._address) as wire:
                return wire.call(request, version)
        except Closed:
            return "closed"

    def create(self, *changes: dict[str, Any], version: int = 3) -> Any:
        answer = self.ask(
            CreateAclsRequest(creations=[AclCreation(**{**CREATION, **each}) for each in changes]), version
        )
        return answer if answer == "closed" else [(each.error_code, each.error_message) for each in answer.results]

    def describe(self, version: int = 3, **changes: Any) -> Any:
        answer = self.ask(DescribeAclsRequest(**{**EVERYTHING, **changes}), version)
        if answer == "closed":
            return answer
        return answer.error_code, answer.error_message, sorted(_described(answer))

    def delete(self, *changes: dict[str, Any], version: int = 3) -> Any:
        answer = self.ask(
            DeleteAclsRequest(filters=[DeleteAclsFilter(**{**EVERYTHING, **each}) for each in changes]), version
        )
        if answer == "closed":
            return answer
        return [(each.error_code, each.error_message, sorted(_deleted(each))) for each in answer.filter_results]


def _described(answer: Any) -> list[tuple[Any, ...]]:
    return [
        (
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for resource in answer.resources
        for each in resource.acls
    ]


def _deleted(row: Any) -> list[tuple[Any, ...]]:
    return [
        (
            each.error_code,
            each.error_message,
            each.resource_type,
            each.resource_name,
            each.pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for each in row.matching_acls
    ]


def settled(asking: Asking, wanted: int) -> Any:
    """What is described when a broker has heard of so many entries."""
    until(lambda: len(asking.describe()[2]) == wanted, f"{wanted} entries are known")
    return asking.describe()


@pytest.mark.parametrize("listener", ["broker", "controller"])
def test_entries_are_created_described_and_deleted(
    fresh_broker: FreshBroker, listener: str, answers: TestAnswers
) -> None:
    broker = fresh_broker(OPEN_TO_ALL)
    asking, watching = Asking(broker, on_controller=listener == "controller"), Asking(broker)
    given: dict[str, Any] = {f"create {each}": asking.create(each) for each in CREATIONS}
    given["create nothing"] = asking.create()
    given["create one twice and bad ones"] = asking.create(
        {"resource_name": "twice"}, {"resource_name": "twice"}, {"resource_name": ""}, {"operation": 99}
    )
    given["create what only a filter may have"] = asking.create({"resource_name": "other"}, {"operation": 1})
    created = sum(code == 0 for each in given.values() if each != "closed" for code, _ in each)
    known = created - given["create one twice and bad ones"].count((0, "")) + 1 - _repeated(given)
    given["all"] = settled(watching, known)
    for each in FILTERS:
        given[f"describe by {each}"] = asking.describe(**each)
    for version in VERSIONS:
        given[f"describe, version {version}"] = asking.describe(version, resource_name_filter="twice")
    for number, each in enumerate(FILTERS[::-1]):
        given[f"{number}, delete by {each}"] = asking.delete({**each, "resource_type_filter": 3})
    given["delete by nothing"] = asking.delete()
    given["delete one twice"] = asking.delete(
        {"resource_name_filter": "twice"}, {"resource_name_filter": "twice"}, {"operation": 99}
    )
    given["delete all"] = asking.delete({})
    given["none are left"] = settled(watching, 0)
    answers.all_same(given)


def _repeated(given: dict[str, Any]) -> int:
    """How many creations said the same as one before."""
    plain = [each for each in CREATIONS if {**CREATION, **each} == CREATION and given[f"create {each}"] != "closed"]
    return len(plain) - 1


def test_one_request_changes_ten_thousand_entries_at_most(fresh_broker: FreshBroker, answers: TestAnswers) -> None:
    asking = Asking(fresh_broker(OPEN_TO_ALL))
    many = [{"resource_name": f"many-{number:05d}"} for number in range(10_001)]
    answers.same("10001 entries", sorted(Counter(asking.create(*many)).items()))
    answers.same("10000 and a bad one", sorted(Counter(asking.create(*many[1:], {"resource_name": ""})).items()))
    answers.same("the last one", asking.create(many[0]))
    assert len(settled(asking, 10_001)[2]) == 10_001
    answers.same("too many deleted", asking.delete({"resource_name_filter": "many-00007"}, {}))
    answers.same("one deleted", asking.delete({"resource_name_filter": "many-00007"}))
    settled(asking, 10_000)
    (deleted,) = asking.delete({})
    answers.same("10000 deleted", (deleted[:2], len(deleted[2])))


def test_there_are_no_acls_without_an_authorizer(broker: Broker, answers: TestAnswers) -> None:
    asking = Asking(broker)
    for version in VERSIONS:
        answers.same(f"create, version {version}", asking.create({}, {}, version=version))
        answers.same(f"describe, version {version}", asking.describe(version))
        answers.same(f"delete, version {version}", asking.delete({}, {}, version=version))


def test_entries_outlive_a_restart_and_a_kill(fresh_process: Callable[..., BrokerProcess]) -> None:
    """Also behind a snapshot, which the metadata log begins with then."""
    broker = fresh_process(OPEN_TO_ALL | {"metadata.log.max.record.bytes.between.snapshots": "2000"})
    names = [{"resource_name": f"kept-{number:03d}"} for number in range(150)]
    assert set(Asking(broker).create(*names)) == {(0, "")}
    before = settled(Asking(broker), 150)
    for end in (broker.stop, broker.kill):
        end()
        broker.start()
        assert settled(Asking(broker), 150) == before
        topics = [CreatableTopic(name=f"topic-{end.__name__}", num_partitions=1, replication_factor=1)]
        until(lambda topics=topics: not _created(broker, topics), "a topic is created")


def _created(broker: Broker, topics: list[CreatableTopic]) -> int:
    answer: Any = Asking(broker).ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
    code: int = answer.topics[0].error_code
    return 0 if code == 36 else code
