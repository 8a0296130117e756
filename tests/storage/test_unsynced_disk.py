"""A disk without syncs asks the device for nothing, and keeps everything else of its contract."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pykbroker.storage.files.disk import OsDisk
from pykbroker.storage.files.unsynced_disk import UnsyncedDisk


@pytest.mark.parametrize(("disk", "syncs"), [(UnsyncedDisk(), False), (OsDisk(), True)], ids=["unsynced", "synced"])
def test_nothing_is_synced(disk: OsDisk, syncs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda _, name=name: calls.append(name))
    file = disk.open(f"{tmp_path}/f", create=True)
    file.append([b"bytes"])
    file.sync()
    file.check_written()
    disk.replace_file(f"{tmp_path}/g", b"bytes")
    disk.sync_directory(str(tmp_path))
    disk.replace_file(f"{tmp_path}/h", b"bytes", sync=False)
    assert disk.sync_volume(str(tmp_path))
    file.close()
    assert bool(calls) == syncs
    assert (tmp_path / "f").read_bytes() == (tmp_path / "g").read_bytes() == b"bytes"
