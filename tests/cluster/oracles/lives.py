"""The oracles see into nodes: the parts of the latest process of each, from its start on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from pykbroker.metadata.controller_state import ControllerState
from pykbroker.metadata.image import MetadataImage
from pykbroker.replication.partition import Partition
from pykbroker.server.node import node as composing
from pykbroker.server.node.broker_role import BrokerRole
from pykbroker.server.node.composition.parts import NodeParts, compose


@dataclass(frozen=True, slots=True)
class Life:
    """One process of a node, which is a broker and a controller."""

    parts: NodeParts

    @property
    def node_id(self) -> int:
        return self.parts.node.node_id

    @property
    def image(self) -> MetadataImage:
        return self.parts.node.image

    @property
    def role(self) -> BrokerRole:
        assert self.parts.broker_role is not None
        return self.parts.broker_role

    @property
    def controller_state(self) -> ControllerState:
        assert self.parts.node.controller is not None
        return self.parts.node.controller._controller._state

    @property
    def partitions(self) -> list[Partition]:
        return list(self.role.broker.partitions._hosted)

    def partition(self, topic: str, index: int) -> Partition | None:
        """The node's replica; None where it has none that can be used."""
        found = self.role.broker.partitions.get_partition(topic, index)
        return found if isinstance(found, Partition) else None


class Lives(dict[int, Life]):
    """By node id. A process that could not even put itself together is not among them."""

    @contextmanager
    def watching(self) -> Iterator[None]:
        def compose_and_tell(*arguments: Any, **keywords: Any) -> NodeParts:
            parts = compose(*arguments, **keywords)
            self[parts.node.node_id] = Life(parts)
            return parts

        with patch.object(composing, "compose", compose_and_tell):
            yield
