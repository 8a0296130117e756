import time
from functools import partial
from pathlib import Path
from random import Random

import pytest

from pykbroker.control.nodes.flushed_disk import FlushedDisk
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.sim.process_disk import ProcessDisk
from pykbroker.storage.files.disk import Disk, OsDisk
from pykbroker.storage.files.faulty_disk import FaultyDisk
from pykbroker.storage.files.unsynced_disk import UnsyncedDisk
from tests.storage.recording_disk import RecordingDisk


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk(Random(1))
    disk.make_directory("/data")
    disk.sync_directory("/")
    return disk


@pytest.fixture(params=["os", "unsynced", "simulated", "faulty", "process", "recording", "flushed"])
def either_disk(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    """A disk and an empty directory on it."""
    if request.param == "os":
        return OsDisk(), str(tmp_path)
    if request.param == "unsynced":
        return UnsyncedDisk(), str(tmp_path)
    kind = RecordingDisk if request.param == "recording" else partial(SimulatedDisk, Random(1))
    in_memory: Disk = kind(now_ms=lambda: time.time_ns() // 1_000_000)
    in_memory.make_directory("/data")
    match request.param:
        case "faulty":
            return FaultyDisk(in_memory, Random(1)), "/data"
        case "process":
            return ProcessDisk(in_memory, lambda: None), "/data"
        case "flushed":
            return FlushedDisk(in_memory), "/data"
    return in_memory, "/data"
