"""Brokers of `pykbroker start --secure`, each with a directory that has its clients' configurations."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pykbroker.config.properties import read_properties

from .brokers import pykbroker_command
from .waiting import DEADLINE_S

_READY = re.compile(r"pykbroker ready: SASL_SSL://(127\.0\.0\.1:\d+) ")


@contextmanager
def secure_broker(directory: Path, data: Path, *overrides: str) -> Iterator[str]:
    """Start a broker and give where it serves; it is stopped cleanly at the end. overrides: `key=value` texts."""
    flags = [flag for each in ("listeners=SASL_SSL://127.0.0.1:0", *overrides) for flag in ("--override", each)]
    command = pykbroker_command("start", "--secure", str(directory), "--data-dir", str(data), *flags)
    with data.with_name(f"{data.name}.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        ready = _READY.match(process.stdout.readline())
        assert ready is not None, data.with_name(f"{data.name}.log").read_text()
        yield ready[1]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def client_configuration(directory: Path, name: str) -> dict[str, Any]:
    """The configuration in one of the files for clients."""
    path = directory / "clients" / name
    return dict(json.loads(path.read_text()) if path.suffix == ".json" else read_properties(path))
