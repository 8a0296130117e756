"""The doctor, as a test calls it: findings by id, without what differs from run to run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_tests.brokers import pykbroker_command

TIMEOUT_S = 120
WATCH_S = 1


@dataclass(frozen=True, slots=True)
class Examined:
    """code: the exit code. document: what `--json` prints."""

    code: int
    document: dict[str, Any]

    @property
    def ids(self) -> list[str]:
        return sorted({each["id"] for each in self.document["findings"]})

    def finding(self, id_: str) -> dict[str, str]:
        """The only one of that id."""
        [found] = [each for each in self.document["findings"] if each["id"] == id_]
        return dict(found)

    @property
    def errors(self) -> list[str]:
        return sorted({each["id"] for each in self.document["findings"] if each["severity"] == "error"})


def examine(
    bootstrap: str, directory: Path, properties: Mapping[str, str] | None = None, *, watch_s: float = WATCH_S
) -> Examined:
    """properties: of the client. directory: of the test, for the file."""
    file = directory / "doctor.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in (properties or {}).items()))
    options = ("--command-config", str(file), "--json", "--watch", str(watch_s))
    command = pykbroker_command("doctor", bootstrap, *options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.stderr == "", done.stderr
    return Examined(done.returncode, json.loads(done.stdout))
