"""The projects in `examples/`: their tests pass, and nothing is left of their brokers, even if the tests are killed.

`make examples` runs them. Maven, npm, Go and pip fetch what they need, so `make test` leaves them out. Those in Python
have their suites as they were for a container, too: these run on Apache Kafka.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from .apache_kafka.broker import ApacheKafka
from .installed import PYTHONPATH
from .python_examples import AFTER, BEFORE, CONTAINER_PROPERTIES, PythonEnvironment
from .waiting import until

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
TIMEOUT_S = 600
_MARK = "PYKBROKER_TEST_MARK"

pytestmark = [
    pytest.mark.timeout(2 * TIMEOUT_S),
    pytest.mark.skipif("PYKBROKER_EXAMPLES" not in os.environ, reason="run by `make examples`"),
]


@dataclass(frozen=True)
class Example:
    """A folder of `examples/`, and the commands of its README."""

    name: str
    prepare: tuple[str, ...]
    test: tuple[str, ...]

    @property
    def tool(self) -> str:
        return self.test[0]


JAVA = Example("java", ("mvn", "-B", "-q", "test-compile"), ("mvn", "-B", "-q", "test"))
NODE = Example("node", ("npm", "ci", "--no-audit", "--no-fund"), ("npm", "test"))
GO = Example("go", ("go", "test", "-run", "^$", "./..."), ("go", "test", "-count=1", "./..."))
ALL = pytest.mark.parametrize("example", [JAVA, NODE, GO], ids=lambda example: example.name)


class Project:
    """A copy of an example, with a place for temporary files of its own."""

    def __init__(self, example: Example, directory: Path) -> None:
        self._example = example
        self._directory = directory / example.name
        shutil.copytree(
            EXAMPLES / example.name, self._directory, ignore=shutil.ignore_patterns("target", "node_modules")
        )
        self.temporary = directory / "tmp"
        self.temporary.mkdir()
        command = directory / "pykbroker"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pykbroker "$@"\n')
        command.chmod(0o755)
        self._mark = uuid.uuid4().hex
        variables = {
            "PYKBROKER": str(command),
            "PYTHONPATH": PYTHONPATH,
            "TMPDIR": str(self.temporary),
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={self.temporary}",
            _MARK: self._mark,
        }
        self._environment = os.environ | variables

    def run(self, command: tuple[str, ...]) -> None:
        process = self.start(command)
        out, _ = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, out

    def start(self, command: tuple[str, ...]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def processes(self, *, of_brokers: bool) -> list[psutil.Process]:
        return [each for each in psutil.process_iter() if self._is_meant(each, of_brokers)]

    def brokers_directories(self) -> list[Path]:
        return list(self.temporary.glob("pykbroker-ephemeral-*"))

    def _is_meant(self, process: psutil.Process, of_brokers: bool) -> bool:
        try:
            return (
                process.environ().get(_MARK) == self._mark
                and process.status() != psutil.STATUS_ZOMBIE
                and ("--die-with-parent" in process.cmdline()) is of_brokers
            )
        except psutil.Error:
            return False


@pytest.fixture
def project(example: Example, tmp_path: Path) -> Iterator[Project]:
    if shutil.which(example.tool) is None:
        pytest.skip(f"needs {example.tool}")
    project = Project(example, tmp_path)
    project.run(example.prepare)
    yield project
    for process in [*project.processes(of_brokers=True), *project.processes(of_brokers=False)]:
        process.kill()


@ALL
def test_its_tests_pass_and_leave_nothing(example: Example, project: Project) -> None:
    project.run(example.test)
    assert project.processes(of_brokers=True) == []
    assert project.brokers_directories() == []


@ALL
def test_nothing_is_left_of_the_broker_when_its_tests_are_killed(example: Example, project: Project) -> None:
    running = project.start(example.test)
    until(project.brokers_directories, "no broker starts", TIMEOUT_S)
    for process in project.processes(of_brokers=False):
        process.kill()
    running.communicate(timeout=TIMEOUT_S)
    until(lambda: project.processes(of_brokers=True) == project.brokers_directories() == [], "the broker goes on")


LEAST_TESTS = 10


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> PythonEnvironment:
    return PythonEnvironment(tmp_path_factory.mktemp("examples") / "venv")


def test_suites_in_python_pass_and_leave_nothing(environment: PythonEnvironment, tmp_path: Path) -> None:
    tests = environment.run_all(AFTER, {"TMPDIR": str(tmp_path)})
    assert min(tests.values()) >= LEAST_TESTS
    assert list(tmp_path.glob("pykbroker*")) == []


@pytest.mark.java
def test_suites_in_python_passed_on_apache_kafka(environment: PythonEnvironment, tmp_path: Path) -> None:
    broker = ApacheKafka(tmp_path / "kafka", CONTAINER_PROPERTIES)
    broker.start()
    try:
        tests = environment.run_all(BEFORE, {"KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap})
        assert min(tests.values()) >= LEAST_TESTS
    finally:
        broker.close()
