"""`--log-level` and `--log-format` of a start and of a cluster, and the levels of a broker that runs."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykbroker.cli.command import CommandFailed
from pykbroker.cli.log_flags import parse_log_levels

from .cluster_command import ClusterCommand
from .conftest import Outcome
from .test_start import StartNode, refused, start  # noqa: F401 - a fixture

Call = Callable[..., Outcome]


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_levels_are_of_all_lines_or_of_one_logger() -> None:
    texts = ["warn", "pykbroker.raft=DEBUG", "pykbroker.raft=trace", "trio=ERROR", "root=FATAL"]
    assert parse_log_levels(texts) == {"root": "FATAL", "pykbroker.raft": "TRACE", "trio": "ERROR"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("loud", "the levels are TRACE, DEBUG, INFO, WARN, ERROR, FATAL"),
        ("pykbroker.raft=", "the levels are"),
        ("=DEBUG", "a logger has the name of a module"),
        ("pykbroker..raft=DEBUG", "a logger has the name of a module"),
        ("pykbroker/raft=DEBUG", "a logger has the name of a module"),
        ("pykbroker.sever.node=DEBUG", "there is no logger pykbroker.sever; did you mean pykbroker.server?"),
        (
            "pykbroker.server.nodes=DEBUG",
            "there is no logger pykbroker.server.nodes; did you mean pykbroker.server.node?",
        ),
        ("pykbroker.raft.x.y=DEBUG", "there is no logger pykbroker.raft.x"),
        ("nobody.has.this=DEBUG", "there is no module nobody"),
    ],
)
def test_a_level_that_means_nothing_is_one_line(text: str, reason: str) -> None:
    with pytest.raises(CommandFailed) as failure:
        parse_log_levels([text])
    assert failure.value.message == f"--log-level {text}: {failure.value.message.partition(': ')[2]}"
    assert reason in failure.value.message


def test_a_start_logs_json_and_its_ready_line_stays(start: StartNode) -> None:  # noqa: F811
    code, out, err = start("--log-format", "json").end()
    assert (code, out) == (0, "")
    assert {line["level"] for line in lines_of(err)} == {"INFO"}
    assert "node 1 shuts down" in [line["message"] for line in lines_of(err)]


def test_a_start_that_fails_says_so_in_json(tmp_path: Path) -> None:
    line = json.loads(refused("--log-format", "json", "--override", "listeners=x", cwd=tmp_path))
    assert (line["level"], line["logger"]) == ("FATAL", "pykbroker.cli.start")
    assert line["message"].startswith("Invalid value x for configuration listeners: ")


def test_levels_by_logger_hide_and_show_lines(start: StartNode) -> None:  # noqa: F811
    _, _, err = start("--log-level", "ERROR", "--log-level", "pykbroker.server.node=INFO").end()
    assert [line.split(maxsplit=3)[2:] for line in err.splitlines()] == [
        ["INFO", "pykbroker.server.node.node node 1 shuts down"]
    ]


def test_a_bad_level_ends_a_start_and_a_cluster(tmp_path: Path, call: Call) -> None:
    line = "Error: --log-level loud: the levels are TRACE, DEBUG, INFO, WARN, ERROR, FATAL"
    assert refused("--log-level", "loud", cwd=tmp_path) == line
    assert refused("--log-format", "xml", cwd=tmp_path).startswith("Error: Invalid value for '--log-format'")


def test_all_lines_of_a_cluster_are_json_with_their_node(start_cluster: Callable[..., ClusterCommand]) -> None:
    cluster = start_cluster("--brokers", "2", "--log-format", "json", "--log-level", "pykbroker.raft=DEBUG")
    cluster.wait_until_ready()
    assert cluster.end() == 0
    lines = lines_of(cluster.log())
    assert {line.get("node") for line in lines} == {"node-1", "node-2"}
    assert all(line["message"] and line["logger"] for line in lines)


def test_a_cluster_that_does_not_start_says_why_in_json(
    start_cluster: Callable[..., ClusterCommand], base_port: int
) -> None:
    with socket.create_server(("127.0.0.1", base_port)):
        cluster = start_cluster("--brokers", "1", "--log-format", "json")
        assert cluster.wait() == 1
    last = [line for line in lines_of(cluster.log()) if "node" not in line][-1]
    assert last["logger"] == "pykbroker.cli.cluster"
    assert "node-1 did not start, it ended with exit code 1: cannot listen on " in last["message"]


def test_levels_change_while_the_broker_runs(call: Call) -> None:
    logger = "pykbroker.server.network.dispatch"
    broker = "--entity-type broker-loggers --entity-name 1"
    assert call(f"configs {broker} --alter --add-config {logger}=WARN") == Outcome(
        0, "Completed updating config for broker-logger 1.\n", ""
    )
    shown = [line for line in call(f"configs {broker} --describe").lines if logger in line]
    assert shown == [f"  {logger}=WARN sensitive=false synonyms={{}}"]
    assert call(f"configs {broker} --alter --delete-config {logger}").code == 0
    assert f"  {logger}=INFO sensitive=false synonyms={{}}" in call(f"configs {broker} --describe").lines


def test_a_logger_that_nobody_has_is_one_line(call: Call) -> None:
    altered = call("configs --broker-logger 1 --alter --add-config no.such=DEBUG")
    assert altered == Outcome(1, "", "Error: Logger no.such does not exist!\n")
    missing = call("configs --broker-logger 4711 --describe")
    assert missing.err == "Error: There is no broker 4711 (there are: 1)\n"
