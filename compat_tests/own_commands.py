"""The commands of pykbroker, run in this process beside Kafka's own tools, and what both print made comparable."""

from __future__ import annotations

import json
import re
from typing import Any

from click.testing import CliRunner

from pykbroker.cli.main import main

from .apache_kafka.tools import Output


def run_command(command: str, bootstrap: str, *arguments: str) -> Output:
    """Run `pykbroker COMMAND --bootstrap-server …`."""
    result = CliRunner().invoke(main, [command, "--bootstrap-server", bootstrap, *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Output(result.exit_code, result.stdout.encode(), result.stderr)


def without_changing_numbers(text: str) -> str:
    """Return a text without the offsets of the metadata log and the times, which grow between two runs."""
    text = re.sub(r"^(HighWatermark|MaxFollowerLag\w*): +\d+$", r"\1: N", text, flags=re.MULTILINE)
    text = re.sub(r"Epoch: \d+$", "Epoch: N", text, flags=re.MULTILINE)
    text = re.sub(r"\b\d+ ms ago", "N ms ago", text)
    return re.sub(r"\b\d{2,}\b", "N", text)


def log_dirs_of(output: Output) -> Any:
    """Return the JSON of `kafka-log-dirs`, in an order of its own."""
    told = json.loads(output.lines[2])
    for broker in told["brokers"]:
        for directory in broker["logDirs"]:
            directory["partitions"].sort(key=lambda each: each["partition"])
        broker["logDirs"].sort(key=lambda each: each["logDir"])
    told["brokers"].sort(key=lambda each: each["broker"])
    return told


def tables_of_apis(output: Output) -> dict[str, list[str]]:
    """Return the lines of each broker, by its title; brokers come in no order."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in output.lines:
        if line.endswith("-> ("):
            title = line
        elif line != ")":
            found.setdefault(title, []).append(line)
    return found
