"""Which of the two brokers the scenarios run on, and what becomes of Apache Kafka's answers.

The root conftest loads this plugin:

- Without an option they run on pykbroker, and its answers are compared with the recorded ones.
- `--record` runs those on Apache Kafka whose record is stale or missing, and writes what it answered. With
  `--collect-only` it lists them. Records of tests that are not there any more are removed.
- `--referee` runs all on Apache Kafka, and compares its answers with the recorded ones.

The answers of a test travel as a property of its last report, so that the controller of pytest-xdist writes them. Tests
are known by their own names: node ids have the names of xdist's groups behind them.
"""

from __future__ import annotations

import functools
import json
import re
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from compat_tests.answers import TestAnswers

from .recorded_answers import Answers, RecordedModule, due_tests, file_of, forgotten, update
from .scenario_digest import ROOT

KAFKA, PYKBROKER = "apache-kafka", "pykbroker"
KIND_FIXTURES = ("kind", "cluster_kind")
RECORDER = "recorder of Apache Kafka"
PROPERTY = "answers of Apache Kafka"

_answers = pytest.StashKey[TestAnswers]()
_failed = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("referee", "Apache Kafka as the referee")
    group.addoption("--record", action="store_true", help="ask Apache Kafka what is stale or missing in its records")
    group.addoption("--referee", action="store_true", help="ask Apache Kafka everything, and compare with its records")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("record") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(), RECORDER)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the scenarios of the one broker; what has no kind runs where nothing is recorded."""
    if not (config.getoption("record") or config.getoption("referee")):
        kept = [item for item in items if kind_of(item) != KAFKA]
    else:
        kept = [item for item in items if kind_of(item) == KAFKA]
    if config.getoption("record"):
        if (recorder := config.pluginmanager.get_plugin(RECORDER)) is not None:
            recorder.look_for_forgotten(config, items)
        due = {module: due_tests(module, names) for module, names in scenarios(kept).items()}
        kept = [item for item in kept if name_of(item) in due[item.path]]
    chosen = set(kept)
    if left_out := [item for item in items if item not in chosen]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def kind_of(item: pytest.Item) -> str | None:
    """The kind of broker that the test is for; None where it has none or both."""
    callspec = getattr(item, "callspec", None)
    params = callspec.params if callspec else {}
    return next((str(params[fixture]) for fixture in KIND_FIXTURES if fixture in params), None)


def name_of(item: pytest.Item) -> str:
    """Its name without the kind, the same for both brokers."""
    return re.sub(rf"(?<=[\[-]){kind_of(item)}(?=[-\]])", "*", item.name, count=1)


def scenarios(items: list[pytest.Item]) -> dict[Path, set[str]]:
    """The tests of Apache Kafka by module."""
    found: dict[Path, set[str]] = defaultdict(set)
    for item in items:
        if kind_of(item) == KAFKA:
            found[item.path].add(name_of(item))
    return found


def has_counterpart(item: pytest.Item) -> bool:
    """Whether Apache Kafka is asked the same: not where the test itself names the kinds that it is for."""
    named = [mark.args[0] for mark in item.iter_markers("parametrize")]
    return kind_of(item) == PYKBROKER and not any(fixture in each for fixture in KIND_FIXTURES for each in named)


def recorded_answers(item: pytest.Item) -> Answers | None:
    return _recorded_module(item.path).tests.get(name_of(item))


@functools.cache
def _recorded_module(module: Path) -> RecordedModule:
    return RecordedModule.read(file_of(module))


@pytest.fixture
def answers(request: pytest.FixtureRequest) -> Iterator[TestAnswers]:
    """What the broker answers in this test, compared with what is recorded of Apache Kafka."""
    item = request.node
    given = TestAnswers(kind_of(item) or "unknown")
    if has_counterpart(item):
        given = TestAnswers(PYKBROKER, recorded_answers(item))
    elif request.config.getoption("referee"):
        given = TestAnswers(KAFKA, recorded_answers(item), by="recorded")
    item.stash[_answers] = given
    yield given
    if not item.stash[_failed]:
        given.ensure_complete()


def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_failed] = False
    is_to_compare = has_counterpart(item) or (kind_of(item) == KAFKA and item.config.getoption("referee"))
    if is_to_compare and recorded_answers(item) is None:
        pytest.fail(f"what Apache Kafka answers in {name_of(item)} is not recorded: make record", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[_failed] = item.stash.get(_failed, False) or not report.passed
    is_recorded = kind_of(item) == KAFKA and item.config.getoption("record")
    if is_recorded and report.when == "teardown" and not item.stash[_failed]:
        given = item.stash[_answers].given if _answers in item.stash else {}
        report.user_properties.append((PROPERTY, json.dumps([str(item.path), name_of(item), given])))
    return report


class Recorder:
    """Writes what Apache Kafka answered, test by test, in the process that has all reports."""

    def __init__(self) -> None:
        self._gone: dict[Path, set[str]] = {}

    def look_for_forgotten(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Only where all tests of a module were looked for."""
        asked = [ROOT.joinpath(each.split("::")[0]) for each in config.args if "::" not in each]
        gone = forgotten(scenarios(items))
        self._gone = {
            module: names for module, names in gone.items() if any(module.is_relative_to(each) for each in asked)
        }

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == PROPERTY:
                module, test, answers = json.loads(str(value))
                update(Path(module), {test: answers})

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not session.config.option.collectonly:
            for module, names in self._gone.items():
                update(module, {}, names)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for module, names in sorted(self._gone.items()):
            for name in sorted(names):
                terminalreporter.write_line(f"recorded, but not there any more: {module.relative_to(ROOT)}::{name}")
