"""What is recorded of Apache Kafka under `compat_tests/recorded/` is of today's scenarios; planted faults are found."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from compat_tests.answers import NotAsked, TestAnswers
from compat_tests.referee import plugin, scenario_digest
from compat_tests.referee.conversations import RECORDERS, stale_conversations
from compat_tests.referee.recorded_answers import (
    LARGEST_BYTES,
    RecordedModule,
    comparable,
    due_tests,
    file_of,
    forgotten,
    stamp,
    update,
)

ROOT = Path(__file__).parents[1]
MODULE = ROOT / "compat_tests" / "test_topics.py"


def test_nothing_that_is_recorded_of_apache_kafka_is_stale() -> None:
    pytest.importorskip("numpy", reason="tests of Spark are collected, too: needs pykbroker[spark]")
    command = [sys.executable, "-m", "pytest", "--record", "--collect-only", "-q", "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYKBROKER_TEST_")}
    done = subprocess.run(
        [*command, "compat_tests", "spark_compat"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, (
        f"stale or missing records of Apache Kafka; `make record` asks it again:\n{done.stdout}{done.stderr}"
    )
    assert "not there any more" not in done.stdout, f"`make record` removes them:\n{done.stdout}"


def test_conversations_are_of_the_pinned_version(tmp_path: Path) -> None:
    assert stale_conversations() == [], "record them anew: python -m …"
    assert all((ROOT / directory).is_dir() for directory in RECORDERS)
    old = tmp_path / "versions.json"
    old.write_text('{"tests/raft/conversations": "4.2.0"}')
    assert stale_conversations(old) == list(RECORDERS.values())


# The record of a module


def test_what_is_recorded_is_not_due(tmp_path: Path) -> None:
    update(MODULE, {"test_a[*]": {"one": 1}, "test_b[*]": {}}, directory=tmp_path)
    assert due_tests(MODULE, {"test_a[*]", "test_b[*]"}, tmp_path) == set()


def test_a_test_without_a_record_is_due(tmp_path: Path) -> None:
    update(MODULE, {"test_a[*]": {}}, directory=tmp_path)
    assert due_tests(MODULE, {"test_a[*]", "test_b[*]"}, tmp_path) == {"test_b[*]"}


@pytest.mark.parametrize("planted", ["4.3.1 0123456789abcdef", f"4.2.0 {stamp(MODULE).split()[1]}", ""])
def test_everything_is_due_under_a_stale_stamp(tmp_path: Path, planted: str) -> None:
    RecordedModule(planted, {"test_a[*]": {}}).write(file_of(MODULE, tmp_path))
    assert due_tests(MODULE, {"test_a[*]", "test_b[*]"}, tmp_path) == {"test_a[*]", "test_b[*]"}


def test_records_of_tests_that_are_gone_are_found(tmp_path: Path) -> None:
    gone_module = ROOT / "compat_tests" / "test_that_is_gone.py"
    RecordedModule(stamp(MODULE), {"test_a[*]": {}, "test_gone[*]": {}}).write(file_of(MODULE, tmp_path))
    RecordedModule("4.3.1 0", {"test_c[*]": {}}).write(file_of(gone_module, tmp_path))
    found = forgotten({MODULE: {"test_a[*]", "test_b[*]"}}, tmp_path)
    assert found == {MODULE: {"test_gone[*]"}, gone_module: {"test_c[*]"}}
    for module, names in found.items():
        update(module, {}, names, tmp_path)
    assert forgotten({MODULE: {"test_a[*]", "test_b[*]"}}, tmp_path) == {}
    assert not file_of(gone_module, tmp_path).exists()
    assert due_tests(MODULE, {"test_a[*]"}, tmp_path) == set()


def test_what_was_recorded_under_another_stamp_is_not_kept(tmp_path: Path) -> None:
    RecordedModule("4.3.1 0123456789abcdef", {"test_a[*]": {}}).write(file_of(MODULE, tmp_path))
    update(MODULE, {"test_b[*]": {}}, directory=tmp_path)
    assert due_tests(MODULE, {"test_a[*]", "test_b[*]"}, tmp_path) == {"test_a[*]"}


def test_answers_come_back_from_a_file_as_they_went(tmp_path: Path) -> None:
    long = "x" * 200
    answers = comparable({"a": (1, None, b"\xff"), "b": {1: long}, "c": {1: long}, "d": {2, 1}, "e": bytes(1000)})
    update(MODULE, {"test_a[*]": answers}, directory=tmp_path)
    path = file_of(MODULE, tmp_path)
    assert RecordedModule.read(path).tests == {"test_a[*]": answers}
    assert path.read_text().count(long) == 1, "what two questions are answered with stands there once"
    assert answers["a"] == [1, None, {"bytes": "\xff"}]
    assert answers["e"]["size"] == 1000 > LARGEST_BYTES


@pytest.mark.parametrize("answer", [object(), ValueError("x"), {"1": 0, 1: {object()}}])
def test_what_cannot_be_recorded_is_not_recorded_as_something_else(answer: object) -> None:
    with pytest.raises(TypeError):
        comparable(answer)


# The comparison


def test_a_difference_is_shown_with_both_answers() -> None:
    answers = TestAnswers("pykbroker", {"error": "NONE", "rows": [{"name": "x", "value": 1}]})
    answers.same("error", "NONE")
    with pytest.raises(AssertionError, match=r"(?s)error.*apache-kafka\s+'NONE'.*pykbroker\s+'INVALID'"):
        TestAnswers("pykbroker", {"error": "NONE"}).same("error", "INVALID")
    with pytest.raises(AssertionError, match=r"rows: \[x\].value: apache-kafka 1, pykbroker 2"):
        answers.all_same({"rows": [{"name": "x", "value": 2}]})
    with pytest.raises(AssertionError, match=r"(?s)expected\s+'A'.*apache-kafka\s+'A'.*pykbroker\s+'B'"):
        TestAnswers("pykbroker", {"code": "A"}).expect("code", "B", "A")


def test_questions_that_only_one_was_asked_are_differences() -> None:
    answers = TestAnswers("pykbroker", {"first": 1, "second": 2})
    answers.same("first", 1)
    with pytest.raises(AssertionError, match="apache-kafka was asked as well: second"):
        answers.ensure_complete()
    with pytest.raises(NotAsked, match="third"):
        answers.same("third", 3)
    answers.expect("of ours alone, where the other ends", 3, 3)
    with pytest.raises(AssertionError, match=r"(?s)third.*fourth"):
        answers.all_same({"third": 3, "fourth": 4})


def test_one_question_has_one_answer() -> None:
    answers = TestAnswers("apache-kafka")
    answers.same("error", "NONE")
    answers.same("error", "NONE")
    with pytest.raises(AssertionError, match="asked twice"):
        answers.same("error", "INVALID")


# Tests by name


def item(name: str, **params: str) -> Any:
    own = [pytest.mark.parametrize("kind", ["pykbroker"])] if params.pop("own", None) else []
    return SimpleNamespace(
        name=name,
        path=MODULE,
        callspec=SimpleNamespace(params=params),
        iter_markers=lambda kind: [each.mark for each in own],
        stash=pytest.Stash(),
        config=SimpleNamespace(getoption=lambda option: False),
    )


def test_a_test_has_one_name_for_both_brokers() -> None:
    of_kafka = item("test_a[apache-kafka-under pykbroker's controller]", kind="apache-kafka")
    of_ours = item("test_a[pykbroker-under pykbroker's controller]", kind="pykbroker")
    assert plugin.name_of(of_kafka) == plugin.name_of(of_ours) == "test_a[*-under pykbroker's controller]"
    assert plugin.name_of(item("test_b[1-pykbroker]", cluster_kind="pykbroker")) == "test_b[1-*]"


def test_pykbroker_does_not_pass_where_apache_kafka_was_not_asked() -> None:
    with pytest.raises(pytest.fail.Exception, match="make record"):
        plugin.pytest_runtest_setup(item("test_that_nobody_recorded[pykbroker]", kind="pykbroker"))
    plugin.pytest_runtest_setup(item("test_of_ours_alone[pykbroker]", kind="pykbroker", own="yes"))


# The digest


def digest_of(source: str) -> str:
    return scenario_digest.source_digest(ast.parse(source), ROOT / "compat_tests" / "test_sample.py")


SAMPLE = """
from pykbroker.protocol.errors import ErrorCode
from .waiting import until
import confluent_kafka

