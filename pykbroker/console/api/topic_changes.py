"""Changes of topics: create, delete, more partitions, and all records deleted.

What destroys names the topic a second time (`confirm`), as the reader has typed it; internal topics are left to the
command line, which asks for `--internal`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pykbroker.client.delete_records import UP_TO_HIGH_WATERMARK, delete_records
from pykbroker.client.errors import BadInput, ClientError, KafkaError
from pykbroker.client.topics import BROKER_DEFAULT, create_topic, delete_topic, grow_topic
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.console.failures import name_of
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .topic_rows import metadata_of

_LONGEST_NAME: Final = 249
_MOST_PARTITIONS: Final = 100_000
_MOST_REPLICAS: Final = 1000


@dataclass(frozen=True, slots=True)
class Purged:
    """The outcome of a purge: partitions that are empty now, and those that are not, with Kafka's name of the error."""

    partitions: int
    failed: dict[int, str]


async def create(asking: Asking, given: Arguments) -> None:
    """Create a topic; without numbers, the broker's defaults hold. Raises BadInput, KafkaError, ClientError."""
    partitions = given.whole("partitions", BROKER_DEFAULT, least=BROKER_DEFAULT, most=_MOST_PARTITIONS)
    replicas = given.whole("replicas", BROKER_DEFAULT, least=BROKER_DEFAULT, most=_MOST_REPLICAS)
    name, configs = given.text("name", longest=_LONGEST_NAME), given.mapping("configs")
    await create_topic(asking.cluster, name, partitions=partitions, replication_factor=replicas, configs=configs)


async def delete(asking: Asking, given: Arguments) -> None:
    """Delete a topic. Raises BadInput, KafkaError, ClientError."""
    name = _confirmed(given)
    await _partitions_of_own_topic(asking, name)
    await delete_topic(asking.cluster, name)


async def grow(asking: Asking, given: Arguments) -> None:
    """Give a topic more partitions. Raises BadInput, KafkaError, ClientError."""
    await grow_topic(asking.cluster, given.text("name"), given.whole("partitions", least=1, most=_MOST_PARTITIONS))


async def purge(asking: Asking, given: Arguments) -> Purged:
    """Delete all records of a topic that are there now. Raises BadInput, KafkaError, ClientError."""
    name = _confirmed(given)
    partitions = await _partitions_of_own_topic(asking, name)
    asking.cluster.metadata.topics.pop(name, None)  # leaders may have moved since
    outcomes = await delete_records(
        asking.cluster, {TopicPartition(name, each): UP_TO_HIGH_WATERMARK for each in partitions}
    )
    failed = {at.partition: name_of(each) for at, each in outcomes.items() if isinstance(each, ClientError)}
    if len(failed) == len(outcomes) and outcomes:
        raise _told(name, next(each for each in outcomes.values() if isinstance(each, ClientError)))
    return Purged(len(outcomes) - len(failed), failed)


def _told(name: str, error: ClientError) -> ClientError:
    """Return the failure of all partitions, in words for a topic whose policy is compaction alone."""
    if isinstance(error, KafkaError) and error.error_code is ErrorCode.POLICY_VIOLATION:
        return KafkaError(error.error_code, f"{name} cannot be purged: 'delete' is not in its cleanup.policy")
    return error


def _confirmed(given: Arguments) -> str:
    name = given.text("name")
    if given.text("confirm", "") != name:
        raise BadInput("'confirm' is the topic's name once more")
    return name


async def _partitions_of_own_topic(asking: Asking, name: str) -> list[int]:
    """Raises KafkaError for a topic of the cluster's own, UnknownTopic."""
    _, found = await metadata_of(asking.cluster, name)
    if found.is_internal:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is the cluster's own: the console leaves it alone")
    return [each.partition_index for each in found.partitions]
