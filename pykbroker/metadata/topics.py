"""Creating and deleting topics and adding partitions: the rules of Kafka's `ReplicationControlManager`.

Each function gives the records and the answer; the answer's rows for what the request itself says wrongly (a topic
named twice) come first, as in Kafka. Not here: elections, reassignments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from pykbroker.config import ConfigurationError, check_topic_configs
from pykbroker.long_work import LongWork, counted, portions
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.metadata_records import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from pykbroker.protocol.schema import Message
from pykbroker.protocol.uuids import ZERO_UUID, random_uuid

from . import min_isr
from .controller_state import ControllerState
from .effective_configs import BrokerLayers, topic_configs
from .image import TOPIC_RESOURCE, TopicState
from .partition_state import PartitionState
from .placement import place_partitions
from .registrations import BrokerRegistration
from .request_context import PartitionChanges, unlimited
from .request_pieces import MAX_PARTITIONS, TOO_MANY_PARTITIONS
from .topic_names import CLUSTER_METADATA_TOPIC, NameCollisions, invalid_reason

if TYPE_CHECKING:  # most controllers have no policies
    from pykbroker.policies import CreateTopicRequest

    from .policy_check import PolicyCheck

_DEFAULT = -1
_STEPS_PER_TOPIC: Final = 100
_STEPS_PER_ERROR: Final = 2
_STEPS_PER_REPETITION: Final = 1
_STEPS_PER_PLACE: Final = 4
_STEPS_PER_PARTITION: Final = 8
_STEPS_PER_DELETION: Final = 4


def create_topics(
    state: ControllerState,
    request: CreateTopicsRequest,
    error_of_the_whole: ApiError | None = None,
    changes: PartitionChanges = unlimited,
    policies: PolicyCheck | None = None,
) -> LongWork[tuple[list[Message], CreateTopicsResponse]]:
    times = yield from counted(topic.name for topic in request.topics)
    records: list[Message] = []
    results: list[CreatableTopicResult] = []
    layers = BrokerLayers(state.config, state.image, state.node_id)
    collisions = NameCollisions(state.image.topics)
    for topic in request.topics:
        if times[topic.name] > 1 or topic.name == CLUSTER_METADATA_TOPIC:
            yield _STEPS_PER_REPETITION
            continue
        if error_of_the_whole is not None:
            # It is not raised: with one traceback for each topic it would keep the request from being freed.
            results.append(_not_created(topic.name, error_of_the_whole))
            yield _STEPS_PER_ERROR
            continue
        try:
            created, result = yield from _create_topic(state, layers, collisions, topic, changes, policies)
            records += created
        except ApiError as error:
            result = _not_created(topic.name, error)
        results.append(result)
        yield _STEPS_PER_TOPIC
    for name in (name for name, count in times.items() if count > 1):
        results.append(_not_created(name, ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")))
    if times[CLUSTER_METADATA_TOPIC] == 1:
        reason = f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
        results.append(_not_created(CLUSTER_METADATA_TOPIC, ApiError(ErrorCode.INVALID_REQUEST, reason)))
    return [] if request.validate_only else records, CreateTopicsResponse(topics=results)


def _not_created(name: str, error: ApiError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)


def _create_topic(
    state: ControllerState,
    layers: BrokerLayers,
    collisions: NameCollisions,
    topic: CreatableTopic,
    changes: PartitionChanges,
    policies: PolicyCheck | None,
) -> LongWork[tuple[list[Message], CreatableTopicResult]]:
    _check_new_name(state, collisions, topic.name)
    configs = _check_configs(layers, topic)
    replicas = yield from (_assigned(state, topic) if topic.assignments else _placed(state, topic))
    if policies is not None:
        policies.check(_as_policies_see_it(topic, configs, replicas))
    changes(len(replicas))
    topic_id = _new_topic_id(state)
    records: list[Message] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    config_records = [
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=name, value=value)
        for name, value in configs.items()
    ]
    records += min_isr.with_cleared_elr(state, config_records)
    records += yield from _partition_records(state, topic_id, 0, replicas)
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(replicas),
        replication_factor=len(replicas[0]),
        configs=[
            CreatableTopicConfigs(
                name=each.key.name,
                value=configs.get(each.key.name, each.value),  # as it was given: "TRUE" stays "TRUE" here
                config_source=each.source,
                is_sensitive=each.key.sensitive,
            )
            for each in topic_configs(layers, configs)
        ],
    )
    return records, result


def _as_policies_see_it(
    topic: CreatableTopic, configs: dict[str, str], replicas: Sequence[Sequence[int]]
) -> CreateTopicRequest:
    from pykbroker.policies import CreateTopicRequest

    if topic.assignments:
        return CreateTopicRequest(topic.name, None, None, dict(enumerate(replicas)), configs)
    return CreateTopicRequest(topic.name, len(replicas), len(replicas[0]), None, configs)


def _check_new_name(state: ControllerState, collisions: NameCollisions, name: str) -> None:
    reason = invalid_reason(name)
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if state.image.topic(name) is not None:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = collisions.find(name)
    if other is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _check_configs(layers: BrokerLayers, topic: CreatableTopic) -> dict[str, str]:
    given = {config.name: config.value for config in topic.configs}
    try:
        check_topic_configs(given, layers.topic_values)
    except ConfigurationError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None
    return {name: value for name, value in given.items() if value is not None}


def _new_topic_id(state: ControllerState) -> bytes:
    while True:
        topic_id = random_uuid(state.rng)
        if state.image.topic_by_id(topic_id) is None:
            return topic_id


def _placed(state: ControllerState, topic: CreatableTopic) -> LongWork[list[list[int]]]:
    if topic.replication_factor < _DEFAULT or topic.replication_factor == 0:
        reason = "Replication factor must be larger than 0, or -1 to use the default value."
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
    if topic.num_partitions < _DEFAULT or topic.num_partitions == 0:
        reason = "Number of partitions was set to an invalid non-positive value."
        raise ApiError(ErrorCode.INVALID_PARTITIONS, reason)
    count, factor = topic.num_partitions, topic.replication_factor
    count = state.config.int("num.partitions") if count == _DEFAULT else count
    factor = state.config.int("default.replication.factor") if factor == _DEFAULT else factor
    try:
        return (yield from _place(state, count, factor))
    except ApiError as error:
        reason = f"Unable to replicate the partition {factor} time(s): {error.message}"
        raise ApiError(error.code, reason) from None


def _place(state: ControllerState, count: int, replication_factor: int) -> LongWork[list[list[int]]]:
    """Raises ApiError."""
    placed = []
    for replicas in place_partitions(_placeable(state), count, replication_factor, state.rng):
        placed.append(replicas)
        yield _STEPS_PER_PLACE
    return placed


def _placeable(state: ControllerState) -> list[BrokerRegistration]:
    """A broker that is about to go takes no replicas; one that has gone is fenced, and takes them as any fenced one."""
    return [
        broker
        for broker in state.image.brokers.values()
        if (broker.fenced or not broker.in_controlled_shutdown) and broker.takes_replicas
    ]


def _assigned(state: ControllerState, topic: CreatableTopic) -> LongWork[list[list[int]]]:
    if topic.replication_factor != _DEFAULT:
        reason = "A manual partition assignment was specified, but replication factor was not set to -1."
        raise ApiError(ErrorCode.INVALID_REQUEST, reason)
    if topic.num_partitions != _DEFAULT:
        reason = "A manual partition assignment was specified, but numPartitions was not set to -1."
        raise ApiError(ErrorCode.INVALID_REQUEST, reason)
    replicas = {each.partition_index: list(each.broker_ids) for each in topic.assignments}
    if len(replicas) != len(topic.assignments):
        twice = Counter(each.partition_index for each in topic.assignments).most_common(1)[0][0]
        reason = f"Found multiple manual partition assignments for partition {twice}"
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    if sorted(replicas) != list(range(len(replicas))):
        reason = "partitions should be a consecutive 0-based integer sequence"
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    ordered = [replicas[index] for index in range(len(replicas))]
    for index, each in enumerate(ordered):
        _check_assignment(state, index, each, len(ordered[0]))
        yield _STEPS_PER_PLACE
    return ordered


def _check_assignment(state: ControllerState, index: int, replicas: Sequence[int], replication_factor: int) -> None:
    """Raises ApiError."""
    check_replicas(state, replicas)
    problem = None
    if len(replicas) != replication_factor:
        problem = (
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )
    elif not any(state.is_active(each) for each in replicas):
        problem = (
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown."
        )
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def check_replicas(state: ControllerState, replicas: Sequence[int]) -> None:
    """Check that a partition may have these replicas. Raises ApiError."""
    prefix = "The manual partition assignment includes"
    if not replicas:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{prefix} an empty replica list.")
    previous = None
    for each in sorted(replicas):
        if each not in state.image.brokers:
            reason = f"{prefix} broker {each}, but no such broker is registered."
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        if each == previous:
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{prefix} the broker {each} more than once.")
        previous = each


def _partition_records(
    state: ControllerState, topic_id: bytes, first_index: int, replicas: Iterable[Sequence[int]]
) -> LongWork[list[PartitionRecord]]:
    records = []
    for index, each in enumerate(replicas, first_index):
        records.append(_partition_record(state, topic_id, index, each))
        yield _STEPS_PER_PARTITION
    return records


def _partition_record(state: ControllerState, topic_id: bytes, index: int, replicas: Sequence[int]) -> PartitionRecord:
    isr = tuple(each for each in replicas if state.is_active(each))
    partition = PartitionState(
        replicas=tuple(replicas),
        isr=isr,
        leader=isr[0],
        directories=tuple(map(state.default_directory, replicas)),
    )
    return partition.to_record(topic_id, index)


def create_partitions(
    state: ControllerState, request: CreatePartitionsRequest, changes: PartitionChanges = unlimited
) -> LongWork[tuple[list[Message], CreatePartitionsResponse]]:
    times = yield from counted(topic.name for topic in request.topics)
    results = [
        CreatePartitionsTopicResult(
            name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name."
        )
        for name, count in times.items()
        if count > 1
    ]
    records: list[Message] = []
    for topic in request.topics:
        if times[topic.name] > 1:
            yield _STEPS_PER_REPETITION
            continue
        try:
            records += yield from _create_partitions(state, topic, changes)
            results.append(CreatePartitionsTopicResult(name=topic.name))
        except ApiError as error:
            results.append(
                CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            )
    return [] if request.validate_only else records, CreatePartitionsResponse(results=results)


def _create_partitions(
    state: ControllerState, wanted: CreatePartitionsTopic, changes: PartitionChanges
) -> LongWork[list[PartitionRecord]]:
    topic = state.image.topic(wanted.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    added = wanted.count - len(topic.partitions)
    if added == 0:
        reason = f"Topic already has {len(topic.partitions)} partition(s)."
        raise ApiError(ErrorCode.INVALID_PARTITIONS, reason)
    if added < 0:
        reason = (
            f"The topic {topic.name} currently has {len(topic.partitions)} partition(s); "
            f"{wanted.count} would not be an increase."
        )
        raise ApiError(ErrorCode.INVALID_PARTITIONS, reason)
    if added > MAX_PARTITIONS:
        raise ApiError(ErrorCode.POLICY_VIOLATION, TOO_MANY_PARTITIONS)
    replicas = yield from _replicas_of_added(state, topic, wanted, added, changes)
    return (yield from _partition_records(state, topic.topic_id, len(topic.partitions), replicas))


def _replicas_of_added(
    state: ControllerState, topic: TopicState, wanted: CreatePartitionsTopic, added: int, changes: PartitionChanges
) -> LongWork[list[list[int]]]:
    factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        changes(added)
        return (yield from _place(state, added, factor))
    if len(wanted.assignments) != added:
        reason = (
            f"Attempted to add {added} additional partition(s), but only {len(wanted.assignments)} assignment(s) "
            "were specified."
        )
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    changes(added)
    replicas = [list(each.broker_ids) for each in wanted.assignments]
    for index, each in enumerate(replicas):
        _check_assignment(state, len(topic.partitions) + index, each, factor)
        yield _STEPS_PER_PLACE
    return replicas


def delete_topics(
    state: ControllerState, request: DeleteTopicsRequest, changes: PartitionChanges = unlimited
) -> LongWork[tuple[list[Message], DeleteTopicsResponse]]:
    """Topics by name up to version 5 of the request, by name or id from version 6 on."""
    wanted = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    if not state.config.bool("delete.topic.enable"):
        disabled = ApiError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
        return [], DeleteTopicsResponse(responses=[_not_deleted(each, disabled) for each in wanted])
    records: list[Message] = []
    failed: list[DeletableTopicResult] = []
    deleted: list[DeletableTopicResult] = []
    names = yield from counted(each.name for each in wanted)
    ids = yield from counted(each.topic_id for each in wanted)
    for each in (yield from _without_repetition(wanted)):
        try:
            topic = _topic_to_delete(state, each, names, ids)
            changes(len(topic.partitions))
            records.append(RemoveTopicRecord(topic_id=topic.topic_id))
            deleted.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
        except ApiError as error:
            failed.append(_not_deleted(each, error))
        yield _STEPS_PER_DELETION
    return records, DeleteTopicsResponse(responses=failed + deleted)


def _without_repetition(wanted: Iterable[DeleteTopicState]) -> LongWork[Iterable[DeleteTopicState]]:
    found: dict[tuple[str | None, bytes], DeleteTopicState] = {}
    for portion in portions(wanted):
        found.update(((each.name, each.topic_id), each) for each in portion)
        yield len(portion) // 3
    return found.values()


def _topic_to_delete(
    state: ControllerState, wanted: DeleteTopicState, names: Counter[str | None], ids: Counter[bytes]
) -> TopicState:
    by_id = wanted.topic_id != ZERO_UUID
    if wanted.name is None and not by_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if wanted.name is not None and by_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if wanted.name is None:
        if ids[wanted.topic_id] > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
        topic = state.image.topic_by_id(wanted.topic_id)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        if names[topic.name]:
            reason = "The provided topic name maps to an ID that was already supplied."
            raise ApiError(ErrorCode.INVALID_REQUEST, reason)
        return topic
    if names[wanted.name] > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    topic = state.image.topic(wanted.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    if ids[topic.topic_id]:
        reason = "The provided topic name maps to an ID that was already supplied."
        raise ApiError(ErrorCode.INVALID_REQUEST, reason)
    return topic


def _not_deleted(wanted: DeleteTopicState, error: ApiError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=wanted.name, topic_id=wanted.topic_id, error_code=error.code, error_message=error.message
    )
