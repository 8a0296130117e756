"""`docs/conformance.md`: the table of Apache Kafka's own tests, from what is recorded.

`python -m compat_tests.kafkas_own_tests.conformance` writes it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from compat_tests.apache_kafka.jars import KAFKA_VERSION

from .class_run import ABORTED, FAILED, KAFKA, PASSED, PYKBROKER
from .harness import HERE
from .known_differences import known_differences, methods_not_run, why_class_is_left_out, why_test_may_fail
from .recorded_results import RecordedTest, Results, read

PAGE = HERE.parents[1] / "docs" / "conformance.md"
CLASSES = HERE / "classes.txt"

HEAD = f"""# Conformance

Apache Kafka {KAFKA_VERSION} publishes its integration tests. `compat_tests/kafkas_own_tests/` runs them with processes
of pykbroker where they expect Kafka's own broker in their JVM, and with processes of Apache Kafka to tell what is the
harness's fault. `make kafka-tests` runs all of them, `make kafka-tests CLASSES="kafka.api.TransactionsTest"` some;
`.ci/run` runs a part, another one for another commit. This page is written by
`python -m compat_tests.kafkas_own_tests.conformance` from what was recorded in such runs (`--record`).

A test is *aborted* where it asks for objects that only a broker in the test's own JVM has. Tests that Apache Kafka
marks as flaky are left out by the filter that its test jars bring.
"""


def classes_of_jars() -> dict[str, str]:
    """Each test class that starts a cluster, with its jar."""
    return {name: jar for jar, name in map(str.split, CLASSES.read_text().splitlines())}


def page() -> str:
    here, kafka = read(PYKBROKER), read(KAFKA)
    return "\n".join([HEAD, *_figures(here, kafka), "", *_table(here, kafka), "", *_reasons()]) + "\n"


def offered_tests(here: Results, kafka: Results) -> dict[tuple[str, str], RecordedTest]:
    """The results of pykbroker that count: of tests for what it offers, and that pass on Apache Kafka or were not run
    there.
    """
    return {
        (name, test): result
        for name, tests in here.items()
        for test, result in tests.items()
        if result.verdict != ABORTED
        and ((known := why_test_may_fail(name, test)) is None or known.is_fault)
        and kafka.get(name, {}).get(test, RecordedTest(PASSED, 0)).verdict == PASSED
    }


def _figures(here: Results, kafka: Results) -> list[str]:
    verdicts = Counter(result.verdict for tests in here.values() for result in tests.values())
    offered = offered_tests(here, kafka)
    passed = sum(result.verdict == PASSED for result in offered.values())
    return [
        f"On pykbroker {sum(verdicts.values())} tests of {len(here)} classes were run: {verdicts[PASSED]} passed, "
        f"{verdicts[FAILED]} failed, {verdicts[ABORTED]} were aborted.",
        f"Of {len(offered)} that pass with Apache Kafka's processes, or were not run with them, and are of what "
        f"pykbroker offers, {passed} pass ({100 * passed / max(1, len(offered)):.1f} %).",
    ]


def _table(here: Results, kafka: Results) -> list[str]:
    """Those that are not run come last."""
    rows = ["| class | pykbroker: passed, failed, aborted | Apache Kafka's processes | excluded |", "|---|---|---|---|"]
    for name in sorted(classes_of_jars(), key=lambda each: (why_class_is_left_out(each) is not None, each)):
        rows.append(f"| `{name}` | {_counts(here.get(name))} | {_counts(kafka.get(name))} | {_excluded(name, here)} |")
    return rows


def _counts(tests: dict[str, RecordedTest] | None) -> str:
    if tests is None:
        return "not run"
    verdicts = Counter(result.verdict for result in tests.values())
    return f"{verdicts[PASSED]}, {verdicts[FAILED]}, {verdicts[ABORTED]}"


def _excluded(name: str, here: Results) -> str:
    whole = why_class_is_left_out(name)
    if whole is not None:
        return f"all: {whole.name}"
    reasons = Counter(
        known.name
        for test, result in here.get(name, {}).items()
        if result.verdict == FAILED and (known := why_test_may_fail(name, test))
    )
    reasons.update(known.name for known in methods_not_run(name).values())
    return ", ".join(f"{count}: {reason}" for reason, count in sorted(reasons.items()))


def _reasons() -> list[str]:
    return ["## Why tests are excluded", "", *(f"- **{each.name}**: {each.text}" for each in known_differences())]


def write(path: Path = PAGE) -> None:
    path.write_text(page())


if __name__ == "__main__":
    write()
