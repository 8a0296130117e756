"""`pykbroker broker-api-versions` beside Kafka's tool, on the same broker."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from compat_tests.apache_kafka.tools import Tool, run_tool
from pykbroker.testing import Broker


@pytest.mark.java
def test_both_print_the_same_of_a_broker() -> None:
    with Broker() as broker:
        flags = ["--bootstrap-server", broker.bootstrap_servers]
        command = [sys.executable, "-m", "pykbroker", "kafka", "kafka-broker-api-versions.sh", *flags]
        ours = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()
        theirs = run_tool(Tool.API_VERSIONS, *flags).lines
    assert without_unserved(ours) == without_unserved(theirs)
    assert len(ours) > 60


def without_unserved(lines: list[str]) -> list[str]:
    """The lines without APIs that Kafka's tool knows and the broker does not offer, and the commas between lines."""
    return [line.rstrip(",") for line in lines if not re.search("UNSUPPORTED", line)]
