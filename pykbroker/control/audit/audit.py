"""The audit of a broker's clients, or of a cluster's, from when it is begun until it is ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pykbroker.server.network.tap import Tap
from pykbroker.server.node.node import Node

from .audit_tap import AuditTap
from .auditor import Auditor
from .connections import Connections
from .findings import Findings
from .who import Place


class Audit:
    """An audit of nodes of one cluster. nodes: those that run. now_ms: the wall clock.

    It is begun, looked at and ended from any thread; the nodes tell it in theirs.
    """

    def __init__(self, nodes: Callable[[], Sequence[Node]], now_ms: Callable[[], int]) -> None:
        self._nodes = nodes
        self._now_ms = now_ms
        self._auditor: Auditor | None = None
        self._connections = Connections()

    @property
    def goes_on(self) -> bool:
        return self._auditor is not None

    @property
    def findings(self) -> Findings:
        """The findings since `begin`; none without one."""
        auditor = self._auditor
        return Findings() if auditor is None else auditor.findings

    def begin(self) -> None:
        """Begin anew."""
        self._auditor = Auditor(self._place_of, self._now_ms, self._connections.is_open)

    def end(self) -> Findings:
        """End it, and return what was found. The call may be repeated."""
        findings, self._auditor = self.findings, None
        return findings

    def tap(self, inner: Tap | None) -> AuditTap:
        """Return the tap for one start of a node. inner: what is behind it."""
        return AuditTap(lambda: self._auditor, self._connections, inner)

    def _place_of(self, name: str, topic_id: bytes, partition: int) -> Place | None:
        for node in self._nodes():
            if node.parts is not None:
                image = node.parts.node.image
                topic = image.topic(name) if name else image.topic_by_id(topic_id)
                if topic is not None:
                    return Place(topic.topic_id, topic.name, partition)
        return None
