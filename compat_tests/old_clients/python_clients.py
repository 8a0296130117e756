"""Old clients in Python, each task in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .installed_clients import confluent_kafka, kafka_python

TASK_TIMEOUT_S = 600


class TaskFailed(AssertionError):
    """The program ended with an error, whose text this has."""


class PythonClient:
    """program: the name of a module. packages: the directory with the client that it imports."""

    def __init__(self, program: str, packages: Path) -> None:
        spec = importlib.util.find_spec(program)
        assert spec is not None
        assert spec.origin is not None
        self._program = spec.origin
        self._packages = packages

    def close(self) -> None:
        """Nothing runs between two tasks."""

    def do(self, task: str, **arguments: Any) -> Any:
        """Raises TaskFailed."""
        done = subprocess.run(
            [sys.executable, "-P", "-W", "ignore", self._program],
            env=os.environ | {"PYTHONPATH": str(self._packages)},
            input=json.dumps({"task": task, **arguments}),
            capture_output=True,
            text=True,
            timeout=TASK_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise TaskFailed(f"{task} with {self._packages.name}: {done.stderr[-8000:]}")
        return json.loads(done.stdout)


def old_kafka_python() -> PythonClient:
    return PythonClient("compat_tests.old_clients.kafka_python_program", kafka_python())


def old_librdkafka() -> PythonClient:
    return PythonClient("compat_tests.old_clients.librdkafka_program", confluent_kafka())
