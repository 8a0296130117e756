"""What administrators ask for: topics, partitions, configurations and elections, right and wrong, tried and done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from compat_tests.brokers import Broker
from compat_tests.waiting import until
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.metadata import DescribeClusterRequest, MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.reassignments import ElectLeadersRequest, TopicPartitions
from pykbroker.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
)
from tests.examples import examples

from .client import APPEND, DELETE, SET, SUBTRACT, TOPIC, TopicName, error_name
from .machine import BrokerMachine, explore

DYNAMIC_TOPIC_CONFIG = 1
NO_BROKER = 7
DEFAULTS = {"cleanup.policy": "delete", "retention.ms": "604800000", "max.message.bytes": "1048588"}
GOOD = {
    "cleanup.policy": ("compact", "delete", "compact,delete"),
    "retention.ms": ("-1", "1000"),
    "max.message.bytes": ("5000",),
}
WRONG = {"cleanup.policy": ("bogus",), "retention.ms": ("soon", "-2"), "unknown.key": ("1",)}

nouns = st.sampled_from(("a", "a", "b"))
good_configs = st.sampled_from([(key, value) for key, values in GOOD.items() for value in values])
wrong_configs = st.sampled_from([(key, value) for key, values in WRONG.items() for value in values])
config_sets = st.lists(st.one_of(good_configs, good_configs, good_configs, wrong_configs), max_size=2).map(dict)
seldom = st.sampled_from((False, False, False, True))


def is_wrong(key: str, value: str) -> bool:
    return value in WRONG.get(key, ())


@dataclass
class TopicModel:
    topic: TopicName
    partitions: int
    configs: dict[str, str] = field(default_factory=dict)


class TopicsAndConfigsMachine(BrokerMachine):
    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.topics: dict[str, TopicModel] = {}
        self.node_id = -1

    @initialize()
    def begin(self) -> None:
        cluster = self.client.call(DescribeClusterRequest(), 2)
        (node,) = cluster.brokers
        assert (node.host, node.port, node.is_fenced) == (*self.client.address, False)
        assert cluster.cluster_id
        self.node_id = node.broker_id

    # Topics

    @rule(
        noun=st.one_of(nouns, nouns, st.sampled_from(("a name", "~", "n" * 250))),
        partitions=st.sampled_from((1, 2, 2, -1, 0, -2)),
        replicas=st.sampled_from((1, 1, 1, -1, 2, 0)),
        configs=config_sets,
        is_trial=seldom,
    )
    def create_topic(self, noun: str, partitions: int, replicas: int, configs: dict[str, str], is_trial: bool) -> None:
        name = self.name(noun)
        error = self._name_error(noun)
        if error == "NONE" and noun in self.topics:
            error = "TOPIC_ALREADY_EXISTS"
        elif error == "NONE" and any(is_wrong(*config) for config in configs.items()):
            error = "INVALID_CONFIG"
        elif error == "NONE" and partitions in (0, -2) and replicas:
            error = "INVALID_PARTITIONS"
        elif error == "NONE" and replicas in (0, 2):
            error = "INVALID_REPLICATION_FACTOR"
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=replicas, configs=_creatable(configs)
        )
        self._create(topic, is_trial, noun, error, max(partitions, 1), configs)

    @rule(
        noun=nouns,
        brokers=st.lists(st.sampled_from(((0,), (0,), (0,), (NO_BROKER,), (0, 0), ())), min_size=1, max_size=3),
        is_trial=seldom,
    )
    def create_assigned_topic(self, noun: str, brokers: list[tuple[int, ...]], is_trial: bool) -> None:
        """brokers: of each partition; 0 is the only one there is."""
        error = "TOPIC_ALREADY_EXISTS" if noun in self.topics else "NONE"
        if error == "NONE" and any(each != (0,) for each in brokers):
            error = "INVALID_REPLICA_ASSIGNMENT"
        assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=[each or self.node_id for each in replicas])
            for index, replicas in enumerate(brokers)
        ]
        topic = CreatableTopic(name=self.name(noun), num_partitions=-1, replication_factor=-1, assignments=assignments)
        self._create(topic, is_trial, noun, error, len(brokers), {})

    def _name_error(self, noun: str) -> str:
        return "NONE" if noun in ("a", "b") else "INVALID_TOPIC_EXCEPTION"

    def _create(
        self,
        topic: CreatableTopic,
        is_trial: bool,
        noun: str,
        error: str,
        partitions: int,
        configs: dict[str, str],
    ) -> None:
        (answer,) = self.client.call(CreateTopicsRequest(topics=[topic], validate_only=is_trial), 7).topics
        assert error_name(answer.error_code) == error
        if error != "NONE":
            return
        assert (answer.num_partitions, answer.replication_factor) == (partitions, 1)
        told = {each.name: each.value for each in answer.configs}
        assert {key: told[key] for key in DEFAULTS} == DEFAULTS | configs
        if not is_trial:
            self.client.wait_for_leaders(topic.name, partitions)
            self.topics[noun] = TopicModel(TopicName(topic.name, bytes(answer.topic_id)), partitions, dict(configs))

    @rule(noun=nouns, by_id=st.booleans(), is_meant=seldom)
    def delete_topic(self, noun: str, by_id: bool, is_meant: bool) -> None:
        model = self.topics.get(noun)
        if not is_meant and model is not None:
            return
        topic = model.topic if model is not None else TopicName(self.name(noun), bytes(15) + b"\x07")
        error = self.client.delete_topic(topic, by_id=by_id)
        if model is None:
            assert error == ("UNKNOWN_TOPIC_ID" if by_id else "UNKNOWN_TOPIC_OR_PARTITION")
            return
        assert error == "NONE"
        del self.topics[noun]

    @rule(
        noun=nouns,
        added=st.integers(-1, 2),
        assigned=st.one_of(st.none(), st.none(), st.lists(st.sampled_from((0, NO_BROKER)), max_size=2)),
        is_trial=seldom,
    )
    def create_partitions(self, noun: str, added: int, assigned: list[int] | None, is_trial: bool) -> None:
        model = self.topics.get(noun)
        count = (model.partitions if model is not None else 1) + added
        assignments = None
        if assigned is not None:
            assignments = [CreatePartitionsAssignment(broker_ids=[each or self.node_id]) for each in assigned]
        topic = CreatePartitionsTopic(name=self.name(noun), count=count, assignments=assignments)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=60_000, validate_only=is_trial)
        (answer,) = self.client.call(request, 3).results
        if model is None:
            error = "UNKNOWN_TOPIC_OR_PARTITION"
        elif added <= 0:
            error = "INVALID_PARTITIONS"
        elif assigned is not None and (len(assigned) != added or NO_BROKER in assigned):
            error = "INVALID_REPLICA_ASSIGNMENT"
        else:
            error = "NONE"
        assert error_name(answer.error_code) == error
        if error == "NONE" and not is_trial:
            assert model is not None
            model.partitions = count
            self.client.wait_for_leaders(model.topic.name, count)

    # Configurations

    @rule(
        noun=nouns,
        changes=st.lists(
            st.tuples(
                st.sampled_from((SET, SET, SET, DELETE, APPEND, SUBTRACT)),
                st.one_of(good_configs, good_configs, good_configs, wrong_configs),
                seldom,
            ),
            min_size=1,
            max_size=2,
            unique_by=lambda change: change[1][0],
        ),
        is_trial=seldom,
    )
    def alter_incrementally(self, noun: str, changes: list[tuple[int, tuple[str, str], bool]], is_trial: bool) -> None:
        """changes: operation, key and value, and whether the value is left out."""
        model = self.topics.get(noun)
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=TOPIC,
            resource_name=self.name(noun),
            configs=[
                IncrementalAlterConfigsRequestAlterableConfig(
                    name=key, config_operation=operation, value=None if is_left_out else value
                )
                for operation, (key, value), is_left_out in changes
            ],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=is_trial)
        (answer,) = self.client.call(request, 1).responses
        error, configs = self._altered(model, changes)
        assert error_name(answer.error_code) == error
        self._is_altered(model, error, configs, is_trial)

    def _altered(
        self, model: TopicModel | None, changes: list[tuple[int, tuple[str, str], bool]]
    ) -> tuple[str, dict[str, str]]:
        """The error, and what the topic has afterwards. First the form of all changes is looked at."""
        if any(is_left_out and operation != DELETE for operation, _, is_left_out in changes):
            return "INVALID_REQUEST", {}
        configs = dict(model.configs) if model is not None else {}
        for operation, (key, value), _ in changes:
            if operation == SET:
                configs[key] = value
            elif operation == DELETE:
                configs.pop(key, None)
            elif key != "cleanup.policy":
                return "INVALID_CONFIG", {}
            else:
                before = [each for each in configs.get(key, DEFAULTS[key]).split(",") if each]
                parts = value.split(",")
                if operation == APPEND:
                    after = [*before, *(each for each in parts if each not in before)]
                else:
                    after = [each for each in before if each not in parts]
                configs[key] = ",".join(after)
        wrong = any(is_wrong(key, part) for key, value in configs.items() for part in {value, *value.split(",")})
        if wrong or "unknown.key" in configs:
            return "INVALID_CONFIG", {}
        return ("NONE" if model is not None else "UNKNOWN_TOPIC_OR_PARTITION"), configs

    @rule(noun=nouns, configs=config_sets, is_trial=seldom)
    def alter(self, noun: str, configs: dict[str, str], is_trial: bool) -> None:
        """The old request: what it does not name is taken away."""
        model = self.topics.get(noun)
        resource = AlterConfigsRequestAlterConfigsResource(
            resource_type=TOPIC,
            resource_name=self.name(noun),
            configs=[AlterConfigsRequestAlterableConfig(name=key, value=value) for key, value in configs.items()],
        )
        (answer,) = self.client.call(AlterConfigsRequest(resources=[resource], validate_only=is_trial), 2).responses
        error = "NONE" if model is not None else "UNKNOWN_TOPIC_OR_PARTITION"
        if any(is_wrong(*config) for config in configs.items()):
            error = "INVALID_CONFIG"
        assert error_name(answer.error_code) == error
        self._is_altered(model, error, configs, is_trial)

    def _is_altered(self, model: TopicModel | None, error: str, configs: dict[str, str], is_trial: bool) -> None:
        if error == "NONE" and not is_trial:
            assert model is not None
            model.configs = dict(configs)
            until(lambda: self._configs(model.topic.name) == configs, "the new configuration is told")

    def _configs(self, name: str) -> dict[str, str | None]:
        """What the topic itself has."""
        return {
            each.name: each.value
            for each in self._described_configs(name).configs
            if each.config_source == DYNAMIC_TOPIC_CONFIG
        }

    def _described_configs(self, name: str) -> Any:
        resource = DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=None)
        (found,) = self.client.call(DescribeConfigsRequest(resources=[resource]), 4).results
        return found

    # Elections

    @rule(noun=nouns, partition=st.integers(0, 3), is_unclean=st.booleans())
    def elect_leader(self, noun: str, partition: int, is_unclean: bool) -> None:
        """The only replica leads already."""
        request = ElectLeadersRequest(
            election_type=int(is_unclean),
            topic_partitions=[TopicPartitions(topic=self.name(noun), partitions=[partition])],
        )
        answer = self.client.call(request, 2)
        assert error_name(answer.error_code) == "NONE"
        (found,) = answer.replica_election_results[0].partition_result
        model = self.topics.get(noun)
        is_there = model is not None and partition < model.partitions
        expected = "ELECTION_NOT_NEEDED" if is_there else "UNKNOWN_TOPIC_OR_PARTITION"
        assert error_name(found.error_code) == expected

    # What is to be seen

    @invariant()
    def all_is_seen(self) -> None:
        asked = [MetadataRequestTopic(name=self.name(noun)) for noun in ("a", "b")]
        answer = self.client.call(MetadataRequest(topics=asked, allow_auto_topic_creation=False), 12)
        for noun, found in zip(("a", "b"), sorted(answer.topics, key=lambda each: each.name or ""), strict=True):
            model = self.topics.get(noun)
            configs = self._described_configs(self.name(noun))
            if model is None:
                assert error_name(found.error_code) == "UNKNOWN_TOPIC_OR_PARTITION"
                assert error_name(configs.error_code) == "UNKNOWN_TOPIC_OR_PARTITION"
                continue
            assert bytes(found.topic_id) == model.topic.topic_id
            assert sorted(
                (each.partition_index, each.leader_id, each.leader_epoch, tuple(each.isr_nodes))
                for each in found.partitions
            ) == [(index, self.node_id, 0, (self.node_id,)) for index in range(model.partitions)]
            values = {each.name: each.value for each in configs.configs}
            assert {key: values[key] for key in DEFAULTS} == DEFAULTS | model.configs
            assert self._configs(self.name(noun)) == model.configs


def _creatable(configs: dict[str, str]) -> list[CreatableTopicConfig]:
    return [CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]


def test_topics_and_configs_are_those_of_the_model(broker: Broker) -> None:
    explore(TopicsAndConfigsMachine, broker, examples(60, stateful_step_count=25))
