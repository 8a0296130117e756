"""`pykbroker top` against brokers: snapshots for scripts, the screen of a person, and clusters that are not whole."""

from __future__ import annotations

import http.server
import json
import signal
import subprocess
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from click.testing import CliRunner

from compat_tests.waiting import until
from pykbroker.cli.main import main
from pykbroker.client.acls import create_acls
from pykbroker.client.group_offsets import commit_offsets
from pykbroker.client.topics import create_topic, delete_topic
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.security.acls.entry import AccessControlEntry, Operation, PatternType, Permission, ResourceType
from pykbroker.testing import Broker
from tests.cli.cluster_command import ClusterCommand
from tests.cli.conftest import PYKBROKER, ROOT, TIMEOUT_S
from tests.cli.terminal import Terminal

from .test_top_rates import METRICS


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def top(bootstrap: str, *flags: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["top", "--bootstrap-server", bootstrap, *flags])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def snapshot(bootstrap: str, *flags: str) -> dict[str, Any]:
    code, out, err = top(bootstrap, "--json", "--interval", "1", *flags)
    assert (code, err) == (0, "")
    [line] = out.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def row(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(each for each in rows if each["name"] == name)


@pytest.fixture
def busy(broker: Broker, name: Callable[[str], str]) -> Iterator[str]:
    """A topic that somebody writes to."""
    topic = name("busy")
    broker.create_topic(topic)
    flags = "--num-records 1000000 --record-size 100 --throughput 500 --reporting-interval 100"
    arguments = ["perf", "produce", "--topic", topic, "--bootstrap-server", broker.bootstrap_servers, *flags.split()]
    process = subprocess.Popen([*PYKBROKER, *arguments], stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    process.stdout.readline()
    yield topic
    process.kill()
    process.communicate()


def test_json_has_throughput_lag_disks_and_brokers(broker: Broker, busy: str) -> None:
    broker.create_topic("read")
    broker.topic("read").produce(*[b"x"] * 10, partition=0)
    broker.call(commit_offsets, "readers", {TopicPartition("read", 0): 4})
    found = snapshot(broker.bootstrap_servers)
    assert row(found["topics"], busy)["records_per_s"] > 0
    assert row(found["topics"], busy)["bytes_per_s"] > 0
    assert row(found["topics"], "read")["records_per_s"] == 0
    assert found["records_per_s"] >= row(found["topics"], busy)["records_per_s"]
    assert row(found["groups"], "readers")["lag"] == 6
    [node] = found["brokers"]
    assert (node["is_controller"], node["problem"], found["controller_id"]) == (True, None, node["node_id"])
    [directory] = found["log_dirs"]
    assert directory["used_bytes"] > 0
    assert 0 < directory["usable_bytes"] <= directory["total_bytes"]
    assert (found["under_replicated"], found["offline"]) == (0, 0)


def test_once_prints_tables_without_a_terminal(broker: Broker) -> None:
    broker.create_topic("plain")
    code, out, err = top(broker.bootstrap_servers, "--once", "--interval", "1")
    assert (code, err) == (0, "")
    assert "1 broker, " in out.splitlines()[0]
    for titles in ("TOPIC ", "BROKER    ADDRESS", "BROKER    LOG-DIR"):
        assert f"\n\n{titles}" in out
    assert "\nplain " in out


def test_count_prints_so_many_snapshots(broker: Broker) -> None:
    code, out, _ = top(broker.bootstrap_servers, "--json", "--count", "2", "--interval", "1")
    first, second = (json.loads(line) for line in out.splitlines())
    assert code == 0
    assert first["at"] < second["at"]


def test_a_look_makes_as_many_requests_with_many_topics_and_groups_as_with_few(name: Callable[[str], str]) -> None:
    with Broker() as own:
        for number in range(30):
            own.call(partial(create_topic, partitions=4), f"t{number}")
            own.call(commit_offsets, f"g{number}", {TopicPartition(f"t{number}", 0): 0})
        found = snapshot(own.bootstrap_servers)
        assert len(found["groups"]) == 30
        asked = [each.api for each in own.requests(client_id="top") if each.api != "ApiVersions"]
        once = ["DescribeLogDirs", "DescribeQuorum", "ListGroups", "ListOffsets", "Metadata", "OffsetFetch"]
        assert sorted(asked) == sorted(once * 2)


def test_what_this_user_may_not_see_is_said_and_the_rest_is_shown() -> None:
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": True,
    }
    with Broker(config) as own:
        own.create_topic("seen")
        entry = partial(AccessControlEntry, pattern_type=PatternType.LITERAL, host="*", operation=Operation.DESCRIBE)
        closed = entry(
            resource_type=ResourceType.CLUSTER,
            resource_name="kafka-cluster",
            principal="User:root",
            permission=Permission.ALLOW,
        )
        own.call(create_acls, [closed])
        found = snapshot(own.bootstrap_servers)
    assert row(found["topics"], "seen")["records_per_s"] == 0
    assert row(found["topics"], "seen")["size_bytes"] is None
    assert (found["log_dirs"], found["controller_id"]) == ([], None)
    problems = "\n".join(found["problems"])
    assert "controller: " in problems
    assert "log dirs" in problems


def test_a_topic_that_is_created_anew_in_between_has_no_negative_rate(
    broker: Broker, name: Callable[[str], str]
) -> None:
    topic = name("anew")
    broker.create_topic(topic)
    broker.topic(topic).produce(*[b"x"] * 1000, partition=0)
    with _started(broker.bootstrap_servers, "--json", "--count", "1000", "--interval", "1") as process:
        assert process.stdout is not None
        before = json.loads(process.stdout.readline())
        assert row(before["topics"], topic)["size_bytes"] > 1000
        broker.call(delete_topic, topic)
        broker.create_topic(topic)
        rates = []
        while not rates or rates[-1] is None or None not in rates:
            found = json.loads(process.stdout.readline())["topics"]
            rates += [each["records_per_s"] for each in found if each["name"] == topic]
    assert rates[-1] == 0
    assert all(rate is None or rate >= 0 for rate in rates)


def test_a_broker_that_vanishes_is_said_and_found_again_when_it_is_back() -> None:
    with (
        Broker() as own,
        _started(own.bootstrap_servers, "--json", "--count", "1000", "--interval", "1") as process,
    ):
        assert process.stdout is not None
        assert not _is_unseen(json.loads(process.stdout.readline()))
        own.stop()
        while not _is_unseen(json.loads(process.stdout.readline())):
            pass
        own.start()
        while _is_unseen(json.loads(process.stdout.readline())):
            pass
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, err) == (130, "")


