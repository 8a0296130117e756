"""What Kafka's metadata shell shows of a snapshot."""

import subprocess
from contextlib import suppress
from pathlib import Path

from compat_tests.waiting import DEADLINE_S

from .tools import Tool, run_tool


def paths_in_snapshot(snapshot: Path) -> list[str]:
    """All paths in the image of the snapshot, such as `/image/topics/byName/events/0`.

    Beside a heavy load the shell was seen to print nothing for three minutes after it had read the snapshot. It is
    asked again then; a snapshot that it never shows still fails.
    """
    arguments = ("--snapshot", str(snapshot), "find", "/image")
    for _ in range(2):
        with suppress(subprocess.TimeoutExpired):
            return run_tool(Tool.METADATA_SHELL, *arguments, timeout_s=DEADLINE_S / 3).lines
    return run_tool(Tool.METADATA_SHELL, *arguments).lines
