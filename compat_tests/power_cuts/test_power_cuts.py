"""A few power cuts under a broker, and what the file systems do in them; `make power-cuts` makes more of them."""

import os
import subprocess
from pathlib import Path

import pytest

from .run import run_cuts
from .volume import Cut, CutVolume, why_there_is_no

pytestmark = [pytest.mark.mounts, pytest.mark.flaky(reruns=0)]

FILE_SYSTEMS = ["ext4", "xfs"]


def leave_out_without(file_system: str) -> None:
    if missing := why_there_is_no(file_system):
        pytest.skip(missing)


@pytest.mark.parametrize("file_system", FILE_SYSTEMS)
def test_a_cut_takes_what_was_not_synced_and_nothing_else(tmp_path: Path, file_system: str) -> None:
    leave_out_without(file_system)
    volume = CutVolume(tmp_path, file_system)
    try:
        kept, lost = volume.path / "kept", volume.path / "lost"
        with kept.open("wb") as file:
            file.write(b"synced")
            file.flush()
            os.fsync(file.fileno())
            file.write(b" and more")
        lost.write_bytes(b"not synced")
        volume.cut(Cut.NOTHING)
        with pytest.raises(OSError, match="Input/output error"):
            (volume.path / "later").write_bytes(b"x")
        volume.unmount()
        volume.mount()
        assert kept.read_bytes() == b"synced"
        assert not lost.exists()
    finally:
        volume.close()


@pytest.mark.parametrize("file_system", FILE_SYSTEMS)
def test_what_another_mount_namespace_has_mounted_does_not_come_back(tmp_path: Path, file_system: str) -> None:
    """Tests beside this one make such namespaces, which have all mounts of the moment."""
    leave_out_without(file_system)
    volume = CutVolume(tmp_path, file_system)
    namespace = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert namespace.stdout is not None
        namespace.stdout.readline()  # it is made
        volume.cut(Cut.NOTHING)
        volume.unmount()
        volume.mount()
        (volume.path / "later").write_bytes(b"x")
    finally:
        namespace.communicate()  # its input ends, and so does it
        volume.close()


@pytest.mark.parametrize(("file_system", "cuts"), [("ext4", 2), ("xfs", 1)])
def test_what_was_promised_outlives_power_cuts(tmp_path: Path, file_system: str, cuts: int) -> None:
    leave_out_without(file_system)
    run_cuts(tmp_path, cuts, seed=1, file_system=file_system, say=print)
