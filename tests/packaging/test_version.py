"""The version stands in one place, and everything that tells it takes it from there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import trio
import trio.testing

from pykbroker import __version__
from pykbroker.client.connection import Connection
from pykbroker.metrics.of_process import read_build
from pykbroker.metrics.readings import Readings

from .builds import ROOT, Packages
from .environment import CleanEnvironment

TELLS = ("docs/conf.py", "Makefile", "docker/Dockerfile", "pyproject.toml")


def test_the_packages_have_it(packages: Packages, core: CleanEnvironment, tmp_path: Path) -> None:
    assert packages.wheel.name == f"pykbroker-{__version__}-py3-none-any.whl"
    assert packages.sdist.name == f"pykbroker-{__version__}.tar.gz"
    asked = "from importlib.metadata import version; print(version('pykbroker'))"
    assert core.run("-c", asked, cwd=tmp_path).stdout == f"{__version__}\n"


def test_the_command_tells_it(core: CleanEnvironment, tmp_path: Path) -> None:
    assert core.run("-m", "pykbroker", "--version", cwd=tmp_path).stdout == f"pykbroker, version {__version__}\n"
    kafkas = core.run("-m", "pykbroker", "kafka", "kafka-topics.sh", "--version", cwd=tmp_path)
    assert kafkas.stdout == f"pykbroker {__version__}\n"


def test_the_metrics_tell_it() -> None:
    readings, node = Readings(), SimpleNamespace(node_id=1, cluster_id="C")
    given: Any = node
    read_build(given, readings)
    assert readings.values == {"pykbroker_build_info": [((__version__, "1", "C"), 1)]}


def test_clients_tell_it_to_brokers() -> None:
    async def first_frame() -> bytes:
        ours, theirs = trio.testing.memory_stream_pair()
        connection = Connection(ours, peer="a broker", client_id="us")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.negotiate)
            frame = bytes(await theirs.receive_some())
            nursery.cancel_scope.cancel()
        return frame

    assert __version__.encode() in trio.run(first_frame)


def test_it_is_written_nowhere_else() -> None:
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]
    sources = [path for layer in ("pykbroker", "protocol", "storage", "raft") for path in (ROOT / layer).rglob("*.py")]
    files = {*sources, *(ROOT / name for name in TELLS)} - {ROOT / "pykbroker" / "__init__.py"}
    literal = re.compile(rf"(?<![\d.]){re.escape(__version__)}(?![\d.])")
    assert [str(path.relative_to(ROOT)) for path in files if literal.search(path.read_text())] == []


def test_the_changelog_begins_with_it_or_with_what_comes_next() -> None:
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first is not None
    assert first[1] in ("Unreleased", __version__)
