"""The harness of Apache Kafka's own tests, with one class of them: it runs on pykbroker, and sees what goes wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from compat_tests.apache_kafka.java import find_java

from .class_run import FAILED, PASSED, PYKBROKER, ClassRun, RunBroker, run_class
from .ports import ports_of_a_run

pytestmark = pytest.mark.jdk

RECORDS = ClassRun("kafka.server.DeleteRecordsRequestTest")
QUORUM = ClassRun("kafka.server.DescribeQuorumRequestTest")


def test_tests_with_kafkas_controller_and_pykbrokers_brokers_pass(tmp_path: Path) -> None:
    with ports_of_a_run() as first_port:
        outcome = run_class(RECORDS, RunBroker(PYKBROKER, command(), first_port), tmp_path / "run")
    verdicts = {test: each.verdict for test, each in outcome.tests.items()}
    assert verdicts == dict.fromkeys(
        (
            "testDeleteRecordsHappyCase",
            "testErrorWhenDeletingRecordsWithInvalidOffset",
            "testErrorWhenDeletingRecordsWithInvalidTopic",
        ),
        PASSED,
    )
    assert outcome.faults == []


def test_a_command_that_is_no_broker_fails_the_test(tmp_path: Path) -> None:
    with ports_of_a_run() as first_port:
        outcome = run_class(QUORUM, RunBroker(PYKBROKER, Path(find_java()), first_port), tmp_path / "run")
    assert [each.verdict for each in outcome.tests.values()] == [FAILED]
    assert "did not start" in (tmp_path / "run" / "console.log").read_text()


def test_a_traceback_in_a_nodes_log_is_a_fault_of_a_run_that_passes(tmp_path: Path) -> None:
    """The nodes are brokers and controllers of pykbroker; the line that they print first is planted."""
    planted = tmp_path / "pykbroker"
    planted.write_text(f"#!/bin/sh\necho 'Traceback (most recent call last)'\nexec {command()} \"$@\"\n")
    planted.chmod(0o755)
    with ports_of_a_run() as first_port:
        outcome = run_class(QUORUM, RunBroker(PYKBROKER, planted, first_port), tmp_path / "run")
    assert [each.verdict for each in outcome.tests.values()] == [PASSED]
    assert outcome.faults
    assert all("printed a traceback" in fault for fault in outcome.faults)


def command() -> Path:
    return Path(sys.executable).with_name("pykbroker")