def _is_unseen(found: dict[str, Any]) -> bool:
    return any(each.startswith("not seen since ") for each in found["problems"])


def test_a_cluster_with_a_node_down_says_which_and_what_is_under_replicated(
    start_cluster: Callable[..., ClusterCommand],
) -> None:
    cluster = start_cluster("--brokers", "3", "--ephemeral", "--config", "default.replication.factor=3")
    bootstrap = cluster.wait_until_ready()
    created = CliRunner().invoke(
        main, ["topics", "--bootstrap-server", bootstrap, "--create", "--topic", "t", "--partitions", "6"]
    )
    assert created.exit_code == 0, created.stderr
    whole = snapshot(bootstrap)
    assert (len(whole["brokers"]), whole["under_replicated"]) == (3, 0)
    down = next(each["node_id"] for each in whole["brokers"] if not each["is_controller"])
    cluster.nodes()[down].send_signal(signal.SIGKILL)
    seen: dict[str, Any] = {}

    def is_noticed() -> bool:
        seen.update(snapshot(bootstrap))
        return bool(seen["under_replicated"] == 6 and f"brokers that are down: {down}" in seen["problems"])

    until(is_noticed, "the broker that is down is not noticed", TIMEOUT_S)
    assert len(seen["brokers"]) == 2
    assert row(seen["topics"], "t")["records_per_s"] is not None


def test_a_broker_that_hangs_is_said_within_a_bound_and_the_others_are_shown(
    start_cluster: Callable[..., ClusterCommand],
) -> None:
    # A broker that is fenced meanwhile is no broker of the cluster any more.
    cluster = start_cluster("--brokers", "3", "--ephemeral", "--config", "broker.session.timeout.ms=120000")
    bootstrap = cluster.wait_until_ready()
    hanging = next(each["node_id"] for each in snapshot(bootstrap)["brokers"] if not each["is_controller"])
    node = cluster.nodes()[hanging]
    node.suspend()
    try:
        found = snapshot(bootstrap)
    finally:
        node.resume()
    named = [
        each for each in found["problems"] if f"broker {hanging}: " in each or each.endswith(f"are down: {hanging}")
    ]
    assert named, found["problems"]
    assert len([each for each in found["brokers"] if each["problem"] is None]) == 2


class _Metrics(http.server.BaseHTTPRequestHandler):
    """Counts that grow with each request."""

    asked = 0
    cluster_id = ""

    def do_GET(self) -> None:
        type(self).asked += 1
        counted = METRICS.replace("} 100\n", f"}} {100 * self.asked}\n").replace("CLUSTER", self.cluster_id)
        body = counted.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_requests_and_their_latency_come_from_the_addresses_that_are_given(broker: Broker) -> None:
    pytest.importorskip("prometheus_client")
    _Metrics.cluster_id = snapshot(broker.bootstrap_servers)["cluster_id"]
    with http.server.HTTPServer(("127.0.0.1", 0), _Metrics) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/metrics"
        found = snapshot(broker.bootstrap_servers, "--metrics-url", f"{url},http://127.0.0.1:1/metrics")
        server.shutdown()
        thread.join()
    produce = next(each for each in found["requests"] if each["api"] == "Produce")
    assert produce["per_s"] > 0
    assert "requests: http://127.0.0.1:1/metrics: Connection refused" in found["problems"]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ("--interval 0.5", "'0.5' is not a number from 1 to 3600"),
        ("--interval nan", "'nan' is not a number"),
        ("--count 0", "0 is not in the range"),
        ("--once --count 3", "--once and --count exclude each other"),
        ("--metrics-url ftp://x", "is no http address"),
        ("--intervall 1", "No such option"),
    ],
)
def test_bad_input_is_one_line(flags: str, reason: str) -> None:
    code, out, err = top("127.0.0.1:1", *flags.split())
    assert (code, out) == (1, "")
    assert reason in err
    assert err.count("\n") == 1


