"""Who may lead when nobody is in sync (KIP-966)."""

from __future__ import annotations

import pytest

from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.metadata_records import ConfigRecord
from tests.metadata.cluster import Cluster
from tests.metadata.test_alter_partition import propose
from tests.metadata.test_brokers import partition, three_nodes
from tests.metadata.test_feature_updates import update

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
MIN_ISR = "min.insync.replicas"
SAFE_DOWNGRADE = 2


def state(cluster: Cluster) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Leader, ISR, eligible ones, last leader."""
    shown = partition(cluster)
    return shown.leader, shown.isr, shown.eligible_leader_replicas, shown.last_known_elr


def die(cluster: Cluster, broker_id: int) -> None:
    cluster.heartbeat(broker_id, want_fence=True)


def restart(cluster: Cluster, broker_id: int, *, cleanly: bool) -> None:
    cluster.advance(20_000)  # No session is in the way; brokers of other tests are fenced by it.
    epoch = cluster.image.brokers[broker_id].epoch
    assert cluster.register(broker_id, previous_epoch=epoch if cleanly else -1).error_code == 0


def set_min_isr(cluster: Cluster, type_: int, name: str, value: str | None) -> tuple[int, str | None]:
    config = IncrementalAlterConfigsRequestAlterableConfig(
        name=MIN_ISR, config_operation=DELETE if value is None else SET, value=value
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=type_, resource_name=name, configs=[config]
    )
    [row] = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses
    return row.error_code, row.error_message


def test_whoever_leaves_an_isr_below_its_minimum_may_lead_again() -> None:
    cluster = three_nodes(**{MIN_ISR: "2"})
    die(cluster, 2)
    assert state(cluster) == (3, (3, 1), (), ())
    die(cluster, 3)
    assert state(cluster) == (1, (1,), (3,), ())
    die(cluster, 1)
    assert state(cluster) == (-1, (), (1, 3), (1,))
    cluster.heartbeat(2)
    assert state(cluster) == (-1, (), (1, 3), (1,)), "it lacks what was acknowledged without it"
    cluster.heartbeat(3)
    assert state(cluster) == (3, (3,), (1,), ())
    assert partition(cluster).leader_recovery_state == 0


def test_a_minimum_above_the_replication_factor_counts_as_that() -> None:
    cluster = three_nodes(replicas=2, **{MIN_ISR: "3"})
    die(cluster, 2)
    assert state(cluster) == (3, (3,), (2,), ())


def test_nobody_is_eligible_any_more_when_the_isr_is_large_enough() -> None:
    cluster = three_nodes(**{MIN_ISR: "2"})
    die(cluster, 2)
    die(cluster, 3)
    cluster.heartbeat(2)
    assert propose(cluster, [1, 2], 1).error_code == 0
    assert state(cluster) == (1, (1, 2), (), ())


def test_a_broker_that_lost_its_word_is_not_eligible() -> None:
    cluster = three_nodes(**{MIN_ISR: "2"})
    for broker_id in (2, 3, 1):
        die(cluster, broker_id)
    restart(cluster, 3, cleanly=False)
    assert state(cluster) == (-1, (), (1,), (1,))
    cluster.heartbeat(3)
    assert partition(cluster).leader == -1
    restart(cluster, 1, cleanly=True)
    cluster.heartbeat(1)
    assert state(cluster) == (1, (1,), (), ())
    assert partition(cluster).leader_recovery_state == 0


def test_where_all_lost_something_the_last_leader_leads_and_says_so() -> None:
    cluster = three_nodes(**{MIN_ISR: "2"})
    for broker_id in (2, 3, 1):
        die(cluster, broker_id)
    restart(cluster, 3, cleanly=False)
    restart(cluster, 1, cleanly=False)
    cluster.heartbeat(3)
    assert state(cluster) == (-1, (), (), (1,)), "the last leader is not there yet"
    cluster.heartbeat(1)
    assert state(cluster) == (1, (1,), (), ())
    assert partition(cluster).leader_recovery_state == 1


def test_a_crash_that_nobody_had_noticed_takes_the_broker_out_of_the_isr_when_it_is_back() -> None:
    cluster = three_nodes()
    cluster.restart_controller()
    assert cluster.register(2).error_code == 0
    assert state(cluster) == (3, (3, 1), (), ())


def test_the_minimum_of_the_cluster_stands_in_the_metadata_and_cannot_be_a_brokers_own() -> None:
    cluster = three_nodes()
    assert cluster.image.configs[BROKER, ""] == {MIN_ISR: "1"}
    assert set_min_isr(cluster, BROKER, "", None) == (
        40,
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
    )
    for value in ("2", None):
        assert set_min_isr(cluster, BROKER, "1", value) == (
            40,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        )
    assert set_min_isr(cluster, BROKER, "", "2") == (0, None)


@pytest.mark.parametrize(("type_", "name"), [(TOPIC, "t"), (BROKER, "")])
def test_another_minimum_forgets_who_was_eligible(type_: int, name: str) -> None:
    cluster = three_nodes(**{MIN_ISR: "2"})
    die(cluster, 2)
    die(cluster, 3)
    assert state(cluster) == (1, (1,), (3,), ())
    assert set_min_isr(cluster, type_, name, "1") == (0, None)
    assert state(cluster) == (1, (1,), (), ())


def test_the_feature_goes_and_comes() -> None:
    cluster = three_nodes()
    assert update(cluster, ("eligible.leader.replicas.version", 0, SAFE_DOWNGRADE)).error_code == 0
    assert set_min_isr(cluster, BROKER, "", None) == (0, None)
    assert set_min_isr(cluster, BROKER, "1", "2") == (0, None)
    for broker_id in (2, 3, 1):
        die(cluster, broker_id)
    assert state(cluster) == (-1, (1,), (), ()), "the last member stays in the ISR"
    assert update(cluster, ("eligible.leader.replicas.version", 1, 1)).error_code == 0
    configs = cluster.image.configs
    assert configs[BROKER, ""] == {MIN_ISR: "1"}
    assert (BROKER, "1") not in configs
    cluster.heartbeat(1)
    assert state(cluster) == (1, (1,), (), ())


def test_a_new_cluster_takes_the_minimum_of_its_properties() -> None:
    cluster = Cluster({MIN_ISR: "2"})
    assert cluster.image.configs[BROKER, ""] == {MIN_ISR: "2"}
    assert ConfigRecord(resource_type=BROKER, resource_name="", name=MIN_ISR, value="2") in list(
        cluster.image.records()
    )
