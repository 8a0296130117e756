"""Kafka's tools in one JVM: each run has its own output and exit code, also where it ends the JVM."""

import subprocess

import pytest

from .apache_kafka.tools import Output, Tool, run_tool

pytest.importorskip("py4j", reason="Py4J, which comes with pyspark, runs Kafka's tools in one JVM")

pytestmark = pytest.mark.java


def new_uuid() -> Output:
    return run_tool(Tool.STORAGE, "random-uuid")


def test_each_run_has_its_own_output() -> None:
    first, second = new_uuid(), new_uuid()
    assert len(first.stdout.strip()) == len(second.stdout.strip()) == 22
    assert first.stdout != second.stdout


def test_a_tool_that_exits_has_its_exit_code_and_output_and_others_go_on() -> None:
    failed = run_tool(Tool.TOPICS, allowed=(1,))
    assert failed.stderr.startswith("Create, delete, describe, or change a topic.")
    assert len(new_uuid().stdout.strip()) == 22


def test_a_tool_that_throws_ends_with_exit_code_1_and_prints_what_it_threw() -> None:
    failed = run_tool(Tool.DUMP_LOG_SEGMENTS, "--files", "/no/such/0.log", allowed=(1,))
    assert "java.nio.file.NoSuchFileException: /no/such/0.log" in failed.stderr
    assert "\tat org.apache.kafka.tools.DumpLogSegments.main" in failed.stderr
    assert "reflect" not in failed.stderr


def test_a_tool_that_takes_too_long_is_killed_and_others_go_on() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_tool(Tool.TOPICS, "--bootstrap-server", "127.0.0.1:1", "--list", timeout_s=0.5)
    assert len(new_uuid().stdout.strip()) == 22
