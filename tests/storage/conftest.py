import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.disk import Disk, OsDisk


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk(Random(1))
    disk.make_directory("/data")
    disk.sync_directory("/")
    return disk


@pytest.fixture(params=["os", "simulated"])
def either_disk(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    """A disk and an empty directory on it."""
    if request.param == "os":
        return OsDisk(), str(tmp_path)
    simulated = SimulatedDisk(Random(1))
    simulated.make_directory("/data")
    return simulated, "/data"


@pytest.fixture(scope="session")
def dump_log_segments() -> Callable[..., str]:
    """Kafka's own reader of log files; skips the test where its jars are not named by PYKBROKER_KAFKA_LIBS."""
    libs = os.environ.get("PYKBROKER_KAFKA_LIBS")
    if not libs:
        pytest.skip("PYKBROKER_KAFKA_LIBS does not name a directory with Apache Kafka's jars")

    def dump(*arguments: str) -> str:
        command = ["java", "-Xmx256m", "-cp", f"{libs}/*", "org.apache.kafka.tools.DumpLogSegments", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return dump
