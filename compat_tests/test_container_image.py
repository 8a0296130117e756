"""The container image, built without a container daemon: buildah makes it from a Debian root.

The base image is a `debootstrap`ed Debian with Python instead of `python:slim`, because no image registry is needed
that way. Needs root and Debian's packages `buildah` and `debootstrap`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer

from compat_tests.ports import take_ports
from compat_tests.waiting import DEADLINE_S

ROOT = Path(__file__).parent.parent
BASE = "localhost/pykbroker-test-base"
IMAGE = "localhost/pykbroker-test"
CERTIFICATES = "/etc/ssl/certs"
MISSING = [tool for tool in ("buildah", "debootstrap") if shutil.which(tool) is None]

pytestmark = [
    pytest.mark.container,
    pytest.mark.skipif(
        bool(MISSING) or os.geteuid() != 0, reason=f"needs root, buildah and debootstrap; lacks {MISSING}"
    ),
]


def run(*command: str, timeout_s: float = 600) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


class Buildah:
    """buildah with a storage of its own, so that nothing is left on the machine."""

    def __init__(self, storage: Path) -> None:
        self.prefix = (
            "buildah",
            "--storage-driver",
            "vfs",
            "--root",
            str(storage / "root"),
            "--runroot",
            str(storage / "run"),
        )

    def __call__(self, *arguments: str) -> str:
        return run(*self.prefix, *arguments).strip()

    def popen(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.prefix, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    directory = tmp_path_factory.mktemp("buildah")
    root = directory / "debian"
    run("debootstrap", "--variant=minbase", "--include=python3,python3-venv,ca-certificates", "bookworm", str(root))
    tool = Buildah(directory)
    base = tool("from", "scratch")
    tool("add", "--quiet", base, str(root), "/")
    tool("commit", "--quiet", base, BASE)
    tool("rm", base)
    # The build installs packages, so it trusts what this machine trusts.
    pip = [f"--env={name}={os.environ[name]}" for name in ("PIP_CERT", "SSL_CERT_FILE") if name in os.environ]
    tool(
        *(
            "bud",
            "--isolation",
            "chroot",
            "--build-arg",
            f"BASE={BASE}",
            "--volume",
            f"{CERTIFICATES}:{CERTIFICATES}:ro",
        ),
        *(*pip, "--format", "docker", "-f", "docker/Dockerfile", "-t", IMAGE, str(ROOT)),
    )
    yield tool
    shutil.rmtree(directory, ignore_errors=True)


def test_image_runs_as_nobody_special_and_knows_its_health(buildah: Buildah) -> None:
    config = json.loads(buildah("inspect", "--type", "image", IMAGE))["Docker"]["config"]
    assert config["User"] == "pykbroker"
    assert config["Healthcheck"]["Test"][:2] == ["CMD", "pykbroker"]
    assert "9092/tcp" in config["ExposedPorts"]


def test_broker_in_the_image_serves_a_client_and_is_healthy(buildah: Buildah) -> None:
    container = buildah("from", IMAGE)
    config = json.loads(buildah("inspect", "--type", "image", IMAGE))["Docker"]["config"]
    ports = take_ports(3)
    overrides = [
        f"listeners=PLAINTEXT://127.0.0.1:{ports[0]},DOCKER://127.0.0.1:{ports[1]},CONTROLLER://127.0.0.1:{ports[2]}",
        f"advertised.listeners=PLAINTEXT://localhost:{ports[0]},DOCKER://localhost:{ports[1]}",
        f"controller.quorum.voters=1@127.0.0.1:{ports[2]}",
    ]
    command = [*config["Entrypoint"], *config["Cmd"]]
    for override in overrides:
        command += ["--override", override]
    process = buildah.popen("run", "--isolation", "chroot", container, "--", *command)
    try:
        bootstrap = f"127.0.0.1:{ports[0]}"
        wait_for_ready_line(process)
        produce_and_consume(bootstrap)
        health = [bootstrap if part == "localhost:9092" else part for part in config["Healthcheck"]["Test"][1:]]
        assert "in-a-container" in buildah("run", "--isolation", "chroot", container, "--", *health)
    finally:
        stop(process)
    assert process.returncode == 0


def wait_for_ready_line(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("pykbroker ready:"):
            return
    raise AssertionError("the broker ended before it was ready:\n" + "".join(lines))


def produce_and_consume(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("in-a-container", b"value", b"key")
    assert producer.flush(DEADLINE_S) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["in-a-container"])
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        assert message.error() is None
        assert (message.key(), message.value()) == (b"key", b"value")
    finally:
        consumer.close()


def stop(process: subprocess.Popen[str]) -> None:
    """Ends the broker as a container engine does, by SIGTERM to it; the command that ran it follows."""
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
