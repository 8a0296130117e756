"""The groups of a shard by their kinds: a group id is a classic group's or a consumer group's, never both's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ..classic.classic_group import ClassicGroup
from .consumer_group import ConsumerGroup

Group: TypeAlias = ClassicGroup | ConsumerGroup


def find_classic(groups: Mapping[str, Group], group_id: str) -> ClassicGroup | None:
    group = groups.get(group_id)
    return group if isinstance(group, ClassicGroup) else None


def find_consumer(groups: Mapping[str, Group], group_id: str) -> ConsumerGroup | None:
    group = groups.get(group_id)
    return group if isinstance(group, ConsumerGroup) else None
