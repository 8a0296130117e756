"""Whom a node of the wrong cluster finds in the place of its quorum, and when that is reason enough to end."""

from __future__ import annotations

import pytest

from pykbroker.raft.events import Destination
from pykbroker.server.quorum.foreign_peers import ForeignPeers


def voters(count: int) -> list[Destination]:
    return [Destination(node_id, "127.0.0.1", 9092 + node_id) for node_id in range(1, count + 1)]


def met(*foreign: Destination) -> ForeignPeers:
    peers = ForeignPeers("ours")
    for each in foreign:
        peers.add(each, f"controller {each.node_id}", "theirs")
    return peers


@pytest.mark.parametrize(("quorum", "foreign"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)])
def test_a_node_that_finds_no_majority_of_its_cluster_ends(quorum: int, foreign: int) -> None:
    everyone = voters(quorum)
    assert met(*everyone[:foreign]).refusal(everyone) is not None
    assert met(*everyone[: foreign - 1]).refusal(everyone) is None, "the others may elect a leader with it"


def test_the_line_names_both_clusters_and_who_told() -> None:
    (voter,) = voters(1)
    refusal = met(voter).refusal([voter])
    assert refusal is not None
    assert "of the cluster ours, and controller 1 at 127.0.0.1:9093 is of the cluster theirs" in refusal
    unnamed = ForeignPeers("ours")
    unnamed.add(voter, "controller 1", None)
    assert "of another cluster" in str(unnamed.refusal([voter]))


def test_who_was_mended_counts_again() -> None:
    everyone = voters(3)
    peers = met(*everyone[:2])
    peers.discard(everyone[0])
    assert peers.refusal(everyone) is None


def test_somebody_who_is_not_asked_any_more_does_not_matter() -> None:
    first, *others = voters(4)
    assert met(first).refusal(others) is None
