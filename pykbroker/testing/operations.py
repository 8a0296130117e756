"""Questions of tests to a cluster, as coroutines over the small client: the same for every broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypedDict

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.conditions import Wanted, conditions_of, wait_until
from pykbroker.client.configs import Resource, ResourceType, alter_configs, describe_configs
from pykbroker.client.consumer import Consumer
from pykbroker.client.errors import BadInput, TimedOut
from pykbroker.client.fetched import ConsumedRecord
from pykbroker.client.group_lag import group_lag
from pykbroker.client.group_offsets import commit_offsets, fetch_offsets
from pykbroker.client.groups import MemberDescription, delete_group, describe_group, list_groups
from pykbroker.client.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    list_offsets,
)
from pykbroker.client.producer import open_producer
from pykbroker.client.topics import create_topic, delete_topic, grow_topic, list_topics
from pykbroker.protocol.topic_partition import TopicPartition

MOST_RECORDS: Final = 100_000
STANDSTILL_S: Final = 30.0
"""A read ends where no more has come for so long."""
Bytes: TypeAlias = str | bytes | None
"""A key or a value; text is sent as UTF-8."""


async def wait(cluster: Cluster, what: Wanted, timeout_s: float) -> None:
    """Raises ConditionNotMet, and BadInput for a wait that means nothing."""
    await wait_until(cluster, conditions_of(**what), timeout_s)


async def create(
    cluster: Cluster, name: str, partitions: int, replication_factor: int, configs: Mapping[str, object]
) -> None:
    await create_topic(
        cluster,
        name,
        partitions=partitions,
        replication_factor=replication_factor,
        configs={key: config_text(value) for key, value in configs.items()},
    )


async def delete(cluster: Cluster, name: str) -> None:
    await delete_topic(cluster, name)
    cluster.metadata.topics.pop(name, None)


async def grow(cluster: Cluster, name: str, partitions: int) -> None:
    await grow_topic(cluster, name, partitions)
    await cluster.refresh([name])


async def topic_names(cluster: Cluster) -> list[str]:
    """The names of all topics but internal ones."""
    return [topic.name for topic in await list_topics(cluster) if not topic.is_internal]


async def group_ids(cluster: Cluster) -> list[str]:
    return [group.group_id for group in await list_groups(cluster)]


async def partitions_of(cluster: Cluster, name: str) -> list[TopicPartition]:
    """Raises UnknownTopic."""
    await cluster.refresh([name])
    return [TopicPartition(name, index) for index in sorted((await cluster.topic(name)).partitions)]


class Reading(TypedDict, total=False):
    """Options of a read. partition: this one alone. most: records, where there are more is an error."""

    partition: int
    read_uncommitted: bool
    most: int


async def records_of(cluster: Cluster, name: str, options: Reading) -> list[ConsumedRecord]:
    """Return the records from the beginning to the end that the log has at the call, partition by partition.

    Raises UnknownTopic, BadInput where there are more than `most`, and TimedOut where no more of them come: a power cut
    leaves a log that may have holes with its end behind records that it has lost.
    """
    partition, most = options.get("partition"), options.get("most", MOST_RECORDS)
    isolation_level = READ_UNCOMMITTED if options.get("read_uncommitted") else READ_COMMITTED
    wanted = [of for of in await partitions_of(cluster, name) if partition in (None, of.partition)]
    if not wanted:
        raise BadInput(f"topic {name} has no partition {partition}")
    ends = await _ends(cluster, wanted, isolation_level)
    consumer = Consumer(cluster, isolation_level=isolation_level, reset_to=EARLIEST_TIMESTAMP)
    await consumer.assign_at(dict.fromkeys(wanted, EARLIEST_TIMESTAMP))
    found: list[ConsumedRecord] = []
    since_s = trio.current_time()
    while left := [of for of in wanted if consumer.positions[of] < ends[of]]:
        before = dict(consumer.positions)
        found += [
            record
            for record in await consumer.poll()
            if record.offset < ends[TopicPartition(record.topic, record.partition)]
        ]
        if len(found) > most:
            raise BadInput(f"topic {name} has more than {most} records: give `most` a larger number")
        if consumer.positions != before:
            since_s = trio.current_time()
        elif trio.current_time() - since_s > STANDSTILL_S:
            raise TimedOut(f"{left[0]} ends at {ends[left[0]]}, and has no record from {before[left[0]]} on")
        else:  # the log has lost its end, or there is another topic of this name
            ends = {of: min(ends[of], end) for of, end in (await _ends(cluster, wanted, isolation_level)).items()}
    return sorted(found, key=lambda record: (record.partition, record.offset))


async def _ends(cluster: Cluster, wanted: Iterable[TopicPartition], isolation_level: int) -> dict[TopicPartition, int]:
    """Return where a consumer of this isolation level would come to an end."""
    found = await list_offsets(cluster, dict.fromkeys(wanted, LATEST_TIMESTAMP), isolation_level=isolation_level)
    return {of: answer.offset for of, answer in found.items()}


async def produce(
    cluster: Cluster,
    name: str,
    records: Iterable[tuple[Bytes, Bytes]],
    partition: int | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> list[tuple[int, int]]:
    """Send records of key and value; return the partition and offset of each, when all are acknowledged by acks=all."""
    async with open_producer(cluster) as producer:
        deliveries = [
            await producer.send(
                name,
                as_bytes(value),
                key=as_bytes(key),
                partition=partition,
                headers=list(headers),
            )
            for key, value in records
        ]
        await producer.flush()
        return [(delivery.partition.partition, await delivery.wait()) for delivery in deliveries]


async def offsets_of(cluster: Cluster, name: str, at: int) -> dict[int, int]:
    """Return the offset of each partition at a timestamp of ListOffsets."""
    wanted = await partitions_of(cluster, name)
    found = await list_offsets(cluster, dict.fromkeys(wanted, at))
    return {of.partition: answer.offset for of, answer in found.items()}


async def start_offsets(cluster: Cluster, name: str) -> dict[int, int]:
    return await offsets_of(cluster, name, EARLIEST_TIMESTAMP)


async def end_offsets(cluster: Cluster, name: str) -> dict[int, int]:
    return await offsets_of(cluster, name, LATEST_TIMESTAMP)


async def topic_configs(cluster: Cluster, name: str) -> dict[str, str | None]:
    rows = await describe_configs(cluster, Resource(ResourceType.TOPIC, name))
    return {row.name: row.value for row in rows}


async def alter_topic_configs(cluster: Cluster, name: str, configs: Mapping[str, object]) -> None:
    """A value of None takes a configuration back to its default."""
    given = {key: config_text(value) for key, value in configs.items() if value is not None}
    unset = [key for key, value in configs.items() if value is None]
    await alter_configs(cluster, Resource(ResourceType.TOPIC, name), given, unset)


async def state_of(cluster: Cluster, group_id: str) -> str:
    return (await describe_group(cluster, group_id)).state


async def members_of(cluster: Cluster, group_id: str) -> tuple[MemberDescription, ...]:
    return (await describe_group(cluster, group_id)).members


async def lag_of(cluster: Cluster, group_id: str, topic: str | None) -> int:
    return sum((await group_lag(cluster, group_id, () if topic is None else (topic,))).values())


async def committed_of(cluster: Cluster, group_id: str) -> dict[TopicPartition, int]:
    return {of: each.offset for of, each in sorted((await fetch_offsets(cluster, group_id)).items())}


async def commit(cluster: Cluster, group_id: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commit from outside the group, which must have no members. Raises KafkaError."""
    await commit_offsets(cluster, group_id, {TopicPartition(*of): offset for of, offset in offsets.items()})


async def delete_a_group(cluster: Cluster, group_id: str) -> None:
    await delete_group(cluster, group_id)


def as_bytes(value: Bytes) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def config_text(value: object) -> str:
    """Return a configuration as Kafka spells it: `true` for True, `a,b` for a list."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(config_text, value))
    return str(value)
