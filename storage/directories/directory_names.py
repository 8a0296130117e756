"""The names in a log directory: partitions, copies for another directory, and what is on its way out.

Kafka's counterparts are in `UnifiedLog` and `LocalLog`.
"""

import re
from collections.abc import Collection, Iterable
from random import Random

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.protocol.uuids import random_uuid

METADATA_LOG_DIRECTORY = "__cluster_metadata-0"
NODES_DIRECTORY = "nodes"
"""Of the first node of `start --cores`: the directories of the others. No partition has such a name, without a dash."""
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"
"""Behind the name of a log's directory that is copied to here from another log directory (KIP-113)."""

_MAX_NAME_BYTES = 255
_PARTITION_DIRECTORY = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]*)")
_FUTURE_DIRECTORY = re.compile(r".+-(?P<partition>0|[1-9][0-9]*)\.[^.]+" + FUTURE_SUFFIX)
_DELETED_DIRECTORY = re.compile(r"(?P<partition>.+)\.[0-9a-f]{32}" + DELETE_SUFFIX)


def parse_partition_directory(name: str) -> TopicPartition | None:
    """Return None for anything else that stands in a log directory."""
    match = _PARTITION_DIRECTORY.fullmatch(name)
    if match is None or name == METADATA_LOG_DIRECTORY:
        return None
    return TopicPartition(match["topic"], int(match["partition"]))


def partition_of_future(name: str) -> int | None:
    """Return None for anything but a copy; its topic is told by its id, since the name may be shortened."""
    match = _FUTURE_DIRECTORY.fullmatch(name)
    return None if match is None else int(match["partition"])


def is_deleted(name: str) -> bool:
    return name.endswith(DELETE_SUFFIX) and "." in name


def deleted_partitions(known: Iterable[TopicPartition], names: Collection[str]) -> list[TopicPartition]:
    """Those whose directory was put aside to be deleted, and that have no other one since."""
    deleted = {match["partition"] for match in map(_DELETED_DIRECTORY.fullmatch, names) if match}
    return sorted(at for at in known if _shortened(at, DELETE_SUFFIX) in deleted and str(at) not in names)


def name_aside(at: TopicPartition, suffix: str, rng: Random) -> str:
    """A new name for a directory of this partition that is not, or not any more, where its log is."""
    return f"{_shortened(at, suffix)}.{random_uuid(rng).hex()}{suffix}"


def has_room_for_future_name(topic: str, partition: int) -> bool:
    """Tell whether a copy's name has room for all of the partition's; Kafka refuses the move otherwise."""
    return len(f"{topic}-{partition}.") + 32 + len(FUTURE_SUFFIX) <= _MAX_NAME_BYTES


def deleted_future(path: str) -> str:
    """The name under which a copy is deleted."""
    return path.removesuffix(FUTURE_SUFFIX) + DELETE_SUFFIX


def _shortened(at: TopicPartition, suffix: str) -> str:
    """A partition's name with room for what is put behind it when its directory is put aside."""
    tail = f"-{at.partition}"
    return at.topic[: _MAX_NAME_BYTES - len(tail) - 1 - 32 - len(suffix)] + tail
