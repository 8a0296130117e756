"""Where a run was made: the machine, the versions of what ran on it, and the commit."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

import psutil

from benchmarks.results import Machine
from compat_tests.apache_kafka.jars import KAFKA_VERSION
from pykbroker import __version__

ROOT = Path(__file__).parents[1]
_WAIT_S = 60


def this_machine() -> Machine:
    return Machine(
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        processor=_processor(),
        memory_bytes=psutil.virtual_memory().total,
        kernel=f"{platform.system()} {platform.release()}",
    )


def versions(java: str) -> dict[str, str]:
    """Versions by name. java: the runtime's command."""
    return {
        "pykbroker": __version__,
        "Apache Kafka": KAFKA_VERSION,
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "Java": _java_version(java),
    }


def commit() -> str:
    """The tree's commit, with `+` where files differ from it; empty outside a clone, or without git."""
    head = _output("git", "-C", str(ROOT), "rev-parse", "HEAD")
    if not head:
        return ""
    return head + ("+" if _output("git", "-C", str(ROOT), "status", "--porcelain") else "")


def _processor() -> str:
    """Linux tells the model in a file; elsewhere, and on processors without a name there, the architecture."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()


def _java_version(java: str) -> str:
    """The second line is the build of the runtime; the first one has the specification's date as well."""
    lines = _output(java, "-version").splitlines()
    return lines[1] if len(lines) > 1 else "".join(lines)


def _output(*command: str) -> str:
    """What a program says, on whatever stream; empty where it cannot be run or fails."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_WAIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
