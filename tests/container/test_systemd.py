"""The systemd unit: what systemd itself says of it, and that it starts what is there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "docker" / "systemd" / "pykbroker.service"
ANALYZE = shutil.which("systemd-analyze")
MOST_EXPOSURE = 20
"""In tenths: systemd calls up to 2.0 good, and a unit without hardening is 9.6."""


@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze (Debian package systemd)")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    program = tmp_path / "pykbroker"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/pykbroker/bin/pykbroker", str(program)))
    done = subprocess.run([str(ANALYZE), "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    unit.write_text(unit.read_text().replace("RestartSec=", "RestartSecs="))
    done = subprocess.run([str(ANALYZE), "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False)
    assert "RestartSecs" in done.stderr


@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze (Debian package systemd)")
def test_the_unit_exposes_little(tmp_path: Path) -> None:
    command = [str(ANALYZE), "security", "--offline=true", f"--threshold={MOST_EXPOSURE}", str(UNIT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr


def test_what_tells_of_a_reboot_is_not_hidden() -> None:
    """A node reads /proc/sys/kernel/random/boot_id, which `ProcSubset=pid` hides."""
    settings = dict(line.split("=", 1) for line in UNIT.read_text().splitlines() if "=" in line and line[0] != "#")
    assert "ProcSubset" not in settings
    assert settings["StateDirectoryMode"] == "0750", "records are for the node's user alone"
    assert settings["Type"] == "notify"  # pykbroker.cli.service_manager
