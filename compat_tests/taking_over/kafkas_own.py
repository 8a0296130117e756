"""What Apache Kafka alone writes: transactions, the newer kinds of groups, credentials, levels of features.

pykbroker offers nothing of it yet. It keeps what it finds, and hides the records of transactions that were aborted.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.brokers import Broker
from compat_tests.hostile.scene import code
from compat_tests.same_answers.interview import plain
from compat_tests.topics import create_topic
from compat_tests.waiting import DEADLINE_S, until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.brokers import FeatureUpdateKey, UpdateFeaturesRequest
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykbroker.protocol.messages.configs import IncrementalAlterConfigsRequestAlterableConfig as AlterableConfig
from pykbroker.protocol.messages.configs import IncrementalAlterConfigsRequestAlterConfigsResource as ConfigsResource
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from pykbroker.protocol.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from pykbroker.protocol.messages.share_groups import ShareGroupDescribeRequest, ShareGroupHeartbeatRequest
from pykbroker.protocol.messages.streams_groups import (
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTopology,
)
from pykbroker.protocol.messages.transaction_admin import DescribeTransactionsRequest
from pykbroker.protocol.schema import Message

FEATURES = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}
MEMBER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
GROUP, CLIENT_METRICS = 32, 16
TRANSACTIONAL = "transactional"
OPEN = "open"
IN_TRANSACTION_GROUP = "in-transactions"
GROUPS = ("of-consumers", IN_TRANSACTION_GROUP)


class KafkasOwn:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def write(self) -> None:
        self._finalize_features()
        self._write_transactions()
        self._join_groups()
        self._set_configs()
        self._set_credentials()

    def inventory(self) -> dict[str, Any]:
        return {
            "groups": dict(self._groups()),
            "transactions": dict(self._transactions()),
            "configs": dict(self._configs()),
            "credentials": plain(self._call(DescribeUserScramCredentialsRequest(users=None), 0)),
        }

    def _call(self, request: Message, version: int) -> Any:
        with Wire(self._broker.address) as wire:
            answer: Any = wire.call(request, version)
        assert not getattr(answer, "error_code", 0), answer
        return answer

    def _finalize_features(self) -> None:
        updates = [FeatureUpdateKey(feature=name, max_version_level=level) for name, level in FEATURES.items()]
        self._call(UpdateFeaturesRequest(feature_updates=updates), 2)

    # Transactions

    def _write_transactions(self) -> None:
        """Committed, aborted, one after the other and one that is open; with offsets in them."""
        create_topic(self._broker, TRANSACTIONAL)
        producer = self._producer("finished")
        for number in range(7):
            producer.begin_transaction()
            for each in range(3):
                producer.produce(TRANSACTIONAL, b"%d.%d" % (number, each), b"key", partition=0)
            self._send_offset(producer, number)
            assert producer.flush(DEADLINE_S) == 0
            (producer.commit_transaction if number % 3 else producer.abort_transaction)(30)
        self._send_open_transaction()

    def _producer(self, name: str) -> Producer:
        producer = Producer(
            {"bootstrap.servers": self._broker.bootstrap, "transactional.id": name, "transaction.timeout.ms": 900_000}
        )
        producer.init_transactions(30)
        return producer

    def _send_offset(self, producer: Producer, offset: int) -> None:
        settings = {"bootstrap.servers": self._broker.bootstrap, "group.id": IN_TRANSACTION_GROUP}
        consumer = Consumer(settings)
        metadata = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition("spread", 0, offset)], metadata, 30)
        consumer.close()

    def _send_open_transaction(self) -> None:
        """The producer is forgotten in the middle of it: nobody will end it before its time is over."""
        producer = self._producer(OPEN)
        producer.begin_transaction()
        producer.produce(TRANSACTIONAL, b"open", b"key", partition=0)
        assert producer.flush(DEADLINE_S) == 0

    def _transactions(self) -> Iterator[tuple[str, Any]]:
        request = DescribeTransactionsRequest(transactional_ids=["finished", OPEN])

        def ask() -> Any:
            return self._call(request, 0).transaction_states

        until(lambda: all(code(each.error_code) == "NONE" for each in ask()), "the transaction coordinator is ready")
        for each in ask():
            yield each.transactional_id, (plain(each), each.producer_id)

    # Groups

    def _join_groups(self) -> None:
        consumers = ConsumerGroupHeartbeatRequest(
            group_id="of-consumers",
            member_id=MEMBER_ID,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["spread"],
            topic_partitions=[],
        )
        shares = ShareGroupHeartbeatRequest(
            group_id="of-shares", member_id=MEMBER_ID, subscribed_topic_names=["spread"]
        )
        subtopology = StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=["spread"])
        streams = StreamsGroupHeartbeatRequest(
            group_id="of-streams",
            member_id=MEMBER_ID,
            rebalance_timeout_ms=60_000,
            process_id="process",
            topology=StreamsGroupHeartbeatRequestTopology(epoch=1, subtopologies=[subtopology]),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
        )
        for request, version in ((consumers, 1), (shares, 1), (streams, 0)):
            until(partial(self._is_answered, request, version), f"{type(request).__name__} is answered")
        self._commit_as_consumer()

    def _is_answered(self, request: Message, version: int) -> bool:
        with Wire(self._broker.address) as wire:
            answer: Any = wire.call(request, version)
        name = code(answer.error_code)
        assert name in ("NONE", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"), answer
        return name == "NONE"

    def _commit_as_consumer(self) -> None:
        partition = OffsetCommitRequestPartition(partition_index=1, committed_offset=5, committed_metadata="m")
        request = OffsetCommitRequest(
            group_id="of-consumers",
            generation_id_or_member_epoch=1,
            member_id=MEMBER_ID,
            topics=[OffsetCommitRequestTopic(name="spread", partitions=[partition])],
        )

        def is_committed() -> bool:
            answer = self._call(request, 9)
            request.generation_id_or_member_epoch += 1  # until it is the member's
            return code(answer.topics[0].partitions[0].error_code) == "NONE"

        until(is_committed, "a commit of the member is taken")

    def _groups(self) -> Iterator[tuple[str, Any]]:
        """Described as they are, but for the clock; and what they committed."""
        for group, request, version in (
            ("of-consumers", ConsumerGroupDescribeRequest(group_ids=["of-consumers"]), 1),
            ("of-shares", ShareGroupDescribeRequest(group_ids=["of-shares"]), 1),
            ("of-streams", StreamsGroupDescribeRequest(group_ids=["of-streams"]), 0),
        ):
            (described,) = self._call(request, version).groups
            assert code(described.error_code) == "NONE", described
            yield group, (plain(described), described.members[0].member_id)
        for group in GROUPS:
            wanted = [OffsetFetchRequestGroup(group_id=group, topics=None)]
            (answer,) = self._call(OffsetFetchRequest(groups=wanted), 8).groups
            yield f"offsets of {group}", plain(answer)

    # Configurations of what pykbroker does not know

    def _set_configs(self) -> None:
        wanted = [
            (GROUP, "of-others", {"consumer.session.timeout.ms": "50000"}),
            (CLIENT_METRICS, "subscription", {"interval.ms": "60000"}),
        ]
        resources = [
            ConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterableConfig(name=key, config_operation=0, value=value) for key, value in values.items()],
            )
            for kind, name, values in wanted
        ]
        answer = self._call(IncrementalAlterConfigsRequest(resources=resources), 1)
        assert [code(each.error_code) for each in answer.responses] == ["NONE"] * len(wanted)

    def _configs(self) -> Iterator[tuple[str, Any]]:
        names = [(GROUP, "of-others"), (CLIENT_METRICS, "subscription")]
        resources = [DescribeConfigsResource(resource_type=kind, resource_name=name) for kind, name in names]
        for result in self._call(DescribeConfigsRequest(resources=resources), 4).results:
            yield result.resource_name, {each.name: (each.value, each.config_source) for each in result.configs}

    def _set_credentials(self) -> None:
        credential = ScramCredentialUpsertion(
            name="somebody", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"password"
        )
        changed = self._call(AlterUserScramCredentialsRequest(upsertions=[credential]), 0)
        assert [code(each.error_code) for each in changed.results] == ["NONE"]


def check(seen: dict[str, Any]) -> None:
    """That there is something to compare in what clients were given, whichever broker gave it."""
    transactional = f"{TRANSACTIONAL}-0"
    values = [row[1] for row in seen["committed records"][transactional]["rows"].values() if isinstance(row, tuple)]
    assert b"open" not in values
    assert b"2.0" in values
    assert len(seen["committed records"][transactional]["aborted"]) == 3
    (topic,) = seen["groups"][f"offsets of {IN_TRANSACTION_GROUP}"]["topics"]
    assert [each["committed_offset"] for each in topic["partitions"]] == [5], "7 transactions, the last was aborted"
