"""`docs/conformance.md` and what it is made of: the recorded results of Apache Kafka's own tests."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from compat_tests.kafkas_own_tests import conformance
from compat_tests.kafkas_own_tests.class_run import FAILED, KAFKA, PASSED, PYKBROKER, ClassRun, method_of, read_report
from compat_tests.kafkas_own_tests.known_differences import (
    known_differences,
    methods_not_run,
    why_class_is_left_out,
    why_test_may_fail,
)
from compat_tests.kafkas_own_tests.parts import parts
from compat_tests.kafkas_own_tests.recorded_results import RecordedTest, read

REPORT = """<testsuite><testcase name="testFetch(String, String)[2]" time="1,002.5"/>
<testcase name="testClose()" time="3"><failure message="expected: &lt;1&gt;
 but was: &lt;2&gt;" type="AssertionFailedError">at …</failure></testcase>
<testcase name="testLog" time="0.1"><skipped>needs broker internals: LogManager</skipped></testcase></testsuite>"""


def test_the_page_is_in_step_with_what_is_recorded() -> None:
    assert conformance.PAGE.read_text() == conformance.page(), "python -m compat_tests.kafkas_own_tests.conformance"


def test_what_fails_on_pykbroker_and_passes_on_apache_kafka_is_a_known_difference() -> None:
    kafka = read(KAFKA)
    unknown = [
        f"{name}#{test}"
        for name, tests in read(PYKBROKER).items()
        for test, result in tests.items()
        if result.verdict == FAILED
        and why_test_may_fail(name, test) is None
        and kafka.get(name, {}).get(test, RecordedTest(PASSED, 0)).verdict == PASSED
    ]
    assert unknown == []


def test_every_class_has_results_or_a_reason_why_it_was_not_run() -> None:
    without_results = conformance.classes_of_jars().keys() - read(PYKBROKER).keys()
    assert [name for name in sorted(without_results) if why_class_is_left_out(name) is None] == []


def test_known_differences_name_tests_that_are_there_and_do_not_pass() -> None:
    recorded = read(PYKBROKER)
    for known in known_differences():
        named = known.classes | {each.partition("#")[0] for each in known.methods}
        assert named <= conformance.classes_of_jars().keys()
        for each in known.tests:
            name, _, test = each.partition("#")
            results = [t for key, t in recorded[name].items() if test in (key, method_of(key))]
            assert any(result.verdict != PASSED for result in results), f"{each} passes: it is no difference"


def test_99_of_100_tests_of_what_is_offered_pass() -> None:
    offered = conformance.offered_tests(read(PYKBROKER), read(KAFKA))
    assert sum(result.verdict == PASSED for result in offered.values()) >= 0.99 * len(offered)


@pytest.mark.parametrize("minutes", [3, 12])
def test_every_class_is_left_out_for_a_reason_or_in_a_part_with_all_of_its_methods(minutes: int) -> None:
    recorded = read(PYKBROKER)
    planned: dict[str, list[ClassRun]] = defaultdict(list)
    for part in parts(conformance.classes_of_jars(), recorded, minutes * 60):
        for run in part:
            planned[run.test_class].append(run)
    left_out = {name for name in conformance.classes_of_jars() if why_class_is_left_out(name)}
    assert planned.keys() == conformance.classes_of_jars().keys() - left_out
    for name, runs in planned.items():
        methods = {method_of(test) for test in recorded.get(name, {})} - methods_not_run(name).keys()
        if runs != [ClassRun(name, left_out=frozenset(methods_not_run(name)))]:
            assert sorted(method for run in runs for method in run.methods) == sorted(methods)


def test_parts_take_about_the_same_time_and_none_much_longer_than_asked_for() -> None:
    recorded = {"a": {f"test{i}": RecordedTest(PASSED, 40) for i in range(10)}, "b": {"test": RecordedTest(PASSED, 30)}}
    made = parts(["a", "b", "new"], recorded, 120)
    seconds = [sum(40 * len(run.methods) or 40 for run in part) for part in made]
    assert len(made) == 5
    assert max(seconds) <= 120
    assert {run.test_class for part in made for run in part} == {"a", "b", "new"}


def test_junits_report_is_read_with_verdicts_and_reasons(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    outcomes = read_report(path)
    assert {test: (each.verdict, each.text) for test, each in outcomes.items()} == {
        "testFetch[2]": ("passed", ""),
        "testClose": ("failed", "expected: <1> but was: <2>"),
        "testLog": ("aborted", "needs broker internals: LogManager"),
    }
    assert outcomes["testFetch[2]"].seconds == 1002.5
    assert read_report(tmp_path / "none.xml") == {}
