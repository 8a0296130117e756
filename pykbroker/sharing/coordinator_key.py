"""The coordinator's key of a share partition: `group:topic id:partition`, which says in which partition of
`__share_group_state` its state lives, and for which FindCoordinator asks. Kafka's counterpart is
`org.apache.kafka.server.share.SharePartitionKey`.
"""

from __future__ import annotations

import re

from pykbroker.java_hash import java_hash
from pykbroker.protocol.uuids import uuid_from_text, uuid_to_text

from .persister import SharePartitionKey

_UUID = re.compile(r"[A-Za-z0-9_-]{22}(==)?\Z")
_INT = re.compile(r"[+-]?[0-9]{1,20}\Z")
_TRIMMED = "".join(map(chr, range(33)))
"""The characters that Java's `String.trim` takes away."""


def coordinator_key(key: SharePartitionKey) -> str:
    return f"{_prefix(key)}{key.partition}"


def state_partition(key: SharePartitionKey, partitions: int) -> int:
    """Return where the state lives, of so many partitions: `Utils.abs` of the key's hash in Java, modulo their number.

    The hash goes on from what share partitions of one topic have in common, which is looked up.
    """
    suffix = str(key.partition)
    value = java_hash(_prefix(key))
    for character in suffix:
        value = 31 * value + ord(character)
    value &= 0xFFFFFFFF
    if value >= 1 << 31:
        value -= 1 << 32
    return (0 if value == -(1 << 31) else abs(value)) % partitions


def parse_coordinator_key(text: str) -> SharePartitionKey | None:
    """Return the share partition that Kafka reads in the text, whose group's id may have colons; None for no key."""
    tokens = text.split(":")
    while tokens and not tokens[-1]:
        tokens.pop()  # as `String.split` of Java
    if len(tokens) < 3:
        return None
    *group, topic_id, partition = tokens
    group_id = ":".join(group)
    if not group_id.strip(_TRIMMED) or not _UUID.match(topic_id) or not _INT.match(partition):
        return None
    if not -(1 << 31) <= int(partition) < 1 << 31:
        return None
    return SharePartitionKey(group_id, uuid_from_text(topic_id[:22]), int(partition))


def _prefix(key: SharePartitionKey) -> str:
    return f"{key.group_id}:{uuid_to_text(key.topic_id)}:"
