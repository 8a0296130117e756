"""Every command of docs/administration.md does what the page says, one after the other on a cluster of three."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from pykbroker.cli.main import main

from .cluster_command import ROOT, ClusterCommand

PAGE = ROOT / "docs" / "administration.md"
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]


def test_the_commands_of_the_page_work(
    start_cluster: Callable[..., ClusterCommand], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(COMMANDS) > 20
    bootstrap = start_cluster("--ephemeral").wait_until_ready()
    monkeypatch.chdir(tmp_path)
    for line in COMMANDS:
        program, command, *arguments = shlex.split(line)
        assert program == "pykbroker"
        result = CliRunner().invoke(main, [command, "--bootstrap-server", bootstrap, *arguments])
        assert (result.exit_code, result.stderr) == (0, ""), line
