"""The order in which assignors go through members. It is Java's, because the result depends on it."""

from __future__ import annotations

from collections.abc import Mapping

from .model import MemberSubscription


def java_order(text: str) -> bytes:
    """A key that sorts as Java's `String.compareTo` does, by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def by_member_id(members: Mapping[str, MemberSubscription]) -> list[str]:
    return sorted(members, key=java_order)


def static_members_first(members: Mapping[str, MemberSubscription]) -> list[str]:
    """Static members by their instance ids, which outlive restarts, then the others by their member ids."""

    def key(member_id: str) -> tuple[bool, bytes]:
        instance_id = members[member_id].instance_id
        return (False, java_order(instance_id)) if instance_id else (True, java_order(member_id))

    return sorted(members, key=key)
