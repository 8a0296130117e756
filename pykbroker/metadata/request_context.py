"""The context of a request: the controller's rules are told more than the request says. Kafka's class has this name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.quotas.controller_mutations import ControllerMutationQuota

if TYPE_CHECKING:  # most controllers have no policies
    from .policy_check import PolicyCheck

PartitionChanges: TypeAlias = Callable[[int], None]
"""Counts the partitions of a topic that is to be changed. Raises ApiError where a quota does not let it be."""


def unlimited(partitions: int) -> None:
    """Count nothing: the request is a node's own, or nothing limits its client."""


@dataclass(frozen=True, slots=True)
class ControllerRequestContext:
    """The context of one request. mutations: the quota of its client, if there is any. unknown_hosts: names of hosts in
    it that have no address. principal: who asks for a delegation token, empty for other requests. wall_ms: when, by the
    clock on the wall. policies: what they say of it; None where there are none.
    """

    mutations: ControllerMutationQuota | None = None
    unknown_hosts: frozenset[str] = frozenset()
    principal: str = ""
    wall_ms: int = 0
    policies: PolicyCheck | None = None

    def partition_changes(self, now_ms: int) -> PartitionChanges:
        """The counter of one step of the controller."""
        mutations = self.mutations
        if mutations is None:
            return unlimited

        def count(partitions: int) -> None:
            if not mutations.admits(partitions, now_ms):
                raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

        return count


NO_CONTEXT: Final = ControllerRequestContext()
