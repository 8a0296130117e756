"""What a person waits for at a terminal: a command's help, and the topics of the broker beside it, by each broker's own
command line. Apache Kafka's tool runs with the memory that its script gives it.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.bench import Bench, Figures, Measure
from compat_tests.brokers import Pykbroker

_TOPIC = "seen-at-a-terminal"
_RUNS = 9
_WAIT_S = 60


def show_help(bench: Bench) -> Figures:
    """A group's help is what Apache Kafka's tool for topics has; `pykbroker` has one for all of them."""
    return _median(_command(bench, [], "--help"), "--help")


def list_topics(bench: Bench) -> Figures:
    bench.create_topic(_TOPIC, 1)
    flags = ["--list", "--bootstrap-server", bench.broker.bootstrap]
    figures = _median(_command(bench, ["topics"], *flags), _TOPIC)
    bench.delete_topic(_TOPIC)
    return figures


def _command(bench: Bench, group: list[str], *flags: str) -> list[str]:
    """group: of pykbroker's commands, where Apache Kafka has a tool for topics alone."""
    if isinstance(bench.broker, Pykbroker):
        return [sys.executable, "-m", "pykbroker", *group, *flags]
    return bench.tools.command("org.apache.kafka.tools.TopicCommand", *flags, heap="256M")


def _median(command: list[str], expected: str) -> Figures:
    """The first run of several fills caches."""
    took_s = []
    for _ in range(_RUNS + 1):
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, timeout=_WAIT_S)  # Kafka's help ends with 1
        took_s.append(time.perf_counter() - began)
        assert expected in done.stdout + done.stderr, done
    return {"s": statistics.median(took_s[1:])}


COMMANDS: dict[str, Measure] = {"--help": show_help, "topics --list": list_topics}
