"""What a log tells of controllers that do not answer."""

from __future__ import annotations

import pytest

from pykbroker.raft.events import Destination
from pykbroker.server.quorum.unreachable_peers import UnreachablePeers

TO = Destination(2, "node-2", 9093)
OTHER = Destination(3, "node-3", 9093)


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_peer_that_stays_away_is_told_and_not_at_each_attempt(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    peers = UnreachablePeers(clock)
    for clock.now_s in range(61):
        peers.failed(TO, "controller 2", "Name or service not known")
    assert caplog.messages == ["controller 2 at node-2:9093 has not answered for 5 s: Name or service not known"]
    for clock.now_s in range(61, 70):
        peers.failed(TO, "controller 2", "Name or service not known")
    assert [each.split(" for ")[1].split(":")[0] for each in caplog.messages] == ["5 s", "65 s"]


def test_a_peer_that_is_missed_for_a_moment_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    peers = UnreachablePeers(clock)
    with caplog.at_level("INFO"):
        for clock.now_s in (0.0, 4.0):
            peers.failed(TO, "controller 2", "Connection refused")
        peers.answered(TO, "controller 2")
        clock.now_s = 8.0
        peers.failed(TO, "controller 2", "Connection refused")
    assert caplog.messages == []


def test_the_end_of_a_silence_is_told_of_this_peer(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    peers = UnreachablePeers(clock)
    with caplog.at_level("INFO"):
        for clock.now_s in (0.0, 6.0):
            peers.failed(TO, "controller 2", "Connection refused")
        peers.answered(OTHER, "controller 3")
        assert len(caplog.messages) == 1
        peers.answered(TO, "controller 2")
    assert caplog.messages[1] == "controller 2 at node-2:9093 answers again"
