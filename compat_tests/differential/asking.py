"""A sequence, asked of one broker: an answer in normal form for each step.

What follows from a request behind its answer is waited for, so that answers depend on the order of requests alone:
a change of the metadata until the broker has applied it, a decided transaction until its markers are written.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from compat_tests.waiting import until
from compat_tests.wire import Closed, Silent, Wire
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import UnsupportedVersion
from pykbroker.protocol.messages.acls import DeleteAclsFilter, DeleteAclsRequest
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.group_admin import DeleteGroupsRequest
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from pykbroker.protocol.messages.share_groups import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    ShareGroupDescribeRequest,
)
from pykbroker.protocol.messages.share_state import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryRequestPartitionData,
    ReadStateSummaryData,
)
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pykbroker.protocol.messages.transaction_admin import DescribeTransactionsRequest
from pykbroker.protocol.messages.transactions import InitProducerIdRequest
from pykbroker.protocol.schema import Message
from pykbroker.protocol.uuids import uuid_to_text

from .building import UNKNOWN_UUID, Builder
from .normal_answers import Learned, NormalAnswers
from .sequences import BROKER, CONTROLLER, Sequence, Step

WAITS: Final = "waits"
CLOSED: Final = "closed"
NO_ANSWER: Final = "no answer"
CANNOT_BE_ENCODED: Final = "cannot be encoded"
NOT_ASKED: Final = "not asked"
"""Answers without a message. The last two are none at all: a version that has no room for what the step says, and what
comes behind a transaction whose markers are not written within a time.
"""

PATIENCE_S: Final = 1.0
"""Of one who does not know whether a request is answered at all."""
EXPECTED_SILENCE_S: Final = 0.1
ANSWER_DEADLINE_S: Final = 60.0
MARKERS_DEADLINE_S: Final = 10.0

BARRIER: Final = "barrier"
_TOPIC, _CLIENT_METRICS, _SET, _DELETE = 2, 16, 0, 1
_SUBSCRIPTION: Final = ("metrics", "interval.ms", "match")
_SHARE: Final = 2
"""The key type of share partitions."""
_CHANGES_METADATA: Final = frozenset(
    {
        ApiKey.METADATA,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ALTER_PARTITION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
    }
)
_MAKES_GROUPS: Final = frozenset({ApiKey.OFFSET_COMMIT, ApiKey.JOIN_GROUP, ApiKey.TXN_OFFSET_COMMIT})
_DECIDES_TRANSACTIONS: Final = frozenset({ApiKey.END_TXN, ApiKey.INIT_PRODUCER_ID, ApiKey.WRITE_TXN_MARKERS})
_OPEN_STATES: Final = ("PrepareCommit", "PrepareAbort", "PrepareEpochFence")
_ANY_ACL: Final = DeleteAclsFilter(resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1)
_NO_QUOTA: Final = AlterClientQuotasRequestEntryData(
    entity=[EntityData(entity_type="ip", entity_name="127.0.0.9")],
    ops=[OpData(key="connection_creation_rate", remove=True)],
)


class Addresses(NamedTuple):
    """The listeners of one node."""

    broker: tuple[str, int]
    controller: tuple[str, int]


class Asker:
    """Asks one node. hides: paths of its own, and what stands for them in texts."""

    def __init__(self, addresses: Addresses, hides: dict[str, str] | None = None) -> None:
        self._addresses = addresses
        self._hides = hides or {}
        self._own = Wire(addresses.broker, ANSWER_DEADLINE_S)
        self._barriers = itertools.count(1_000_000)

    def close(self) -> None:
        self._own.__exit__(None, None, None)

    def prepare(self, *, share_groups: bool = False) -> None:
        """What has to be done once: the topic of the barrier, and the internal topics with their coordinators."""
        topic = CreatableTopic(name=BARRIER, num_partitions=1, replication_factor=1)
        self._own.call(CreateTopicsRequest(topics=[topic]), 7)
        for key_type in (0, 1):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[BARRIER])
            until(partial(self._is_found, request), "the coordinator is there")
        until(lambda: not self._transactions([BARRIER])[BARRIER].startswith("error"), "transactions are loaded")
        until(self._groups_are_loaded, "groups are loaded")
        if share_groups:
            share = FindCoordinatorRequest(
                key_type=_SHARE, coordinator_keys=[f"{BARRIER}:{uuid_to_text(UNKNOWN_UUID)}:0"]
            )
            until(partial(self._is_found, share), "the share coordinator is there")
            until(self._share_state_is_loaded, "the state of share groups is loaded")
        until(self._has_producer_ids, "the coordinator has producer ids")
        self._barrier()

    def ask(self, sequence: Sequence, expected: list[Any] | None = None) -> list[Any]:
        """Return one answer for each step. expected: those of another broker, which say where patience is no use."""
        prefix = f"{sequence.name}-"
        learned = Learned()
        builder = Builder(prefix, learned)
        normal = NormalAnswers(prefix, learned, hide=self._hidden)
        conversation = _Conversation(self._addresses)
        answers: list[Any] = []
        with conversation:
            for number, step in enumerate(sequence.steps):
                other = expected[number] if expected is not None and number < len(expected) else None
                patience_s = _patience_s(other)
                try:
                    request = builder.request(step)
                    answer = conversation.call(step, request, patience_s)
                except (UnsupportedVersion, ValueError):
                    answers.append(CANNOT_BE_ENCODED)
                    continue
                answers.append(answer if isinstance(answer, str) else normal.of(answer, step.version))
                if not self._settles(step, request):
                    break
        self._clean(sequence, prefix)
        return answers + [NOT_ASKED] * (len(sequence.steps) - len(answers))

    def _settles(self, step: Step, request: Any) -> bool:
        """Return whether all that follows from the step came about within a time."""
        if step.api_key == ApiKey.SHARE_GROUP_HEARTBEAT:
            return self._is_initialized(request.group_id)
        if step.api_key in _CHANGES_METADATA:
            self._barrier()
        if step.api_key not in _DECIDES_TRANSACTIONS:
            return True
        name = getattr(request, "transactional_id", None) or BARRIER
        return _comes_true(lambda: self._transactions([name])[name] not in _OPEN_STATES)

    def _barrier(self) -> None:
        """Two changes, one after the other: when the second is seen, whatever came before the first is applied."""
        for _ in range(2):
            value = str(next(self._barriers))
            config = IncrementalAlterConfigsRequestAlterableConfig(
                name="retention.ms", config_operation=_SET, value=value
            )
            resource = IncrementalAlterConfigsRequestAlterConfigsResource(
                resource_type=_TOPIC, resource_name=BARRIER, configs=[config]
            )
            self._own.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
            deadline = time.monotonic() + ANSWER_DEADLINE_S
            while self._barrier_value() != value:
                assert time.monotonic() < deadline, "the broker does not apply the metadata"
                time.sleep(0.001)

    def _barrier_value(self) -> str | None:
        resource = DescribeConfigsResource(
            resource_type=_TOPIC, resource_name=BARRIER, configuration_keys=["retention.ms"]
        )
        answer: Any = self._own.call(DescribeConfigsRequest(resources=[resource]), 4)
        return next((each.value for result in answer.results for each in result.configs), None)

    def _transactions(self, names: list[str]) -> dict[str, str]:
        answer: Any = self._own.call(DescribeTransactionsRequest(transactional_ids=names), 0)
        return {
            each.transactional_id: each.transaction_state
            if each.error_code == 0
            else ("error" if each.error_code in (14, 15, 16) else "none")
            for each in answer.transaction_states
        }

    def _is_found(self, request: FindCoordinatorRequest) -> bool:
        answer: Any = self._own.call(request, 6)
        return all(each.error_code == 0 for each in answer.coordinators)

    def _is_initialized(self, group_id: str) -> bool:
        """Wait until the group has the state of all partitions of its topics, which comes behind a heartbeat."""
        return _comes_true(lambda: self._subscribed(group_id) <= self._topics_with_state(group_id))

    def _subscribed(self, group_id: str) -> set[str]:
        """The topics that exist, and to which a member of the share group has subscribed."""
        answer: Any = self._own.call(ShareGroupDescribeRequest(group_ids=[group_id]), 1)
        names = {name for group in answer.groups for member in group.members for name in member.subscribed_topic_names}
        topics = [MetadataRequestTopic(name=name) for name in sorted(names)]
        found: Any = self._own.call(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12)
        return {each.name for each in found.topics if each.error_code == 0}

    def _topics_with_state(self, group_id: str) -> set[str]:
        request = DescribeShareGroupOffsetsRequest(
            groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)]
        )
        answer: Any = self._own.call(request, 1)
        return {topic.topic_name for group in answer.groups for topic in group.topics}

    def _share_state_is_loaded(self) -> bool:
        partition = ReadShareGroupStateSummaryRequestPartitionData(partition=0, leader_epoch=0)
        topic = ReadStateSummaryData(topic_id=UNKNOWN_UUID, partitions=[partition])
        answer: Any = self._own.call(ReadShareGroupStateSummaryRequest(group_id=BARRIER, topics=[topic]), 0)
        return all(row.error_code not in (14, 15, 16) for each in answer.results for row in each.partitions)

    def _groups_are_loaded(self) -> bool:
        answer: Any = self._own.call(DeleteGroupsRequest(groups_names=[BARRIER]), 2)
        return all(each.error_code not in (14, 15, 16) for each in answer.results)

    def _has_producer_ids(self) -> bool:
        answer: Any = self._own.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
        return bool(answer.error_code == 0)

    def _clean(self, sequence: Sequence, prefix: str) -> None:
        """What later sequences would meet goes: ACLs, quotas of addresses, subscriptions of metrics, the group without
        a name; and topics."""
        asked = {step.api_key for step in sequence.steps}
        if ApiKey.CREATE_ACLS in asked:
            self._own.call(DeleteAclsRequest(filters=[_ANY_ACL]), 3)
            self._barrier()
        if ApiKey.ALTER_CLIENT_QUOTAS in asked:
            self._own.call(AlterClientQuotasRequest(entries=[_NO_QUOTA]), 1)
        subscriptions = _subscriptions_of(sequence, prefix)
        if subscriptions:
            self._own.call(IncrementalAlterConfigsRequest(resources=subscriptions), 1)
            self._barrier()
        if asked & _MAKES_GROUPS:
            self._own.call(DeleteGroupsRequest(groups_names=[""]), 2)
        answer: Any = self._own.call(MetadataRequest(topics=None), 12)
        states = [DeleteTopicState(name=each.name) for each in answer.topics if each.name.startswith(prefix)]
        if states:
            self._own.call(DeleteTopicsRequest(topics=states, timeout_ms=60_000), 6)
            self._barrier()

    def _hidden(self, text: str) -> str:
        for own, shown in self._hides.items():
            text = text.replace(own, shown)
        return text


class _Conversation:
    """The connections of one sequence, made where they are first used, and anew where they were closed."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._wires: dict[tuple[str, int], Wire] = {}

    def __enter__(self) -> _Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        for wire in self._wires.values():
            wire.__exit__(None, None, None)

    def call(self, step: Step, request: Message, patience_s: float) -> Message | str:
        place = (step.listener, step.connection)
        if place not in self._wires:
            address = self._addresses.broker if step.listener == BROKER else self._addresses.controller
            self._wires[place] = Wire(address, ANSWER_DEADLINE_S)
        wire = self._wires[place]
        try:
            if step.api_key == ApiKey.PRODUCE and getattr(request, "acks", None) == 0 and step.listener != CONTROLLER:
                wire.send(request, step.version)
                wire.call(MetadataRequest(topics=[]), 12)
                return NO_ANSWER
            return wire.call(request, step.version, client_id="differential", deadline_s=patience_s)
        except Closed:
            outcome = CLOSED
        except Silent:
            outcome = WAITS
        wire.__exit__(None, None, None)
        del self._wires[place]
        return outcome


def _subscriptions_of(sequence: Sequence, prefix: str) -> list[IncrementalAlterConfigsRequestAlterConfigsResource]:
    """Return what takes the subscriptions of clients' metrics away that a sequence may have left, whatever was asked of
    it behind the step at which its recording ends."""
    names = {
        resource["resource_name"]
        for step in sequence.steps
        if step.api_key == ApiKey.INCREMENTAL_ALTER_CONFIGS
        for resource in step.tree["resources"]
        if resource["resource_type"] == _CLIENT_METRICS
    }
    nothing = [
        IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=_DELETE) for key in _SUBSCRIPTION
    ]
    return [
        IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=_CLIENT_METRICS, resource_name=prefix + name[1:], configs=nothing
        )
        for name in sorted(names)
        if name.startswith("~")
    ]


def _comes_true(condition: Callable[[], bool]) -> bool:
    """Wait for what follows from a request, and tell whether it came about in time."""
    deadline = time.monotonic() + MARKERS_DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def _patience_s(other: Any) -> float:
    if other is None:
        return PATIENCE_S
    return EXPECTED_SILENCE_S if other == WAITS else ANSWER_DEADLINE_S
