"""The rights that a request needs, said where its handler is registered: no handler is there without them.

Rights on the cluster are checked before the handler is called (`node.handlers`). Rights on what a request names are the
handler's to check, since it answers for each name; `api.authorization` has the checks, and here stands which they are.
`security.acls` has the rules. The table of all APIs is Kafka's documentation, "Authorization and ACLs".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType

Right: TypeAlias = tuple[Operation, ResourceType]


@dataclass(frozen=True, slots=True)
class Needs:
    """The rights that a request needs.

    on_cluster: one of these operations is enough, and is checked first. on_names: what the handler checks, each where
    it applies.
    """

    on_cluster: tuple[Operation, ...] = ()
    on_names: tuple[Right, ...] = ()


NOTHING: Final = Needs()
"""Whoever is connected may ask."""


def cluster(*operations: Operation) -> Needs:
    """One of these operations on the cluster, for the whole request."""
    return Needs(on_cluster=operations)


def names(*rights: Right) -> Needs:
    """These operations on what the request names, checked by its handler."""
    return Needs(on_names=rights)
