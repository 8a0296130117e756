"""One run of a test class in a JVM of its own, and what became of its tests."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from compat_tests.apache_kafka.jars import cache_directory
from compat_tests.apache_kafka.java import find_java

from .harness import HERE, classes, jars_class_path, kafka_command
from .ports import PORTS

TEST_LIMIT_S = 300
CLASS_LIMIT_S = 3600
LIMIT_WITHOUT_TIMEOUTS_S = 1200
KAFKA, PYKBROKER = "apache-kafka", "pykbroker"
PASSED, FAILED, ABORTED = "passed", "failed", "aborted"
NODE_FAULT = "!!!! "


@dataclass(frozen=True, slots=True)
class Outcome:
    """verdict: aborted is a test that asks for what only a broker in its own JVM has. text: why it did not pass."""

    verdict: str
    seconds: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class ClassRun:
    """methods: none for all of the class but those that are left out. has_own_clusters: each test gets one, and none is
    emptied and used again; a loaded machine is slow and not wrong, so the time-outs that tests declare do not hold.
    """

    test_class: str
    methods: frozenset[str] = field(default_factory=frozenset)
    left_out: frozenset[str] = field(default_factory=frozenset)
    has_own_clusters: bool = False

    @property
    def short_name(self) -> str:
        return self.test_class.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class RunBroker:
    """pykbroker: its command. first_port: of those that the nodes of the run may have."""

    kind: str
    pykbroker: Path
    first_port: int


@dataclass(frozen=True, slots=True)
class ClassOutcome:
    """tests: by method, and number of the invocation where it has several. faults: what nodes did besides answering."""

    tests: dict[str, Outcome]
    faults: list[str]
    directory: Path


def method_of(test: str) -> str:
    return test.partition("[")[0]


def run_class(run: ClassRun, broker: RunBroker, directory: Path) -> ClassOutcome:
    """directory: made anew, for logs."""
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "files").mkdir(parents=True)
    console = directory / "console.log"
    with console.open("wb") as out:
        process = subprocess.Popen(
            _command(run, broker, directory), stdout=out, stderr=out, cwd=directory, start_new_session=True
        )
        try:
            process.wait(limit_s := LIMIT_WITHOUT_TIMEOUTS_S if run.has_own_clusters else CLASS_LIMIT_S)
        except subprocess.TimeoutExpired:
            out.write(f"{NODE_FAULT}{run.short_name} did not end within {limit_s} s\n".encode())
        finally:
            _end_all_of(process)
    shutil.rmtree(directory / "files")
    lines = console.read_text(errors="replace").splitlines()
    faults = [line.removeprefix(NODE_FAULT) for line in lines if line.startswith(NODE_FAULT)]
    return ClassOutcome(read_report(directory / "TEST-junit-jupiter.xml"), faults, directory)


def _end_all_of(process: subprocess.Popen[bytes]) -> None:
    """The JVM and the nodes that it left, which are in its session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _command(run: ClassRun, broker: RunBroker, directory: Path) -> list[str]:
    properties = {
        "java.io.tmpdir": directory / "files",
        "log4j2.configurationFile": HERE / "log4j2.properties",
        "nodes.broker": KAFKA if broker.kind == KAFKA else broker.pykbroker,
        "nodes.directory": directory / "nodes",
        "nodes.keys": cache_directory() / "keys-of-kafkas-own-tests",
        "nodes.first.port": broker.first_port,
        "nodes.ports": PORTS,
        "nodes.kafka.command": "\n".join(kafka_command()),
        "nodes.reuse": str(not run.has_own_clusters).lower(),
        "junit.jupiter.execution.timeout.mode": "disabled" if run.has_own_clusters else "enabled",
        "junit.jupiter.extensions.autodetection.enabled": "true",
        "junit.jupiter.execution.timeout.testable.method.default": f"{TEST_LIMIT_S}s",
        "junit.jupiter.execution.timeout.thread.mode.default": "SEPARATE_THREAD",
    }
    chosen = [f"--include-methodname={_pattern(run.methods)}"] if run.methods else []
    if run.left_out and not run.methods:
        chosen = [f"--exclude-methodname={_pattern(run.left_out)}"]
    return [
        *(find_java(), "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *(f"-D{key}={value}" for key, value in properties.items()),
        *("-cp", f"{classes()}:{jars_class_path()}", "org.junit.platform.console.ConsoleLauncher", "execute"),
        *("--select-class", run.test_class, *chosen, f"--reports-dir={directory}"),
        *("--details=tree", "--disable-ansi-colors", "--disable-banner"),
    ]


def _pattern(methods: frozenset[str]) -> str:
    return f".*#({'|'.join(map(re.escape, sorted(methods)))})$"


def read_report(path: Path) -> dict[str, Outcome]:
    """JUnit's report; nothing where the JVM did not come to write it."""
    if not path.exists():
        return {}
    outcomes = {}
    for case in ET.parse(path).getroot().iter("testcase"):
        name = re.sub(r"\(.*?\)(?=\[|$)", "", case.get("name", ""))
        problem = next((each for each in case if each.tag in ("failure", "error", "skipped")), None)
        verdict = PASSED if problem is None else ABORTED if problem.tag == "skipped" else FAILED
        text = "" if problem is None else (problem.get("message") or problem.text or "").strip()
        outcomes[name] = Outcome(verdict, float(case.get("time", "0").replace(",", "")), " ".join(text.split())[:500])
    return outcomes


def failing_methods(outcomes: Collection[tuple[str, Outcome]]) -> frozenset[str]:
    return frozenset(method_of(test) for test, outcome in outcomes if outcome.verdict == FAILED)
