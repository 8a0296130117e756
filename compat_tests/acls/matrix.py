"""Every question, asked by users that may do nothing, one thing, everything, or everything but one thing.

A user's name says what it may do:

- `allow-READ-TOPIC`: one operation on the resources of one type, by literal names.
- `allow-READ`: one operation on the resources of all types.
- `deny-READ`: everything, by the wildcard, but for one operation on the resources of all types.
- `literal`, `prefixed`, `wildcard`: everything, by one kind of pattern. `other`: everything, with other resources.
- `nobody`: nothing. `admin`: a super user. `ANONYMOUS`: nothing, on the listener where nobody logs in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compat_tests.brokers import BrokerProcess
from compat_tests.referee_versions import newest_of_the_referee
from compat_tests.same_answers.interview import batch
from compat_tests.waiting import until
from compat_tests.wire import Closed, Silent, Wire
from pykbroker.protocol.messages.acls import AclCreation, CreateAclsRequest, DescribeAclsRequest
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.delegation_tokens import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from pykbroker.protocol.messages.transactions import InitProducerIdRequest
from pykbroker.protocol.schema import Message
from pykbroker.security.acls.operations import SUPPORTED_OPERATIONS, Operation, Permission
from pykbroker.security.acls.resources import CLUSTER_NAME, WILDCARD, PatternType, ResourceType

from .scene import (
    AUTO,
    CONSUMER_GROUP,
    GROUP,
    MISSING,
    MISSING_GROUP,
    OWNER,
    TOPIC,
    TRANSACTIONAL_ID,
    VICTIM,
    Question,
    Scene,
    comparable,
)
from .users import ADMIN, ANONYMOUS, Listeners, log_in

TYPES = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.DELEGATION_TOKEN,
    ResourceType.USER,
)
NAMES = {
    ResourceType.TOPIC: (TOPIC, VICTIM, MISSING),
    ResourceType.GROUP: (GROUP, MISSING_GROUP, CONSUMER_GROUP),
    ResourceType.CLUSTER: (CLUSTER_NAME,),
    ResourceType.TRANSACTIONAL_ID: (TRANSACTIONAL_ID, MISSING),
    ResourceType.USER: (f"User:{OWNER}",),
}
OTHER_OPERATIONS = {
    ResourceType.TRANSACTIONAL_ID: (Operation.DESCRIBE, Operation.WRITE),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""Of the types for which no answer lists them."""
PROPERTIES = {
    "delegation.token.secret.key": "secret",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.consumer.max.session.timeout.ms": "1800000",
    "group.consumer.session.timeout.ms": "1800000",
}
_ONLY_PREFIX = "matrix-"
RENEWER = "prefixed"
OWNER_MISMATCH = 63


def _operations(kind: ResourceType) -> list[Operation]:
    if kind in OTHER_OPERATIONS:
        return list(OTHER_OPERATIONS[kind])
    return [each for each in Operation if SUPPORTED_OPERATIONS[kind] >> each & 1]


OPERATIONS = sorted({each for kind in TYPES for each in _operations(kind)})
SINGLE = {f"allow-{each.name}-{kind.name}": (kind, each) for kind in TYPES for each in _operations(kind)}
USERS = (
    *SINGLE,
    *(f"allow-{each.name}" for each in OPERATIONS),
    *(f"deny-{each.name}" for each in OPERATIONS),
    "literal",
    "prefixed",
    "wildcard",
    "other",
    "nobody",
    ADMIN,
)


def entries(token_id: str) -> Iterator[AclCreation]:
    """All of them. token_id: of the token that is there."""
    for user, (kind, operation) in SINGLE.items():
        yield from _named(user, operation, kind, token_id)
    for kind in TYPES:
        for each in OPERATIONS:
            yield from _named(f"allow-{each.name}", each, kind, token_id)
            yield from _named(f"deny-{each.name}", each, kind, token_id, Permission.DENY)
            yield _entry(f"deny-{each.name}", Operation.ALL, kind, _wildcard(kind))
        yield from _named("literal", Operation.ALL, kind, token_id)
        yield _entry("prefixed", Operation.ALL, kind, _prefix(kind, token_id), PatternType.PREFIXED)
        yield _entry("wildcard", Operation.ALL, kind, _wildcard(kind))
        if kind != ResourceType.CLUSTER:
            yield _entry("other", Operation.ALL, kind, "matrix")


