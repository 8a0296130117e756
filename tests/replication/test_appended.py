"""What becomes of an append whose leader is demoted: an offset alone would tell of another leader's record."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.replication.appended import Appended
from tests.replication.replicas import Replicas


def append(replicas: Replicas, *values: str) -> Appended:
    partition = replicas.leader.partition
    replicas.append(*values)
    return Appended(partition, partition.log.log_end_offset)


def replicas_of_two() -> Replicas:
    replicas = Replicas((1, 2))
    replicas.settle()
    return replicas


def elect_the_other_and_truncate(replicas: Replicas) -> None:
    """Broker 2 leads without what only broker 1 has; broker 1 follows it and is in sync again."""
    replicas.elect(2, isr=(2,))
    replicas.append("x", "y")
    replicas.settle()
    assert set(replicas.state.isr) == {1, 2}


def test_an_append_is_open_until_every_in_sync_replica_has_it() -> None:
    replicas = replicas_of_two()
    appended = append(replicas, "a")
    assert (appended.settled(), appended.is_committed) == (None, False)
    replicas.settle()
    assert (appended.settled(), appended.is_committed) == (ErrorCode.NONE, True)


def test_a_demotion_ends_the_wait_at_once() -> None:
    replicas = replicas_of_two()
    appended = append(replicas, "a")
    replicas.elect(2)
    assert appended.settled() is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_append_that_was_truncated_is_lost_although_its_leader_leads_again() -> None:
    replicas = replicas_of_two()
    appended = append(replicas, "a")
    elect_the_other_and_truncate(replicas)
    replicas.elect(1)
    replicas.settle()
    assert replicas[1].partition.high_watermark >= appended.end_offset
    assert [value for _, value in replicas[1].records()] == [b"x", b"y"]
    assert appended.is_lost
    assert not appended.is_committed
    assert appended.settled() is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_later_append_of_the_same_leader_counts_by_itself() -> None:
    replicas = replicas_of_two()
    append(replicas, "a")
    elect_the_other_and_truncate(replicas)
    replicas.elect(1)
    appended = append(replicas, "z")
    assert appended.settled() is None
    replicas.settle()
    assert appended.settled() is ErrorCode.NONE


def test_a_leader_that_goes_on_in_a_later_epoch_has_lost_nothing() -> None:
    replicas = replicas_of_two()
    appended = append(replicas, "a")
    replicas.elect(1)
    assert (replicas.state.leader_epoch, appended.leader_epoch) == (1, 0)
    assert appended.settled() is None
    replicas.settle()
    assert appended.settled() is ErrorCode.NONE


def test_a_partition_that_is_gone_settles_nothing_more() -> None:
    replicas = replicas_of_two()
    appended = append(replicas, "a")
    replicas.settle()
    replicas[1].partition.resign()
    assert appended.settled() is ErrorCode.NOT_LEADER_OR_FOLLOWER