def ask(name: str, *, count=3) -> None:
    match count:
        case 1 | 2:
            print(f"{name!r:>{count}} of {count:,} {'x' 'y'}", b"\\x00", 1.5, -1, ...)
    return [each async for each in name if (last := each)]
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def ask", "# a comment\ndef ask"),
        ("    match", '    """What it does."""\n\n    match'),
        ("name: str, *, count=3) -> None", "name, *,\n    count=3,\n)"),
        ("from pykbroker.protocol.errors import ErrorCode", "from pykbroker.errors import ErrorCode"),
        ("from .waiting import until", "from compat_tests.other import until"),
    ],
)
def test_what_does_not_reach_a_broker_does_not_count(old: str, new: str) -> None:
    assert SAMPLE.count(old) == 1
    assert digest_of(SAMPLE.replace(old, new)) == digest_of(SAMPLE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("count=3", "count=4"),
        ("{count:,}", "{count:_}"),
        ("case 1 | 2", "case 1"),
        ('b"\\x00"', '"\\x00"'),
        ("import confluent_kafka", "import kafka as confluent_kafka"),
        ("return [", "return await ["),
    ],
)
def test_what_a_scenario_does_counts(old: str, new: str) -> None:
    assert SAMPLE.count(old) == 1
    assert digest_of(SAMPLE.replace(old, new)) != digest_of(SAMPLE)


