"""Runs Apache Kafka's own integration tests on pykbroker: all, the named classes, or a part of all.

A test that fails beside others runs once more with a cluster of its own. What fails then and is no known difference
fails the run, as does a node that died, hung or printed a traceback.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import sys
from pathlib import Path

from compat_tests.apache_kafka.jars import cache_directory

from . import conformance
from .class_run import (
    ABORTED,
    FAILED,
    KAFKA,
    PASSED,
    PYKBROKER,
    ClassOutcome,
    ClassRun,
    Outcome,
    RunBroker,
    failing_methods,
    run_class,
)
from .harness import classes_of_clusters, why_there_is_no_harness
from .known_differences import methods_not_run, why_class_is_left_out, why_test_may_fail
from .parts import part_of_this_commit, parts
from .ports import ports_of_a_run
from .recorded_results import read, record


def main() -> None:
    options = _options()
    if reason := why_there_is_no_harness():
        sys.exit(f"left out: {reason}")
    if options.survey:
        _write_survey()
        return
    runs = _runs(options)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(functools.partial(_run, options=options), runs)
        problems = [problem for each in found for problem in each]
    if options.record:
        conformance.write()
    if problems:
        sys.exit("\n".join([f"{len(problems)} problems:", *problems]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m compat_tests.kafkas_own_tests", description=__doc__)
    parser.add_argument("classes", nargs="*", help="CLASS, or CLASS#method,method")
    parser.add_argument("--broker", choices=[PYKBROKER, KAFKA], default=PYKBROKER)
    parser.add_argument("--pykbroker", type=Path, default=Path(sys.executable).with_name("pykbroker"), help="command")
    parser.add_argument("--minutes", type=float, help="run a part of all tests that takes about so long")
    parser.add_argument("--part", type=int, help="which part, from 1 on; another commit has another one")
    parser.add_argument("--jobs", type=int, default=2, help="so many classes at a time")
    parser.add_argument("--own-clusters", action="store_true", help="give each test a cluster of its own")
    parser.add_argument("--record", action="store_true", help="keep the results, and write docs/conformance.md")
    parser.add_argument("--survey", action="store_true", help="write the list of all test classes that start clusters")
    parser.add_argument("--output", type=Path, default=cache_directory() / "kafka-tests-output", help="logs")
    return parser.parse_args()


def _write_survey() -> None:
    lines = [f"{jar} {name}\n" for name, jar in sorted(classes_of_clusters().items(), key=lambda each: each[::-1])]
    conformance.CLASSES.write_text("".join(lines))


def _runs(options: argparse.Namespace) -> list[ClassRun]:
    if options.classes:
        return [_named(each, options.own_clusters) for each in options.classes]
    if not options.minutes:
        names = [name for name in conformance.classes_of_jars() if why_class_is_left_out(name) is None]
        return [_named(name, options.own_clusters) for name in names]
    made = parts(conformance.classes_of_jars(), read(PYKBROKER), options.minutes * 60 * options.jobs)
    part = options.part or part_of_this_commit(len(made))
    print(  # noqa: T201
        f"Apache Kafka's own tests, part {part} of {len(made)}; the same again: "
        f"make kafka-tests MINUTES={options.minutes:g} PART={part}",
        flush=True,
    )
    return made[part - 1]


def _named(text: str, has_own_clusters: bool) -> ClassRun:
    name, _, methods = text.partition("#")
    left_out = frozenset(methods_not_run(name))
    return ClassRun(name, frozenset(filter(None, methods.split(","))), left_out, has_own_clusters)


def _run(run: ClassRun, options: argparse.Namespace) -> list[str]:
    """The problems, a line each."""
    with ports_of_a_run() as first_port:
        broker = RunBroker(options.broker, options.pykbroker, first_port)
        outcome = _run_and_again(run, broker, options.output / options.broker)
    tests = outcome.tests
    problems = [*_problems(run, outcome), *([] if options.broker == KAFKA else outcome.faults)]
    counts = [sum(each.verdict == verdict for each in tests.values()) for verdict in (PASSED, FAILED, ABORTED)]
    print(f"{run.test_class}: passed, failed, aborted: {counts}", *problems, sep="\n  ", flush=True)  # noqa: T201
    if options.record:
        record(options.broker, run.test_class, run.methods, tests)
    return problems


def _run_and_again(run: ClassRun, broker: RunBroker, output: Path) -> ClassOutcome:
    """What fails in a cluster that others used before runs once more, in one of its own."""
    directory = output / f"{run.short_name}-{broker.first_port}"
    outcome = run_class(run, broker, directory)
    again = failing_methods(_unexpected(run, outcome))
    if not again or run.has_own_clusters:
        return outcome
    alone = run_class(ClassRun(run.test_class, again, has_own_clusters=True), broker, directory / "alone")
    return ClassOutcome(outcome.tests | alone.tests, outcome.faults + alone.faults, directory)


def _unexpected(run: ClassRun, outcome: ClassOutcome) -> list[tuple[str, Outcome]]:
    """Those that are to pass: no difference is known, and Apache Kafka's processes are not recorded as failing."""
    recorded = read(KAFKA).get(run.test_class, {})
    failing = {test for test, each in recorded.items() if each.verdict == FAILED}
    return [
        (test, result)
        for test, result in outcome.tests.items()
        if test not in failing and why_test_may_fail(run.test_class, test) is None
    ]


def _problems(run: ClassRun, outcome: ClassOutcome) -> list[str]:
    found = [
        f"{run.test_class}#{test}: {result.text} ({outcome.directory})"
        for test, result in _unexpected(run, outcome)
        if result.verdict == FAILED
    ]
    if not outcome.tests:
        found.append(f"{run.test_class}: the run ended without a report ({outcome.directory}/console.log)")
    return found


if __name__ == "__main__":
    main()
