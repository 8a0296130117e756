"""The coordinator's assignors (KIP-848): which member of a consumer group gets which partitions.

Assignors are pure functions over the values of `model`; the order in which members come makes no difference to the
result. `ASSIGNORS` is in the order of the default of `group.consumer.assignors`: the first one is used where no member
asks for another. The modules, in reading order:

- `model`: what an assignor is given, and what it returns.
- `order`: the order in which assignors go through members.
- `range_assignor`: `range`, which makes topics joinable.
- `uniform_assignor`: `uniform`, which is even and keeps what members have.
- `heterogeneous`: `uniform` where members' subscriptions differ.
- `target`: what an assignor gives becomes a target assignment.
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
