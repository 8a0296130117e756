"""What a scrape tells of share groups and streams groups, after their members have worked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import AcknowledgeType

from compat_tests.waiting import until
from pykbroker.testing import Broker
from tests.groups.live_members import StreamsMember, share_consumer, shared_records

from .scraping import Scraped, scrape

OF_GROUPS = "kafka_server_sharegroupmetrics_"
OF_PARTITIONS = "kafka_server_sharepartitionmetrics_"
OF_COORDINATOR = "kafka_server_share_coordinator_metrics_"
LETTERS = ("recordcount", "totalproducerequests", "failedproducerequests")
GROUP_COUNT = "kafka_server_group_coordinator_metrics_group_count"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"share.coordinator.state.topic.num.partitions": "1"}) as broker:
        yield broker


def acknowledged(scraped: Scraped) -> dict[str, float]:
    name = f"{OF_GROUPS}recordacknowledgements_total"
    return {labels["acktype"]: scraped.value(name, **labels) for labels in scraped.of(name)}


def test_a_broker_without_share_groups_shows_zeros_and_no_partitions(broker: Broker) -> None:
    scraped = scrape(broker)
    assert acknowledged(scraped) == {"Accept": 0, "Release": 0, "Reject": 0, "Renew": 0}
    assert scraped.value("kafka_server_sharesessioncache_sharesessionscount") == 0
    assert scraped.value(f"{OF_COORDINATOR}write_total") == 0
    assert not list(scraped.of("pykbroker_share_partition_lag"))


def test_what_members_of_a_share_group_do_is_counted(broker: Broker) -> None:
    broker.create_topic("t").produce(*(str(number).encode() for number in range(10)))
    labels = {"group": "g", "topic": "t", "partition": "0"}
    with share_consumer(broker.bootstrap_servers, "g", "t", share_acknowledgement_mode="explicit") as consumer:
        records = shared_records(consumer, 10)
        scraped = scrape(broker)
        assert scraped.value(f"{OF_PARTITIONS}inflightmessagecount", **labels) == 10
        batches = scraped.value(f"{OF_PARTITIONS}inflightbatchcount", **labels)
        assert scraped.value(f"{OF_PARTITIONS}inflightbatchmessagecount_count", **labels) == batches > 0
        assert scraped.value(f"{OF_PARTITIONS}inflightbatchmessagecount_sum", **labels) == 10
        assert scraped.value("pykbroker_share_partition_start_offset", **labels) == 0
        assert scraped.value("pykbroker_share_partition_lag", **labels) == 10
        assert scraped.value("kafka_server_sharesessioncache_sharesessionscount") == 1
        assert scraped.value("kafka_server_sharesessioncache_sharepartitionscount") == 1
        requests = scraped.value(f"{OF_GROUPS}requesttopicpartitionsfetchratio_count", group="g")
        assert 0 < scraped.value(f"{OF_GROUPS}requesttopicpartitionsfetchratio_sum", group="g") <= 100 * requests
        for record in records:
            kind = {0: AcknowledgeType.REJECT, 1: AcknowledgeType.RELEASE}.get(
                record.offset() or 0, AcknowledgeType.ACCEPT
            )
            consumer.acknowledge(record, kind)
        consumer.commit_sync()
        scraped = scrape(broker)
        assert acknowledged(scraped) == {"Accept": 8, "Release": 1, "Reject": 1, "Renew": 0}
        assert scraped.value("pykbroker_share_partition_start_offset", **labels) == 1
        assert scraped.value("pykbroker_share_partition_lag", **labels) == 1
        assert scraped.value(f"{OF_GROUPS}partitionloadtimems_count") == 1
        assert scraped.value(f"{OF_COORDINATOR}write_total") >= 1
        assert scraped.value(f"{OF_COORDINATOR}write_latency_ms_count") >= 1
        assert scraped.value("pykbroker_share_states") == 1
        assert scraped.value(GROUP_COUNT, protocol="share", state="Stable") == 1
        assert scraped.value("kafka_server_group_coordinator_metrics_share_group_rebalance_total") >= 1
    until(lambda: not list(scrape(broker).of("pykbroker_share_partition_lag")), "nothing is shown of a group that left")
    scraped = scrape(broker)
    assert not list(scraped.of(f"{OF_GROUPS}requesttopicpartitionsfetchratio_count"))
    assert scraped.value(GROUP_COUNT, protocol="share", state="Empty") == 1


def test_locks_that_end_by_time_are_counted() -> None:
    settings = {"group.share.min.record.lock.duration.ms": "1000", "group.share.record.lock.duration.ms": "1000"}
    labels = {"group": "g", "topic": "t", "partition": "0"}
    with (
        Broker(settings) as broker,
        share_consumer(broker.bootstrap_servers, "g", "t", share_acknowledgement_mode="explicit") as consumer,
    ):
        broker.create_topic("t").produce(b"a", b"b", b"c")
        shared_records(consumer, 3)
        name = f"{OF_PARTITIONS}acquisitionlocktimeout_total"
        until(lambda: scrape(broker).get(name, **labels) == 3, "the locks have ended")


def test_where_redundant_states_were_deleted_is_shown() -> None:
    settings = {
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.snapshot.update.records.per.snapshot": "0",
    }
    with Broker(settings) as broker:
        topic = broker.create_topic("t")
        topic.produce(b"a", b"b", b"c")
        with share_consumer(broker.bootstrap_servers, "g", "t") as consumer:
            shared_records(consumer, 3)
        node = broker.nodes[0].node
        assert node is not None
        assert node.parts is not None
        assert node.parts.broker_role is not None
        coordinator = node.parts.broker_role.broker.share_coordinator
        name, labels = f"{OF_COORDINATOR}last_pruned_offset", {"topic": "__share_group_state", "partition": "0"}
        assert scrape(broker).get(name, **labels) is None

        def are_deleted() -> bool:
            broker.running_loop().call(coordinator.prune)
            return (scrape(broker).get(name, **labels) or 0) >= 1

        until(are_deleted, "all but the newest states are deleted")


def test_dead_letters_are_shown_by_group(broker: Broker) -> None:
    node = broker.nodes[0].node
    assert node is not None
    assert node.parts is not None
    assert node.parts.broker_role is not None
    counts = node.parts.broker_role.broker.share_partitions.traffic.letters_of("g")
    counts.letters, counts.requests, counts.failed = 250, 3, 1
    scraped = scrape(broker)
    shown = {name: scraped.value(f"{OF_GROUPS}deadletterqueue{name}_total", group="g") for name in LETTERS}
    assert shown == {"recordcount": 250, "totalproducerequests": 3, "failedproducerequests": 1}


def test_share_partitions_beyond_the_bound_are_left_out_and_said_so() -> None:
    with Broker({"metrics.partitions.max": "3", "share.coordinator.state.topic.num.partitions": "1"}) as broker:
        broker.create_topic("t", partitions=4)
        with share_consumer(broker.bootstrap_servers, "g", "t") as consumer:
            until(
                lambda: consumer.poll(0.2) or scrape(broker).get("pykbroker_left_out", what="share partitions") == 4,
                "all four are there",
            )
            assert not list(scrape(broker).of("pykbroker_share_partition_lag"))


def test_streams_groups_are_counted_by_state_with_their_rebalances(broker: Broker) -> None:
    broker.create_topic("events")
    with StreamsMember(broker.bootstrap_servers, "app", "m") as member:
        assert member.join().error_code == 0
        until(
            lambda: member.beat() and scrape(broker).get(GROUP_COUNT, protocol="streams", state="Stable") == 1,
            "the group is stable",
        )
        assert scrape(broker).value("kafka_server_group_coordinator_metrics_streams_group_rebalance_total") >= 1
    assert scrape(broker).value(GROUP_COUNT, protocol="streams", state="Empty") == 1
