"""Subscriptions of client metrics as configurations (KIP-714): what may be set, and what is described."""

from __future__ import annotations

import pytest

from pykbroker.metadata.effective_configs import client_metrics_configs
from pykbroker.metadata.image import MetadataImage
from pykbroker.metadata.image_difference import difference
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
)
from tests.metadata.cluster import Cluster, one_node
from tests.metadata.test_configs import APPEND, DELETE, SET, SUBTRACT, Change, alter

CLIENT_METRICS = 16
INTERVAL = "interval must be between 100 and 3600000 (1 hour)"

REFUSED: list[tuple[str, Change, int, str]] = [
    ("", ("metrics", SET, "a"), 42, "Subscription name can't be empty"),
    ("s", ("other", SET, "1"), 42, "Unknown client metrics configuration: other"),
    ("s", ("metrics", SET, "a,,b"), 40, "Configuration 'metrics' values must not be empty."),
    ("s", ("metrics", APPEND, "a"), 40, "Can't APPEND to key metrics because its type is not LIST."),
    ("s", ("match", SUBTRACT, "a"), 40, "Can't SUBTRACT to key match because its type is not LIST."),
    ("s", ("interval.ms", SET, "99"), 42, f"Invalid value 99 for interval.ms, {INTERVAL}"),
    ("s", ("interval.ms", SET, "3600001"), 42, f"Invalid value 3600001 for interval.ms, {INTERVAL}"),
    ("s", ("interval.ms", SET, "x"), 40, "Invalid value x for configuration interval.ms: Not a number of type INT"),
    ("s", ("match", SET, "client_id"), 40, "Illegal client matching pattern: client_id"),
    ("s", ("match", SET, "client_id="), 40, "Illegal client matching pattern: client_id="),
    ("s", ("match", SET, "client_id=a=b"), 40, "Illegal client matching pattern: client_id=a=b"),
    ("s", ("match", SET, "host=a"), 40, "Illegal client matching pattern: host=a"),
    ("s", ("match", SET, "client_id=["), 40, "Illegal client matching pattern: client_id=["),
    ("s", ("match", SET, "client_id=a{1,2}"), 40, "Illegal client matching pattern: 2}"),
    ("s", ("match", SET, "client_id=(?<!a)b"), 40, "Illegal client matching pattern: client_id=(?<!a)b"),
    ("s", ("match", SET, ",".join(["client_id=a"] * 33)), 40, "More than 32 client matching patterns"),
    ("s", ("match", SET, f"client_id={'a' * 4097}"), 40, "Illegal client matching pattern: client_id=aaa"),
    ("s", ("match", SET, "client_id=(a{500}){500}"), 40, "Illegal client matching pattern: client_id=(a{500})"),
]


def described(cluster: Cluster, name: str) -> dict[str, tuple[str | None, int]]:
    rows = client_metrics_configs(cluster.replayed().client_metrics_config(name))
    return {row.key.name: (row.value, int(row.source)) for row in rows}


@pytest.mark.parametrize(("name", "change", "error_code", "message"), REFUSED)
def test_a_bad_subscription_is_refused_in_kafkas_words(
    name: str, change: Change, error_code: int, message: str
) -> None:
    found_code, found = alter(one_node(), CLIENT_METRICS, name, change)
    assert (found_code, found[: len(message)]) == (error_code, message)


@pytest.mark.parametrize(
    "change",
    [
        ("metrics", SET, "*"),
        ("metrics", SET, ""),
        ("metrics", SET, "org.apache.kafka.producer.,org.apache.kafka.consumer."),
        ("interval.ms", SET, "100"),
        ("interval.ms", SET, "3600000"),
        ("match", SET, " client_id = a.* ,client_source_port=[0-9]+="),
        ("match", SET, "client_software_name=librdkafka,client_software_version=2\\..*"),
        ("other", DELETE, None),
    ],
)
def test_a_good_subscription_is_taken(change: Change) -> None:
    assert alter(one_node(), CLIENT_METRICS, "s", change) == (0, None)


def test_a_subscription_is_described_with_its_defaults_and_is_gone_with_its_last_key() -> None:
    cluster = one_node()
    alter(cluster, CLIENT_METRICS, "s", ("metrics", SET, "*"), ("interval.ms", SET, "1000"))
    assert described(cluster, "s") == {"interval.ms": ("1000", 7), "match": ("", 5), "metrics": ("*", 7)}
    assert described(cluster, "other") == {"interval.ms": ("300000", 5), "match": ("", 5), "metrics": ("", 5)}
    alter(cluster, CLIENT_METRICS, "s", ("metrics", DELETE, None), ("interval.ms", DELETE, None))
    assert (CLIENT_METRICS, "s") not in cluster.image.configs


def test_a_whole_subscription_is_replaced() -> None:
    cluster = one_node()
    alter(cluster, CLIENT_METRICS, "s", ("metrics", SET, "*"), ("interval.ms", SET, "1000"))
    configs = [AlterConfigsRequestAlterableConfig(name="match", value="client_id=a")]
    resource = AlterConfigsRequestAlterConfigsResource(resource_type=CLIENT_METRICS, resource_name="s", configs=configs)
    cluster.ask(AlterConfigsRequest(resources=[resource]))
    assert cluster.image.client_metrics_config("s") == {"match": "client_id=a"}


def test_a_snapshot_has_the_subscriptions_and_tells_listeners_of_them() -> None:
    cluster, copy = one_node(), MetadataImage()
    alter(cluster, CLIENT_METRICS, "s", ("metrics", SET, "*"))
    for record in cluster.image.records():
        copy.replay(record, 0)
    assert copy.client_metrics_config("s") == {"metrics": "*"}
    assert (CLIENT_METRICS, "s") in difference(MetadataImage(), copy).configs
