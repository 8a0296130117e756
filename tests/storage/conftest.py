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
