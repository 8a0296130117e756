"""What `/readyz` says of a node, by what keeps clients from being served."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from confluent_kafka import Producer

from compat_tests.waiting import until
from pykbroker.server.logs.full_directories import Refused
from pykbroker.storage.files.disk import DiskSpace
from pykbroker.storage.files.errors import FileError
from pykbroker.testing import Broker
from pykbroker.web import room
from pykbroker.web.health import why_not_healthy, why_not_ready
from pykbroker.web.room import RoomLook

TIMEOUT_S = 60


@dataclass
class FakeDirectory:
    """A log directory whose volume has some space, or hangs, or fails."""

    usable_bytes: int = 1 << 30
    hangs: threading.Event | None = None
    error: OSError | None = None
    asked: int = 0

    def space(self) -> DiskSpace:
        self.asked += 1
        if self.hangs is not None:
            self.hangs.wait(TIMEOUT_S)
        if self.error is not None:
            raise FileError("look at", "/a", self.error)
        return DiskSpace(1 << 40, self.usable_bytes)


@dataclass
class FakeNode:
    """A node as far as its health is asked; a healthy broker."""

    stopped: trio.Event = field(default_factory=trio.Event)
    is_stopping: bool = False
    serves: bool = True
    registration: Any = field(default_factory=lambda: SimpleNamespace(fenced=False, in_controlled_shutdown=False))
    applied_offset: int = 5_000
    directories: dict[str, FakeDirectory | None] = field(
        default_factory=lambda: {"/a": FakeDirectory(), "/b": FakeDirectory()}
    )
    refused: dict[str, Refused] = field(default_factory=dict)
    refused_metadata: dict[str, Refused] = field(default_factory=dict)
    has_broker: bool = True

    @property
    def parts(self) -> Any:
        node = SimpleNamespace(
            node_id=1,
            raft=SimpleNamespace(
                high_watermark=5_000, full=SimpleNamespace(refused_last=lambda: self.refused_metadata)
            ),
            config=SimpleNamespace(metadata_log_dir="/a" if self.has_broker else "/"),
            metadata=SimpleNamespace(applied_offset=self.applied_offset),
            image=SimpleNamespace(brokers={} if self.registration is None else {1: self.registration}),
        )
        partitions = SimpleNamespace(
            log_directories=lambda: self.directories,
            failures=SimpleNamespace(full=SimpleNamespace(refused_last=lambda: self.refused)),
        )
        role = SimpleNamespace(broker=SimpleNamespace(partitions=partitions)) if self.has_broker else None
        return SimpleNamespace(node=node, broker_role=role)


def reason(**changes: Any) -> str:
    return trio.run(why_not_ready, FakeNode(**changes), RoomLook())


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
        ({"directories": {"/a": FakeDirectory(), "/b": None}}, "offline: /b"),
        ({"directories": {"/a": FakeDirectory(), "/b": FakeDirectory(4096)}}, "/b: no space left on device"),
        (
            {"directories": {"/a": FakeDirectory(0), "/b": FakeDirectory(0)}},
            "/a: no space left on device; /b: no space left on device",
        ),
        ({"refused": {"/b": Refused(500, "Disk quota exceeded")}}, "/b: disk quota exceeded"),
        ({"refused_metadata": {"/a/__cluster_metadata-0": Refused(500, "No space left")}}, "/a: no space left"),
        (
            {"has_broker": False, "refused_metadata": {"/__cluster_metadata-0": Refused(500, "No space left")}},
            "/: no space left",
        ),
        ({"directories": {"/a": FakeDirectory(error=OSError(5, "Input/output error"))}}, "/a: input/output error"),
    ],
    ids=[
        "stopping",
        "starting",
        "behind",
        "unregistered",
        "fenced",
        "leaving",
        "offline directory",
        "full volume",
        "full volumes",
        "quota",
        "metadata log",
        "controller",
        "volume with an error",
    ],
)
def test_what_keeps_clients_from_being_served_is_said(changes: dict[str, Any], expected: str) -> None:
    assert expected in reason(**changes)


def test_a_node_that_has_ended_is_not_healthy() -> None:
    ended = FakeNode()
    assert why_not_healthy(ended) == ""  # type: ignore[arg-type]
    ended.stopped.set()
    assert "ended" in why_not_healthy(ended)  # type: ignore[arg-type]
    assert "ended" in trio.run(why_not_ready, ended, RoomLook())


def test_a_broker_is_ready_while_it_serves() -> None:
    with Broker() as broker:
        node = broker.nodes[0].node
        assert node is not None
        assert broker.running_loop().call(why_not_ready, node, RoomLook()) == ""
        broker.stop()
        assert trio.run(why_not_ready, node, RoomLook()) == "the node has ended"


def test_a_write_that_was_refused_some_time_ago_counts_no_more_where_the_volume_has_room() -> None:
    assert reason(refused={"/b": Refused(60_000, "No space left on device")}) == ""


def test_a_volume_that_hangs_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_WAIT_S", 0.05)
    hanging = FakeDirectory(hangs=threading.Event())
    node, look = FakeNode(directories={"/a": FakeDirectory(), "/b": hanging}), RoomLook()

    async def look_twice() -> None:
        for _ in range(2):
            assert await why_not_ready(node, look) == "/b: its volume does not answer"  # type: ignore[arg-type]
        assert hanging.hangs is not None
        assert hanging.asked == 1
        hanging.hangs.set()
        hanging.hangs = None
        with trio.fail_after(TIMEOUT_S):
            while await why_not_ready(node, look):  # type: ignore[arg-type]
                pass

    trio.run(look_twice)


def test_a_broker_whose_disk_is_full_is_ready_again_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_LATELY_MS", 0)
    with Broker() as broker:
        node, look = broker.nodes[0].node, RoomLook()
        assert node is not None
        path = node.parts.node.config.metadata_log_dir  # type: ignore[union-attr]
        broker.create_topic("t")
        with monkeypatch.context() as patched, broker.faults.disk(error="ENOSPC", topic="t") as full:
            patched.setattr(room, "_LATELY_MS", 3_600_000)
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.timeout.ms": 1_000})
            producer.produce("t", b"value")
            full.wait_taken()
            until(
                lambda: broker.running_loop().call(why_not_ready, node, look) == f"{path}: no space left on device",
                "it is told",
            )
            producer.flush(TIMEOUT_S)
        assert broker.running_loop().call(why_not_ready, node, look) == ""
