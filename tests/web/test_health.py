"""What `/readyz` says of a node, by what keeps clients from being served."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from pykbroker.testing import Broker
from pykbroker.web.health import why_not_healthy, why_not_ready


@dataclass
class FakeNode:
    """A node as far as its health is asked; a healthy broker."""

    stopped: trio.Event = field(default_factory=trio.Event)
    is_stopping: bool = False
    serves: bool = True
    registration: Any = field(default_factory=lambda: SimpleNamespace(fenced=False, in_controlled_shutdown=False))
    applied_offset: int = 5_000
    directories: dict[str, object | None] = field(default_factory=lambda: {"/a": object(), "/b": object()})
    has_broker: bool = True

    @property
    def parts(self) -> Any:
        node = SimpleNamespace(
            node_id=1,
            raft=SimpleNamespace(high_watermark=5_000),
            metadata=SimpleNamespace(applied_offset=self.applied_offset),
            image=SimpleNamespace(brokers={} if self.registration is None else {1: self.registration}),
        )
        partitions = SimpleNamespace(log_directories=lambda: self.directories)
        role = SimpleNamespace(broker=SimpleNamespace(partitions=partitions)) if self.has_broker else None
        return SimpleNamespace(node=node, broker_role=role)


def reason(**changes: Any) -> str:
    return why_not_ready(FakeNode(**changes))  # type: ignore[arg-type]


def test_a_healthy_broker_is_ready() -> None:
    assert reason() == ""
    assert reason(applied_offset=4_990) == ""


def test_a_mere_controller_needs_no_registration() -> None:
    assert reason(has_broker=False, registration=None) == ""


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"is_stopping": True}, "shuts down"),
        ({"serves": False}, "starts"),
        ({"applied_offset": 10}, "4990 records behind"),
        ({"registration": None}, "not registered"),
        ({"registration": SimpleNamespace(fenced=True, in_controlled_shutdown=False)}, "fenced"),
        ({"registration": SimpleNamespace(fenced=False, in_controlled_shutdown=True)}, "leaves"),
        ({"directories": {"/a": object(), "/b": None}}, "offline: /b"),
    ],
    ids=["stopping", "starting", "behind", "unregistered", "fenced", "leaving", "offline directory"],
)
def test_what_keeps_clients_from_being_served_is_said(changes: dict[str, Any], expected: str) -> None:
    assert expected in reason(**changes)


def test_a_node_that_has_ended_is_not_healthy() -> None:
    ended = FakeNode()
    assert why_not_healthy(ended) == ""  # type: ignore[arg-type]
    ended.stopped.set()
    assert "ended" in why_not_healthy(ended)  # type: ignore[arg-type]
    assert "ended" in why_not_ready(ended)  # type: ignore[arg-type]


def test_a_broker_is_ready_while_it_serves() -> None:
    with Broker() as broker:
        node = broker.nodes[0].node
        assert node is not None
        assert why_not_ready(node) == ""
        broker.stop()
        assert why_not_ready(node) == "the node has ended"
