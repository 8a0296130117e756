"""Loggers of a broker, described and altered at run time.

The names of loggers are each broker's own, so a question names what is asked and not the logger.
"""

from collections.abc import Iterator

import pytest

from compat_tests.wire import Wire
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    ListConfigResourcesRequest,
)

from .interview import Interview
from .test_altered_configs import APPEND, DELETE, SET, SUBTRACT, altering

LOGGERS = 8
ROOT = "root"
LOGGER_OF = {"apache-kafka": "kafka.server.KafkaApis", "pykbroker": "pykbroker.server.network.dispatch"}
NO_OPERATION = 7


@pytest.fixture
def logger(interview: Interview) -> Iterator[str]:
    """A logger that the broker has; its level is the root's, before and after the test."""
    name = LOGGER_OF[interview.broker.kind]
    with Wire(interview.broker.address) as wire:
        wire.call(altering(LOGGERS, "1", (name, DELETE, None)), 1)
        yield name
        wire.call(altering(LOGGERS, "1", (name, DELETE, None)), 1)


def describing(name: str, *keys: str) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=LOGGERS, resource_name=name, configuration_keys=list(keys))
    return DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)


def texts(interview: Interview, question: str, *changes: tuple[str, int, str | None], name: str = "1") -> None:
    """Ask in the newest version, and keep the words of the answer as well: clients show them."""
    with Wire(interview.broker.address) as wire:
        answer = wire.call(altering(LOGGERS, name, *changes), 1)
    logger = LOGGER_OF[interview.broker.kind]
    interview.answers[question] = [
        (row.error_code, row.error_message and row.error_message.replace(logger, "LOGGER"))
        for row in answer.responses  # type: ignore[attr-defined]
    ]


@pytest.mark.parametrize(
    "level", ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF", "ALL", "debug", " INFO ", ""]
)
def test_levels(interview: Interview, logger: str, level: str) -> None:
    texts(interview, "set", (logger, SET, level))
    _describe(interview, logger)


def test_a_level_that_is_taken_away(interview: Interview, logger: str) -> None:
    texts(interview, "set", (logger, SET, "ERROR"))
    _describe(interview, logger)
    texts(interview, "taken away", (logger, DELETE, None))
    texts(interview, "taken away with a value", (logger, DELETE, "x"))
    _describe(interview, logger, "afterwards")


def test_refusals(interview: Interview, logger: str) -> None:
    for question, change in {
        "no value": (logger, SET, None),
        "appended": (logger, APPEND, "DEBUG"),
        "subtracted": (logger, SUBTRACT, "DEBUG"),
        "no operation": (logger, NO_OPERATION, "DEBUG"),
        "unknown": ("no.such.logger", SET, "DEBUG"),
        "unknown, at a level that is none": ("no.such.logger", SET, "LOUD"),
        "unknown, taken away": ("no.such.logger", DELETE, None),
        "without a name": ("", SET, "DEBUG"),
        "the root taken away": (ROOT, DELETE, None),
        "the root": (ROOT, SET, "INFO"),
    }.items():
        texts(interview, question, change)
    texts(interview, "one good, one bad", (logger, SET, "DEBUG"), ("no.such.logger", SET, "INFO"))
    texts(interview, "twice", (logger, SET, "DEBUG"), (logger, DELETE, None))
    texts(interview, "nothing")
    for name in ("", "7", "x", "-1", "01", "+1"):
        texts(interview, f"of node {name!r}", (logger, SET, "INFO"), name=name)
    _describe(interview, logger)
    interview.ask("a node twice", altering(LOGGERS, "1", times=2))


def test_only_validated(interview: Interview, logger: str) -> None:
    request = altering(LOGGERS, "1", (logger, SET, "TRACE"))
    request.validate_only = True
    interview.ask("only validated", request)
    _describe(interview, logger)


def test_whose_loggers_are_described(interview: Interview) -> None:
    for name in ("1", "", "7", "x", "-1"):
        interview.ask(f"the root of node {name!r}", describing(name, ROOT))
    interview.ask("what nobody has", describing("1", "no.such.logger"))
    with Wire(interview.broker.address) as wire:
        answer = wire.call(describing("1"), 4)
    rows = answer.results[0].configs  # type: ignore[attr-defined]
    interview.answers["all have"] = sorted({(row.config_source, row.config_type, row.documentation) for row in rows})
    interview.answers["there are"] = len(rows) > 20


def test_the_older_request_refuses_loggers(interview: Interview, logger: str) -> None:
    configs = [AlterConfigsRequestAlterableConfig(name=logger, value="DEBUG")]
    resource = AlterConfigsRequestAlterConfigsResource(resource_type=LOGGERS, resource_name="1", configs=configs)
    interview.ask("loggers as a whole", AlterConfigsRequest(resources=[resource]))
    _describe(interview, logger)


def test_loggers_are_listed(interview: Interview) -> None:
    interview.ask("loggers", ListConfigResourcesRequest(resource_types=[LOGGERS]), 1)


def _describe(interview: Interview, logger: str, when: str = "then") -> None:
    with Wire(interview.broker.address) as wire:
        answer = wire.call(describing("1", logger), 4)
    [row] = answer.results[0].configs  # type: ignore[attr-defined]
    interview.answers[f"{when} it is"] = row.value
