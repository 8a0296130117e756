"""What a broker answers of configurations without asking a controller, which may be Apache Kafka's and not look."""

from __future__ import annotations

import pytest

from pykbroker.api.config_preprocessing import preprocess
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
)
from tests.metadata.test_configs import APPEND, BROKER, DELETE, GROUP, SET, SUBTRACT, TOPIC, Change, resource

NODE_ID, LOG_DIRECTORIES = 1, {"/one", "/two"}
BROKER_LOGGER, CLIENT_METRICS = 8, 16


@pytest.mark.parametrize(
    ("name", "change", "error_code", "message"),
    [
        ("1", ("advertised.listeners", SET, "PLAINTEXT://a:1"), 42, "Cannot update these configs dynamically"),
        ("1", ("advertised.listeners", DELETE, None), 42, "Cannot update these configs dynamically"),
        ("", ("advertised.listeners", SET, "PLAINTEXT://a:1"), 42, "Cannot update these configs dynamically"),
        ("1", ("num.io.threads", SET, "x"), 42, "Not a number of type INT"),
        ("1", ("config.providers", SET, "file"), 40, "pykbroker does not serve this"),
        ("1", ("listener.name.a.max.connections", SET, "0"), 42, "Invalid max.connections 0"),
        ("1", ("max.connections.per.ip.overrides", SET, "host"), 42, "'host' is not address:count"),
        ("", ("cordoned.log.dirs", SET, "*"), 42, "broker id must be specified"),
        ("1", ("cordoned.log.dirs", SET, "/one,/three"), 42, "Missing entries : /three"),
        ("1", ("cordoned.log.dirs", APPEND, "/three"), 42, "Missing entries : /three"),
        ("1", ("cordoned.log.dirs", SET, "*,/one"), 42, "it must not contain other values"),
        ("2", ("num.io.threads", SET, "4"), 42, "Unexpected broker id, expected 1, but received 2"),
    ],
)
def test_what_a_broker_would_not_take_is_not_passed_on(
    name: str, change: Change, error_code: int, message: str
) -> None:
    passed_on = [resource(BROKER, name, change), resource(TOPIC, "t", ("retention.ms", SET, "x"))]
    [row] = preprocess(passed_on, NODE_ID, LOG_DIRECTORIES)
    assert (row.resource_type, row.resource_name, row.error_code) == (BROKER, name, error_code)
    assert message in (row.error_message or "")
    assert [each.resource_type for each in passed_on] == [TOPIC], "the controller knows the topics"


@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        (BROKER, "1", ("num.io.threads", SET, "4")),
        (BROKER, "1", ("cordoned.log.dirs", SET, "/one,/two/")),
        (BROKER, "1", ("cordoned.log.dirs", SET, "*")),
        (BROKER, "1", ("cordoned.log.dirs", SET, "")),
        (BROKER, "1", ("cordoned.log.dirs", SUBTRACT, "/three")),
        (BROKER, "", ("some.plugin", SET, "4")),
        (BROKER, "1", ("num.io.threads", DELETE, None)),
        (GROUP, "g", ("nonsense", SET, "1")),
    ],
)
def test_what_it_would_take_is_up_to_the_controller(kind: int, name: str, change: Change) -> None:
    passed_on = [resource(kind, name, change)]
    assert preprocess(passed_on, NODE_ID, LOG_DIRECTORIES) == []
    assert len(passed_on) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("retention.ms", SET, "5"), ("retention.ms", SET, "6")], "Error due to duplicate config keys"),
        ([("retention.ms", SET, None)], "Null value not supported for : retention.ms"),
    ],
)
def test_keys_named_twice_and_keys_without_a_value_are_refused(changes: list[Change], message: str) -> None:
    passed_on = [resource(TOPIC, "t", *changes), resource(TOPIC, "u", ("retention.ms", DELETE, None))]
    [row] = preprocess(passed_on, NODE_ID, LOG_DIRECTORIES)
    assert (row.resource_name, row.error_code, row.error_message) == ("t", 42, message)
    assert [each.resource_name for each in passed_on] == ["u"]


def test_a_resource_that_is_named_twice_is_refused() -> None:
    change = ("retention.ms", SET, "5")
    passed_on = [resource(TOPIC, "t", change), resource(GROUP, "t", change), resource(TOPIC, "t", change)]
    rows = preprocess(passed_on, NODE_ID, LOG_DIRECTORIES)
    assert {row.error_message for row in rows} == {"Each resource must appear at most once."}
    assert (len(rows), [each.resource_type for each in passed_on]) == (2, [GROUP])


@pytest.mark.parametrize("kind", [0, BROKER_LOGGER])
@pytest.mark.parametrize("name", ["", "1"])
def test_what_has_no_configuration_in_the_cluster_is_not_passed_on(kind: int, name: str) -> None:
    passed_on = [resource(kind, name, ("root", SET, "DEBUG")), resource(CLIENT_METRICS, "m", ("interval.ms", SET, "1"))]
    [row] = preprocess(passed_on, NODE_ID, LOG_DIRECTORIES)
    assert (row.resource_type, row.resource_name, row.error_code) == (kind, name, 42)
    assert row.error_message == f"Unknown resource type {kind}"
    assert [each.resource_type for each in passed_on] == [CLIENT_METRICS], "Apache Kafka's controller keeps these"


def test_whole_configurations_are_looked_at_as_well() -> None:
    configs = [AlterConfigsRequestAlterableConfig(name="advertised.listeners", value="PLAINTEXT://a:1")]
    whole = AlterConfigsRequestAlterConfigsResource(resource_type=BROKER, resource_name="1", configs=configs)
    passed_on = [whole]
    [row] = preprocess(passed_on, NODE_ID, LOG_DIRECTORIES)
    assert (row.error_code, passed_on) == (42, [])
