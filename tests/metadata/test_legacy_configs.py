"""Whole configurations are replaced."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
)
from tests.metadata.cluster import Cluster, one_node
from tests.metadata.test_topics import creatable, create

TOPIC, BROKER = 2, 4


def replace(cluster: Cluster, type_: int, name: str, *, validate_only: bool = False, **configs: str | None) -> int:
    resource = AlterConfigsRequestAlterConfigsResource(
        resource_type=type_,
        resource_name=name,
        configs=[AlterConfigsRequestAlterableConfig(name=key, value=value) for key, value in configs.items()],
    )
    [row] = cluster.ask(AlterConfigsRequest(resources=[resource], validate_only=validate_only)).responses
    assert (row.resource_type, row.resource_name) == (type_, name)
    return int(row.error_code)


def test_what_is_not_named_goes_back_to_its_default() -> None:
    cluster = one_node()
    create(cluster, creatable("t", configs={"retention.ms": "5", "cleanup.policy": "compact"}))
    assert replace(cluster, TOPIC, "t", **{"retention.ms": "6", "segment.ms": "7"}, validate_only=True) == 0
    assert cluster.image.topic_config("t") == {"retention.ms": "5", "cleanup.policy": "compact"}
    assert replace(cluster, TOPIC, "t", **{"retention.ms": "6", "segment.ms": "7"}) == 0
    assert cluster.image.topic_config("t") == {"retention.ms": "6", "segment.ms": "7"}
    assert replace(cluster, TOPIC, "t") == 0
    assert cluster.image.topic_config("t") == {}


def test_a_replacement_that_cannot_be_changes_nothing() -> None:
    cluster = one_node()
    create(cluster, creatable("t", configs={"retention.ms": "5"}))
    assert replace(cluster, TOPIC, "t", **{"retention.ms": "no number"}) == ErrorCode.INVALID_CONFIG
    assert replace(cluster, TOPIC, "t", **{"retention.ms": None}) == ErrorCode.INVALID_REQUEST
    assert replace(cluster, TOPIC, "u", **{"retention.ms": "5"}) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert replace(cluster, BROKER, "") == ErrorCode.INVALID_CONFIG, "the minimum of all brokers stays with ELR"
    assert cluster.image.topic_config("t") == {"retention.ms": "5"}
