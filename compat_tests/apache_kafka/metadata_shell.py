"""What Kafka's metadata shell shows of a snapshot."""

import subprocess
from contextlib import suppress
from pathlib import Path

from compat_tests.waiting import DEADLINE_S

from .tools import Tool, run_tool


def paths_in_snapshot(snapshot: Path) -> list[str]:
    """All paths in the image of the snapshot, such as `/image/topics/byName/events/0`.

    On a loaded machine the shell sometimes waits for ever for a snapshot that it has read. Then it is asked again.
    """
    arguments = ("--snapshot", str(snapshot), "find", "/image")
    for _ in range(2):
        with suppress(subprocess.TimeoutExpired):
            return run_tool(Tool.METADATA_SHELL, *arguments, timeout_s=DEADLINE_S / 3).lines
    return run_tool(Tool.METADATA_SHELL, *arguments).lines