def test_a_broker_out_of_reach_is_one_line() -> None:
    assert top("127.0.0.1:1", "--once") == (
        1,
        "",
        "Error: No broker can be reached (127.0.0.1:1: Connection refused)\n",
    )


def test_a_person_sees_topics_sorts_them_and_leaves_with_q(broker: Broker, busy: str) -> None:
    broker.create_topic("aaa-quiet")
    with Terminal(["top", "--interval", "1", "--bootstrap-server", broker.bootstrap_servers]) as terminal:
        terminal.wait_for(rf"TOPIC .*\n{busy} +\d+")
        terminal.press(b"n")
        terminal.wait_for(r"TOPIC .*\n(__\S+ .*\n)*aaa-quiet ")
        terminal.press(b"r\x1b[B")
        terminal.wait_for(rf"TOPIC .*\n(?!{busy})\S+")
        terminal.press(b"\x1b[A\x1b[A")
        terminal.wait_for(rf"TOPIC .*\n{busy} +\d+")
        terminal.press(b"q")
        assert terminal.wait() == 0
        assert terminal.received.endswith(b"\x1b[?1049l") or b"\x1b[?1049l" in terminal.received[-200:]
        assert terminal.settings == termios.tcgetattr(terminal.slave), "the terminal is as it was"


def test_the_screen_follows_the_size_of_the_terminal(broker: Broker) -> None:
    broker.create_topic("resized")
    with Terminal(["top", "--interval", "60", "--bootstrap-server", broker.bootstrap_servers]) as terminal:
        terminal.wait_for("TOPIC .* OFFLINE .*PARTS")
        terminal.resize(30, 8)
        terminal.wait_for(r"(?m)^TOPIC +REC/S$")
        assert len(terminal.lines) == 8
        terminal.resize(120, 40)
        terminal.wait_for("TOPIC .* OFFLINE .*PARTS")
        terminal.press(b"q")
        assert terminal.wait() == 0


@pytest.mark.parametrize(("how", "code"), [(b"\x03", 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_a_signal_leave_the_terminal_as_it_was(
    broker: Broker, how: bytes | signal.Signals, code: int
) -> None:
    with Terminal(["top", "--bootstrap-server", broker.bootstrap_servers]) as terminal:
        terminal.wait_for("BROKER ")
        if isinstance(how, bytes):
            terminal.press(how)
        else:
            terminal.process.send_signal(how)
        assert terminal.wait() == code
        assert b"\x1b[?1049l" in terminal.received[-200:]
        assert terminal.settings == termios.tcgetattr(terminal.slave)
        assert "Traceback" not in terminal.text


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_terminal_that_goes_away_ends_it(broker: Broker, unbuffered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `nohup`, no signal says so."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    flags = ["top", "--interval", "1", "--bootstrap-server", broker.bootstrap_servers]
    with Terminal(flags, ignored=signal.SIGHUP) as terminal:
        terminal.wait_for("BROKER ")
        terminal.close()
        assert terminal.process.wait(TIMEOUT_S) == 1


def test_a_terminal_that_cannot_be_drawn_on_has_plain_snapshots(broker: Broker) -> None:
    broker.create_topic("plain-snapshots")
    flags = ["top", "--interval", "1", "--bootstrap-server", broker.bootstrap_servers]
    with Terminal(flags, term="dumb", rows=200) as terminal:
        terminal.wait_for("UNDER-REPLICATED")
        assert b"\x1b" not in terminal.received
        assert terminal.interrupt(signal.SIGINT) == 130


def test_a_closed_standard_output_is_one_line() -> None:
    command = ["sh", "-c", 'exec "$@" >&-', "sh", *PYKBROKER, "top", "--once"]
    done = subprocess.run(command, stderr=subprocess.PIPE, cwd=ROOT, text=True, timeout=TIMEOUT_S)
    assert (done.returncode, done.stderr) == (1, "Error: Standard output is closed\n")


def test_a_closed_pipe_ends_it_quietly(broker: Broker) -> None:
    with _started(broker.bootstrap_servers, "--json", "--count", "1000", "--interval", "1") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(TIMEOUT_S) == 0


@contextmanager
def _started(bootstrap: str, *flags: str) -> Iterator[subprocess.Popen[str]]:
    arguments = [*PYKBROKER, "top", "--bootstrap-server", bootstrap, *flags]
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdout=pipe, stderr=pipe, cwd=ROOT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
