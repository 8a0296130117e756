"""Loggers of a broker: what is described, what is altered, and that names from the wire make none."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from pykbroker.api.describe_configs import describe_configs
from pykbroker.api.incremental_alter_configs import incremental_alter_configs
from pykbroker.api.list_config_resources import list_config_resources
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from pykbroker.server.runtime.loggers import LEVELS, level_name
from tests.metadata.test_configs import APPEND, DELETE, SET, SUBTRACT, Change, resource

from .api_node import ApiNode, in_virtual_time

LOGGER = 8
NAME = "tests.loggers.one"
PACKAGE = "tests.loggers"


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    before = logging.root.level
    logging.getLogger(NAME).setLevel(logging.NOTSET)
    logging.root.setLevel(logging.INFO)
    yield
    logging.root.setLevel(before)
    for name in (NAME, PACKAGE):
        logging.getLogger(name).setLevel(logging.NOTSET)


def alter(node: ApiNode, name: str, *changes: Change, times: int = 1, validate_only: bool = False) -> list[Any]:
    request = IncrementalAlterConfigsRequest(
        resources=[resource(LOGGER, name, *changes)] * times, validate_only=validate_only
    )
    answer = in_virtual_time(lambda: node.call(incremental_alter_configs, request, 1))
    return [(each.error_code, each.error_message) for each in answer.responses]


def described(node: ApiNode, name: str, *keys: str) -> Any:
    asked = DescribeConfigsResource(resource_type=LOGGER, resource_name=name, configuration_keys=list(keys) or None)
    request = DescribeConfigsRequest(resources=[asked])
    return in_virtual_time(lambda: node.call(describe_configs, request, 4)).results[0]


def shown(node: ApiNode, *keys: str) -> dict[str, str]:
    return {each.name: each.value for each in described(node, "1", *keys).configs}


def test_a_level_is_set_shown_and_taken_away(node: ApiNode) -> None:
    assert shown(node, NAME, "root") == {NAME: "INFO", "root": "INFO"}
    assert alter(node, "1", (NAME, SET, "DEBUG")) == [(0, None)]
    assert logging.getLogger(NAME).level == logging.DEBUG
    assert shown(node, NAME) == {NAME: "DEBUG"}
    assert alter(node, "1", (NAME, DELETE, None)) == [(0, None)]
    assert shown(node, NAME) == {NAME: "INFO"}


def test_a_package_counts_for_the_modules_in_it(node: ApiNode) -> None:
    assert alter(node, "1", (PACKAGE, SET, "TRACE")) == [(0, None)]
    assert shown(node, NAME) == {NAME: "TRACE"}


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_of_kafka_is_told_as_it_was_set(node: ApiNode, level: str) -> None:
    assert alter(node, "1", ("root", SET, level)) == [(0, None)]
    assert shown(node, "root", NAME) == {"root": level, NAME: level}


def test_a_level_between_two_of_kafkas_is_the_lower_one() -> None:
    assert [level_name(number) for number in (0, 5, 15, 29, 30, 45, 1000)] == [
        "TRACE",
        "TRACE",
        "DEBUG",
        "INFO",
        "WARN",
        "ERROR",
        "FATAL",
    ]


@pytest.mark.parametrize(
    ("change", "error_code", "message"),
    [
        (("no.such", SET, "DEBUG"), 40, "Logger no.such does not exist!"),
        (("no.such", DELETE, None), 40, "Logger no.such does not exist!"),
        (("", SET, "DEBUG"), 40, "Logger  does not exist!"),
        ((NAME, SET, "debug"), 40, f"Cannot set the log level of {NAME} to debug as it is not a supported log level."),
        ((NAME, SET, "OFF"), 40, "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"),
        ((NAME, SET, None), 42, f"Null value not supported for : {NAME}"),
        (("root", DELETE, None), 42, "Removing the log level of the root logger is not allowed"),
        ((NAME, APPEND, "DEBUG"), 42, "APPEND operation is not allowed for the BROKER_LOGGER resource"),
        ((NAME, SUBTRACT, "DEBUG"), 42, "SUBTRACT operation is not allowed for the BROKER_LOGGER resource"),
        ((NAME, 7, "DEBUG"), -1, ""),
    ],
)
def test_what_cannot_be_altered_is_refused_and_nothing_else_is_altered(
    node: ApiNode, change: Change, error_code: int, message: str
) -> None:
    [(code, text)] = alter(node, "1", (PACKAGE, SET, "DEBUG"), change)
    assert code == error_code
    assert message in (text or "")
    assert shown(node, PACKAGE) == {PACKAGE: "INFO"}
    assert "no.such" not in logging.root.manager.loggerDict


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("2", "Unexpected node id. Expected 1, but received 2"),
        ("x", "Node id must be an integer, but it is: x"),
        ("", "Node id must be an integer, but it is: "),
        ("1" * 5000, "Node id must be an integer"),
    ],
)
def test_a_node_alters_its_own_loggers_alone(node: ApiNode, name: str, message: str) -> None:
    [(code, text)] = alter(node, name, (NAME, SET, "DEBUG"))
    assert (code, text[: len(message)]) == (42, message)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "Broker id must not be empty"),
        ("2", "Unexpected broker id, expected 1 but received 2"),
        ("x", "Broker id must be an integer, but it is: x"),
    ],
)
def test_a_node_describes_its_own_loggers_alone(node: ApiNode, name: str, message: str) -> None:
    result = described(node, name)
    assert (result.error_code, result.error_message, result.configs) == (42, message, [])


def test_a_row_has_what_kafkas_has(node: ApiNode) -> None:
    [row] = described(node, "1", "root").configs
    assert (row.config_source, row.read_only, row.is_sensitive, row.config_type) == (6, False, False, 0)
    assert (row.synonyms, row.documentation) == ([], "")


def test_only_validating_changes_nothing(node: ApiNode) -> None:
    assert alter(node, "1", (NAME, SET, "DEBUG"), validate_only=True) == [(0, None)]
    assert shown(node, NAME) == {NAME: "INFO"}


def test_a_node_that_is_named_twice_is_refused_twice(node: ApiNode) -> None:
    assert alter(node, "1", (NAME, SET, "DEBUG"), times=2) == [(42, "Each resource must appear at most once.")] * 2


def test_loggers_are_listed_by_the_brokers_that_have_them(node: ApiNode) -> None:
    request = ListConfigResourcesRequest(resource_types=[LOGGER])
    answer = in_virtual_time(lambda: node.call(list_config_resources, request, 1))
    assert [(each.resource_type, each.resource_name) for each in answer.config_resources] == [(8, "1"), (8, "2")]
