"""The coordinator's assignors (KIP-848): which member of a consumer group gets which partitions.

Assignors are pure functions over the values of `model`. `ASSIGNORS` is in the order of the default of
`group.consumer.assignors`: the first one is used where no member asks for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .model import Assignment, Assignor, MemberSubscription, TopicDescriber
from .range_assignor import RangeAssignor
from .uniform_assignor import UniformAssignor

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "MemberSubscription", "TopicDescriber"]

_ASSIGNORS: Final[tuple[Assignor, ...]] = (UniformAssignor(), RangeAssignor())
ASSIGNORS: Final[Mapping[str, Assignor]] = MappingProxyType({assignor.name: assignor for assignor in _ASSIGNORS})
