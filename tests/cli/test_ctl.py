"""`pykbroker ctl` and `start --ctl-port`: control of a broker from other processes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pykbroker.cli.main import main

from .child_brokers import TIMEOUT_S, Place, hang_up_counts, place

__all__ = ["hang_up_counts", "place"]

CTL = re.compile(r" cluster\.id=\S{22} ctl=(127\.0\.0\.1:\d+) log\.dirs=")
TOKEN = "a token of nobody".replace(" ", "-")
SECURED = ["--override", "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"]


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    found = CTL.search(line)
    assert found, line
    return found[1]


def ctl(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["ctl", *arguments])


@pytest.fixture
def started(place: Place) -> Iterator[str]:
    """The address of the control of a broker."""
    with place.start("--ctl-port", "0", "--port-file", str(place.port_file)) as process:
        yield address_of(process)
        process.terminate()


def test_the_ready_line_and_the_port_file_say_where_control_is(place: Place, started: str) -> None:
    assert place.port_file.read_text().splitlines()[-1] == f"ctl={started}"


def test_an_operation_is_a_command(started: str, place: Place) -> None:
    done = ctl("--ctl", started, "node")
    assert done.exit_code == 0, done.output
    assert f'"address": "{place.port_file.read_text().splitlines()[0]}"' in done.output
    assert ctl("--ctl", started, "clients", "seeking").output == "[]\n"


def test_where_control_is_may_stand_in_the_environment(started: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYKBROKER_CTL", started)
    assert ctl("node").exit_code == 0


def test_control_ends_with_its_broker(place: Place) -> None:
    with place.start("--ctl-port", "0") as process:
        address = address_of(process)
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0
    done = ctl("--ctl", address, "node")
    assert done.exit_code == 1
    assert done.output.startswith(f"Error: no control answers at {address}: Connection refused")
    assert len(done.output.splitlines()) == 1


def test_a_port_that_is_taken_ends_the_start(started: str, place: Place) -> None:
    port = started.rpartition(":")[2]
    with place.start("--ctl-port", port) as process:
        assert process.wait(TIMEOUT_S) == 1
    assert place.log.read_text().splitlines()[-1] == f"Error: --ctl-port {port}: Address already in use"


def test_a_broker_with_users_asks_for_a_token(place: Place) -> None:
    with place.start("--ctl-port", "0", *SECURED) as process:
        assert process.wait(TIMEOUT_S) == 1
    assert place.log.read_text().splitlines()[-1] == (
        "Error: --ctl-port needs --ctl-token-file here, since authorizer.class.name gives users rights: "
        "control goes past both"
    )
    token = place.directory / "token"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    with place.start("--ctl-port", "0", "--ctl-token-file", str(token), *SECURED) as process:
        address = address_of(process)
        refused = ctl("--ctl", address, "node")
        assert (refused.exit_code, "asks for the token" in refused.output) == (1, True), refused.output
        assert ctl("--ctl", address, "--token-file", str(token), "node").exit_code == 0
        process.terminate()


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        ("short", 0o600, "one token of 16 characters or more, without spaces, is its content"),
        ("two tokens in a file", 0o600, "one token of 16 characters or more, without spaces, is its content"),
        (TOKEN, 0o644, "others may read it; chmod 600 mends that"),
        ("x" * 5000, 0o600, "one token of 16 characters or more, without spaces, is its content"),
    ],
)
def test_a_bad_token_file_is_said_at_both_ends(tmp_path: Path, content: str, mode: int, message: str) -> None:
    token = tmp_path / "token"
    token.write_text(content)
    token.chmod(mode)
    expected = f"Error: --ctl-token-file {token}: {message}\n"
    assert ctl("--token-file", str(token), "node").output == expected
    command = ["start", "--ephemeral", "--port", "0", "--ctl-port", "0", "--ctl-token-file", str(token)]
    start = subprocess.run(
        [sys.executable, "-m", "pykbroker", *command], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (start.returncode, start.stderr.splitlines()[-1] + "\n") == (1, expected)


def test_a_token_file_goes_with_a_port(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["start", "--ctl-token-file", str(tmp_path / "token")])
    assert (done.exit_code, done.output) == (1, "Error: --ctl-token-file goes with --ctl-port\n")


def test_a_start_without_the_extra_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypercorn.config", None)
    monkeypatch.delitem(sys.modules, "pykbroker.control.http.server", raising=False)
    done = CliRunner().invoke(main, ["start", "--ephemeral", "--port", "0", "--ctl-port", "0"])
    assert done.exit_code == 1
    assert done.output.splitlines()[-1] == (
        "Error: --ctl-port needs hypercorn.config: pip install 'pykbroker[control]'"
    )