def test_every_version_of_python_has_the_same_digests() -> None:
    assert digest_of(SAMPLE) == "d3556914b362125e11c9024b79203938d0eb97397a8e7375b39bf9a5deb4e84a"


def test_what_a_scenario_imports_counts_however_far_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario_digest, "ROOT", tmp_path)
    files = {
        "compat_tests/__init__.py": "",
        "compat_tests/conftest.py": "from . import only_for_conftest",
        "compat_tests/only_for_conftest.py": "",
        "compat_tests/broker_properties.py": "",
        "compat_tests/near.py": "from tests.layer import far",
        "compat_tests/program.py": "",
        "compat_tests/script.py": "",
        "compat_tests/unrelated.py": "",
        "compat_tests/folder/__init__.py": "",
        "compat_tests/folder/conftest.py": "from .local import thing",
        "compat_tests/folder/local.py": "",
        "compat_tests/folder/test_it.py": "from ..near import x\nRUN = ['-m', 'compat_tests.program']\n",
        "tests/__init__.py": "",
        "tests/layer/far.py": "SCRIPT = 'compat_tests.script'",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = scenario_digest.scenario_files(tmp_path / "compat_tests/folder/test_it.py")
    outside = {"conftest.py", "only_for_conftest.py", "broker_properties.py", "unrelated.py"}
    expected = {name for name in files if name.removeprefix("compat_tests/") not in outside}
    assert {path.relative_to(tmp_path).as_posix() for path in found} == expected


def test_the_modules_outside_of_digests_are_there() -> None:
    assert [name for name in scenario_digest.INFRASTRUCTURE if not (ROOT / name).exists()] == []
    assert (ROOT / scenario_digest.PROPERTIES).exists()
