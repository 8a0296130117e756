"""The container image and the examples in docker/, built and run without a container daemon (`container.buildah`)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from compat_tests.chaos.network import IN_NEW_NAMESPACES
from compat_tests.container.buildah import IMAGE, PROGRAMS, Buildah
from compat_tests.container.client import there_and_back
from compat_tests.container.first_record import size_on_top_mb
from compat_tests.container.scenarios import SCENARIOS
from compat_tests.ports import take_ports
from compat_tests.waiting import DEADLINE_S

MISSING = [tool for tool in PROGRAMS if shutil.which(tool) is None]
MOST_MB = 80
"""The image may have so much on top of its base."""

pytestmark = [
    pytest.mark.container,
    pytest.mark.xdist_group("container"),
    pytest.mark.skipif(
        bool(MISSING) or os.geteuid() != 0, reason=f"needs root, buildah and debootstrap; lacks {MISSING}"
    ),
]


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    tool = Buildah.fastest(tmp_path_factory.mktemp("buildah"))
    tool.build_image()
    yield tool
    tool.remove()


@pytest.fixture(scope="module")
def container(buildah: Buildah) -> Iterator[str]:
    made = buildah.container()
    yield made
    buildah("rm", made)


@pytest.fixture(scope="module")
def outcomes(buildah: Buildah, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The traceback of each scenario, or nothing."""
    directory = tmp_path_factory.mktemp("services")
    command = [sys.executable, "-m", "compat_tests.container.scenarios", str(buildah.storage), str(directory)]
    done = subprocess.run([*IN_NEW_NAMESPACES, *command], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(told, dict)
    return told


@pytest.mark.netns
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_an_example_works(outcomes: dict[str, str], scenario: str) -> None:
    assert outcomes[scenario] == ""


def image_config(buildah: Buildah) -> dict[str, object]:
    config = json.loads(buildah("inspect", "--type", "image", IMAGE))["Docker"]["config"]
    assert isinstance(config, dict)
    return config


def test_image_runs_as_nobody_special_and_knows_its_health(buildah: Buildah) -> None:
    config = image_config(buildah)
    assert config["User"] == "1000:0"
    assert "9092/tcp" in config["ExposedPorts"]  # type: ignore[operator]
    assert not config["Entrypoint"]  # commands of compose files are run as they stand


def test_image_is_small(buildah: Buildah) -> None:
    assert 10 < size_on_top_mb(buildah) < MOST_MB


def test_nothing_is_left_to_compile_at_a_start(buildah: Buildah, container: str) -> None:
    script = "import sys; sys.argv[1:] = ['container', '--help']; from pykbroker.cli.main import main; main()"
    command = buildah.running(container, "python3", "-v", "-c", script)
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    loaded = [line for line in done.stderr.splitlines() if "pykbroker/cli/container" in line]
    assert any("matches" in line or "pyc" in line for line in loaded), loaded
    assert "# wrote" not in done.stderr


def test_broker_in_the_image_serves_a_client_and_is_healthy(buildah: Buildah, container: str, tmp_path: Path) -> None:
    ports = take_ports(3)
    environment = {
        "KAFKA_LISTENERS": f"A://127.0.0.1:{ports[0]},B://127.0.0.1:{ports[1]},CONTROLLER://127.0.0.1:{ports[2]}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "A:PLAINTEXT,B:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "B",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": f"1@127.0.0.1:{ports[2]}",
    }
    config = image_config(buildah)
    command = buildah.running(container, *config["Cmd"], environment=environment)  # type: ignore[misc]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        wait_for_ready_line(process)
        there_and_back(f"127.0.0.1:{ports[0]}", "in-a-container")
        check = config["Healthcheck"]["Test"][1:]  # type: ignore[index]
        assert subprocess.check_output(buildah.running(container, *check), text=True) == "healthy\n"
    finally:
        stop(process)
    assert process.returncode == 0
    assert subprocess.run(buildah.running(container, *check), capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize("start", ["/etc/kafka/docker/run", "/opt/bitnami/scripts/kafka/run.sh"])
def test_a_wrong_variable_is_one_line(buildah: Buildah, container: str, start: str) -> None:
    line = said(buildah, container, start, environment={"KAFKA_NODE_ID": "x"})
    assert line == "Error: KAFKA_NODE_ID: Invalid value x for configuration node.id: Not a number of type INT"


def test_a_volume_of_another_user_is_one_line(buildah: Buildah, container: str, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir(mode=0o755)
    volumes = {"/var/lib/pykbroker": tmp_path / "volume"}
    line = said(buildah, container, "/etc/kafka/docker/run", volumes=volumes)
    assert line.startswith(
        "Error: log.dirs: /var/lib/pykbroker/data cannot be written: /var/lib/pykbroker belongs to 0:0, "
    )
    assert "the node runs as 1000:0; start the container as user 0:0, or " in line


def test_commands_of_compose_files_run_as_they_stand(buildah: Buildah, container: str) -> None:
    entrypoint = "/opt/bitnami/scripts/kafka/entrypoint.sh"
    for command in (
        ["kafka-storage.sh", "random-uuid"],
        [entrypoint, "/opt/bitnami/kafka/bin/kafka-storage.sh", "random-uuid"],
    ):
        assert len(subprocess.check_output(buildah.running(container, *command), text=True).strip()) == 22
    assert said(buildah, container, "kafka-topics.sh", "--list", "--bootstrap-server", "localhost:1").startswith(
        "Error: No broker can be reached"
    )


def said(buildah: Buildah, container: str, *command: str, **options: object) -> str:
    """The one line of a command that fails with exit code 1."""
    running = buildah.running(container, *command, **options)  # type: ignore[arg-type]
    done = subprocess.run(running, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 1, done.stderr
    of_buildah = ("subprocess exited with status", "Error: exit status", "time=")
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith(of_buildah)]
    assert len(lines) == 1, lines
    return lines[0]


def wait_for_ready_line(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("pykbroker ready:"):
            return
    raise AssertionError("the broker ended before it was ready:\n" + "".join(lines))


def stop(process: subprocess.Popen[str]) -> None:
    """End the broker as a container engine does, by SIGTERM to it; the command that ran it follows."""
    deadline = time.monotonic() + 30
    for pid in broker_pids(process.pid):
        os.kill(pid, signal.SIGTERM)
    try:
        process.wait(deadline - time.monotonic())
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    finally:
        assert process.stdout is not None
        process.stdout.close()


def broker_pids(ancestor: int) -> Sequence[int]:
    descendants = psutil.Process(ancestor).children(recursive=True)
    return [child.pid for child in descendants if not child.children()]
