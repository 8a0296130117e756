"""Internal topics of applications of Kafka Streams, which go with their groups where that is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import KafkaError
from pykbroker.client.streams_groups import StreamsGroup, is_named_as_internal
from pykbroker.client.topics import delete_topic
from pykbroker.protocol.errors import ErrorCode

from .command import CommandFailed, one_line
from .output import warn
from .printable import printable


@dataclass(slots=True)
class TopicDeletion:
    """The end of the internal topics of one group. failed: why, by topic; that one was not there is no failure."""

    deleted: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def error(self) -> str | None:
        """The failures in one line; None without any."""
        return "; ".join(f"{topic}: {why}" for topic, why in self.failed.items()) or None


def internal_topics_of(group: StreamsGroup) -> list[str]:
    """Return the topics to delete with a group; one whose name Kafka Streams would not give is left, with a warning."""
    found = []
    for topic in group.internal_topics:
        if is_named_as_internal(topic, group.group_id):
            found.append(topic)
        else:
            warn(
                f"The internal topic '{printable(topic)}' is not inferred as internal and thus will not be deleted "
                f"with the group '{printable(group.group_id)}'."
            )
    return found


def named_internal_topics(group: StreamsGroup, names: Iterable[str]) -> list[str]:
    """Return the topics that are named, each once. Raises CommandFailed for one that does not belong to the group.

    A topic of an earlier topology belongs to the group by its name.
    """
    topics = list(dict.fromkeys(names))
    for topic in topics:
        if topic in group.source_topics or (
            topic not in group.internal_topics and not is_named_as_internal(topic, group.group_id)
        ):
            raise CommandFailed(f"'{topic[:250]}' is no internal topic of the streams group '{group.group_id}'")
    return topics


async def delete_topics(cluster: Cluster, topics: Iterable[str]) -> TopicDeletion:
    """Delete topics, each for itself."""
    outcome = TopicDeletion()
    for topic in topics:
        try:
            await delete_topic(cluster, topic)
        except KafkaError as error:
            if error.error_code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                outcome.failed[topic] = one_line(error)
        else:
            outcome.deleted.append(topic)
    return outcome


def told(deletions: Mapping[str, TopicDeletion]) -> str | None:
    """Return Kafka's sentence about groups whose internal topics are all gone; None where there are no such groups."""
    gone: Sequence[str] = [group_id for group_id, each in deletions.items() if each.error is None]
    quoted = "', '".join(printable(group_id) for group_id in gone)
    return (
        f"Deletion of associated internal topics of the streams groups ('{quoted}') was successful." if gone else None
    )


def complaint(deletions: Mapping[str, TopicDeletion]) -> str | None:
    """Return the failures in one line; None without any."""
    return (
        "; ".join(
            f"Internal topics of the streams group '{group_id}' could not be deleted due to: {each.error}"
            for group_id, each in deletions.items()
            if each.error is not None
        )
        or None
    )
