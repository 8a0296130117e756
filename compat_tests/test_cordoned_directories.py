"""Log directories that are cordoned while the broker runs: it tells the controller, which places no replicas on a
broker that has no other (KIP-1066).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

from .answers import TestAnswers
from .brokers import BrokerProcess
from .waiting import until
from .wire import Wire

BROKER = 4
SET, DELETE, APPEND, SUBTRACT = range(4)
Refusal = tuple[str, str]


def alter(port: int, value: str | None, operation: int = SET, name: str = "1") -> Refusal:
    config = IncrementalAlterConfigsRequestAlterableConfig(
        name="cordoned.log.dirs", config_operation=operation, value=value
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=BROKER, resource_name=name, configs=[config]
    )
    with Wire(("127.0.0.1", port)) as wire:
        answer = wire.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert isinstance(answer, IncrementalAlterConfigsResponse)
    (row,) = answer.responses
    return ErrorCode(row.error_code).name, row.error_message or ""


def creation(broker: BrokerProcess) -> Refusal:
    """What the creation of a topic would give."""
    topic = CreatableTopic(name="placed", num_partitions=1, replication_factor=1)
    with Wire(broker.address) as wire:
        answer = wire.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=True), 7)
    assert isinstance(answer, CreateTopicsResponse)
    (row,) = answer.topics
    return ErrorCode(row.error_code).name, row.error_message or ""


def test_a_broker_with_all_directories_cordoned_gets_no_replicas(
    two_directories: Callable[..., BrokerProcess], directories: tuple[Path, Path], answers: TestAnswers
) -> None:
    broker = two_directories()
    one, two = map(str, directories)
    assert alter(broker.port, f"{one},{two}") == ("NONE", "")
    until(lambda: creation(broker)[0] == "INVALID_REPLICATION_FACTOR", "no broker has a directory for a replica")
    answers.same("refused", creation(broker))
    assert alter(broker.port, one) == ("NONE", "")
    until(lambda: creation(broker)[0] == "NONE", "one of two directories takes replicas")
    assert alter(broker.port, two, APPEND) == ("NONE", "")
    until(lambda: creation(broker)[0] == "INVALID_REPLICATION_FACTOR", "both are cordoned again")
    assert alter(broker.port, None, DELETE) == ("NONE", "")
    until(lambda: creation(broker)[0] == "NONE", "none is cordoned")


def test_directories_that_the_configuration_cordons_get_no_replicas_until_they_are_uncordoned(
    two_directories: Callable[..., BrokerProcess],
) -> None:
    broker = two_directories({"cordoned.log.dirs": "*"})
    assert creation(broker)[0] == "INVALID_REPLICATION_FACTOR"
    assert alter(broker.port, "") == ("NONE", "")
    until(lambda: creation(broker)[0] == "NONE", "no directory is cordoned")
    broker.stop()
    broker.start()
    assert creation(broker)[0] == "NONE", "what was set at run time outlives the restart"


def test_what_is_no_log_directory_cannot_be_cordoned(
    two_directories: Callable[..., BrokerProcess], directories: tuple[Path, Path], answers: TestAnswers
) -> None:
    broker = two_directories()
    answers.same("unknown", alter(broker.port, "/unknown/log/dir"))
    answers.same("unknown beside a known one", alter(broker.port, f"{directories[0]},/unknown/log/dir")[0])
    answers.same("appended", alter(broker.port, "/unknown/log/dir", APPEND))
    answers.same("all and one more", alter(broker.port, f"*,{directories[0]}"))
    answers.same("cluster-wide", alter(broker.port, str(directories[0]), name=""))


def test_the_controllers_listener_uncordons_alone(
    two_directories: Callable[..., BrokerProcess], directories: tuple[Path, Path], answers: TestAnswers
) -> None:
    """Only the broker knows its directories."""
    broker = two_directories()
    one, two = map(str, directories)
    answers.same("cordoned by the controller", alter(broker.controller_port, one))
    assert alter(broker.port, f"{one},{two}") == ("NONE", "")
    answers.same("one of two", alter(broker.controller_port, two))
    answers.same("the other one", alter(broker.controller_port, one)[0])
    answers.same("none", alter(broker.controller_port, ""))
    answers.same("deleted", alter(broker.controller_port, None, DELETE))
    answers.same("appended", alter(broker.controller_port, one, APPEND)[0])
    answers.same("of another broker", alter(broker.controller_port, one, name="7")[0])
