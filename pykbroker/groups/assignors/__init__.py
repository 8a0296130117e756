"""The assignors that the coordinator itself has: who gets which partitions of a group of the consumer protocol.

Pure functions over the values of `model`. `ASSIGNORS` is in the order of `group.consumer.assignors`' default: the first
is taken where no member asks for another.
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
