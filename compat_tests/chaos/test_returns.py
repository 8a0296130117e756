"""When the watch takes a node for back: nodes that a fault is on are not asked, and old answers count for nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.clusters.view import ClusterView, NoAnswer, PartitionView

from .returns import ReturnWatch

EVERYBODY = frozenset((1, 2, 3))


class FakeCluster:
    """Three nodes and one partition. in_sync, unfenced: as each node tells it; who is in neither does not answer."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.in_sync = dict.fromkeys(EVERYBODY, EVERYBODY)
        self.unfenced = dict.fromkeys(EVERYBODY, EVERYBODY)
        self.asked: list[int] = []
        self.while_asked: Callable[[], object] = lambda: None
        self.watch = ReturnWatch(EVERYBODY, self.ask, now_s=lambda: self.now_s)

    def ask(self, node: int) -> ClusterView:
        self.asked.append(node)
        self.while_asked()
        if node not in self.in_sync:
            raise NoAnswer(f"node {node}")
        partition = PartitionView(1, 0, (1, 2, 3), self.in_sync[node])
        return ClusterView("", self.unfenced[node], {"orders": {0: partition}})

    def look_at(self, now_s: float) -> None:
        self.now_s = now_s
        self.watch.look()


def test_a_node_is_back_when_every_node_tells_that_it_is_in_sync_and_not_fenced() -> None:
    cluster = FakeCluster()
    cluster.watch.begin_fault([3])
    returns = cluster.watch.end_fault(10.0)
    cluster.in_sync[2] = frozenset((1, 2))
    cluster.look_at(11.0)
    cluster.in_sync[2] = EVERYBODY
    cluster.unfenced[1] = frozenset((1, 2))
    cluster.look_at(12.0)
    cluster.unfenced[1] = EVERYBODY
    del cluster.in_sync[3]
    cluster.look_at(13.0)
    assert returns.awaited == {3}
    cluster.in_sync[3] = EVERYBODY
    cluster.look_at(14.5)
    assert not returns.awaited
    assert returns.back_after_s == {3: 4.5}


def test_a_node_returns_while_the_next_fault_is_on_another_one_which_is_not_asked() -> None:
    cluster = FakeCluster()
    cluster.watch.begin_fault([3])
    returns = cluster.watch.end_fault(10.0)
    cluster.watch.begin_fault([2])
    cluster.in_sync[2] = frozenset((1, 2))
    cluster.look_at(12.0)
    assert returns.back_after_s == {3: 2.0}
    assert sorted(cluster.asked) == [1, 3]


def test_a_node_is_back_though_it_cannot_follow_where_a_fault_is_on_all_who_are_in_sync() -> None:
    cluster = FakeCluster()
    cluster.watch.begin_fault([3])
    returns = cluster.watch.end_fault(10.0)
    cluster.in_sync = dict.fromkeys(EVERYBODY, frozenset((2,)))
    cluster.look_at(11.0)
    assert returns.awaited == {3}
    cluster.watch.begin_fault([2])
    cluster.look_at(12.0)
    assert returns.back_after_s == {3: 2.0}


def test_the_return_of_a_node_that_is_hit_again_first_is_not_known() -> None:
    cluster = FakeCluster()
    cluster.watch.begin_fault([1, 3])
    first = cluster.watch.end_fault(10.0)
    cluster.watch.begin_fault([3])
    cluster.look_at(12.0)
    assert first.back_after_s == {1: 2.0, 3: None}
    second = cluster.watch.end_fault(20.0)
    cluster.look_at(20.5)
    assert second.back_after_s == {3: 0.5}


def test_what_a_node_says_while_a_fault_begins_counts_for_nothing() -> None:
    cluster = FakeCluster()
    cluster.watch.begin_fault([3])
    returns = cluster.watch.end_fault(10.0)
    cluster.while_asked = lambda: cluster.watch.begin_fault([2])
    cluster.look_at(11.0)
    assert returns.awaited == {3}


def test_a_node_that_stays_away_is_late_unless_another_fault_hit_it() -> None:
    cluster = FakeCluster()
    cluster.in_sync[1] = frozenset((1, 2))
    cluster.watch.begin_fault([3])
    cluster.watch.end_fault(10.0)
    cluster.look_at(70.0)
    cluster.watch.assert_nobody_is_late(60.0)
    cluster.look_at(70.5)
    with pytest.raises(AssertionError, match=r"not back within 60.0 s of a fault's end: node 3 after 60.5 s"):
        cluster.watch.assert_nobody_is_late(60.0)
    cluster.watch.begin_fault([3])
    cluster.watch.assert_nobody_is_late(60.0)


def test_nobody_is_asked_when_nobody_is_awaited() -> None:
    cluster = FakeCluster()
    cluster.look_at(1.0)
    cluster.watch.begin_fault([3])
    cluster.look_at(2.0)
    assert not cluster.asked


def test_who_is_awaited_when_the_watch_ends_was_never_seen_to_be_back() -> None:
    cluster = FakeCluster()
    cluster.in_sync[1] = frozenset((1, 2))
    with cluster.watch as watch:
        watch.begin_fault([3])
        returns = watch.end_fault(10.0)
    assert returns.back_after_s == {3: None}
