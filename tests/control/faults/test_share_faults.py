"""Faults of share consumers, at a broker that runs."""

from __future__ import annotations

from confluent_kafka import AcknowledgeType

from pykbroker.testing import Broker
from tests.groups.live_members import share_consumer, shared_records


def test_a_share_fetch_of_a_session_has_the_error_in_its_partitions_and_its_client_reads_on() -> None:
    with Broker() as broker:
        topic = broker.create_topic("jobs")
        topic.produce(b"a")
        explicit = {"share_acknowledgement_mode": "explicit"}
        with share_consumer(broker.bootstrap_servers, "workers", "jobs", **explicit) as consumer:
            (first,) = shared_records(consumer, 1)
            consumer.acknowledge(first, AcknowledgeType.ACCEPT)
            with broker.faults.add(api="ShareFetch", topic="jobs", error="NOT_LEADER_OR_FOLLOWER", times=1):
                topic.produce(b"b")
                (second,) = shared_records(consumer, 1)
                assert second.value() == b"b"
        refused = [each for each in broker.requests(api="ShareFetch") if "NOT_LEADER_OR_FOLLOWER" in each.errors]
        assert refused
        response = refused[0].response
        assert response["error_code"] == 0
        (partition,) = response["responses"][0]["partitions"]
        assert (partition["partition_index"], partition["error"]) == (0, "NOT_LEADER_OR_FOLLOWER")
