"""A minute and a half of faults under clients; what they saw is judged, and each of them gets going again.

PYKBROKER_CHAOS_MINUTES=N makes it longer, four minutes in `.ci/run`: long enough for faults of every kind.
PYKBROKER_CHAOS_SEED=N has other faults (`make chaos` has new ones in every run).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

MINUTES = float(os.environ.get("PYKBROKER_CHAOS_MINUTES", "1.5"))
SEED = int(os.environ.get("PYKBROKER_CHAOS_SEED", "1"))
KINDS = (
    "kill -9",
    "stop",
    "short freeze",
    "long freeze",
    "isolated from nodes",
    "isolated from all",
    "mute",
    "deaf",
    "bridge",
)
LONG_ENOUGH_FOR_ALL_KINDS = 4.0

pytestmark = [pytest.mark.netns, pytest.mark.java, pytest.mark.flaky(reruns=0)]


@pytest.mark.timeout(MINUTES * 60 + 1500)
def test_clients_lose_nothing_and_get_going_again_whatever_happens_to_nodes_and_networks() -> None:
    command = ["-m", "compat_tests.chaos", "--minutes", f"{MINUTES:g}", "--seed", f"{SEED}"]
    again = f"python {' '.join(command)} --keep DIRECTORY"
    done = run_to_the_end([sys.executable, *command])
    assert done.returncode == 0, f"{done.stdout}\nplay it again: {again}"
    if MINUTES >= LONG_ENOUGH_FOR_ALL_KINDS:
        found = re.findall(r"^  \d+ × (.+) of a (leader|follower|controller)$", done.stdout, re.MULTILINE)
        assert {kind for kind, _ in found} == set(KINDS), done.stdout
        assert {role for _, role in found} == {"leader", "follower", "controller"}, done.stdout


def run_to_the_end(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Where the test is interrupted, the run undoes what it did before it ends."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        output, _ = process.communicate()
    except BaseException:
        process.terminate()
        process.communicate(timeout=60)
        raise
    return subprocess.CompletedProcess(command, process.returncode, output)


def test_a_run_that_is_interrupted_leaves_no_process_and_no_directory(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "compat_tests.chaos", "--minutes", "1", "--seed", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as run:
        assert run.stdout is not None
        told = next(line for line in run.stdout if "nodes serve" in line or "FAILED" in line)
        assert "nodes serve" in told
        run.send_signal(signal.SIGTERM)
        run.stdout.read()  # whoever holds its end is gone
    assert run.returncode != 0
    assert not list(tmp_path.iterdir())
    assert not _processes_that_name(tmp_path)


def _processes_that_name(directory: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            found.append((process / "cmdline").read_bytes().decode(errors="replace"))
    return [command for command in found if str(directory) in command]