def _wildcard(kind: ResourceType) -> str:
    return CLUSTER_NAME if kind == ResourceType.CLUSTER else WILDCARD


def _prefix(kind: ResourceType, token_id: str) -> str:
    match kind:
        case ResourceType.CLUSTER:
            return CLUSTER_NAME
        case ResourceType.DELEGATION_TOKEN:
            return token_id[:10]
        case ResourceType.USER:
            return f"User:{_ONLY_PREFIX}"
        case _:
            return _ONLY_PREFIX


def _named(
    user: str, operation: Operation, kind: ResourceType, token_id: str, permission: Permission = Permission.ALLOW
) -> Iterator[AclCreation]:
    for name in NAMES.get(kind, (token_id,)):
        yield _entry(user, operation, kind, name, permission=permission)
    if kind == ResourceType.TOPIC:
        yield _entry(user, operation, kind, AUTO, PatternType.PREFIXED, permission)


def _entry(
    user: str,
    operation: Operation,
    kind: ResourceType,
    name: str,
    pattern: PatternType = PatternType.LITERAL,
    permission: Permission = Permission.ALLOW,
) -> AclCreation:
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=f"User:{user}",
        host="*",
        operation=operation,
        permission_type=permission,
    )


class Matrix:
    """One broker with its users; each has a connection that lasts."""

    def __init__(self, broker: BrokerProcess, listeners: Listeners) -> None:
        self._broker = broker
        self._listeners = listeners
        self._wires: dict[tuple[str, int], Wire] = {}
        self._scene = Scene(b"", b"")
        self._autos = 0

    def close(self) -> None:
        for wire in self._wires.values():
            wire.__exit__(None, None, None)

    def set_up(self) -> None:
        creations = list(entries(self._create_token()))
        answer = self._ask(ADMIN, CreateAclsRequest(creations=creations), 3)
        assert not any(each.error_code for each in answer.results), answer
        wanted = {tuple(vars_of(each)) for each in creations}
        until(lambda: self._entries() >= len(wanted), "the broker knows the entries")
        self._scene.topic_id = self._create(TOPIC)
        self._scene.victim_id = self._create(VICTIM)
        records = PartitionProduceData(index=0, records=batch(b"v"))
        produced = ProduceRequest(
            acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[records])]
        )
        until(lambda: not self._ask(ADMIN, produced, 9).responses[0].partition_responses[0].error_code, "a record")
        self._find(GROUP, 0)
        self._find(TRANSACTIONAL_ID, 1)
        offset = OffsetCommitRequestPartition(partition_index=0, committed_offset=3, committed_metadata="")
        commit = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=-1,
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[offset])],
        )
        until(lambda: not self._ask(ADMIN, commit, 9).topics[0].partitions[0].error_code, "an offset is committed")
        init = InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=60_000)
        until(lambda: not self._ask(ADMIN, init, 5).error_code, "the transactional id is known")
        join = ConsumerGroupHeartbeatRequest(
            group_id=CONSUMER_GROUP,
            member_id="member-of-the-matrix",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )
        until(lambda: not self._ask(ADMIN, join, 1).error_code, "a member has joined")

    def _create_token(self) -> str:
        """The super user makes it for another, and one of the users may renew it."""
        request = CreateDelegationTokenRequest(
            owner_principal_type="User",
            owner_principal_name=OWNER,
            renewers=[CreatableRenewers(principal_type="User", principal_name=RENEWER)],
            max_lifetime_ms=-1,
        )
        created = self._ask(ADMIN, request, 3)
        assert not created.error_code, created
        self._scene.token_hmac = bytes(created.hmac)
        described = DescribeDelegationTokenRequest(owners=None)
        until(lambda: len(self._ask(ADMIN, described, 3).tokens) == 1, "the broker knows the token")
        renewal = RenewDelegationTokenRequest(hmac=self._scene.token_hmac, renew_period_ms=-1)
        until(lambda: self._ask(ADMIN, renewal, 2).error_code == OWNER_MISMATCH, "the controller knows the token")
        return str(created.token_id)

    def _entries(self) -> int:
        everything = DescribeAclsRequest(
            resource_type_filter=1,
            pattern_type_filter=1,
            operation=1,
            permission_type=1,
            resource_name_filter=None,
            principal_filter=None,
            host_filter=None,
        )
        return sum(len(each.acls) for each in self._ask(ADMIN, everything, 3).resources)

    def _create(self, name: str) -> bytes:
        topics = [CreatableTopic(name=name, num_partitions=2 if name == TOPIC else 1, replication_factor=1)]
        request = CreateTopicsRequest(topics=topics, timeout_ms=10_000)
        until(lambda: self._ask(ADMIN, request, 7).topics[0].error_code == 0, f"{name} is created")
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        until(
            lambda: (
                not self._topic(wanted).error_code
                and all(not each.error_code for each in self._topic(wanted).partitions)
            ),
            f"{name} has a leader",
        )
        return bytes(self._topic(wanted).topic_id)

    def _topic(self, wanted: MetadataRequest) -> Any:
        return self._ask(ADMIN, wanted, 12).topics[0]

    def _find(self, key: str, kind: int) -> None:
        request = FindCoordinatorRequest(key=key, key_type=kind)
        until(lambda: not self._ask(ADMIN, request, 3).error_code, f"the coordinator of {key} is there")

    def answers(self, question: Question, *, on_controller: bool = False) -> dict[str, Any]:
        """What everybody is answered, by version: each answer with those who got it."""
        users = USERS if on_controller else (*USERS, ANONYMOUS)
        return {
            f"{question.name}, version {version}": self._by_answer(question, version, users, on_controller)
            for version in _versions(question, self._scene)
        }

    def _by_answer(self, question: Question, version: int, users: tuple[str, ...], on_controller: bool) -> Any:
        given: list[dict[str, Any]] = []
        for user in users:
            self._autos += 1
            self._scene.auto = f"{AUTO}{self._autos:05d}"
            shown = self._shown(user, question, version, on_controller)
            same = next((each for each in given if each["answer"] == shown), None)
            if same is None:
                same = {"answer": shown, "users": []}
                given.append(same)
            same["users"].append(user)
        return given

    def _shown(self, user: str, question: Question, version: int, on_controller: bool) -> Any:
        request = question.ask(self._scene)
        try:
            answer = self._ask(user, request, version, on_controller=on_controller)
        except Closed:
            return "closed"
        except Silent:
            return "silent"
        shown = comparable(answer, self._scene)
        if question.repairs and _has_deleted(answer):
            self._scene.victim_id = self._create(VICTIM)
        return shown

    def _ask(self, user: str, request: Message, version: int, *, on_controller: bool = False) -> Any:
        host, port = self._listeners.address(user)
        if on_controller:
            port = self._listeners.controller
        wire = self._wires.get((user, port))
        if wire is None:
            wire = self._wires[user, port] = Wire((host, port))
            log_in(wire, user)
        try:
            return wire.call(request, version)
        except (Closed, Silent):
            self._wires.pop((user, port)).__exit__(None, None, None)
            raise


def vars_of(creation: AclCreation) -> Iterator[Any]:
    return (getattr(creation, each.name) for each in AclCreation.__schema__.fields)


def _versions(question: Question, scene: Scene) -> list[int]:
    if question.versions:
        return list(question.versions)
    schema = type(question.ask(scene)).__schema__
    served = schema.stable_versions
    assert schema.api_key is not None
    return sorted({served.low, newest_of_the_referee(schema.api_key, served.high)})


def _has_deleted(answer: Any) -> bool:
    return any(each.error_code == 0 for each in answer.responses)
