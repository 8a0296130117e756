"""The topics that a regular expression matched, and with them the whole subscription of a member."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .consumer_group_member import ConsumerGroupMember


@dataclass(frozen=True, slots=True)
class ResolvedRegularExpression:
    """The topics that an expression matched.

    version: the version of the metadata in which topics were looked for. timestamp_ms: when, by the wall clock.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


def subscription(member: ConsumerGroupMember, resolved: Mapping[str, ResolvedRegularExpression]) -> frozenset[str]:
    """Topic names. resolved: what regular expressions match."""
    names = frozenset(member.subscribed_topic_names)
    expression = resolved.get(member.subscribed_topic_regex)
    return names if expression is None else names | expression.topics
