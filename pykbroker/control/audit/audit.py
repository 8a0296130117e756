"""The audit of a node's clients, from when it is begun until it is ended."""

from __future__ import annotations

from collections.abc import Callable

from pykbroker.server.network.tap import Tap
from pykbroker.server.node.node import Node

from .audit_tap import AuditTap
from .auditor import Auditor
from .findings import Findings
from .who import Place


class Audit:
    """The audit of a node, one at a time. node: while it runs. now_ms: the wall clock."""

    def __init__(self, node: Callable[[], Node | None], now_ms: Callable[[], int]) -> None:
        self._node = node
        self._now_ms = now_ms
        self._auditor: Auditor | None = None

    @property
    def goes_on(self) -> bool:
        return self._auditor is not None

    @property
    def findings(self) -> Findings:
        """What was found since `begin`; nothing without one."""
        return Findings() if self._auditor is None else self._auditor.findings

    def begin(self) -> None:
        """Begin anew."""
        self._auditor = Auditor(self._place_of, self._now_ms)

    def end(self) -> Findings:
        """End it, and return what was found. The call may be repeated."""
        findings, self._auditor = self.findings, None
        return findings

    def tap(self, inner: Tap | None) -> AuditTap:
        return AuditTap(lambda: self._auditor, inner)

    def _place_of(self, name: str, topic_id: bytes, partition: int) -> Place | None:
        node = self._node()
        if node is None or node.parts is None:
            return None
        image = node.parts.node.image
        topic = image.topic(name) if name else image.topic_by_id(topic_id)
        return None if topic is None else Place(topic.topic_id, topic.name, partition)
