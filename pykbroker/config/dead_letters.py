"""The settings of a share group's dead letter queue (KIP-1191), out of keys of groups and brokers.

The counterparts are `GroupConfig` and `GroupConfigManager` of Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .broker import BrokerConfig
from .group_keys import DEAD_LETTER_COPIES, DEAD_LETTER_TOPIC, GroupValues

ENABLED_OF_TOPIC: Final = "errors.deadletterqueue.group.enable"
"""A topic's key: share groups may write their dead letters there."""


@dataclass(frozen=True, slots=True)
class DeadLetterSettings:
    """The settings of one group, as they are now.

    topic: where its dead letters go; empty where it has no such queue. copies_records: letters have key and value of
    the record. creates_topic: this broker has a topic created that is not there. prefix: how the topic's name begins.
    """

    topic: str
    copies_records: bool
    creates_topic: bool
    prefix: str


def dead_letter_topic(values: GroupValues) -> str:
    """Return the topic of the group's dead letters; empty where it has none."""
    return values.str(DEAD_LETTER_TOPIC).strip()


def dead_letter_settings(values: GroupValues, config: BrokerConfig, dynamic: Mapping[str, str]) -> DeadLetterSettings:
    """Return the settings of a group. dynamic: the broker's texts that were set at run time."""
    creates = config.text("errors.deadletterqueue.auto.create.topics.enable", dynamic)
    return DeadLetterSettings(
        topic=dead_letter_topic(values),
        copies_records=values.bool(DEAD_LETTER_COPIES),
        creates_topic=(creates or "").strip().lower() == "true",
        prefix=(config.text("errors.deadletterqueue.topic.name.prefix", dynamic) or "").strip(),
    )
