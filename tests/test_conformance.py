"""`docs/conformance.md` and what it is made of: the recorded results of Apache Kafka's own tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.kafkas_own_tests import conformance
from compat_tests.kafkas_own_tests.class_run import FAILED, KAFKA, PASSED, PYKBROKER, method_of, read_report
from compat_tests.kafkas_own_tests.known_differences import known_differences, why_class_is_left_out, why_test_may_fail
from compat_tests.kafkas_own_tests.parts import parts
from compat_tests.kafkas_own_tests.recorded_results import RecordedTest, read

REPORT = """<testsuite><testcase name="testFetch(String, String)[2]" time="1,002.5"/>
<testcase name="testClose()" time="3"><failure message="expected: &lt;1&gt;
 but was: &lt;2&gt;" type="AssertionFailedError">at …</failure></testcase>
<testcase name="testLog" time="0.1"><skipped>needs broker internals: LogManager</skipped></testcase></testsuite>"""


def test_the_page_is_in_step_with_what_is_recorded() -> None:
    assert conformance.PAGE.read_text() == conformance.page(), "python -m compat_tests.kafkas_own_tests.conformance"


def test_every_test_class_has_results_or_is_left_out_for_a_reason() -> None:
    recorded = read(PYKBROKER)
    missing = [
        name for name in conformance.classes_of_jars() if name not in recorded and why_class_is_left_out(name) is None
    ]
    assert missing == []


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


def test_known_differences_name_tests_that_are_there_and_do_not_pass() -> None:
    recorded = read(PYKBROKER)
    for known in known_differences():
        assert known.classes <= conformance.classes_of_jars().keys()
        for each in known.tests:
            name, _, test = each.partition("#")
            results = [t for key, t in recorded[name].items() if test in (key, method_of(key))]
            assert any(result.verdict != PASSED for result in results), f"{each} passes: it is no difference"


def test_99_of_100_tests_of_what_is_offered_pass() -> None:
    offered = conformance.offered_tests(read(PYKBROKER), read(KAFKA))
    assert sum(result.verdict == PASSED for result in offered.values()) >= 0.99 * len(offered)


@pytest.mark.parametrize("minutes", [3, 12])
def test_every_method_is_in_one_part_and_parts_take_about_the_time(minutes: int) -> None:
    recorded = read(PYKBROKER)
    run = {name: tests for name, tests in recorded.items() if why_class_is_left_out(name) is None}
    due = {(name, method_of(test)) for name, tests in run.items() for test in tests}
    made = parts(recorded, minutes * 60)
    planned = [
        (run.test_class, method)
        for part in made
        for run in part
        for method in run.methods or {method_of(test) for test in recorded[run.test_class]}
    ]
    assert sorted(planned) == sorted(due)
    for part in made:
        seconds = sum(
            result.seconds
            for run in part
            for test, result in recorded[run.test_class].items()
            if not run.methods or method_of(test) in run.methods
        )
        assert len(part) == 1 or seconds <= 1.5 * minutes * 60


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
