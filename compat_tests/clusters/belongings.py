"""What a cluster has been told to keep, as stock clients see it: ids, configs, offsets. Not its records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource

from compat_tests.committing import commit_offsets

from .cluster import Cluster
from .topics import CALL_TIMEOUT_S, admin_client

TOPIC, BROKER = ConfigResource.Type.TOPIC, ConfigResource.Type.BROKER
_SET_AT_RUN_TIME = (ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DYNAMIC_BROKER_CONFIG)


def belongings(cluster: Cluster, topics: Iterable[str], groups: Iterable[str]) -> dict[str, Any]:
    """groups: none of which commits anything now."""
    admin = admin_client(cluster)
    names = list(topics)
    described = admin.describe_topics(TopicCollection(names))
    resources = [ConfigResource(TOPIC, name) for name in names]
    resources += [ConfigResource(BROKER, str(node.node_id)) for node in cluster.brokers()]
    return {
        "cluster": admin.cluster_id(timeout=CALL_TIMEOUT_S),
        "ids": {name: str(future.result(CALL_TIMEOUT_S).topic_id) for name, future in described.items()},
        "configs": {str(each): _configs(admin, each) for each in resources},
        "offsets": {group: _committed(admin, group) for group in groups},
    }


def _configs(admin: AdminClient, resource: ConfigResource) -> dict[str, str | None]:
    """What was set, not what the properties say."""
    entries = admin.describe_configs([resource])[resource].result(CALL_TIMEOUT_S)
    return {each.name: each.value for each in entries.values() if ConfigSource(each.source) in _SET_AT_RUN_TIME}


def _committed(admin: AdminClient, group: str) -> list[tuple[str, int, int, str | None]]:
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group]
    found = asked.result(CALL_TIMEOUT_S).topic_partitions
    return sorted((each.topic, each.partition, each.offset, each.metadata) for each in found)


def set_config(cluster: Cluster, kind: ConfigResource.Type, name: str, key: str, value: str) -> None:
    admin = admin_client(cluster)
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(CALL_TIMEOUT_S)


def commit(cluster: Cluster, group: str, topic: str, offset: int, note: str) -> None:
    """To partition 0."""
    commit_offsets(cluster.bootstrap, group, [TopicPartition(topic, 0, offset, metadata=note)])
